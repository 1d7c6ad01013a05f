/* The CUDA graph executor: the list is captured and instantiated once; a replay is one cudaGraphLaunch. */
#include <nvtx3/nvToolsExt.h>

#include "graph/device.h"

static pinn_status instantiate(const pinn_graph *graph, pn_executable *executable) {
    const pn_device *device = graph->context->device;
    pinn_status status = PINN_OK;
    if (executable->nodes == 0) return PINN_OK; /* copies onto themselves only */
    PN_CUDA(cudaGraphInstantiate(&executable->exec, executable->graph, 0));
    PN_CUDA(cudaGraphUpload(executable->exec, device->stream)); /* else the first launch would pay for it */
fail:
    if (status != PINN_OK) pn_fail_within(status, "graph '%s'", graph->name);
    return status;
}

static pinn_status build_graph(const pinn_graph *graph, const pn_list *list, void **out) {
    pn_executable *executable = NULL;
    pinn_status status;
    nvtxRangePushA("build");
    PN_TRY(pn_capture(graph, list, &executable));
    PN_TRY(instantiate(graph, executable));
    graph->context->busy = true; /* the upload */
    *out = executable;
    executable = NULL;
fail:
    pn_executable_discard(executable);
    nvtxRangePop();
    return pn_device_explain(graph, status);
}

static pinn_status enqueue_graph(const pinn_graph *graph, uint64_t times, uint64_t *done) {
    const pn_device *device = graph->context->device;
    const pn_executable *executable = graph->executable;
    pinn_status status;
    nvtxRangePushA(graph->name);
    PN_TRY(pn_device_select(graph->context));
    if (!executable->exec) *done = times;
    for (; *done < times; ++*done) PN_CUDA(cudaGraphLaunch(executable->exec, device->stream));
fail:
    if (status != PINN_OK) pn_fail_within(status, "graph '%s'", graph->name);
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
