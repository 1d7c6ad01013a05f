/* Machine code for the plain arithmetic of a program, so that intermediate values stay in vector registers.
 *
 * The bytecode falls into stages: runs of plain arithmetic (+ - * / sqrt min max, multiply-adds, copies, sums) become one function each;
 * everything else stays with the lane functions (lanes.h). The machine instructions are the ones the lane functions consist of, in the same
 * order lane by lane, so a program's bits are the same with and without. Where memory cannot be made executable, for other instruction sets
 * than AVX2 and AVX-512, or when PINN_NATIVE=0 in the environment, all is left to the lane functions. */
#ifndef PN_POINTWISE_NATIVE_H
#define PN_POINTWISE_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* slot[s]: address, as for a lane function; `bytes` of lanes, a multiple of the vector, above 0. */
typedef void pn_native_function(void *const *slot, size_t bytes);

typedef struct pn_stage { /* instructions [first, end) of a program */
    size_t first, end;
    pn_native_function *run; /* NULL: by lane functions */
} pn_stage;

struct pn_program;
/* Cuts the bytecode of a planned program, whose stages and code are unset, into stages. The only error: NO_MEMORY. */
pinn_status pn_native_create(struct pn_program *program);
void pn_native_destroy(struct pn_program *program);

#endif
