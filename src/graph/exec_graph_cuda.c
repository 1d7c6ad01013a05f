/* The CUDA graph executor: the list is captured and instantiated once; a replay is one cudaGraphLaunch, or one for each part
 * between eager cuts. A list with if, while or for on a driver without conditional nodes is run node by node. */
#include <nvtx3/nvToolsExt.h>

#include "graph/device.h"

static pinn_status instantiate(const pinn_graph *graph, pn_executable *executable) {
    const pn_device *device = graph->context->device;
    pinn_status status = PINN_OK;
    for (size_t i = 0; i < executable->segments; i++) {
        pn_segment *segment = &executable->segment[i];
        if (segment->nodes == 0) continue; /* nothing beside an eager cut, or copies onto themselves only */
        PN_CUDA(cudaGraphInstantiate(&segment->exec, segment->graph, 0));
        PN_CUDA(cudaGraphUpload(segment->exec, device->stream)); /* else the first launch would pay for it */
    }
fail:
    if (status != PINN_OK) pn_fail_within(status, "graph '%s'", graph->name);
    return status;
}

/* Does the list need what the driver has not? Said once. */
static bool must_run_by_nodes(const pinn_graph *graph, const pn_list *list) {
    pn_device *device = graph->context->device;
    bool conditional = false;
    for (size_t i = 0; i < list->count; i++) conditional = conditional || pn_graph_node_is_conditional(list->node[i]);
    if (!conditional || device->conditionals) return false;
    if (!device->told)
        pn_context_message(
            graph->context,
            "graph '%s': the CUDA driver has no conditional nodes (they came with 12.4): graphs with if, while or for run "
            "node by node",
            graph->name);
    device->told = true;
    return true;
}

static pinn_status build_graph(const pinn_graph *graph, const pn_list *list, void **out) {
    pn_executable *executable = NULL;
    pinn_status status;
    nvtxRangePushA("build");
    PN_TRY(pn_capture(graph, list, &executable));
    executable->by_nodes = must_run_by_nodes(graph, list);
    if (!executable->by_nodes) PN_TRY(instantiate(graph, executable));
    graph->context->busy = true; /* the upload */
    *out = executable;
    executable = NULL;
fail:
    pn_executable_discard(executable);
    nvtxRangePop();
    return pn_device_explain(graph, status);
}

static pinn_status replay(const pinn_graph *graph, cudaStream_t stream) {
    const pn_executable *executable = graph->executable;
    for (size_t i = 0; i < executable->segments; i++) {
        const pn_segment *segment = &executable->segment[i];
        pinn_status status = segment->exec ? pn_cuda_check(cudaGraphLaunch(segment->exec, stream), "cudaGraphLaunch") : PINN_OK;
        if (status != PINN_OK) return pn_fail_within(status, "graph '%s'", graph->name);
        if (segment->eager) status = pn_eager_cut_run(segment->eager);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status enqueue_graph(const pinn_graph *graph, uint64_t times, uint64_t *done) {
    const pn_device *device = graph->context->device;
    const pn_executable *executable = graph->executable;
    pinn_status status;
    if (executable->by_nodes) return pn_run_by_nodes(graph, times, done);
    nvtxRangePushA(graph->name);
    PN_TRY(pn_device_select(graph->context));
    for (; *done < times; ++*done) PN_TRY(replay(graph, device->stream));
fail:
    nvtxRangePop();
    return pn_device_explain(graph, status);
}

const pn_backend pn_backend_graph = {
    .open = pn_device_open,
    .close = pn_device_close,
    .allocate = pn_device_allocate,
    .release = pn_device_release,
    .check = pn_device_check,
    .write = pn_device_write,
    .read = pn_device_read,
    .synchronize = pn_device_synchronize,
    .join = pn_device_join,
    .build = build_graph,
    .enqueue = enqueue_graph,
    .discard = pn_executable_discard,
};
