/* What a build leaves: captured graphs, their executables, and what the list's nodes need besides: page-locked memory for pageable
 * copies, words for conditions, events for branches, streams.
 */
#include "graph/device.h"

static void release_executable(pn_release *self) {
    pn_executable *executable = (pn_executable *)((char *)self - offsetof(pn_executable, release));
    const pn_device *device = executable->context->device;
    cudaSetDevice(device->ordinal);
    for (size_t i = 0; i < executable->segments; i++) {
        if (executable->segment[i].exec) cudaGraphExecDestroy(executable->segment[i].exec);
        if (executable->segment[i].graph) cudaGraphDestroy(executable->segment[i].graph);
    }
    for (size_t i = 0; i < executable->events; i++) cudaEventDestroy(executable->event[i]);
    cudaGetLastError(); /* a release: failures have nowhere to go */
    pn_block_destroy(executable->staging);
    pn_block_destroy(executable->words);
    pn_context_unreference(executable->context);
    pn_free(executable->segment);
    pn_free(executable->event);
    pn_free(executable);
}

void pn_executable_discard(void *executable) {
    if (executable) pn_release_push(&((pn_executable *)executable)->release);
}

pinn_status pn_executable_create(pinn_context *context, size_t segments, pn_executable **out) {
    pn_executable *executable = pn_allocate(1, sizeof *executable);
    pn_segment *segment = pn_allocate(segments, sizeof *segment);
    if (!executable || !segment) {
        pn_free(executable);
        pn_free(segment);
        return PN_NO_MEMORY("a captured graph");
    }
    *executable = (pn_executable){.release.run = release_executable, .context = context, .segment = segment, .segments = segments};
    pn_context_reference(context);
    *out = executable;
    return PINN_OK;
}

/* ---- what the nodes need --------------------------------------------------------------------------------------------------- */

static bool needs_event(const pn_graph_node *node) {
    return node->awaited || node->kind == PN_NODE_FORK || node->kind == PN_NODE_BRANCH;
}

static pinn_status create_events(pn_executable *executable, const pn_list *list) {
    size_t count = 0;
    pinn_status status = PINN_OK;
    for (size_t i = 0; i < list->count; i++) count += needs_event(list->node[i]);
    executable->event = pn_allocate(count, sizeof *executable->event);
    if (!executable->event) return PN_NO_MEMORY("the events of a graph's branches");
    for (size_t i = 0; i < list->count; i++) {
        if (!needs_event(list->node[i])) continue;
        PN_CUDA(cudaEventCreateWithFlags(&executable->event[executable->events], cudaEventDisableTiming));
        list->node[i]->event = executable->event[executable->events++];
    }
fail:
    return status;
}

static pinn_status create_words(pn_executable *executable, const pn_list *list) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) count += pn_graph_node_is_conditional(list->node[i]);
    if (!count) return PINN_OK;
    pinn_status status = pn_block_create(executable->context, PINN_DEVICE, count * sizeof(uint32_t), &executable->words);
    if (status != PINN_OK) return status;
    uint32_t *next = executable->words->address;
    for (size_t i = 0; i < list->count; i++)
        if (pn_graph_node_is_conditional(list->node[i])) list->node[i]->word = next++;
    return PINN_OK;
}

/* Most bodies around a node of the list, with its own if it opens one. */
static size_t deepest_body(const pn_list *list) {
    size_t level = 0, deepest = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (pn_graph_node_is_conditional(list->node[i])) level++;
        if (list->node[i]->kind == PN_NODE_END) level--;
        if (level > deepest) deepest = level;
    }
    return deepest;
}

pinn_status pn_executable_prepare(pn_executable *executable, const pinn_graph *graph, const pn_list *list) {
    pinn_status status;
    PN_TRY(pn_device_select(graph->context));
    PN_TRY(pn_staging_create(graph, list, &executable->staging));
    PN_TRY(create_events(executable, list));
    PN_TRY(create_words(executable, list));
    PN_TRY(pn_lanes_create(graph->context, list->lanes, deepest_body(list)));
    return PINN_OK;
fail:
    return pn_fail_within(status, "graph '%s'", graph->name);
}
