/* What the compiler of problems shares between its files. */
#ifndef PN_PROBLEM_PROBLEM_INTERNAL_H
#define PN_PROBLEM_PROBLEM_INTERNAL_H

#include "problem/config_internal.h"
#include "problem/problem.h"

typedef struct pn_compiler {
    const pn_config *config;
    pn_problem *problem; /* being filled */
    pn_diagnostics *list;
} pn_compiler;

/* A scope with all names of the config. Bad names and constants are reported; `good` is false when a name was bad. The names
 * arrays are the problem's. Errors: NO_MEMORY. */
pinn_status pn_scope_of_config(const pn_compiler *compiler, pn_ir *ir, pn_diagnostics *list, bool *good, pn_scope **out);

/* The faces that a condition's `on` names, appended to `set`; none when one of them is wrong, which is reported. Errors: NO_MEMORY. */
pinn_status pn_faces_read(const pn_compiler *compiler, const pn_config_set *config, pn_set *set);

/* The reference's formulas as nodes, or the reference file's content; with `evaluate`, also the evaluation set and the formulas'
 * values there. Reports what is wrong. Errors: NO_MEMORY. */
pinn_status pn_evaluation_create(const pn_compiler *compiler, bool evaluate);

/* Limits of precision and size, see limits.c; each reports what is over them. */
/* A coordinate's bounds; false when they can't be used. */
bool pn_domain_check(const pn_compiler *compiler, const pn_config_coordinate *coordinate, const double *bound);
/* The numbers in a residual that stands at `at`. Errors: NO_MEMORY. */
pinn_status pn_residual_check(const pn_compiler *compiler, pn_position at, pn_value residual);
/* At least one point a face, in every phase. */
void pn_points_check(const pn_compiler *compiler);
void pn_terms_check(const pn_compiler *compiler);
/* What needs layouts: factors of derivatives, weights, and rows of all sets in every phase. Errors: NO_MEMORY. */
pinn_status pn_limits_check(const pn_compiler *compiler);

/* Status after a call whose CONFIG errors went to the list: only others stop the compiler. */
static inline pinn_status pn_go_on(pinn_status status) { return status == PINN_CONFIG ? PINN_OK : status; }

#endif
