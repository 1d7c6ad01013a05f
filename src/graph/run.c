/* Build, enqueue, launch: the part of running that is the same on every executor. */
#include <string.h>

#include "graph/graph.h"

pinn_status pinn_graph_create(pinn_context *context, const char *name, pinn_graph **out) {
    pinn_status status = pn_enter(context, __func__);
    if (status != PINN_OK) return status;
    if (!name) return pn_fail(PINN_BAD_ARGUMENT, "%s: the graph's name is NULL", __func__);
    pinn_graph *graph = pn_allocate(1, sizeof *graph);
    char *copy = pn_duplicate(name, strlen(name));
    if (!graph || !copy) {
        pn_free(graph);
        pn_free(copy);
        return PN_NO_MEMORY("a graph");
    }
    *graph = (pinn_graph){.context = context, .name = copy, .next = context->first_graph};
    if (graph->next) graph->next->previous = graph;
    context->first_graph = graph;
    context->graphs++;
    pn_context_reference(context);
    *out = graph;
    return PINN_OK;
}

/* Replays under way still use the executable and the nodes it points at. */
static void drop_built(pinn_graph *graph) {
    if (!graph->built) return;
    pn_context_wait(graph->context); /* a failed device has nothing left to wait for */
    if (graph->executable) graph->context->backend->discard(graph->executable);
    graph->executable = NULL;
    pn_list_destroy(graph->built);
    graph->built = NULL;
}

static void destroy_graph(void *object) {
    pinn_graph *graph = object;
    pinn_context *context = graph->context;
    drop_built(graph);
    pn_list_destroy(graph->list);
    if (graph->next) graph->next->previous = graph->previous;
    *(graph->previous ? &graph->previous->next : &context->first_graph) = graph->next;
    pn_text_free(&graph->reason);
    pn_free(graph->shape);
    pn_free(graph->name);
    pn_free(graph);
    context->graphs--;
    pn_context_unreference(context);
}

void pinn_graph_destroy(pinn_graph *graph) {
    if (graph) pn_destroy(graph->context, &graph->doomed, destroy_graph, graph, "pinn_graph_destroy");
}

/* ---- build ----------------------------------------------------------------------------------------------------------------- */

static pinn_status check_fresh(const pinn_graph *graph, const pn_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const pn_graph_node *node = list->node[i];
        for (size_t k = 0; k < node->reads + node->writes; k++) {
            const pinn_plane *plane = k < node->reads ? node->read[k] : node->write[k - node->reads];
            if (plane->root->freed)
                return pn_fail(PINN_STALE, "graph '%s', node %zu '%s': plane '%s' was freed: create it and record the graph again",
                               graph->name, node->number, node->name, plane->name);
        }
    }
    return PINN_OK;
}

/* The same for the built list, which was found fresh before: only a plane freed since then can have changed that. */
static pinn_status check_built(pinn_graph *graph) {
    if (graph->checked == graph->context->frees) return PINN_OK;
    pinn_status status = check_fresh(graph, graph->built);
    if (status == PINN_OK) graph->checked = graph->context->frees;
    return status;
}

static pinn_status check_list(const pinn_graph *graph, const pn_list *list) {
    if (list->failure != PINN_OK)
        return pn_fail(list->failure, "%s", list->failure_text ? list->failure_text : "a recording call ran out of memory");
    if (list->count == 0)
        return pn_fail(PINN_REFUSED, "graph '%s' is empty: record at least one node between pinn_graph_begin and pinn_graph_build",
                       graph->name);
    pinn_status status = pn_structure_check_closed(graph, list);
    return status == PINN_OK ? check_fresh(graph, list) : status;
}

static void forget_shape(pinn_graph *graph) {
    pn_free(graph->shape);
    graph->shape = NULL;
    graph->rank = 0;
    graph->has_shape = false;
}

