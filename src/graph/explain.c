/* The schedule as text and as a Graphviz drawing. Both depend on the list alone: the same on every executor but for its name, and a
 * line that says what is meant by "device" where there is none. */
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

static void explain_copy(pn_text *text, const pn_graph_node *node) {
    put_plane(text, node->read[0]);
    pn_text_string(text, " -> ");
    put_plane(text, node->write[0]);
    if (pn_copy_get_route(node) == PN_COPY_NOTHING) pn_text_string(text, ": the same storage, nothing to do");
    if (pn_copy_is_pageable(node)) pn_text_string(text, ": pageable, staged through page-locked memory");
}

static void explain_loop(pn_text *text, const pn_graph_node *node) {
    pn_text_quoted(text, node->name);
    if (node->kind == PN_NODE_WHILE) {
        put_planes(text, " as long as ", node->read, node->reads);
        pn_text_printf(text, " is set, at most %u trips", node->cap);
    } else {
        pn_text_printf(text, " %u trips", node->cap);
    }
    put_planes(text, ", counted in ", node->write, node->writes);
}

static void explain_wait(pn_text *text, const pn_graph_node *node) {
    pn_text_string(text, "for ");
    put_plane(text, node->read[0]);
    for (size_t i = 0; i < node->afters; i++) pn_text_printf(text, "%s %zu", i ? "," : ": after node", node->after[i] + 1);
}

static void explain_node(pn_text *text, const pn_graph_node *node) {
    const bool alone = node->kind == PN_NODE_FORK || node->kind == PN_NODE_JOIN; /* nothing follows the kind */
    pn_text_printf(text, alone ? "  %zu %*s%s" : "  %zu %*s%-6s ", node->number, (int)(2 * node->depth), "",
                   pn_graph_node_kind_name(node->kind));
    switch (node->kind) {
    case PN_NODE_COPY: explain_copy(text, node); break;
    case PN_NODE_WHILE:
    case PN_NODE_FOR: explain_loop(text, node); break;
    case PN_NODE_WAIT: explain_wait(text, node); break;
    case PN_NODE_FORK:
    case PN_NODE_JOIN: break;
    case PN_NODE_IF:
        pn_text_quoted(text, node->name);
        put_planes(text, " when ", node->read, node->reads);
        pn_text_string(text, " is set");
        break;
    default:
        pn_text_quoted(text, node->name);
        if (node->opaque) pn_text_string(text, " (opaque)");
        put_planes(text, " reads ", node->read, node->reads);
        put_planes(text, " writes ", node->write, node->writes);
    }
    pn_text_append(text, "\n", 1);
}

/* "(1 device, 1 host, 3 copy)", and the kinds that are rarer when there are any. */
static void explain_counts(pn_text *text, const pinn_graph_stats *stats) {
    pn_text_printf(text, "(%zu device, %zu host, %zu copy", stats->gpu_nodes, stats->host_nodes, stats->copies);
    if (stats->eager_cuts) pn_text_printf(text, ", %zu eager", stats->eager_cuts);
    if (stats->conditionals) pn_text_printf(text, ", %zu conditional", stats->conditionals);
    if (stats->branches) pn_text_printf(text, ", %zu branch", stats->branches);
    pn_text_string(text, "), ");
}

static void explain(pn_text *text, const pinn_graph *graph) {
    pinn_graph_stats stats;
    pinn_graph_get_stats(graph, &stats);
    const pn_list *list = pn_graph_shown(graph);
    pn_text_string(text, "graph ");
    pn_text_quoted(text, graph->name);
    pn_text_printf(text, " on %s: %zu nodes ", pinn_executor_name(graph->context->executor), list ? list->count : 0);
    explain_counts(text, &stats);
    if (!list)
        pn_text_string(text, "nothing recorded");
    else if (graph->list)
        pn_text_string(text, "not built yet");
    else
        pn_text_printf(text, "build %llu: %s", (unsigned long long)graph->builds, pn_text_get(&graph->reason));
    pn_text_append(text, "\n", 1);
    if (list && graph->context->executor == PINN_EXECUTOR_CPU)
        pn_text_string(text, "  here device nodes run on this CPU and device planes are ordinary memory; places are kept as on a GPU\n");
    for (size_t i = 0; list && i < list->count; i++) explain_node(text, list->node[i]);
}

/* ---- dot ------------------------------------------------------------------------------------------------------------------- */

/* Inside a box an arrow would pull the node it comes from into the box: arrows there wait for the end of the drawing. */
typedef struct drawing {
    const pn_list *list;
    pn_text *text;
    pn_text arrows;
} drawing;

static void draw_arrow(drawing *out, size_t from, size_t to, const char *style) {
    if (from == 0) return; /* the first node follows none */
    bool inside = out->list->node[from - 1]->depth || out->list->node[to - 1]->depth;
    pn_text_printf(inside ? &out->arrows : out->text, "  n%zu -> n%zu%s;\n", from, to, style);
}

