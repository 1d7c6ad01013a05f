/* P1 finite elements for -lap(u) = f on the unit square, u = 0 on its edge, with u = sin(pi x) sin(2 pi y) as the exact solution.
 *
 * The mesh is an n x n grid bent by a smooth map, each cell cut into two triangles. Triangle K with the gradients g of its hat
 * functions adds |K| g_a.g_b to the matrix and, by the rule of the edges' midpoints (exact for quadratics), |K|/3 sum_m f(m)
 * hat_a(m) to the load. (Ern and Guermond, Theory and Practice of Finite Elements, chapters 1 and 8.)
 */
#ifndef FEM_MESH_H
#define FEM_MESH_H

#include <stddef.h>
#include <stdint.h>

#define FEM_ROW 7 /* entries in a row at most: a vertex and its six neighbours */

typedef struct fem_system {
    uint32_t n; /* cells along a side; (n-1)^2 unknowns, one an inner vertex */
    uint32_t unknowns;
    uint32_t *offset; /* [unknowns + 1] */
    uint32_t *column; /* [offset[unknowns]] */
    double *value;    /* the same */
    double *load;     /* [unknowns] */
} fem_system;

/* Owns its arrays; freed by fem_system_destroy. False without memory. */
_Bool fem_system_create(uint32_t n, fem_system *out);
void fem_system_destroy(fem_system *system);
/* |u_h - u| in L2, u_h with the given values at the inner vertices, by the same rule on every triangle. */
double fem_system_error(const fem_system *system, const double *u);

#endif
