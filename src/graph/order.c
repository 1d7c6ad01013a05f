/* The order of nodes in different branches of a fork: what a wait adds to it, and which bytes need it.
 *
 * An item of a branch is a node or a whole block that stands directly in it. Items of one branch follow each other. So what an item
 * is ordered after is told by one position a branch, the last item of that branch that surely ends before it: a vector clock
 * (Mattern 1989). A wait raises the clock of what follows it to what it waits for and to that item's own clock. Two nodes of
 * different branches that touch the same bytes, one writing, need the earlier branch's item at or under the other's clock.
 *
 * Nodes inside an item count as the item: a body may or may not run, and a nested fork is checked for itself.
 */
#include <string.h>

#include "graph/graph.h"

static bool touches_nothing(const pn_graph_node *node) {
    return node->kind == PN_NODE_WAIT || (node->kind == PN_NODE_COPY && pn_copy_get_route(node) == PN_COPY_NOTHING);
}

static bool touches(const pn_graph_node *node, const pinn_plane *plane) {
    if (touches_nothing(node)) return false;
    for (size_t i = 0; i < node->reads; i++)
        if (pn_planes_overlap(node->read[i], plane)) return true;
    for (size_t i = 0; i < node->writes; i++)
        if (pn_planes_overlap(node->write[i], plane)) return true;
    return false;
}

/* Last entry of the item that begins at `start`. */
static size_t item_end(const pn_list *list, size_t start) {
    const pn_graph_node *node = list->node[start];
    return pn_graph_node_is_conditional(node) || node->kind == PN_NODE_FORK ? node->end : start;
}

static pinn_status grow_after(pinn_graph *graph, pn_graph_node *wait, size_t position) {
    size_t *grown = pn_reallocate(wait->after, wait->afters, wait->afters + 1, sizeof *grown);
    if (!grown) return pn_list_reject(graph, PINN_NO_MEMORY, wait->name, "out of memory");
    wait->after = grown;
    wait->after[wait->afters++] = position;
    graph->list->node[position]->awaited = true;
    return PINN_OK;
}

pinn_status pn_order_wait(pinn_graph *graph, pn_graph_node *wait) {
    const pn_list *list = graph->list;
    const pinn_plane *plane = wait->read[0];
    /* The wait's own branch is the last, and the only one without a next. */
    for (size_t branch = list->node[wait->open]->next; list->node[branch]->next; branch = list->node[branch]->next) {
        size_t last = 0;
        for (size_t i = branch + 1; i < list->node[branch]->next; i = item_end(list, i) + 1)
            for (size_t k = i; k <= item_end(list, i); k++)
                if (touches(list->node[k], plane)) last = item_end(list, i);
        if (!last) continue;
        pinn_status status = grow_after(graph, wait, last);
        if (status != PINN_OK) return status;
    }
    if (wait->afters) return PINN_OK;
    return pn_list_reject(graph, PINN_REFUSED, wait->name,
                          "no earlier branch of this fork touches plane '%s': name the plane to wait for, or leave the wait out",
                          plane->name);
}

/* ---- the check at the build ------------------------------------------------------------------------------------------------ */

typedef struct race {
    const pinn_plane *first, *second;
    bool first_writes, second_writes;
} race;

/* Do the two nodes touch a byte that one of them writes? Only pairs with a write are looked at. */
static bool find_race(const pn_graph_node *a, const pn_graph_node *b, race *out) {
    if (touches_nothing(a) || touches_nothing(b)) return false;
    for (size_t i = 0; i < a->reads + a->writes; i++)
        for (size_t k = i < a->reads ? b->reads : 0; k < b->reads + b->writes; k++) {
            const pinn_plane *first = i < a->reads ? a->read[i] : a->write[i - a->reads];
            const pinn_plane *second = k < b->reads ? b->read[k] : b->write[k - b->reads];
            if (!pn_planes_overlap(first, second)) continue;
            *out = (race){first, second, i >= a->reads, k >= b->reads};
            return true;
        }
    return false;
}

typedef struct fork_check {
    const pinn_graph *graph;
    const pn_list *list;
    size_t fork, branches;
    const size_t *branch; /* [branches] positions */
    size_t *clock;        /* [entries of the fork][branches]: of the item that ends at an entry; position 0 = nothing */
    size_t *now;          /* [branches]: of the branch being walked */
} fork_check;

