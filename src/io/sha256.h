/* SHA-256, FIPS 180-4: what tells a damaged checkpoint from a whole one. */
#ifndef PN_IO_SHA256_H
#define PN_IO_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct pn_sha256 {
    uint32_t state[8];
    uint64_t length;         /* bytes taken so far */
    unsigned char block[64]; /* the last length % 64 of them */
} pn_sha256;

enum { PN_SHA256_HEX = 65 };

void pn_sha256_begin(pn_sha256 *hash);
void pn_sha256_add(pn_sha256 *hash, const void *bytes, size_t length);
/* The digest as 64 lower-case hexadecimal digits and a zero; the hash is used up. */
void pn_sha256_end(pn_sha256 *hash, char hex[PN_SHA256_HEX]);

#endif
