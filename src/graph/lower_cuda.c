/* What a node is on a stream: the one lowering of both CUDA executors. The stream is captured or launched on.
 *
 * Pageable copies. A memcpy node of a CUDA graph reads pageable memory when the graph is launched, not when the node's turn comes
 * (measured on an H200 with CUDA 13.0); cudaMemcpyAsync on a stream may do so when it is called. Either would miss what a host node
 * before it writes. So the device copies from and to page-locked memory only, and a host function, which keeps its turn, goes
 * between that and the pageable plane. The copies of a list run one after the other, and so do its replays: one block, as large as
 * the largest of them, serves all.
 */
#include <string.h>

#include "graph/device.h"

pinn_status pn_staging_create(const pinn_graph *graph, const pn_list *list, pn_block **out) {
    pn_block *block = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < list->count; i++) {
        const pn_graph_node *node = list->node[i];
        if (node->kind == PN_NODE_COPY && pn_copy_is_pageable(node) && node->read[0]->bytes > bytes) bytes = node->read[0]->bytes;
    }
    if (bytes) {
        pinn_status status = pn_block_create(graph->context, PINN_PINNED, bytes, &block);
        if (status != PINN_OK)
            return pn_fail_within(status, "graph '%s': %zu bytes of page-locked memory for its pageable copies", graph->name,
                                  bytes);
    }
    for (size_t i = 0; i < list->count; i++) {
        pn_graph_node *node = list->node[i];
        if (node->kind == PN_NODE_COPY && pn_copy_is_pageable(node)) node->staging = block->address;
    }
    *out = block;
    return PINN_OK;
}

/* The two host functions of pageable copies. Copies, not host nodes: they run also while the failure of a host node waits. */
static void fill_staging(void *object) {
    const pn_graph_node *node = object;
    memcpy(node->staging, node->read_address[0], node->read[0]->bytes);
}

static void empty_staging(void *object) {
    const pn_graph_node *node = object;
    memcpy(node->write_address[0], node->staging, node->read[0]->bytes);
}

static pinn_status put_call(pn_graph_node *node, cudaHostFn_t function, cudaStream_t stream) {
    return pn_cuda_check(cudaLaunchHostFunc(stream, function, node), "cudaLaunchHostFunc");
}

static pinn_status put_copy(pn_graph_node *node, cudaStream_t stream) {
    const size_t bytes = node->read[0]->bytes;
    const void *from = node->read_address[0];
    void *to = node->write_address[0];
    pinn_status status = PINN_OK;
    if (node->read[0]->place == PINN_HOST) {
        PN_TRY(put_call(node, fill_staging, stream));
        PN_CUDA(cudaMemcpyAsync(to, node->staging, bytes, cudaMemcpyHostToDevice, stream));
    } else if (node->write[0]->place == PINN_HOST) {
        PN_CUDA(cudaMemcpyAsync(node->staging, from, bytes, cudaMemcpyDeviceToHost, stream));
        PN_TRY(put_call(node, empty_staging, stream));
    } else {
        enum cudaMemcpyKind kind = node->read[0]->place == PINN_PINNED    ? cudaMemcpyHostToDevice
                                   : node->write[0]->place == PINN_PINNED ? cudaMemcpyDeviceToHost
                                                                          : cudaMemcpyDeviceToDevice;
        PN_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream));
    }
fail:
    return status;
}

pinn_status pn_eager_cut_run(pn_graph_node *node) {
    pinn_context *context = node->graph->context;
    pinn_status status = pn_name_failure(node, pn_device_synchronize_all(context));
    if (status != PINN_OK) return status;
    pn_graph_node_call(node);
    status = pn_cuda_take_left(node);
    return status == PINN_OK ? pn_name_failure(node, pn_device_synchronize_all(context)) : status;
}

pinn_status pn_graph_node_put(pn_graph_node *node, cudaStream_t stream) {
    if (node->kind == PN_NODE_GPU) return pn_graph_node_run(node, node->cuda, stream);
    if (pn_graph_node_on_host(node)) return put_call(node, pn_graph_node_call, stream);
    switch (pn_copy_get_route(node)) {
    case PN_COPY_NOTHING: break;
    case PN_COPY_HOST: return put_call(node, pn_graph_node_memcpy, stream);
    case PN_COPY_DEVICE: return put_copy(node, stream);
    }
    return PINN_OK;
}
