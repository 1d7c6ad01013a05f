/* Blocks of a list: if, else, while, for, fork, branch, wait, join, and what may stand in them.
 *
 * The list stays flat. A block's entries are linked by positions (next, end, open in graph.h); what lies between two linked entries
 * is one body or one branch. So every executor walks the same array, and an executor that ignores branches walks it in program
 * order.
 *
 * Lanes. What may run at the same time has different lanes: the first branch has its fork's, every other one a lane that no open
 * fork uses. After the join they are free again. On a GPU a lane is a stream and a cuBLAS workspace.
 */
#include <string.h>

#include "graph/graph.h"

static pn_block_open *innermost(const pinn_graph *graph) {
    pn_list *list = graph->list;
    return list->depth ? &list->open[list->depth - 1] : NULL;
}

static const pn_graph_node *opener_of(const pinn_graph *graph, const pn_block_open *block) {
    return graph->list->node[block->opener];
}

bool pn_graph_node_is_useful(const pn_graph_node *node) {
    switch (node->kind) {
    case PN_NODE_COPY: return pn_copy_get_route(node) != PN_COPY_NOTHING;
    case PN_NODE_GPU:
    case PN_NODE_HOST_OPERATION:
    case PN_NODE_HOST:
    case PN_NODE_EAGER: return true;
    default: return false;
    }
}

/* ---- what may stand where -------------------------------------------------------------------------------------------------- */

/* The innermost open if, while or for. */
static const pn_graph_node *enclosing_body(const pinn_graph *graph) {
    const pn_list *list = graph->list;
    for (size_t i = list->depth; i-- > 0;)
        if (list->node[list->open[i].opener]->kind != PN_NODE_FORK) return list->node[list->open[i].opener];
    return NULL;
}

/* The innermost open branch. */
static const pn_graph_node *enclosing_branch(const pinn_graph *graph) {
    const pn_list *list = graph->list;
    for (size_t i = list->depth; i-- > 0;)
        if (list->node[list->open[i].part]->kind == PN_NODE_BRANCH) return list->node[list->open[i].part];
    return NULL;
}

pinn_status pn_structure_check(pinn_graph *graph, const char *name) {
    const pn_block_open *block = innermost(graph);
    if (!block || graph->list->node[block->part]->kind != PN_NODE_FORK) return PINN_OK;
    return pn_list_reject(graph, PINN_REFUSED, name,
                          "it stands between pinn_graph_fork and the first branch: call pinn_graph_branch first");
}

pinn_status pn_structure_check_host(pinn_graph *graph, const char *name, const char *what) {
    const pn_graph_node *body = enclosing_body(graph);
    if (!body) return PINN_OK;
    return pn_list_reject(
        graph, PINN_REFUSED, name,
        "%s cannot run inside the body of %s '%s': move it before the %s or after its pinn_graph_end, or make it an "
        "operation on device planes",
        what, pn_graph_node_kind_name(body->kind), body->name, pn_graph_node_kind_name(body->kind));
}

pinn_status pn_structure_check_pageable(pinn_graph *graph, const char *name, const pinn_plane *host) {
    const pn_graph_node *body = enclosing_body(graph), *branch = enclosing_branch(graph);
    if (!body && !branch) return PINN_OK;
    return pn_list_reject(graph, PINN_REFUSED, name,
                          "'%s' is pageable, and a pageable copy cannot run inside %s '%s': make '%s' a pinned plane, or move the "
                          "copy out",
                          host->name, body ? "the body of" : "branch", body ? body->name : branch->name, host->name);
}

pinn_status pn_structure_check_eager(pinn_graph *graph, const char *name) {
    const pn_graph_node *body = enclosing_body(graph), *branch = enclosing_branch(graph);
    if (body || branch)
        return pn_list_reject(
            graph, PINN_REFUSED, name,
            "an eager cut cannot stand inside %s '%s': the graph is cut at top level only. Move it before the block "
            "or after its end, or make it an operation on device planes",
            body ? "the body of" : "branch", body ? body->name : branch->name);
    return pn_structure_check(graph, name);
}

