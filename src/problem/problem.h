/* The compiled problem: a config whose expressions are IR nodes, with the channels each point set carries. */
#ifndef PN_PROBLEM_PROBLEM_H
#define PN_PROBLEM_PROBLEM_H

#include "expression/expression.h"
#include "geometry/sampler.h"
#include "problem/config.h"

typedef struct pn_term { /* one residual */
    char *name;      /* owned; unique over the problem: "heat", or "flow.mass" where a set has several */
    pn_value residual;
    double weight;
} pn_term;

typedef struct pn_set { /* one point set with its terms */
    char *name; /* owned */
    pn_face *face; size_t face_count; /* equations: one "face" with nothing fixed */
    size_t points; /* at least one a face */
    bool fixed; /* resample = "never" */
    bool uses_normal; /* some residual reads a normal component that varies over the set's faces */
    size_t first_term, term_count; /* into pn_problem.term */
    pn_layout layout;
} pn_set;

typedef struct pn_problem {
    const pn_config *config; /* borrowed */
    pn_ir *ir;
    pn_scope *scope;
    size_t coordinates, fields;
    const char **coordinate_name, **field_name; /* borrowed from config */
    double *lower, *upper; /* [coordinates] */
    int time;              /* coordinate or -1 */
    pn_set *set; size_t sets;
    pn_term *term; size_t terms;
    /* Evaluation set, [coordinates][evaluation_points] float64, and the reference there, [fields][evaluation_points]; NaN for a
     * field without reference. Grids run with the last coordinate fastest. */
    size_t evaluation_points;
    size_t *evaluation_grid; /* [coordinates], or NULL when the points are seeded random */
    double *evaluation_coordinate, *reference;
    bool *has_reference;        /* [fields] */
    double *reference_error;    /* [fields]: the reference's own stated relative error, NaN when not stated */
} pn_problem;

/* What the evaluation set takes as it was read. */
static inline size_t pn_evaluation_bytes(const pn_problem *problem) {
    return (problem->coordinates + problem->fields) * problem->evaluation_points * sizeof(double);
}

/* Compiles all expressions of a config and checks what they mean together: faces exist, every term has a field, every field occurs,
 * dn() only on faces, reference file's shape, names unique ... All errors found in one run, as the thread's message (CONFIG). */
pinn_status pn_problem_create(const pn_config *config, pn_problem **out);
void pn_problem_destroy(pn_problem *problem);
/* Applies a phase's `points`; true through `changed` when any count differs from before. */
pinn_status pn_problem_set_points(pn_problem *problem, const pn_config_phase *phase, bool *changed);
/* A face as `on` takes it: "x=min", "x=0.3". Not for the inside of the domain. */
void pn_face_print(const pn_problem *problem, const pn_face *face, pn_text *out);

#endif
