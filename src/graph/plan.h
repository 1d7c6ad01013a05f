/* Contexts that plan: their planes have sizes and addresses of their own, and no memory, so that what does not fit a machine can be laid out
 * on it all the same. Graphs are recorded, checked and explained as ever; nothing runs. A context may plan for a while, to know the size of what
 * it is to make later. */
#ifndef PN_GRAPH_PLAN_H
#define PN_GRAPH_PLAN_H

#include "pinn_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether planes made from now on only have sizes. Writing into such a plane does nothing; reading one is REFUSED, and so is running any graph
 * while the context plans. Graphs hold planes of one kind: planned addresses say nothing of real ones. */
void pn_context_plan(pinn_context *context, bool plans);
bool pn_context_plans(const pinn_context *context);
/* Bytes of all planes that were created and not destroyed, wherever they lie. */
size_t pn_context_bytes(const pinn_context *context);
/* Bytes of memory of the GPU, or of the machine for the CPU executor; 0: not known. */
size_t pn_context_memory(const pinn_context *context);

#ifdef __cplusplus
}
#endif

#endif