pinn_status pn_structure_check_closed(const pinn_graph *graph, const pn_list *list) {
    if (list->depth == 0) return PINN_OK;
    const pn_graph_node *opener = list->node[list->open[list->depth - 1].opener];
    return pn_fail(PINN_REFUSED, "graph '%s', node %zu '%s': the %s is not closed: call %s before the build", graph->name,
                   opener->number, opener->name, pn_graph_node_kind_name(opener->kind),
                   opener->kind == PN_NODE_FORK ? "pinn_graph_join" : "pinn_graph_end");
}

/* The part that ends here has nodes. */
static pinn_status check_useful(pinn_graph *graph, const pn_block_open *block) {
    if (block->useful) return PINN_OK;
    const pn_graph_node *part = graph->list->node[block->part];
    const char *kind = pn_graph_node_kind_name(part->kind);
    if (part->kind == PN_NODE_FORK)
        return pn_list_reject(graph, PINN_REFUSED, "fork",
                              "the fork has no branch: call pinn_graph_branch and record at least one node");
    if (part->kind == PN_NODE_BRANCH)
        return pn_list_reject(graph, PINN_REFUSED, part->name,
                              "the branch is empty: record at least one node in it, or leave it out");
    return pn_list_reject(graph, PINN_REFUSED, part->name,
                          "the body of this %s is empty: record at least one node in it, or leave it out", kind);
}

/* ---- opening and closing --------------------------------------------------------------------------------------------------- */

/* An entry of a block, linked back to the block's opener. */
static pinn_status add_entry(pinn_graph *graph, pn_graph_node_kind kind, const char *name, size_t opener, pn_graph_node **out) {
    pn_graph_node *node = NULL;
    pinn_status status;
    PN_TRY(pn_list_make_node(graph, kind, name, PINN_NO_PLANES, PINN_NO_PLANES, &node));
    PN_TRY(pn_list_append(graph, node));
    node->open = opener;
    *out = node;
fail:
    return status;
}

/* Appends the opener and opens its block. */
static pinn_status open_block(pinn_graph *graph, pn_graph_node *node) {
    pn_list *list = graph->list;
    const pn_block_open *outer = innermost(graph);
    size_t lane = outer ? outer->lane : 0;
    pinn_status status = pn_list_append(graph, node);
    if (status != PINN_OK) return status;
    size_t position = list->count - 1;
    list->open[list->depth++] = (pn_block_open){.opener = position, .part = position, .first_lane = list->next_lane, .lane = lane};
    if (node->kind != PN_NODE_FORK) list->bodies++;
    return PINN_OK;
}

static pinn_status check_depth(pinn_graph *graph, const char *name) {
    if (graph->list->depth < PINN_GRAPH_DEPTH) return PINN_OK;
    return pn_list_reject(graph, PINN_REFUSED, name,
                          "blocks nest more than %d deep: put the inner ones into an operation of their own", PINN_GRAPH_DEPTH);
}

/* Ends the block; its content counts as one useful node of what is around it. `end` is the entry just appended. */
static void close_block(pinn_graph *graph, pn_graph_node *end) {
    pn_list *list = graph->list;
    pn_block_open *block = innermost(graph);
    const size_t position = list->count - 1;
    end->depth--;
    end->in_body = list->node[block->opener]->in_body;
    for (size_t i = block->opener; i != position; i = list->node[i]->next) {
        list->node[i]->end = position;
        if (list->node[i]->next == 0) list->node[i]->next = position;
    }
    if (end->kind == PN_NODE_JOIN)
        list->next_lane = block->first_lane;
    else
        list->bodies--;
    list->depth--;
    if (list->depth) list->open[list->depth - 1].useful++;
}

/* Ends the part and begins the next one with the entry just appended. */
static void begin_part(pinn_graph *graph, pn_graph_node *entry) {
    pn_list *list = graph->list;
    pn_block_open *block = innermost(graph);
    entry->depth--;
    entry->in_body = list->node[block->opener]->in_body;
    list->node[block->part]->next = list->count - 1;
    block->part = list->count - 1;
    block->useful = 0;
}

