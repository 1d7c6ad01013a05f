/* The eager executor: the same nodes, launched one by one on the stream at every replay. The oracle for the graph executor, and the
 * mode in which a debugger or compute-sanitizer sees each launch where it is made.
 *
 * If, while and for read their flags back and are C control flow, so they wait where a CUDA graph would not.
 *
 * The build captures the list too, so that both CUDA executors refuse the same lists. The captured graph is never instantiated; the
 * memory and events that come with it are used.
 */
#include <nvtx3/nvToolsExt.h>

#include "graph/condition.h"
#include "graph/device.h"

static pinn_status build_eager(const pinn_graph *graph, const pn_list *list, void **out) {
    pn_executable *executable;
    nvtxRangePushA("build");
    pinn_status status = pn_capture(graph, list, &executable);
    nvtxRangePop();
    if (status == PINN_OK) *out = executable;
    return pn_device_explain(graph, status);
}

static pinn_status enqueue_node(pn_walk *walk, pn_graph_node *node) {
    if (node->kind == PN_NODE_EAGER) return pn_eager_cut_run(node);
    nvtxRangePushA(node->name);
    pinn_status status = pn_graph_node_put(node, walk->stream);
    nvtxRangePop();
    if (status == PINN_OK) return pn_cuda_take_left(node);
    if (node->kind != PN_NODE_GPU) pn_name_failure(node, status); /* operations are named already */
    cudaGetLastError();                                           /* reported already, and not the next node's */
    return status;
}

/* ---- control flow, driven by the host ------------------------------------------------------------------------------------- */

/* Waits for the flag's last writer on the stream and reads the flag. */
static pinn_status read_flag(const pn_walk *walk, const pn_graph_node *node, bool *set) {
    const pn_device *device = walk->graph->context->device;
    pinn_status status;
    PN_CUDA(cudaMemcpyAsync(device->word, node->read_address[0], sizeof *device->word, cudaMemcpyDeviceToHost, walk->stream));
    PN_CUDA(cudaStreamSynchronize(walk->stream));
    *set = *device->word != 0;
fail:
    return pn_name_failure(node, status);
}

static pinn_status count_trips(const pn_walk *walk, const pn_graph_node *node, uint32_t trips) {
    if (!node->writes) return PINN_OK;
    return pn_name_failure(node,
                           pn_cuda_check(pn_condition_put(walk->stream, node->write_address[0], trips), "setting the trip count"));
}

static pinn_status run_if(pn_walk *walk, size_t position) {
    const pn_graph_node *node = walk->list->node[position];
    bool set = false;
    pinn_status status = read_flag(walk, node, &set);
    if (status != PINN_OK) return status;
    if (set) return pn_walk_range(walk, position + 1, node->next);
    return node->next == node->end ? PINN_OK : pn_walk_range(walk, node->next + 1, node->end);
}

static pinn_status run_loop(pn_walk *walk, size_t position) {
    const pn_graph_node *node = walk->list->node[position];
    pinn_status status;
    PN_TRY(count_trips(walk, node, 0));
    for (uint32_t trips = 0; trips < node->cap;) {
        bool set = true;
        if (node->reads) PN_TRY(read_flag(walk, node, &set));
        if (!set) break;
        PN_TRY(pn_walk_range(walk, position + 1, node->end));
        PN_TRY(count_trips(walk, node, ++trips));
    }
fail:
    return status;
}

static pinn_status run_conditional(pn_walk *walk, size_t position) {
    return walk->list->node[position]->kind == PN_NODE_IF ? run_if(walk, position) : run_loop(walk, position);
}

pinn_status pn_run_by_nodes(const pinn_graph *graph, uint64_t times, uint64_t *done) {
    pn_device *device = graph->context->device;
    const pn_list *list = graph->built;
    pn_walk walk = {.graph = graph, .list = list, .stream = device->stream, .node = enqueue_node, .conditional = run_conditional};
    pinn_status status;
    nvtxRangePushA(graph->name);
    PN_TRY(pn_device_select(graph->context));
    for (; *done < times; ++*done) PN_TRY(pn_walk_range(&walk, 0, list->count));
fail:
    if (status != PINN_OK) {
        pn_walk_to(&walk, device->stream, 0, 0); /* its failure would hide the first one */
        pn_lanes_drain(device);
    }
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
    .enqueue = pn_run_by_nodes,
    .discard = pn_executable_discard,
};
