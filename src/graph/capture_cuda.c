/* Stream capture of a list, node by node, so that whatever goes wrong can be told by the node's name.
 *
 * Every list is captured at least twice, with the bodies of its if, while and for as if they stood there without them. The first
 * capture is relaxed: it may load, which the first launch of a kernel does under the driver's lazy loading and which a strict
 * capture can refuse. Its graph is thrown away. The second is thread-local: CUDA then refuses every call that would act at once
 * instead of being recorded (allocation, event queries ...). Loading everything eagerly (CUDA_MODULE_LOADING) would make the first
 * one unnecessary, at the price of all of cuBLAS's kernels in memory and of changing the caller's environment.
 *
 * A list with conditional nodes is then captured once more, with them. Not before: drivers free the graph of a body when its
 * capture is broken or unjoined, though the conditional node owns it, and crash or hang when the capture around it ends (NVIDIA bug
 * 6805256, https://github.com/NVIDIA/cuda-python/issues/2918). So only what was found capturable is captured into a body. That
 * capture is relaxed, as it loads the setter kernels.
 */
#include <nvtx3/nvToolsExt.h>

#include "graph/device.h"

/* ---- one node -------------------------------------------------------------------------------------------------------------- */

/* Nodes captured so far; false when the capture was broken off. */
static bool count_captured(cudaStream_t stream, size_t *count) {
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &state, NULL, &graph, NULL, NULL, NULL);
    if (error == cudaSuccess && state == cudaStreamCaptureStatusActive) error = cudaGraphGetNodes(graph, NULL, count);
    if (error != cudaSuccess) cudaGetLastError();
    return error == cudaSuccess && state == cudaStreamCaptureStatusActive;
}

/* `recorded`: what the node's own code returned; its words, if it failed, are the thread's message. */
static pinn_status refuse_broken(const pn_graph_node *node, pinn_status recorded) {
    static const char rule[] =
        "it made a call that cannot be recorded: a CUDA form only puts work on run->stream (no allocation, no waiting, "
        "no event query, no use of the default stream)";
    if (recorded != PINN_OK) return pn_fail_within(PINN_REFUSED, "node %zu '%s': %s", node->number, node->name, rule);
    return pn_fail(PINN_REFUSED, "graph '%s', node %zu '%s': %s", node->graph->name, node->number, node->name, rule);
}

static pinn_status put_node(pn_graph_node *node, cudaStream_t stream) {
    size_t before = 0, after = 0;
    if (!count_captured(stream, &before)) return refuse_broken(node, PINN_OK);
    nvtxRangePushA(node->name);
    pinn_status status = pn_graph_node_put(node, stream);
    nvtxRangePop();
    if (node->kind != PN_NODE_GPU) pn_name_failure(node, status); /* operations are named already */
    if (status == PINN_OK) status = pn_cuda_take_left(node);
    cudaGetLastError();
    if (!count_captured(stream, &after)) return refuse_broken(node, status);
    if (status != PINN_OK) return status;
    bool nothing = node->kind == PN_NODE_COPY && pn_copy_get_route(node) == PN_COPY_NOTHING;
    if (after == before && !nothing)
        return pn_fail(PINN_REFUSED, "graph '%s', node %zu '%s' recorded nothing: its CUDA form must launch on run->stream",
                       node->graph->name, node->number, node->name);
    return PINN_OK;
}

static pinn_status capture_node(pn_walk *walk, pn_graph_node *node) {
    pinn_status status = put_node(node, walk->stream);
    if (status != PINN_OK) ((pn_capture_job *)walk)->named = true;
    return status;
}

/* ---- a part of the list ---------------------------------------------------------------------------------------------------- */

/* Entries first to end-1 into segment->graph. */
static pinn_status capture_entries(pn_capture_job *job, size_t first, size_t end, pn_segment *segment) {
    const cudaStream_t stream = job->walk.stream;
    pinn_status status;
    bool open = false;
    PN_CUDA(cudaStreamBeginCapture(stream, job->mode));
    open = true;
    status = pn_walk_range(&job->walk, first, end);
    if (status != PINN_OK) {
        job->named = !job->hidden;
        goto fail;
    }
    open = false;
    job->hidden = true;
    PN_CUDA(cudaStreamEndCapture(stream, &segment->graph));
    PN_CUDA(cudaGraphGetNodes(segment->graph, NULL, &segment->nodes));
fail:
    if (open) {
        cudaStreamEndCapture(stream, &segment->graph); /* fails or not: the reason is being reported already */
        cudaGetLastError();
    }
    return status;
}

