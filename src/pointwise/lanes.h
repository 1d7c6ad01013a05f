/* Lane operations: what the interpreter (program_run.c) executes where no machine code was made (native.h), one function per operation,
 * precision and instruction set.
 *
 * Every operand is a slot: an array of lanes (step 1) or one value repeated PN_LANE_GROUP bytes long (step 0). A function handles
 * `lanes` lanes, a multiple of the group, always by whole vectors and elementwise: a lane's bits depend on its own operands only, never
 * on where it lies. The destination may be one of the operands.
 *
 * The file lanes_<isa>.c is the template lanes_template.h compiled with that instruction set's flags (module.cmake).
 */
#ifndef PN_POINTWISE_LANES_H
#define PN_POINTWISE_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "core/real.h"
#include "pointwise/ir.h"

#define PN_LANE_GROUP 64 /* bytes: the widest vector of all instruction sets, so that scratch has one layout for all */

/* Beside the IR's operations: fused multiply-adds (two roundings where the machine has no fma), copies and sums. */
#define PN_LANE_TABLE(X) \
    X(FMA, 3)     /* d = a*b + c */ \
    X(FMS, 3)     /* d = a*b - c */ \
    X(FNMA, 3)    /* d = c - a*b */ \
    X(COPY, 1)    /* d = a */       \
    X(SUM, 1)     /* d += a */      \
    X(SUM_F64, 1) /* d += a, d float64 */

typedef enum pn_lane_op {
    PN_LANE_FIRST = PN_OP_COUNT - 1,
#define X(name, arity) PN_LANE_##name,
    PN_LANE_TABLE(X)
#undef X
    PN_LANE_COUNT
} pn_lane_op;

typedef struct pn_instruction {
    uint32_t op;         /* pn_op or pn_lane_op */
    uint32_t d, a, b, c; /* slots; unused operands are 0 */
} pn_instruction;

/* slot[s]: address; step[s]: 0 or 1. Unary operations ignore b and c. */
typedef void pn_lane_function(const pn_instruction *instruction, void *const *slot, const uint32_t *step, size_t lanes);

/* to[r*columns + j] = from[r*stride]; writes up to a group less one lane past the end. */
typedef void pn_spread_function(void *to, const void *from, size_t stride, size_t rows, size_t columns);

typedef struct pn_lanes {
    const char *isa;
    pn_spread_function *spread[2]; /* [pn_real] */
    pn_lane_function *function[2][PN_LANE_COUNT]; /* [pn_real][op]; NULL for CONST and INPUT */
} pn_lanes;

extern const pn_lanes pn_lanes_sse2;
extern const pn_lanes pn_lanes_avx2;
extern const pn_lanes pn_lanes_avx512;

/* The best set this machine has, or the one PINN_ISA names if that is lower. Static storage. */
const pn_lanes *pn_lanes_select(void);

#endif
