/* Stream capture of a list, node by node, so that whatever goes wrong can be told by the node's name.
 *
 * Every list is captured twice. The first capture is relaxed: it may load, which the first launch of a kernel does under the
 * driver's lazy loading and which a strict capture can refuse. Its graph is thrown away. The second is thread-local: CUDA then
 * refuses every call that would act at once instead of being recorded (allocation, event queries ...). Loading everything eagerly
 * (CUDA_MODULE_LOADING) would make the first one unnecessary, at the price of all of cuBLAS's kernels in memory and of changing the
 * caller's environment.
 */
#include <nvtx3/nvToolsExt.h>

#include "graph/device.h"

static void release_executable(pn_release *self) {
    pn_executable *executable = (pn_executable *)((char *)self - offsetof(pn_executable, release));
    const pn_device *device = executable->context->device;
    cudaSetDevice(device->ordinal);
    if (executable->exec) cudaGraphExecDestroy(executable->exec);
    if (executable->graph) cudaGraphDestroy(executable->graph);
    cudaGetLastError(); /* a release: failures have nowhere to go */
    pn_block_destroy(executable->staging);
    pn_context_unreference(executable->context);
    pn_free(executable);
}

void pn_executable_discard(void *executable) {
    if (executable) pn_release_push(&((pn_executable *)executable)->release);
}

static pinn_status make_executable(pinn_context *context, pn_executable **out) {
    pn_executable *executable = pn_allocate(1, sizeof *executable);
    if (!executable) return PN_NO_MEMORY("a captured graph");
    executable->release.run = release_executable;
    executable->context = context;
    pn_context_reference(context);
    *out = executable;
    return PINN_OK;
}

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

static pinn_status capture_node(pn_graph_node *node, cudaStream_t stream) {
    size_t before = 0, after = 0;
    if (!count_captured(stream, &before)) return refuse_broken(node, PINN_OK);
    nvtxRangePushA(node->name);
    pinn_status status = pn_graph_node_put(node, stream);
    nvtxRangePop();
    if (status != PINN_OK && node->kind != PN_NODE_GPU) /* operations are named already */
        pn_fail_within(status, "graph '%s', node %zu '%s'", node->graph->name, node->number, node->name);
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

/* ---- a range of nodes ------------------------------------------------------------------------------------------------------ */

typedef struct capture_job {
    const pinn_graph *graph;
    const pn_list *list;
    enum cudaStreamCaptureMode mode;
    cudaStream_t stream;
    bool named;  /* the failure names its node */
    bool hidden; /* the failure is some node's, but showed only after the last of them */
} capture_job;

/* Nodes first to end-1 into executable->graph. */
static pinn_status capture_nodes(capture_job *job, size_t first, size_t end, pn_executable *executable) {
    pinn_status status;
    bool open = false;
    PN_CUDA(cudaStreamBeginCapture(job->stream, job->mode));
    open = true;
    for (size_t i = first; i < end; i++) {
        status = capture_node(job->list->node[i], job->stream);
        job->named = status != PINN_OK;
        if (job->named) goto fail;
    }
    open = false;
    job->hidden = true;
    PN_CUDA(cudaStreamEndCapture(job->stream, &executable->graph));
    PN_CUDA(cudaGraphGetNodes(executable->graph, NULL, &executable->nodes));
fail:
    if (open) {
        cudaStreamEndCapture(job->stream, &executable->graph); /* fails or not: the reason is being reported already */
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

/* Memory nodes would tie the executable to one live copy of itself and to launches in one order. */
static pinn_status check_captured(const pn_executable *executable) {
    size_t count = executable->nodes;
    cudaGraphNode_t *node = pn_allocate(count, sizeof(cudaGraphNode_t));
    pinn_status status = PINN_OK;
    if (!node) return PN_NO_MEMORY("a captured graph");
    if (count) PN_CUDA(cudaGraphGetNodes(executable->graph, node, &count));
    for (size_t i = 0; i < count; i++) {
        enum cudaGraphNodeType type;
        PN_CUDA(cudaGraphNodeGetType(node[i], &type));
        if (type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree) {
            status = pn_fail(PINN_REFUSED, "it allocates or frees memory on the stream");
            goto fail;
        }
        if (type == cudaGraphNodeTypeMemcpy) PN_TRY(check_copy(node[i]));
    }
fail:
    pn_free(node);
    return status;
}

static pinn_status try_nodes(capture_job *job, size_t first, size_t end, pn_executable **out) {
    pn_executable *executable = NULL;
    pinn_status status;
    job->named = job->hidden = false;
    PN_TRY(make_executable(job->graph->context, &executable));
    PN_TRY(capture_nodes(job, first, end, executable));
    PN_TRY(check_captured(executable));
    *out = executable;
    return PINN_OK;
fail:
    pn_executable_discard(executable);
    return status;
}

/* Some faults show only when the capture ends: work forked to another stream and not joined, memory nodes, pageable copies. Then
 * every node is captured alone, and the first that cannot be is the culprit. */
static pinn_status capture_list(capture_job *job, pn_executable **out) {
    pinn_status status = try_nodes(job, 0, job->list->count, out);
    if (status == PINN_OK || job->named) return status;
    for (size_t i = 0; job->hidden && i < job->list->count; i++) {
        const pn_graph_node *node = job->list->node[i];
        pn_executable *alone = NULL;
        pinn_status found = try_nodes(job, i, i + 1, &alone);
        pn_executable_discard(alone);
        if (found == PINN_OK) continue;
        if (job->named) return found;
        status = found;
        if (job->hidden)
            return pn_fail_within(
                PINN_REFUSED,
                "graph '%s', node %zu '%s' cannot be replayed (work forked to another stream must be joined again, memory "
                "must be allocated beforehand)",
                job->graph->name, node->number, node->name);
    }
    return pn_fail_within(status, "graph '%s'", job->graph->name);
}

pinn_status pn_capture(const pinn_graph *graph, const pn_list *list, pn_executable **out) {
    pn_device *device = graph->context->device;
    capture_job job = {.graph = graph, .list = list, .stream = device->capture};
    pn_executable *loading = NULL, *captured = NULL;
    pn_block *staging = NULL;
    pinn_status status = pn_staging_create(graph, list, &staging);
    if (status != PINN_OK) return status;
    pn_capture_open(); /* until its close, what is discarded waits */
    PN_TRY(pn_device_select(graph->context));
    PN_TRY(pn_device_use_stream(graph->context, device->capture));
    job.mode = cudaStreamCaptureModeRelaxed;
    PN_TRY(capture_list(&job, &loading));
    job.mode = cudaStreamCaptureModeThreadLocal;
    PN_TRY(capture_list(&job, &captured));
    PN_TRY(pn_device_use_stream(graph->context, device->stream));
    captured->staging = staging;
    *out = captured;
    staging = NULL;
    captured = NULL;
fail:
    /* A failure to return to the own stream comes only with a failure already being reported. */
    if (status != PINN_OK) pn_device_use_stream(graph->context, device->stream);
    pn_executable_discard(loading);
    pn_executable_discard(captured);
    pn_block_destroy(staging);
    pn_capture_close();
    return status;
}
