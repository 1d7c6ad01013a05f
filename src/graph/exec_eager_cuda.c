/* The eager executor: the same nodes, launched one by one on the stream at every replay. The oracle for the graph executor, and the
 * mode in which a debugger or compute-sanitizer sees each launch where it is made.
 *
 * The build captures the list too, so that both CUDA executors refuse the same lists. The captured graph is never instantiated; the
 * staging memory that comes with it is used.
 */
#include <nvtx3/nvToolsExt.h>

#include "graph/device.h"

static pinn_status build_eager(const pinn_graph *graph, const pn_list *list, void **out) {
    pn_executable *executable;
    nvtxRangePushA("build");
    pinn_status status = pn_capture(graph, list, &executable);
    nvtxRangePop();
    if (status == PINN_OK) *out = executable;
    return pn_device_explain(graph, status);
}

static pinn_status enqueue_node(pn_graph_node *node, cudaStream_t stream) {
    nvtxRangePushA(node->name);
    pinn_status status = pn_graph_node_put(node, stream);
    nvtxRangePop();
    if (status == PINN_OK) return pn_cuda_take_left(node);
    if (node->kind != PN_NODE_GPU) /* operations are named already */
        pn_fail_within(status, "graph '%s', node %zu '%s'", node->graph->name, node->number, node->name);
    cudaGetLastError(); /* reported already, and not the next node's */
    return status;
}

static pinn_status enqueue_eager(const pinn_graph *graph, uint64_t times, uint64_t *done) {
    const pn_device *device = graph->context->device;
    const pn_list *list = graph->built;
    pinn_status status;
    nvtxRangePushA(graph->name);
    PN_TRY(pn_device_select(graph->context));
    for (; *done < times; ++*done)
        for (size_t i = 0; i < list->count; i++) PN_TRY(enqueue_node(list->node[i], device->stream));
fail:
    nvtxRangePop();
    return pn_device_explain(graph, status);
}

const pn_backend pn_backend_eager = {
    .open = pn_device_open,
    .close = pn_device_close,
    .allocate = pn_device_allocate,
    .release = pn_device_release,
    .check = pn_device_check,
    .write = pn_device_write,
    .read = pn_device_read,
    .synchronize = pn_device_synchronize,
    .join = pn_device_join,
    .build = build_eager,
    .enqueue = enqueue_eager,
    .discard = pn_executable_discard,
};