/* Builds `list`, of which it takes ownership. */
static pinn_status build(pinn_graph *graph, pn_list *list) {
    pinn_context *context = graph->context;
    void *executable = NULL;
    pn_text reason = {0};
    pinn_status status;
    PN_TRY(check_list(graph, list));
    PN_TRY(pn_list_sign(list));
    if (graph->built && pn_list_equal(graph->built, list)) {
        pn_list_destroy(list);
        forget_shape(graph);
        return PINN_OK;
    }
    PN_TRY(pn_order_check(graph, list));
    if (graph->built)
        pn_list_difference(graph->built, list, &reason);
    else
        pn_text_string(&reason, graph->invalidated ? "invalidated" : "first build");
    PN_TRY(pn_text_check(&reason));
    if (!context->plans) PN_TRY(context->backend->build(graph, list, &executable));
    drop_built(graph);
    forget_shape(graph);
    graph->built = list;
    graph->executable = executable;
    graph->checked = context->frees;
    graph->invalidated = false;
    graph->builds++;
    pn_context_message(context, "graph '%s' built (%zu nodes): %s", graph->name, list->count, pn_text_get(&reason));
    pn_text_free(&graph->reason);
    graph->reason = reason;
    return PINN_OK;
fail:
    pn_text_free(&reason);
    pn_list_destroy(list);
    return status;
}

/* Makes the graph launchable: builds what was recorded, checks what was built before. */
static pinn_status prepare(pinn_graph *graph) {
    pn_list *list = graph->list;
    graph->list = NULL; /* recording ends here, also when the build fails: the old executable is the graph again */
    if (list) return build(graph, list);
    if (!graph->built)
        return pn_fail(PINN_REFUSED, "graph '%s': nothing was recorded: call pinn_graph_begin and add nodes first", graph->name);
    return check_built(graph);
}

pinn_status pinn_graph_build(pinn_graph *graph) {
    pinn_status status = pn_enter(graph ? graph->context : NULL, __func__);
    if (status != PINN_OK) return status;
    pn_run_begin();
    status = prepare(graph);
    pn_run_end(); /* may destroy the graph itself, when an operation asked for it */
    return status;
}

bool pinn_graph_is_built(const pinn_graph *graph) { return graph->built && !graph->list; }

void pinn_graph_invalidate(pinn_graph *graph) {
    if (!graph || !graph->built || pn_enter(graph->context, __func__) != PINN_OK) return;
    drop_built(graph);
    forget_shape(graph);
    graph->invalidated = true;
}

/* ---- capture by shape ------------------------------------------------------------------------------------------------------ */

/* As a build without recording: `built` is what a launch would run. */
static bool is_current(pinn_graph *graph, const size_t *shape, size_t rank) {
    return pinn_graph_is_built(graph) && graph->has_shape && graph->rank == rank &&
           (rank == 0 || memcmp(graph->shape, shape, rank * sizeof *shape) == 0) && check_built(graph) == PINN_OK;
}

pinn_status pinn_graph_capture(pinn_graph *graph, const size_t *shape, size_t rank, pinn_record_function *record, void *user) {
    size_t *kept = NULL;
    pinn_status status;
    PN_TRY(pn_enter(graph ? graph->context : NULL, __func__));
    if (!record || (rank && !shape))
        return pn_fail(PINN_BAD_ARGUMENT, "%s: graph '%s': the %s is NULL", __func__, graph->name,
                       record ? "shape" : "record function");
    if (is_current(graph, shape, rank)) return PINN_OK;
    kept = pn_allocate(rank, sizeof *kept);
    if (!kept) return PN_NO_MEMORY("the shape of a capture");
    if (rank) memcpy(kept, shape, rank * sizeof *kept);
    PN_TRY(pinn_graph_begin(graph));
    status = record(user, graph);
    if (status != PINN_OK) {
        pn_fail_within(status, "graph '%s': its record function failed with %s", graph->name, pinn_status_name(status));
        pn_list_destroy(graph->list);
        graph->list = NULL;
        goto fail;
    }
    PN_TRY(pinn_graph_build(graph));
    graph->shape = kept;
    graph->rank = rank;
    graph->has_shape = true;
    return PINN_OK;
fail:
    pn_free(kept);
    return status;
}