/* ---- if, while, for -------------------------------------------------------------------------------------------------------- */

static pinn_status check_word(pinn_graph *graph, const char *name, pinn_plane *plane, const char *role) {
    pinn_status status = pn_list_check_planes(graph, name, PINN_PLANES(plane), role);
    if (status != PINN_OK) return status;
    if (plane->place != PINN_DEVICE)
        return pn_list_reject(graph, PINN_REFUSED, name,
                              "plane '%s' that it %s is %s: it must be a device plane. Create one of 4 bytes and add "
                              "pinn_graph_copy(graph, %s, <that plane>) where the word changes",
                              plane->name, role, pinn_place_name(plane->place), plane->name);
    if (plane->bytes < sizeof(uint32_t) || (uintptr_t)plane->address % sizeof(uint32_t) != 0)
        return pn_list_reject(graph, PINN_REFUSED, name,
                              "plane '%s' that it %s must hold a 32-bit word: at least 4 bytes, at a multiple of 4", plane->name,
                              role);
    return PINN_OK;
}

static pinn_status open_conditional(pinn_graph *graph, const char *function, pn_graph_node_kind kind, const char *name,
                                    pinn_plane *flag, uint32_t cap, pinn_plane *trips) {
    pn_graph_node *node = NULL;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, function));
    if (!name) return pn_list_reject(graph, PINN_BAD_ARGUMENT, "?", "the name of the %s is NULL", pn_graph_node_kind_name(kind));
    if (kind != PN_NODE_FOR) PN_TRY(check_word(graph, name, flag, "reads as its flag"));
    if (trips) PN_TRY(check_word(graph, name, trips, "counts its trips in"));
    if (flag && trips && pn_planes_overlap(flag, trips))
        return pn_list_reject(graph, PINN_REFUSED, name, "its flag '%s' and its trip counter '%s' overlap: use two planes",
                              flag->name, trips->name);
    if (kind == PN_NODE_WHILE && cap == 0)
        return pn_list_reject(graph, PINN_REFUSED, name, "its cap is 0: a while needs the most trips it may make, at least 1");
    PN_TRY(pn_structure_check(graph, name));
    PN_TRY(check_depth(graph, name));
    PN_TRY(pn_list_make_node(graph, kind, name, flag ? PINN_PLANES(flag) : PINN_NO_PLANES,
                             trips ? PINN_PLANES(trips) : PINN_NO_PLANES, &node));
    node->cap = cap;
    return open_block(graph, node);
fail:
    return status;
}

pinn_status pinn_graph_if(pinn_graph *graph, const char *name, pinn_plane *flag) {
    return open_conditional(graph, __func__, PN_NODE_IF, name, flag, 1, NULL);
}

pinn_status pinn_graph_while(pinn_graph *graph, const char *name, pinn_plane *flag, uint32_t cap, pinn_plane *trips) {
    return open_conditional(graph, __func__, PN_NODE_WHILE, name, flag, cap, trips);
}

pinn_status pinn_graph_for(pinn_graph *graph, const char *name, uint32_t count, pinn_plane *trips) {
    return open_conditional(graph, __func__, PN_NODE_FOR, name, NULL, count, trips);
}

pinn_status pinn_graph_else(pinn_graph *graph) {
    pn_graph_node *node;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, __func__));
    const pn_block_open *block = innermost(graph);
    if (!block || opener_of(graph, block)->kind != PN_NODE_IF)
        return pn_list_reject(graph, PINN_REFUSED, "else",
                              "pinn_graph_else needs an open pinn_graph_if around it, and every block inside the if closed");
    if (block->part != block->opener)
        return pn_list_reject(graph, PINN_REFUSED, "else", "if '%s' has an else already: close it with pinn_graph_end",
                              opener_of(graph, block)->name);
    PN_TRY(check_useful(graph, block));
    PN_TRY(add_entry(graph, PN_NODE_ELSE, opener_of(graph, block)->name, block->opener, &node));
    begin_part(graph, node);
fail:
    return status;
}

