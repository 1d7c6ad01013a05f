/* If, while and for as conditional nodes of a CUDA graph, added while the stream around them is being captured.
 *
 * For each: a setter kernel on the stream (condition.h), the conditional node after it, and that node as all that the stream's next
 * work depends on. Then the body is captured into the node's own graph, on a stream of the next level. Until the body is closed
 * nothing is put on the stream around it: it would come after the node and run whatever the condition says. An else is a second if
 * whose condition is the negated flag as the first one's head read it; two-body nodes lost nodes in drivers before CUDA 13.0.
 */
#include "graph/condition.h"
#include "graph/device.h"

static cudaError_t capture_state(cudaStream_t stream, cudaGraph_t *graph, const cudaGraphNode_t **dependency,
                                 const cudaGraphEdgeData **edge, size_t *count) {
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &state, NULL, graph, dependency, edge, count);
    return error != cudaSuccess || state == cudaStreamCaptureStatusActive ? error : cudaErrorStreamCaptureInvalidated;
}

/* A condition of the graph that is being captured; it has no value until a kernel sets it. */
static pinn_status make_handle(cudaStream_t stream, cudaGraphConditionalHandle *handle) {
    cudaGraph_t graph = NULL;
    const cudaGraphNode_t *dependency = NULL;
    const cudaGraphEdgeData *edge = NULL;
    size_t count = 0;
    pinn_status status;
    PN_CUDA(capture_state(stream, &graph, &dependency, &edge, &count));
    PN_CUDA(cudaGraphConditionalHandleCreate(handle, graph, 0, 0));
fail:
    return status;
}

/* The conditional node, after everything on the stream and before everything to come. */
static pinn_status add_node(pn_capture_job *job, cudaGraphConditionalHandle handle, enum cudaGraphConditionalNodeType type,
                            cudaGraph_t *body) {
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeConditional};
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node = NULL;
    const cudaGraphNode_t *dependency = NULL;
    const cudaGraphEdgeData *edge = NULL;
    size_t count = 0;
    pinn_status status;
    parameters.conditional.handle = handle;
    parameters.conditional.type = type;
    parameters.conditional.size = 1;
    PN_CUDA(capture_state(job->walk.stream, &graph, &dependency, &edge, &count));
    PN_CUDA(cudaGraphAddNode(&node, graph, dependency, edge, count, &parameters));
    PN_CUDA(cudaStreamUpdateCaptureDependencies(job->walk.stream, &node, NULL, 1, cudaStreamSetCaptureDependencies));
    *body = parameters.conditional.phGraph_out[0];
    job->conditional[job->conditionals] = node;
    job->body[job->conditionals++] = *body;
fail:
    return status;
}

/* Entries first to end-1 into `body`; a loop's tail behind them. */
static pinn_status capture_body(pn_capture_job *job, cudaGraph_t body, size_t first, size_t end, const pn_loop *loop) {
    const pn_device *device = job->walk.graph->context->device;
    const size_t lane = job->walk.lane, level = job->walk.level;
    const cudaStream_t outer = job->walk.stream, stream = device->lane[lane].capture[level + 1];
    cudaGraph_t captured = NULL;
    bool open = false;
    pinn_status status;
    PN_CUDA(cudaStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, job->mode));
    open = true;
    PN_TRY(pn_walk_to(&job->walk, stream, lane, level + 1));
    PN_TRY(pn_walk_range(&job->walk, first, end));
    if (loop) PN_CUDA(pn_condition_loop_tail(stream, loop));
    open = false;
    job->hidden = true; /* some node's work is not joined, or broke the capture unseen */
    PN_CUDA(cudaStreamEndCapture(stream, &captured));
    job->hidden = false;
    PN_TRY(pn_walk_to(&job->walk, outer, lane, level));
fail:
    if (open) {
        cudaStreamEndCapture(stream, &captured); /* fails or not: the reason is being reported already */
        cudaGetLastError();
    }
    return status;
}

static pinn_status capture_if(pn_capture_job *job, const pn_graph_node *node, size_t position) {
    cudaGraphConditionalHandle handle;
    cudaGraph_t body;
    pinn_status status;
    PN_TRY(make_handle(job->walk.stream, &handle));
    PN_CUDA(pn_condition_if(job->walk.stream, handle, node->read_address[0], node->word));
    PN_TRY(add_node(job, handle, cudaGraphCondTypeIf, &body));
    PN_TRY(capture_body(job, body, position + 1, node->next, NULL));
    if (node->next == node->end) return PINN_OK;
    PN_TRY(make_handle(job->walk.stream, &handle));
    PN_CUDA(pn_condition_else(job->walk.stream, handle, node->word));
    PN_TRY(add_node(job, handle, cudaGraphCondTypeIf, &body));
    PN_TRY(capture_body(job, body, node->next + 1, node->end, NULL));
fail:
    return status;
}

static pinn_status capture_loop(pn_capture_job *job, const pn_graph_node *node, size_t position) {
    pn_loop loop = {.flag = node->reads ? node->read_address[0] : NULL,
                    .done = node->word,
                    .trips = node->writes ? node->write_address[0] : NULL,
                    .cap = node->cap};
    cudaGraph_t body;
    pinn_status status;
    PN_TRY(make_handle(job->walk.stream, &loop.handle));
    PN_CUDA(pn_condition_loop_head(job->walk.stream, &loop));
    PN_TRY(add_node(job, loop.handle, cudaGraphCondTypeWhile, &body));
    PN_TRY(capture_body(job, body, position + 1, node->end, &loop));
fail:
    return status;
}

pinn_status pn_capture_conditional(pn_walk *walk, size_t position) {
    pn_capture_job *job = (pn_capture_job *)walk;
    const pn_graph_node *node = walk->list->node[position];
    pinn_status status = node->kind == PN_NODE_IF ? capture_if(job, node, position) : capture_loop(job, node, position);
    if (status == PINN_OK || job->named || job->hidden) return status;
    job->named = true;
    return pn_name_failure(node, status);
}

pinn_status pn_capture_bodies(pn_walk *walk, size_t position) {
    const pn_graph_node *node = walk->list->node[position];
    pinn_status status = pn_walk_range(walk, position + 1, node->next);
    if (status != PINN_OK || node->next == node->end) return status;
    return pn_walk_range(walk, node->next + 1, node->end);
}