size_t pinn_graph_input_shape(const pinn_graph *graph, const size_t **shape) {
    if (shape) *shape = graph->rank ? graph->shape : NULL;
    return graph->rank;
}

bool pinn_graph_is_captured(const pinn_graph *graph) { return pinn_graph_is_built(graph); }
bool pinn_graph_is_capturing(const pinn_graph *graph) { return graph->list != NULL; }
uint64_t pinn_graph_launch_count(const pinn_graph *graph) { return graph->enqueued; }

/* ---- run ------------------------------------------------------------------------------------------------------------------- */

/* A CUDA form is called while it is captured, and an eager cut waits until no capture is open. Refused before anything of the list
 * runs, and on every executor. */
static pinn_status check_cuts(const pinn_graph *graph) {
    const char *form = pn_inside_form();
    const pn_list *list = pn_graph_shown(graph);
    for (size_t i = 0; form && list && i < list->count; i++) {
        const pn_graph_node *node = list->node[i];
        if (node->kind == PN_NODE_EAGER)
            return pn_fail(PINN_REFUSED,
                           "graph '%s', node %zu '%s': an eager cut cannot run inside operation '%s', which is being recorded: launch "
                           "graph '%s' outside of the recorded operation",
                           graph->name, node->number, node->name, form, graph->name);
    }
    return PINN_OK;
}

static pinn_status enqueue(pinn_graph *graph, uint64_t times) {
    pinn_context *context = graph->context;
    uint64_t done = 0;
    pinn_status status;
    if (context->plans) return pn_fail(PINN_REFUSED, "graph '%s' cannot run: its context only plans", graph->name);
    PN_TRY(check_cuts(graph));
    PN_TRY(pn_fault_take(context));
    PN_TRY(prepare(graph));
    context->busy = true;
    status = context->backend->enqueue(graph, times, &done);
    context->busy = true; /* an eager cut may have waited, and more was enqueued behind it */
    graph->enqueued += done;
fail:
    return status;
}

pinn_status pinn_graph_enqueue(pinn_graph *graph, uint64_t times) {
    pinn_status status = pn_enter(graph ? graph->context : NULL, __func__);
    if (status != PINN_OK) return status;
    pn_run_begin();
    status = enqueue(graph, times);
    pn_run_end();
    return status;
}

static pinn_status launch(pinn_graph *graph, uint64_t times) {
    pinn_status status;
    PN_TRY(enqueue(graph, times));
    status = pn_context_wait(graph->context);
    if (status != PINN_OK) return pn_fail_within(status, "graph '%s'", graph->name);
    PN_TRY(pn_fault_take(graph->context));
fail:
    return status;
}

pinn_status pinn_graph_launch(pinn_graph *graph, uint64_t times) {
    pinn_status status = pn_enter(graph ? graph->context : NULL, __func__);
    if (status != PINN_OK) return status;
    pn_run_begin();
    status = launch(graph, times);
    pn_run_end();
    return status;
}

void pinn_graph_get_stats(const pinn_graph *graph, pinn_graph_stats *out) {
    *out = (pinn_graph_stats){.builds = graph->builds, .enqueued = graph->enqueued, .completed = graph->completed};
    const pn_list *list = pn_graph_shown(graph);
    for (size_t i = 0; list && i < list->count; i++) switch (list->node[i]->kind) {
        case PN_NODE_GPU: out->gpu_nodes++; break;
        case PN_NODE_HOST_OPERATION:
        case PN_NODE_HOST: out->host_nodes++; break;
        case PN_NODE_COPY: out->copies++; break;
        case PN_NODE_EAGER: out->eager_cuts++; break;
        case PN_NODE_IF:
        case PN_NODE_ELSE:
        case PN_NODE_WHILE:
        case PN_NODE_FOR: out->conditionals++; break;
        case PN_NODE_BRANCH: out->branches++; break;
        case PN_NODE_END:
        case PN_NODE_FORK:
        case PN_NODE_WAIT:
        case PN_NODE_JOIN: break;
        }
}