pinn_status pinn_graph_end(pinn_graph *graph) {
    pn_graph_node *node;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, __func__));
    const pn_block_open *block = innermost(graph);
    if (!block) return pn_list_reject(graph, PINN_REFUSED, "end", "pinn_graph_end without a begin: no if, while or for is open");
    if (opener_of(graph, block)->kind == PN_NODE_FORK)
        return pn_list_reject(graph, PINN_REFUSED, "end",
                              "pinn_graph_end inside a fork: the fork (node %zu) is closed by pinn_graph_join", block->opener + 1);
    PN_TRY(check_useful(graph, block));
    PN_TRY(add_entry(graph, PN_NODE_END, opener_of(graph, block)->name, block->opener, &node));
    close_block(graph, node);
fail:
    return status;
}

/* ---- fork, branch, wait, join ---------------------------------------------------------------------------------------------- */

pinn_status pinn_graph_fork(pinn_graph *graph) {
    pn_graph_node *node = NULL;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, __func__));
    PN_TRY(pn_structure_check(graph, "fork"));
    PN_TRY(check_depth(graph, "fork"));
    PN_TRY(pn_list_make_node(graph, PN_NODE_FORK, "fork", PINN_NO_PLANES, PINN_NO_PLANES, &node));
    return open_block(graph, node);
fail:
    return status;
}

/* The open block when it is a fork; else a failure that says what `function` needs. */
static pinn_status innermost_fork(pinn_graph *graph, const char *name, const char *function, pn_block_open **out) {
    pn_block_open *block = innermost(graph);
    if (!block) return pn_list_reject(graph, PINN_REFUSED, name, "%s without a begin: no pinn_graph_fork is open", function);
    if (opener_of(graph, block)->kind != PN_NODE_FORK)
        return pn_list_reject(graph, PINN_REFUSED, name, "%s inside the body of %s '%s': call pinn_graph_end first", function,
                              pn_graph_node_kind_name(opener_of(graph, block)->kind), opener_of(graph, block)->name);
    *out = block;
    return PINN_OK;
}

pinn_status pinn_graph_branch(pinn_graph *graph, const char *name) {
    pn_block_open *block = NULL;
    pn_graph_node *node;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, __func__));
    if (!name) return pn_list_reject(graph, PINN_BAD_ARGUMENT, "?", "the branch's name is NULL");
    PN_TRY(innermost_fork(graph, name, __func__, &block));
    pn_list *list = graph->list;
    const bool first = block->part == block->opener;
    if (!first) PN_TRY(check_useful(graph, block));
    PN_TRY(add_entry(graph, PN_NODE_BRANCH, name, block->opener, &node));
    if (!first) block->lane = list->next_lane++;
    if (list->next_lane > list->lanes) list->lanes = list->next_lane;
    node->lane = block->lane;
    begin_part(graph, node);
fail:
    return status;
}

pinn_status pinn_graph_wait(pinn_graph *graph, pinn_plane *plane) {
    static const char name[] = "wait";
    pn_block_open *block = NULL;
    pn_graph_node *node = NULL;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, __func__));
    PN_TRY(pn_list_check_planes(graph, name, PINN_PLANES(plane), "waits for"));
    PN_TRY(innermost_fork(graph, name, __func__, &block));
    PN_TRY(pn_structure_check(graph, name));
    PN_TRY(pn_list_make_node(graph, PN_NODE_WAIT, name, PINN_PLANES(plane), PINN_NO_PLANES, &node));
    PN_TRY(pn_list_append(graph, node));
    node->open = block->opener;
    PN_TRY(pn_order_wait(graph, node));
fail:
    return status;
}

pinn_status pinn_graph_join(pinn_graph *graph) {
    pn_block_open *block = NULL;
    pn_graph_node *node;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, __func__));
    PN_TRY(innermost_fork(graph, "join", __func__, &block));
    PN_TRY(check_useful(graph, block));
    PN_TRY(add_entry(graph, PN_NODE_JOIN, "join", block->opener, &node));
    close_block(graph, node);
fail:
    return status;
}