/* See lower_cuda.c: pageable memory would be read at the launch. Pointers are NULL where the copy's end is a CUDA array. */
static pinn_status check_copy(cudaGraphNode_t node) {
    struct cudaMemcpy3DParms copy = {0};
    pinn_status status;
    PN_CUDA(cudaGraphMemcpyNodeGetParams(node, &copy));
    const void *const end[] = {copy.srcPtr.ptr, copy.dstPtr.ptr};
    for (int i = 0; i < 2; i++) {
        struct cudaPointerAttributes attributes;
        if (!end[i]) continue;
        PN_CUDA(cudaPointerGetAttributes(&attributes, end[i]));
        if (attributes.type == cudaMemoryTypeUnregistered)
            return pn_fail(PINN_REFUSED, "it copies %s pageable memory: use page-locked memory, or pinn_graph_copy",
                           i == 0 ? "from" : "to");
    }
fail:
    return status;
}

static pinn_status check_graph(const pn_capture_job *job, cudaGraph_t graph, bool in_body);

/* Memory nodes would tie the executable to one live copy of itself and to launches in one order. Of the other kinds, bodies may
 * hold kernels, copies, memsets, conditional nodes and graphs of these: anything else fails at the instantiation, without a name.
 */
static pinn_status check_node(const pn_capture_job *job, cudaGraphNode_t node, bool in_body) {
    enum cudaGraphNodeType type;
    cudaGraph_t child;
    pinn_status status;
    for (size_t i = 0; i < job->conditionals; i++) /* cudaGraphNodeGetType may not know them */
        if (job->conditional[i] == node) return PINN_OK;
    PN_CUDA(cudaGraphNodeGetType(node, &type));
    switch (type) {
    case cudaGraphNodeTypeKernel:
    case cudaGraphNodeTypeMemset:
    case cudaGraphNodeTypeEmpty:
    case cudaGraphNodeTypeConditional: return PINN_OK;
    case cudaGraphNodeTypeMemcpy: return check_copy(node);
    case cudaGraphNodeTypeGraph: PN_CUDA(cudaGraphChildGraphNodeGetGraph(node, &child)); return check_graph(job, child, in_body);
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree: return pn_fail(PINN_REFUSED, "it allocates or frees memory on the stream");
    case cudaGraphNodeTypeHost:
        if (!in_body) return PINN_OK;
        return pn_fail(PINN_REFUSED, "it calls a host function, which cannot run inside the body of an if, while or for");
    default:
        if (!in_body) return PINN_OK;
        return pn_fail(PINN_REFUSED,
                       "it records or waits for external events or semaphores, which cannot be inside the body of an if, "
                       "while or for");
    }
fail:
    return status;
}

static pinn_status check_graph(const pn_capture_job *job, cudaGraph_t graph, bool in_body) {
    size_t count = 0;
    cudaGraphNode_t *node = NULL;
    pinn_status status;
    PN_CUDA(cudaGraphGetNodes(graph, NULL, &count));
    node = pn_allocate(count, sizeof(cudaGraphNode_t));
    if (!node) return PN_NO_MEMORY("a captured graph");
    if (count) PN_CUDA(cudaGraphGetNodes(graph, node, &count));
    for (size_t i = 0; i < count; i++) PN_TRY(check_node(job, node[i], in_body));
fail:
    pn_free(node);
    return status;
}

static pinn_status try_entries(pn_capture_job *job, size_t first, size_t end, bool in_body, pn_segment *segment) {
    const pn_device *device = job->walk.graph->context->device;
    pinn_status status;
    job->named = job->hidden = false;
    job->conditionals = 0;
    PN_TRY(pn_walk_to(&job->walk, device->lane[0].capture[0], 0, 0));
    PN_TRY(capture_entries(job, first, end, segment));
    PN_TRY(check_graph(job, segment->graph, in_body));
    for (size_t i = 0; i < job->conditionals; i++) PN_TRY(check_graph(job, job->body[i], true));
fail:
    return status;
}

/* ---- finding the culprit --------------------------------------------------------------------------------------------------- */

static bool stands_alone(const pn_graph_node *node) {
    return node->kind == PN_NODE_GPU || node->kind == PN_NODE_COPY || pn_graph_node_on_host(node);
}

static pinn_status try_alone(pn_capture_job *job, size_t position) {
    const pn_graph_node *node = job->walk.list->node[position];
    pn_executable *alone = NULL;
    pinn_status status = pn_executable_create(job->walk.graph->context, 1, &alone);
    if (status == PINN_OK) status = try_entries(job, position, position + 1, node->in_body, alone->segment);
    pn_executable_discard(alone);
    if (status == PINN_OK || job->named || !job->hidden) return status;
    return pn_fail_within(
        PINN_REFUSED,
        "graph '%s', node %zu '%s' cannot be replayed (work forked to another stream must be joined again, memory "
        "must be allocated beforehand)",
        node->graph->name, node->number, node->name);
}

