/* Writes x86-64 machine code: the few instructions native.c needs, for AVX-512 (EVEX) and for AVX2 with FMA3 (VEX).
 *
 * Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, 2.3 (VEX), 2.7 (EVEX) and the instructions' pages. */
#ifndef PN_POINTWISE_ENCODE_H
#define PN_POINTWISE_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/real.h"

enum { PN_RAX, PN_RCX, PN_RDX, PN_RBX, PN_RSP, PN_RBP, PN_RSI, PN_RDI, PN_R8, PN_R9, PN_R10, PN_R11, PN_R12, PN_R13, PN_R14, PN_R15 };

typedef struct pn_encoder {
    uint8_t *byte; size_t count, capacity; /* owned, [capacity] */
    bool wide;    /* AVX-512: 64-byte vectors, 32 registers; else AVX2: 32 bytes, 16 registers */
    pn_real real;
    bool failed;  /* out of memory: nothing is written any more */
} pn_encoder;

/* A vector register or memory at [base + displacement], [base + rcx + displacement] if `indexed`. */
typedef struct pn_place {
    bool memory, indexed;
    unsigned number; /* vector register, or base: a general one other than rsp */
    int32_t displacement;
} pn_place;

static inline pn_place pn_in_register(unsigned number) { return (pn_place){.number = number}; }

typedef enum pn_vector_op { /* d = a op b; a is a register */
    PN_V_ADD, PN_V_MUL, PN_V_SUB, PN_V_DIV, PN_V_MIN, PN_V_MAX,
    PN_V_FMA213, PN_V_FMA231,  /* d = a*d + b, d = a*b + d */
    PN_V_FMS213, PN_V_FMS231,  /* d = a*d - b, d = a*b - d */
    PN_V_FNMA213, PN_V_FNMA231 /* d = b - a*d, d = d - a*b */
} pn_vector_op;

void pn_encode_operate(pn_encoder *code, pn_vector_op op, unsigned d, unsigned a, pn_place b);
void pn_encode_sqrt(pn_encoder *code, unsigned d, pn_place a);
void pn_encode_load(pn_encoder *code, unsigned d, pn_place from); /* or a copy of a register */
void pn_encode_store(pn_encoder *code, unsigned from, pn_place to);

void pn_encode_push(pn_encoder *code, unsigned general);
void pn_encode_pop(pn_encoder *code, unsigned general);
void pn_encode_load_address(pn_encoder *code, unsigned general, unsigned base, int32_t displacement);
void pn_encode_clear_index(pn_encoder *code);                  /* rcx = 0 */
void pn_encode_loop(pn_encoder *code, size_t start); /* rcx += bytes of a vector; back to offset `start` while rcx < rsi */
void pn_encode_return(pn_encoder *code);
void pn_encode_align(pn_encoder *code, size_t bytes);

static inline unsigned pn_encoder_registers(const pn_encoder *code) { return code->wide ? 32 : 16; }

#endif
