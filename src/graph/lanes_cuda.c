/* Streams: what may run at the same time on which, and a list's forks, waits and joins as events between them.
 *
 * cublasSetStream gives the handle back the default workspace, so cublasSetWorkspace always follows it (cuBLAS manual, 2.4.7
 * and 2.4.8). A workspace belongs to one lane: products that run beside each other must not share one.
 *
 * On a capturing stream the same calls make edges of the captured graph: a stream that waits for an event of a capture joins it.
 */
#include "graph/device.h"

/* ---- lanes ----------------------------------------------------------------------------------------------------------------- */

static pinn_status grow(pn_device *device, size_t count) {
    if (device->lanes >= count) return PINN_OK;
    pn_lane *grown = pn_reallocate(device->lane, device->lanes, count, sizeof *grown);
    if (!grown) return PN_NO_MEMORY("the streams of a graph's branches");
    device->lane = grown;
    device->lanes = count;
    return PINN_OK;
}

pinn_status pn_lanes_create(pinn_context *context, size_t count, size_t level) {
    pn_device *device = context->device;
    pinn_status status;
    PN_TRY(pn_device_select(context));
    PN_TRY(grow(device, count));
    for (size_t i = 0; i < count; i++) {
        pn_lane *lane = &device->lane[i];
        if (!lane->stream) PN_CUDA(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
        if (!lane->workspace) PN_CUDA(cudaMalloc(&lane->workspace, device->workspace_bytes));
        for (size_t k = 0; k <= level; k++)
            if (!lane->capture[k]) PN_CUDA(cudaStreamCreateWithFlags(&lane->capture[k], cudaStreamDefault));
    }
fail:
    return status;
}

void pn_lanes_destroy(pn_device *device) {
    for (size_t i = 0; i < device->lanes; i++) {
        pn_lane *lane = &device->lane[i];
        if (lane->workspace) cudaFree(lane->workspace);
        for (size_t k = 0; k <= PINN_GRAPH_DEPTH; k++)
            if (lane->capture[k]) cudaStreamDestroy(lane->capture[k]);
        if (lane->stream) cudaStreamDestroy(lane->stream);
    }
    pn_free(device->lane);
    device->lane = NULL;
    device->lanes = 0;
}

void pn_lanes_drain(pn_device *device) {
    for (size_t i = 1; i < device->lanes; i++) cudaStreamSynchronize(device->lane[i].stream);
    cudaGetLastError(); /* a failure is being reported already */
}

pinn_status pn_lane_use(pinn_context *context, cudaStream_t stream, size_t lane) {
    pn_device *device = context->device;
    pinn_status status;
    PN_BLAS(cublasSetStream(device->blas, stream));
    PN_BLAS(cublasSetWorkspace(device->blas, device->lane[lane].workspace, device->workspace_bytes));
    context->stream = stream;
fail:
    return status;
}

/* ---- walking --------------------------------------------------------------------------------------------------------------- */

pinn_status pn_name_failure(const pn_graph_node *node, pinn_status status) {
    if (status == PINN_OK) return status;
    return pn_fail_within(status, "graph '%s', node %zu '%s'", node->graph->name, node->number, node->name);
}

pinn_status pn_walk_to(pn_walk *walk, cudaStream_t stream, size_t lane, size_t level) {
    walk->lane = lane;
    walk->level = level;
    if (walk->stream == stream) return PINN_OK;
    walk->stream = stream;
    return pn_lane_use(walk->graph->context, stream, lane);
}

static pinn_status record_event(const pn_walk *walk, const pn_graph_node *node) {
    return pn_name_failure(node, pn_cuda_check(cudaEventRecord(node->event, walk->stream), "cudaEventRecord"));
}

static pinn_status wait_event(cudaStream_t stream, const pn_graph_node *waiting, const pn_graph_node *node) {
    return pn_name_failure(waiting,
                           pn_cuda_check(cudaStreamWaitEvent(stream, node->event, cudaEventWaitDefault), "cudaStreamWaitEvent"));
}

/* The stream of a branch, at the walk's level. */
static cudaStream_t stream_of(const pn_walk *walk, size_t lane) {
    const pn_device *device = walk->graph->context->device;
    return walk->capturing ? device->lane[lane].capture[walk->level] : device->lane[lane].stream;
}

/* The first branch runs on the stream of what is around the fork. */
static pinn_status walk_fork(pn_walk *walk, size_t position) {
    const pn_list *list = walk->list;
    const pn_graph_node *fork = list->node[position];
    const cudaStream_t stream = walk->stream;
    const size_t lane = walk->lane;
    pinn_status status;
    PN_TRY(record_event(walk, fork));
    for (size_t i = fork->next; i != fork->end; i = list->node[i]->next) {
        const pn_graph_node *branch = list->node[i];
        const bool first = branch->lane == lane;
        if (!first) {
            const cudaStream_t own = stream_of(walk, branch->lane);
            PN_TRY(wait_event(own, branch, fork)); /* joins the capture, if there is one, before anything else touches the stream */
            PN_TRY(pn_walk_to(walk, own, branch->lane, walk->level));
        }
        PN_TRY(pn_walk_range(walk, i + 1, branch->next));
        if (!first) PN_TRY(record_event(walk, branch));
        PN_TRY(pn_walk_to(walk, stream, lane, walk->level));
    }
    for (size_t i = fork->next; i != fork->end; i = list->node[i]->next)
        if (list->node[i]->lane != lane) PN_TRY(wait_event(stream, list->node[fork->end], list->node[i]));
fail:
    return status;
}

static pinn_status walk_wait(const pn_walk *walk, const pn_graph_node *wait) {
    for (size_t i = 0; i < wait->afters; i++) {
        pinn_status status = wait_event(walk->stream, wait, walk->list->node[wait->after[i]]);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

pinn_status pn_walk_range(pn_walk *walk, size_t first, size_t end) {
    const pn_list *list = walk->list;
    for (size_t i = first; i < end; i++) {
        pn_graph_node *node = list->node[i];
        pinn_status status;
        if (node->kind == PN_NODE_FORK)
            status = walk_fork(walk, i);
        else if (node->kind == PN_NODE_WAIT)
            status = walk_wait(walk, node);
        else if (pn_graph_node_is_conditional(node))
            status = walk->conditional(walk, i);
        else
            status = walk->node(walk, node);
        if (status != PINN_OK) return status;
        if (node->end) i = node->end;
        if (!list->node[i]->awaited) continue;
        status = record_event(walk, list->node[i]);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}
