/* The eager executor: the same nodes, launched one by one on the stream at every replay. The oracle for the graph executor, and the
 * mode in which a debugger or compute-sanitizer sees each launch where it is made.
 *
 * The build captures the list too and throws the result away, so that both CUDA executors refuse the same lists.
 */
#include <nvtx3/nvToolsExt.h>

#include "graph/device.h"

static pinn_status build_eager(const pinn_graph *graph, const pn_list *list, void **out) {
    pn_executable *executable = NULL;
    nvtxRangePushA("build");
    pinn_status status = pn_capture(graph, list, &executable);
    pn_executable_discard(executable);
    nvtxRangePop();
    if (status == PINN_OK) *out = NULL;
    return status;
}

/* CUDA may read pageable memory when the copy is asked for, not when the stream comes to it: a host node before the copy must be
 * over by then, and one after it must not begin earlier. Inside a graph such a copy keeps its place. */
static pinn_status copy_pageable(const pn_node *node, cudaStream_t stream) {
    pinn_status status;
    PN_CUDA(cudaStreamSynchronize(stream));
    PN_TRY(pn_device_copy(node, stream));
    PN_CUDA(cudaStreamSynchronize(stream));
fail:
    return status;
}

static pinn_status copy_node(pn_node *node, cudaStream_t stream) {
    switch (pn_copy_get_route(node)) {
    case PN_COPY_NOTHING: break;
    case PN_COPY_HOST: return pn_cuda_check(cudaLaunchHostFunc(stream, pn_node_memcpy, node), "cudaLaunchHostFunc");
    case PN_COPY_DEVICE: return pn_copy_is_pageable(node) ? copy_pageable(node, stream) : pn_device_copy(node, stream);
    }
    return PINN_OK;
}

static pinn_status launch_node(pn_node *node, cudaStream_t stream) {
    switch (node->kind) {
    case PN_NODE_GPU: return pn_node_run(node, node->cuda, stream);
    case PN_NODE_HOST_OPERATION:
    case PN_NODE_HOST: return pn_cuda_check(cudaLaunchHostFunc(stream, pn_node_call, node), "cudaLaunchHostFunc");
    case PN_NODE_COPY: return copy_node(node, stream);
    }
    return PINN_OK;
}

static pinn_status enqueue_node(pn_node *node, cudaStream_t stream) {
    nvtxRangePushA(node->name);
    pinn_status status = launch_node(node, stream);
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
    return status;
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
