/* The schedule as text and as a Graphviz drawing. Both depend on the list alone: the same on every executor but for its name. */
#include <stdlib.h>

#include "graph/graph.h"

static void put_plane(pn_text *text, const pinn_plane *plane) {
    pn_text_quoted(text, plane->name);
    pn_text_printf(text, " (%s, %zu bytes)", pinn_place_name(plane->place), plane->bytes);
    if (plane->root->freed) pn_text_string(text, " FREED");
}

static void put_planes(pn_text *text, const char *verb, pinn_plane *const *plane, size_t count) {
    for (size_t i = 0; i < count; i++) {
        pn_text_string(text, i ? ", " : verb);
        put_plane(text, plane[i]);
    }
}

static void explain_node(pn_text *text, const pn_graph_node *node) {
    pn_text_printf(text, "  %zu %-4s ", node->number, pn_graph_node_kind_name(node->kind));
    if (node->kind == PN_NODE_COPY) {
        put_plane(text, node->read[0]);
        pn_text_string(text, " -> ");
        put_plane(text, node->write[0]);
        if (pn_copy_get_route(node) == PN_COPY_NOTHING) pn_text_string(text, ": the same storage, nothing to do");
        if (pn_copy_is_pageable(node)) pn_text_string(text, ": pageable, staged through page-locked memory");
    } else {
        pn_text_quoted(text, node->name);
        put_planes(text, " reads ", node->read, node->reads);
        put_planes(text, " writes ", node->write, node->writes);
    }
    pn_text_append(text, "\n", 1);
}

static void explain(pn_text *text, const pinn_graph *graph) {
    pinn_graph_stats stats;
    pinn_graph_get_stats(graph, &stats);
    const pn_list *list = pn_graph_shown(graph);
    pn_text_string(text, "graph ");
    pn_text_quoted(text, graph->name);
    pn_text_printf(text, " on %s: %zu nodes (%zu gpu, %zu host, %zu copy), ", pinn_executor_name(graph->context->executor),
                   list ? list->count : 0, stats.gpu_nodes, stats.host_nodes, stats.copies);
    if (!list)
        pn_text_string(text, "nothing recorded");
    else if (graph->list)
        pn_text_string(text, "not built yet");
    else
        pn_text_printf(text, "build %llu: %s", (unsigned long long)graph->builds, pn_text_get(&graph->reason));
    pn_text_append(text, "\n", 1);
    for (size_t i = 0; list && i < list->count; i++) explain_node(text, list->node[i]);
}

/* One label line: "\n" is a line break inside a Graphviz label. */
static void put_dot_planes(pn_text *label, const char *verb, pinn_plane *const *plane, size_t count) {
    if (count) pn_text_append(label, "\n", 1);
    put_planes(label, verb, plane, count);
}

static void draw_node(pn_text *text, const pn_graph_node *node) {
    static const char *const shapes[] = {
        [PN_NODE_GPU] = "box", [PN_NODE_HOST_OPERATION] = "ellipse", [PN_NODE_HOST] = "ellipse", [PN_NODE_COPY] = "cds"};
    pn_text label = {0};
    pn_text_printf(&label, "%zu %s", node->number, node->name);
    put_dot_planes(&label, "reads ", node->read, node->reads);
    put_dot_planes(&label, "writes ", node->write, node->writes);
    pn_text_printf(text, "  n%zu [shape=%s label=", node->number, shapes[node->kind]);
    pn_text_quoted(text, pn_text_get(&label));
    pn_text_string(text, "];\n");
    if (node->number > 1) pn_text_printf(text, "  n%zu -> n%zu;\n", node->number - 1, node->number);
    if (label.failed) text->failed = true;
    pn_text_free(&label);
}

static void draw(pn_text *text, const pinn_graph *graph) {
    const pn_list *list = pn_graph_shown(graph);
    pn_text_string(text, "digraph ");
    pn_text_quoted(text, graph->name);
    pn_text_printf(text, " {\n  label=\"%s\";\n", pinn_executor_name(graph->context->executor));
    for (size_t i = 0; list && i < list->count; i++) draw_node(text, list->node[i]);
    pn_text_string(text, "}\n");
}

static pinn_status print(const pinn_graph *graph, const char *function, void (*printer)(pn_text *, const pinn_graph *),
                         char **out) {
    pn_text text = {0};
    pinn_status status;
    PN_TRY(pn_enter(graph ? graph->context : NULL, function));
    printer(&text, graph);
    PN_TRY(pn_text_check(&text));
    *out = text.data;
    return PINN_OK;
fail:
    pn_text_free(&text);
    return status;
}

pinn_status pinn_graph_explain(const pinn_graph *graph, char **out) { return print(graph, __func__, explain, out); }

pinn_status pinn_graph_dot(const pinn_graph *graph, char **out) { return print(graph, __func__, draw, out); }