/* Some faults show only when the capture ends: work forked to another stream and not joined, memory nodes, pageable copies. Then
 * every node is captured alone, and the first that cannot be is the culprit. The nodes of bodies are looked at the same way once,
 * when everything is loaded, whatever the capture as a whole said: their rules are stricter. */
static pinn_status capture_segment(pn_capture_job *job, size_t first, size_t end, pn_segment *segment) {
    const bool bodies = job->walk.conditional == pn_capture_bodies && job->mode == cudaStreamCaptureModeThreadLocal;
    pinn_status status = try_entries(job, first, end, false, segment);
    if (job->named || (status != PINN_OK && !job->hidden)) goto fail;
    const bool search = status != PINN_OK;
    for (size_t i = first; i < end; i++) {
        const pn_graph_node *node = job->walk.list->node[i];
        if (!stands_alone(node) || !(search || (bodies && node->in_body))) continue;
        pinn_status found = try_alone(job, i);
        if (found != PINN_OK && (job->named || job->hidden)) return found;
        if (found != PINN_OK) status = found;
    }
fail:
    if (status == PINN_OK || job->named) return status;
    return pn_fail_within(status, "graph '%s'", job->walk.graph->name);
}

/* ---- the list -------------------------------------------------------------------------------------------------------------- */

static pinn_status capture_list(pn_capture_job *job, pn_executable *executable) {
    const pn_list *list = job->walk.list;
    size_t first = 0;
    for (size_t i = 0; i < executable->segments; i++) {
        size_t end = first;
        while (end < list->count && list->node[end]->kind != PN_NODE_EAGER) end++;
        executable->segment[i].eager = end < list->count ? list->node[end] : NULL;
        pinn_status status = capture_segment(job, first, end, &executable->segment[i]);
        if (status != PINN_OK) return status;
        first = end + 1;
    }
    return PINN_OK;
}

static pinn_status open_job(pn_capture_job *job, const pinn_graph *graph, const pn_list *list) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += pn_graph_node_is_conditional(list->node[i]) || list->node[i]->kind == PN_NODE_ELSE;
    *job = (pn_capture_job){
        .walk = {.graph = graph, .list = list, .capturing = true, .node = capture_node, .conditional = pn_capture_bodies},
        .conditional = pn_allocate(count, sizeof *job->conditional),
        .body = pn_allocate(count, sizeof *job->body),
        .capacity = count};
    return job->conditional && job->body ? PINN_OK : PN_NO_MEMORY("a captured graph");
}

pinn_status pn_capture(const pinn_graph *graph, const pn_list *list, pn_executable **out) {
    const pn_device *device = graph->context->device;
    pn_executable *loading = NULL, *flat = NULL, *captured = NULL;
    pn_capture_job job = {0};
    size_t segments = 1;
    bool open = false;
    pinn_status status;
    for (size_t i = 0; i < list->count; i++) segments += list->node[i]->kind == PN_NODE_EAGER;
    PN_TRY(pn_executable_create(graph->context, segments, &loading));
    PN_TRY(pn_executable_create(graph->context, segments, &flat));
    PN_TRY(pn_executable_create(graph->context, segments, &captured));
    PN_TRY(pn_executable_prepare(captured, graph, list));
    PN_TRY(open_job(&job, graph, list));
    const bool with_nodes = device->conditionals && job.capacity > 0;
    pn_capture_open(); /* until its close, what is discarded waits */
    open = true;
    job.mode = cudaStreamCaptureModeRelaxed;
    PN_TRY(capture_list(&job, loading));
    job.mode = cudaStreamCaptureModeThreadLocal;
    PN_TRY(capture_list(&job, with_nodes ? flat : captured));
    if (with_nodes) {
        job.walk.conditional = pn_capture_conditional;
        job.mode = cudaStreamCaptureModeRelaxed;
        PN_TRY(capture_list(&job, captured));
    }
    PN_TRY(pn_lane_use(graph->context, device->stream, 0));
    *out = captured;
    captured = NULL;
fail:
    /* A failure to return to the own stream comes only with a failure already being reported. */
    if (open && status != PINN_OK) pn_lane_use(graph->context, device->stream, 0);
    pn_executable_discard(loading);
    pn_executable_discard(flat);
    pn_executable_discard(captured);
    if (open) pn_capture_close();
    pn_free(job.conditional);
    pn_free(job.body);
    return status;
}
