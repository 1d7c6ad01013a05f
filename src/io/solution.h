/* HDF5 files of fields over points: solution.h5 that a run leaves, reference files that a run reads. */
#ifndef PN_IO_SOLUTION_H
#define PN_IO_SOLUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

typedef struct pn_solution {
    size_t coordinates, fields, points;
    const char *const *coordinate_name, *const *field_name;
    const size_t *grid;       /* [coordinates] axis lengths, last fastest; NULL: scattered, coordinates are columns */
    const double *coordinate; /* [coordinates][points] */
    const double *field;      /* [fields][points] */
    const double *reference;  /* [fields][points], NaN rows where there is none; may be NULL */
    const char *title;        /* the problem's; NULL: none */
    uint64_t step, seed;      /* of the run, when the fields were computed */
} pn_solution;

/* Grid: 1-D axis datasets named as the coordinates, fields in domain order (/u), /reference/u, /error/u = u - reference. Scattered:
 * equal-length columns. Attributes of the root: title, step, seed, coordinates (their names, in the order of the fields' axes),
 * layout ("grid" or "columns"). Atomic like a checkpoint. */
pinn_status pn_solution_write(const char *path, const pn_solution *solution);
/* The step after which the fields of such a file were computed. IO: no such file. */
pinn_status pn_solution_step(const char *path, uint64_t *step);

typedef struct pn_reference { /* what a reference file holds, laid out as an evaluation set */
    size_t points;
    size_t *grid;       /* owned, [coordinates] or NULL when scattered */
    double *coordinate; /* owned, [coordinates][points] */
    double *field;      /* owned, [fields][points]; NaN rows for fields the file has not */
    bool *has;          /* owned, [fields] */
    double error;       /* attribute "error" of the file (the reference's own relative error), NaN when absent */
} pn_reference;

/* Errors (IO or CONFIG, naming file and dataset): missing file, no regular file, no HDF5 file, more than 8 GB of numbers, a
 * coordinate's axis missing, a field's shape that does not fit the axes, no field of the problem in it, coordinates outside [lower,
 * upper] by more than rounding. */
pinn_status pn_reference_read(const char *path, const char *const *coordinate_name, const double *lower, const double *upper,
                              size_t coordinates, const char *const *field_name, size_t fields, pn_reference *out);
void pn_reference_free(pn_reference *reference);

#endif