/* One label line: "\n" is a line break inside a Graphviz label. */
static void put_dot_planes(pn_text *label, const char *verb, pinn_plane *const *plane, size_t count) {
    if (count) pn_text_append(label, "\n", 1);
    put_planes(label, verb, plane, count);
}

static void put_label(pn_text *label, const pn_graph_node *node) {
    pn_text_printf(label, "%zu %s", node->number, node->name);
    if (node->kind == PN_NODE_WHILE || node->kind == PN_NODE_FOR)
        pn_text_printf(label, "\n%s %u trips", node->kind == PN_NODE_WHILE ? "at most" : "for", node->cap);
    put_dot_planes(label,
                   pn_graph_node_is_conditional(node) ? "flag "
                   : node->kind == PN_NODE_WAIT       ? "for "
                                                      : "reads ",
                   node->read, node->reads);
    put_dot_planes(label, "writes ", node->write, node->writes);
}

static void draw_node(drawing *out, const pn_graph_node *node) {
    static const char *const shapes[] = {[PN_NODE_GPU] = "box",       [PN_NODE_HOST_OPERATION] = "ellipse",
                                         [PN_NODE_HOST] = "ellipse",  [PN_NODE_COPY] = "cds",
                                         [PN_NODE_EAGER] = "octagon", [PN_NODE_IF] = "diamond",
                                         [PN_NODE_WHILE] = "diamond", [PN_NODE_FOR] = "diamond",
                                         [PN_NODE_WAIT] = "plaintext"};
    pn_text label = {0};
    pn_text_printf(out->text, "  n%zu [shape=", node->number);
    if (node->kind == PN_NODE_FORK || node->kind == PN_NODE_JOIN || node->kind == PN_NODE_END) {
        pn_text_string(out->text, "point];\n");
        return;
    }
    put_label(&label, node);
    pn_text_printf(out->text, "%s label=", shapes[node->kind]);
    pn_text_quoted(out->text, pn_text_get(&label));
    pn_text_string(out->text, "];\n");
    if (label.failed) out->text->failed = true;
    pn_text_free(&label);
}

static size_t draw_range(drawing *out, size_t first, size_t end, size_t last);

/* A body or branch: the nodes between the part's entry and `end`, in a box. */
static size_t draw_part(drawing *out, size_t part, size_t end, size_t from, const char *what) {
    const pn_graph_node *node = out->list->node[part];
    pn_text label = {0};
    pn_text_printf(&label, "%s %s", what, node->name);
    pn_text_printf(out->text, "  subgraph cluster_%zu {\n  label=", node->number);
    pn_text_quoted(out->text, pn_text_get(&label));
    pn_text_string(out->text, ";\n");
    size_t last = draw_range(out, part + 1, end, from);
    pn_text_string(out->text, "  }\n");
    if (label.failed) out->text->failed = true;
    pn_text_free(&label);
    return last;
}

/* The parts of the block that opens at `first`, and its closing entry. */
static void draw_block(drawing *out, size_t first) {
    const pn_graph_node *opener = out->list->node[first];
    const size_t end = opener->end, start = opener->number;
    const bool loop = opener->kind == PN_NODE_WHILE || opener->kind == PN_NODE_FOR, fork = opener->kind == PN_NODE_FORK;
    draw_node(out, out->list->node[end]);
    for (size_t part = fork ? opener->next : first; part != end; part = out->list->node[part]->next) {
        const size_t last =
            draw_part(out, part, out->list->node[part]->next, start, pn_graph_node_kind_name(out->list->node[part]->kind));
        draw_arrow(out, last, loop ? start : end + 1, loop ? " [style=dotted]" : "");
    }
    if (loop || (opener->kind == PN_NODE_IF && opener->next == end)) draw_arrow(out, start, end + 1, "");
}

/* Nodes first to end-1; `last` is the number of the node they follow. Returns that of the last. */
static size_t draw_range(drawing *out, size_t first, size_t end, size_t last) {
    for (size_t i = first; i < end; i++) {
        const pn_graph_node *node = out->list->node[i];
        draw_node(out, node);
        draw_arrow(out, last, node->number, "");
        for (size_t k = 0; k < node->afters; k++) draw_arrow(out, node->after[k] + 1, node->number, " [style=dashed]");
        last = node->number;
        if (!node->end) continue;
        draw_block(out, i);
        i = node->end;
        last = i + 1;
    }
    return last;
}

static void draw(pn_text *text, const pinn_graph *graph) {
    const pn_list *list = pn_graph_shown(graph);
    drawing out = {.list = list, .text = text};
    pn_text_string(text, "digraph ");
    pn_text_quoted(text, graph->name);
    pn_text_printf(text, " {\n  label=\"%s\";\n", pinn_executor_name(graph->context->executor));
    if (list) draw_range(&out, 0, list->count, 0);
    pn_text_string(text, pn_text_get(&out.arrows));
    pn_text_string(text, "}\n");
    if (out.arrows.failed) text->failed = true;
    pn_text_free(&out.arrows);
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