static size_t *clock_of(const fork_check *check, size_t position) {
    return check->clock + (position - check->fork) * check->branches;
}

static pinn_status report(const fork_check *check, size_t a, size_t x, size_t b, size_t y, size_t item, const race *found) {
    const pn_list *list = check->list;
    const pn_graph_node *first = list->node[x], *second = list->node[y];
    return pn_fail(
        PINN_REFUSED,
        "graph '%s', node %zu '%s': in branch '%s' it %s '%s', which overlaps '%s' that node %zu '%s' in branch '%s' %s, and "
        "nothing orders the two: add pinn_graph_wait(graph, %s) to branch '%s' before node %zu, or put them into one branch",
        check->graph->name, second->number, second->name, list->node[check->branch[b]]->name,
        found->second_writes ? "writes" : "reads", found->second->name, found->first->name, first->number, first->name,
        list->node[check->branch[a]]->name, found->first_writes ? "writes" : "reads", found->first->name,
        list->node[check->branch[b]]->name, item + 1);
}

/* The item [start, end] of branch b against all of the earlier branches that it is not ordered after. */
static pinn_status check_item(const fork_check *check, size_t b, size_t start, size_t end) {
    const pn_list *list = check->list;
    for (size_t a = 0; a < b; a++) {
        size_t free_from = check->now[a] ? check->now[a] + 1 : check->branch[a] + 1;
        for (size_t x = free_from; x < list->node[check->branch[a]]->next; x++)
            for (size_t y = start; y <= end; y++) {
                race found;
                if (find_race(list->node[x], list->node[y], &found)) return report(check, a, x, b, y, start, &found);
            }
    }
    return PINN_OK;
}

static void wait_for(const fork_check *check, const pn_graph_node *wait) {
    for (size_t i = 0; i < wait->afters; i++) {
        const size_t position = wait->after[i], *theirs = clock_of(check, position);
        for (size_t a = 0; a < check->branches; a++) {
            const bool inside = check->branch[a] < position && position < check->list->node[check->branch[a]]->next;
            const size_t reached = inside ? position : theirs[a];
            if (reached > check->now[a]) check->now[a] = reached;
        }
    }
}

static pinn_status check_branch(const fork_check *check, size_t b) {
    const pn_list *list = check->list;
    memset(check->now, 0, check->branches * sizeof *check->now);
    for (size_t i = check->branch[b] + 1, end; i < list->node[check->branch[b]]->next; i = end + 1) {
        end = item_end(list, i);
        if (list->node[i]->kind == PN_NODE_WAIT) {
            wait_for(check, list->node[i]);
            continue;
        }
        pinn_status status = check_item(check, b, i, end);
        if (status != PINN_OK) return status;
        memcpy(clock_of(check, end), check->now, check->branches * sizeof *check->now);
    }
    return PINN_OK;
}

static pinn_status check_fork(const pinn_graph *graph, const pn_list *list, size_t fork) {
    const size_t join = list->node[fork]->end;
    size_t branches = 0, *branch = NULL;
    pinn_status status = PINN_OK;
    fork_check check = {.graph = graph, .list = list, .fork = fork};
    for (size_t i = list->node[fork]->next; i != join; i = list->node[i]->next) branches++;
    branch = pn_allocate(branches, sizeof *branch);
    check.now = pn_allocate(branches, sizeof *check.now);
    check.clock = pn_allocate((join - fork + 1) * branches, sizeof *check.clock);
    if (!branch || !check.now || !check.clock) {
        status = PN_NO_MEMORY("the check of a fork");
        goto fail;
    }
    for (size_t i = list->node[fork]->next, k = 0; i != join; i = list->node[i]->next) branch[k++] = i;
    check.branch = branch;
    check.branches = branches;
    for (size_t b = 0; b < branches; b++) PN_TRY(check_branch(&check, b));
fail:
    pn_free(branch);
    pn_free(check.now);
    pn_free(check.clock);
    return status;
}

pinn_status pn_order_check(const pinn_graph *graph, const pn_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->node[i]->kind != PN_NODE_FORK) continue;
        pinn_status status = check_fork(graph, list, i);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}
