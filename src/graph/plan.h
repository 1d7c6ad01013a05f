/* Contexts that plan: their planes have sizes and addresses of their own, and no memory, so that what does not fit a machine can be laid out
 * on it all the same. Graphs are recorded, checked and explained as ever; nothing runs. */
#ifndef PN_GRAPH_PLAN_H
#define PN_GRAPH_PLAN_H

#include "pinn_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From now on, before the first plane is made. Writing into a plane then does nothing; reading one, or running a graph, is REFUSED. */
void pn_context_plan(pinn_context *context);
bool pn_context_plans(const pinn_context *context);
/* Bytes of all planes that were created and not destroyed, wherever they lie. */
size_t pn_context_bytes(const pinn_context *context);
/* Bytes of memory of the GPU, or of the machine for the CPU executor; 0: not known. */
size_t pn_context_memory(const pinn_context *context);

#ifdef __cplusplus
}
#endif

#endif
