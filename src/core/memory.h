/* Heap memory for the library: one door, so that tests can make the n-th allocation fail and loop over every n. */
#ifndef PN_CORE_MEMORY_H
#define PN_CORE_MEMORY_H

#include <stddef.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `count` zeroed elements of `size` bytes, 64-byte aligned; NULL when memory is short, the product overflows, or a test asked for
 * a failure. Never NULL for count 0. The caller owns the result and frees it with pn_free. */
void *pn_allocate(size_t count, size_t size);

/* Grows a block of pn_allocate from `old_count` to `count` elements; the old block stays valid on failure (NULL). */
void *pn_reallocate(void *block, size_t old_count, size_t count, size_t size);

void pn_free(void *block);

/* A zero-terminated copy of the first `length` bytes of `text`; owned by the caller, freed with pn_free. NULL when memory is short. */
char *pn_duplicate(const char *text, size_t length);

/* Tests only: the (n+1)-th allocation from now on fails, once; n < 0 switches that off. Per process, atomic. */
void pn_memory_fail_after(long n);

/* Shorthand for the error every failed allocation ends in. */
#define PN_NO_MEMORY(what) pn_fail(PINN_NO_MEMORY, "out of memory for %s", (what))

#ifdef __cplusplus
}
#endif
#endif
