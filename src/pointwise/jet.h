/* Jets: the partial derivatives a point set carries through the network, and the chain rule for them.
 *
 * A channel is one plain partial derivative d^|a| u / dx^a (not divided by factorials), named by its coordinates in ascending
 * order ({} = the value, {0,0} = u_xx), or the Laplacian-like sum L u = sum_i a_i d2u/dx_i2. A layout is a channel list that is
 * closed downward: with u_xxt it holds u_xx, u_xt, u_x, u_t and u. Channel 0 is always the value.
 *
 * Chain rule (Faa di Bruno for partial derivatives; Hardy 2006): the channel of s(z) with coordinates a_1..a_n is the sum over
 * all set partitions p of {1..n} of s^(|p|)(z) times the product over blocks B in p of the channel of z with coordinates {a_i : i
 * in B}. Laplacian (Li et al. 2024, forward Laplacian): L s(z) = s'(z) Lz + s''(z) sum_i a_i z_i^2.
 */
#ifndef PN_POINTWISE_JET_H
#define PN_POINTWISE_JET_H

#include "pointwise/ir.h"

#define PN_MAX_COORDINATES 100
#define PN_MAX_ORDER 8 /* of one partial derivative; set partitions of 8 elements: 4140 */

typedef struct pn_channel {
    uint8_t order;                    /* 0 = the value; 2 for the Laplacian */
    bool laplacian;                   /* then `coordinate` is unused and the layout's coefficients apply */
    uint8_t coordinate[PN_MAX_ORDER]; /* ascending; entries beyond `order` are 0 */
} pn_channel;

typedef struct pn_layout {
    size_t count;
    pn_channel *channel;                  /* owned; sorted: by order, then lexicographically, the Laplacian last */
    double laplacian[PN_MAX_COORDINATES]; /* a_i of the Laplacian channel; all 0 when there is none */
    size_t coordinates;                   /* of the problem */
} pn_layout;

/* The smallest layout that holds the value and all `count` channels asked for: downward closure; for a Laplacian the first
 * derivatives with a_i != 0. Errors: BAD_ARGUMENT (order over PN_MAX_ORDER), NO_MEMORY. */
pinn_status pn_layout_create(size_t coordinates, const pn_channel *want, size_t count, const double *laplacian, pn_layout *out);
void pn_layout_free(pn_layout *layout);
/* Index of a channel, or -1. */
int pn_layout_find(const pn_layout *layout, const pn_channel *channel);
bool pn_layout_equal(const pn_layout *a, const pn_layout *b);
/* Units. In a narrow domain u_xx is many powers of ten beside u, and products that scale all channels of a point alike (fp16 on tensor cores) would
 * lose the smaller ones. So channels are carried as derivatives by x_i/unit_i, which makes them of one size; the derivative by the
 * coordinates themselves is `factor` times the channel. All are powers of two: scaling by them is exact. */
/* The power of two to divide a positive size by, rounded towards 1; 1 for sizes between 1/4 and 4, which cost nothing to leave. */
double pn_power_of_two(double size);
/* The same channels per unit[i] of coordinate i: coefficients of the Laplacian change, to at most about 1. Borrows `layout`'s channels. */
pn_layout pn_layout_carried(const pn_layout *layout, const double *unit);
/* The factor of a channel of `layout`, the one in the coordinates' own units. */
double pn_channel_factor(const pn_layout *layout, const pn_channel *channel, const double *unit);
/* A channel of `layout` as an expression has it: "u_xxt"; "lap(u)" where that is the sum over all coordinates but `time` (-1: there is none),
 * else the sum, "u_tt - 4*u_xx", cut when long. `names` has layout->coordinates entries. */
void pn_channel_print(const pn_layout *layout, const pn_channel *channel, const char *field, const char *const *names, int time, pn_text *out);
/* The channel one order up: `channel` differentiated once more by coordinate i. Its order must be < PN_MAX_ORDER. */
pn_channel pn_channel_derivative(const pn_channel *channel, unsigned i);

/* Channels of s(z): z[c] are the nodes of z's channels, `s` builds the scalar function as a node of its one argument; its
 * derivatives are taken symbolically. out[c] for every channel of the layout. */
pinn_status pn_jet_compose(pn_ir *ir, const pn_layout *layout, pn_value (*s)(void *user, pn_ir *ir, pn_value z), void *user,
                           const pn_value *z, pn_value *out);

/* Activations by name: tanh, sin, silu, gelu, softplus. NULL for an unknown name. The function builds s(z). */
typedef pn_value pn_scalar_function(void *user, pn_ir *ir, pn_value z);
pn_scalar_function *pn_activation_find(const char *name);
extern const char *const pn_activation_names[]; /* NULL-terminated */

#endif
