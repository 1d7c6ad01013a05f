/* The machine's measured rate of large matrix products: what a step's products are compared with. */
#ifndef PN_NETWORK_PEAK_H
#define PN_NETWORK_PEAK_H

#include "core/real.h"
#include "pinn_graph.h"

/* Floating-point operations a second of square products in the precision given: cuBLAS on a GPU; on a CPU every OpenMP thread multiplies
 * its own cache-sized matrices at the same time. The best of some repetitions, about a second. */
pinn_status pn_product_peak(pinn_context *context, pn_real real, bool tf32, double *operations_per_second);

#endif
