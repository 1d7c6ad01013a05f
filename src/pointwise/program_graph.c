/* From the IR to the operations a program computes: reachable nodes only, products fused into multiply-adds, and an order that keeps
 * few values alive.
 *
 * The order is the better of two heuristics: depth first, the operand that needs most registers first (Sethi & Ullman 1970), and
 * greedy, always the ready operation that frees most registers. */
#include "core/memory.h"
#include "pointwise/program_code.h"

#define UNSEEN UINT32_MAX

/* ---- building -------------------------------------------------------------------------------------------------------------- */

static pinn_status find_input(const pn_program_spec *spec, uint32_t slot, uint32_t *out) {
    for (size_t i = 0; i < spec->inputs; i++)
        if (spec->input[i] == slot) {
            *out = (uint32_t)i;
            return PINN_OK;
        }
    return pn_fail(PINN_BAD_ARGUMENT, "program: an output depends on input slot %u, which is not among its inputs", slot);
}

/* Numbers the nodes the outputs depend on, in the IR's order: position[node], UNSEEN elsewhere. Returns their number. */
static size_t number_reachable(const pn_program_spec *spec, size_t nodes, uint32_t *position) {
    for (size_t i = 0; i < nodes; i++) position[i] = UNSEEN;
    for (size_t o = 0; o < spec->outputs; o++) position[spec->output[o]] = 0;
    for (size_t i = nodes; i-- > 0;) {
        if (position[i] == UNSEEN) continue;
        const pn_node *node = pn_ir_node(spec->ir, (pn_value)i);
        const pn_value operand[3] = {node->a, node->b, node->c};
        for (int k = 0; k < pn_op_arity(node->op); k++) position[operand[k]] = 0;
    }
    size_t count = 0;
    for (size_t i = 0; i < nodes; i++)
        if (position[i] != UNSEEN) position[i] = (uint32_t)count++;
    return count;
}

static pinn_status fill_vertex(const pn_program_spec *spec, const pn_node *node, const uint32_t *position, pn_vertex *all,
                               pn_vertex *vertex) {
    const pn_value operand[3] = {node->a, node->b, node->c};
    vertex->op = node->op;
    vertex->arity = (uint32_t)pn_op_arity(node->op);
    vertex->constant = node->constant;
    for (uint32_t k = 0; k < vertex->arity; k++) {
        vertex->operand[k] = position[operand[k]];
        all[vertex->operand[k]].uses++;
    }
    return node->op == PN_OP_INPUT ? find_input(spec, node->input, &vertex->input) : PINN_OK;
}

static bool is_private_product(const pn_vertex *vertex) {
    return vertex->op == PN_OP_MUL && vertex->uses == 1 && vertex->outputs == 0 && !vertex->fused;
}

/* a*b + c, a*b - c, c - a*b where nobody else needs the product. */
static void fuse_products(pn_vertices *graph) {
    for (size_t i = 0; i < graph->count; i++) {
        pn_vertex *sum = &graph->vertex[i];
        if (sum->op != PN_OP_ADD && sum->op != PN_OP_SUB) continue;
        for (uint32_t k = 0; k < 2; k++) {
            pn_vertex *product = &graph->vertex[sum->operand[k]];
            if (!is_private_product(product)) continue;
            const uint32_t rest = sum->operand[1 - k];
            product->fused = true;
            sum->op = sum->op == PN_OP_ADD ? (uint32_t)PN_LANE_FMA : (uint32_t)(k == 0 ? PN_LANE_FMS : PN_LANE_FNMA);
            sum->arity = 3;
            sum->operand[0] = product->operand[0];
            sum->operand[1] = product->operand[1];
            sum->operand[2] = rest;
            break;
        }
    }
}

pinn_status pn_vertices_create(const pn_program_spec *spec, pn_vertices *out) {
    pinn_status status;
    pn_vertices graph = {0};
    size_t nodes = 0;
    uint32_t *position = NULL;
    PN_TRY(pn_ir_check(spec->ir));
    for (size_t o = 0; o < spec->outputs; o++) {
        if (spec->output[o] >= pn_ir_count(spec->ir)) {
            status = pn_fail(PINN_BAD_ARGUMENT, "program: output %zu is not a node of the IR", o);
            goto fail;
        }
        if (spec->output[o] >= nodes) nodes = (size_t)spec->output[o] + 1;
    }
    position = pn_allocate(nodes, sizeof *position);
    if (!position) {
        status = PN_NO_MEMORY("a pointwise program");
        goto fail;
    }
    graph.count = number_reachable(spec, nodes, position);
    graph.vertex = pn_allocate(graph.count, sizeof *graph.vertex);
    graph.root = pn_allocate(spec->outputs, sizeof *graph.root);
    if (!graph.vertex || !graph.root) {
        status = PN_NO_MEMORY("a pointwise program");
        goto fail;
    }
    for (size_t i = 0; i < nodes; i++)
        if (position[i] != UNSEEN)
            PN_TRY(fill_vertex(spec, pn_ir_node(spec->ir, (pn_value)i), position, graph.vertex, &graph.vertex[position[i]]));
    for (size_t o = 0; o < spec->outputs; o++) {
        graph.root[o] = position[spec->output[o]];
        graph.vertex[graph.root[o]].outputs++;
        if (spec->kind[o] == PN_STORE) graph.vertex[graph.root[o]].stored = true;
    }
    fuse_products(&graph);
    pn_free(position);
    *out = graph;
    return PINN_OK;
fail:
    pn_free(position);
    pn_vertices_free(&graph);
    return status;
}

void pn_vertices_free(pn_vertices *graph) {
    pn_free(graph->vertex);
    pn_free(graph->root);
    *graph = (pn_vertices){0};
}

/* ---- ordering -------------------------------------------------------------------------------------------------------------- */

typedef struct schedule {
    const pn_vertices *graph;
    uint32_t *need;      /* [count] registers the vertex's expression needs as if it were a tree */
    uint32_t *rank;      /* [count] place in the depth-first order; UNSEEN before */
    uint32_t *remaining; /* [count] uses not yet scheduled */
    uint32_t *pending;   /* [count] operands not yet scheduled, repeated ones counted twice */
    uint32_t *work;      /* [2*count] stack */
    uint32_t *scheduled; /* [count] by the greedy order: 0 or 1 */
    uint32_t *user;      /* [3*count] who uses vertex v: entries first_user[v + 1] up to first_user[v + 2] */
    uint32_t *first_user; /* [count + 2] */
} schedule;

static bool in_register(const pn_vertex *vertex) { return vertex->arity > 0 && !vertex->stored; }

/* Operands of v by falling need. */
static void sort_operands(const schedule *s, const pn_vertex *v, uint32_t sorted[3]) {
    for (uint32_t k = 0; k < v->arity; k++) {
        uint32_t at = k;
        for (; at > 0 && s->need[sorted[at - 1]] < s->need[v->operand[k]]; at--) sorted[at] = sorted[at - 1];
        sorted[at] = v->operand[k];
    }
}

static void label_needs(schedule *s) {
    for (size_t i = 0; i < s->graph->count; i++) {
        const pn_vertex *v = &s->graph->vertex[i];
        uint32_t sorted[3];
        sort_operands(s, v, sorted);
        s->need[i] = in_register(v) ? 1 : 0;
        for (uint32_t k = 0; k < v->arity; k++)
            if (s->need[sorted[k]] > 0 && s->need[sorted[k]] + k > s->need[i]) s->need[i] = s->need[sorted[k]] + k;
    }
}

static size_t order_depth_first(schedule *s, const uint32_t *root, size_t roots, uint32_t *order) {
    size_t count = 0;
    for (size_t i = 0; i < s->graph->count; i++) s->rank[i] = UNSEEN;
    for (size_t r = 0; r < roots; r++) {
        size_t depth = 0;
        uint32_t *stack = s->work; /* pairs: vertex, next operand */
        if (s->rank[root[r]] != UNSEEN || s->graph->vertex[root[r]].arity == 0) continue;
        stack[depth++] = root[r];
        stack[depth++] = 0;
        while (depth > 0) {
            const uint32_t at = stack[depth - 2], k = stack[depth - 1]++;
            const pn_vertex *v = &s->graph->vertex[at];
            uint32_t sorted[3];
            if (k == v->arity) {
                depth -= 2;
                s->rank[at] = (uint32_t)count;
                order[count++] = at;
                continue;
            }
            sort_operands(s, v, sorted);
            if (s->graph->vertex[sorted[k]].arity > 0 && s->rank[sorted[k]] == UNSEEN) {
                stack[depth++] = sorted[k];
                stack[depth++] = 0;
            }
        }
    }
    return count;
}

/* Registers freed by computing v now, less the one it takes. */
static int gain(const schedule *s, uint32_t at) {
    const pn_vertex *v = &s->graph->vertex[at];
    int freed = 0;
    for (uint32_t k = 0; k < v->arity; k++) {
        const uint32_t x = v->operand[k];
        uint32_t times = 0, before = 0;
        for (uint32_t j = 0; j < v->arity; j++) {
            times += v->operand[j] == x;
            before += j < k && v->operand[j] == x;
        }
        if (before == 0 && in_register(&s->graph->vertex[x]) && s->remaining[x] == times) freed++;
    }
    return freed - (in_register(v) && v->uses > 0 ? 1 : 0);
}

static void prepare_greedy(schedule *s) {
    const size_t n = s->graph->count;
    for (size_t i = 0; i < n + 2; i++) s->first_user[i] = 0;
    for (size_t i = 0; i < n; i++) {
        const pn_vertex *v = &s->graph->vertex[i];
        s->remaining[i] = v->uses;
        s->pending[i] = s->scheduled[i] = 0;
        for (uint32_t k = 0; !v->fused && k < v->arity; k++) {
            s->first_user[v->operand[k] + 1]++;
            s->pending[i] += s->graph->vertex[v->operand[k]].arity > 0;
        }
    }
    for (size_t i = 0; i <= n; i++) s->first_user[i + 1] += s->first_user[i];
    for (size_t i = n; i-- > 0;) { /* first_user[x + 1] is the end of x's list until the list is filled from there downwards */
        const pn_vertex *v = &s->graph->vertex[i];
        for (uint32_t k = 0; !v->fused && k < v->arity; k++) s->user[--s->first_user[v->operand[k] + 1]] = (uint32_t)i;
    }
}

/* Ready operations wait in a binary heap. A key orders by falling gain, then by rank; the depth-first order leads from the rank back to
 * the operation. A gain only grows while its operation waits, at most once an operand: then a better key is added, and the old one is
 * skipped when its turn comes. */
typedef struct heap {
    uint64_t *key; /* [capacity] the smallest first: parent of i is (i - 1)/2 */
    size_t count;
} heap;

enum { MOST_GAIN = 3 /* operands */, HEAP_KEYS = 1 + MOST_GAIN /* an operation: its own, and one for each operand it uses */ };

static void heap_push(heap *h, uint64_t key) {
    size_t i = h->count++;
    for (; i > 0 && h->key[(i - 1) / 2] > key; i = (i - 1) / 2) h->key[i] = h->key[(i - 1) / 2];
    h->key[i] = key;
}

static uint64_t heap_pop(heap *h) {
    const uint64_t first = h->key[0], last = h->key[--h->count];
    size_t i = 0;
    for (size_t child = 1; child < h->count; i = child, child = 2 * i + 1) {
        if (child + 1 < h->count && h->key[child + 1] < h->key[child]) child++;
        if (h->key[child] >= last) break;
        h->key[i] = h->key[child];
    }
    h->key[i] = last;
    return first;
}

static void push_ready(const schedule *s, heap *h, uint32_t at) {
    heap_push(h, (uint64_t)(MOST_GAIN - gain(s, at)) << 32 | s->rank[at]);
}

/* Operand x lost a use: the operation that now holds all uses left has gained. Looked for only when so few are left that one operation
 * may hold them, so an operand's users are walked at most three times. */
static void raise_last_user(const schedule *s, heap *h, uint32_t x) {
    if (s->remaining[x] == 0 || s->remaining[x] > MOST_GAIN || !in_register(&s->graph->vertex[x])) return;
    for (uint32_t u = s->first_user[x + 1]; u < s->first_user[x + 2]; u++) {
        const uint32_t user = s->user[u];
        if (s->scheduled[user] || s->pending[user] > 0) continue;
        push_ready(s, h, user);
        return;
    }
}

static void order_greedy(schedule *s, const uint32_t *depth_first, size_t count, uint64_t *keys, uint32_t *order) {
    heap ready = {keys, 0};
    size_t done = 0;
    prepare_greedy(s);
    for (size_t i = 0; i < count; i++)
        if (s->pending[depth_first[i]] == 0) push_ready(s, &ready, depth_first[i]);
    while (ready.count > 0) {
        const uint32_t at = depth_first[(uint32_t)heap_pop(&ready)];
        const pn_vertex *v = &s->graph->vertex[at];
        if (s->scheduled[at]) continue;
        s->scheduled[at] = 1;
        order[done++] = at;
        for (uint32_t k = 0; k < v->arity; k++) s->remaining[v->operand[k]]--;
        for (uint32_t k = 0; k < v->arity; k++) raise_last_user(s, &ready, v->operand[k]);
        for (uint32_t u = s->first_user[at + 1]; u < s->first_user[at + 2]; u++)
            if (--s->pending[s->user[u]] == 0) push_ready(s, &ready, s->user[u]);
    }
}

/* Most registers alive at once. */
static uint32_t registers_of(schedule *s, const uint32_t *order, size_t count) {
    uint32_t alive = 0, most = 0;
    for (size_t i = 0; i < s->graph->count; i++) s->remaining[i] = s->graph->vertex[i].uses;
    for (size_t i = 0; i < count; i++) {
        const pn_vertex *v = &s->graph->vertex[order[i]];
        for (uint32_t k = 0; k < v->arity; k++)
            if (--s->remaining[v->operand[k]] == 0 && in_register(&s->graph->vertex[v->operand[k]])) alive--;
        if (in_register(v) && v->uses > 0) alive++;
        if (alive > most) most = alive;
    }
    return most;
}

pinn_status pn_vertices_schedule(const pn_vertices *graph, size_t roots, uint32_t *order, size_t *count) {
    const size_t n = graph->count;
    pinn_status status = PINN_OK;
    uint32_t *memory = pn_allocate(11 * n + 2, sizeof *memory), *greedy = pn_allocate(n, sizeof *greedy);
    uint64_t *keys = pn_allocate(HEAP_KEYS * n, sizeof *keys);
    if (!memory || !greedy || !keys) {
        status = PN_NO_MEMORY("a pointwise program");
        goto fail;
    }
    schedule s = {graph,          memory,         memory + n,     memory + 2 * n, memory + 3 * n, memory + 4 * n,
                  memory + 6 * n, memory + 7 * n, memory + 10 * n};
    label_needs(&s);
    *count = order_depth_first(&s, graph->root, roots, order);
    order_greedy(&s, order, *count, keys, greedy);
    if (registers_of(&s, greedy, *count) < registers_of(&s, order, *count))
        for (size_t i = 0; i < *count; i++) order[i] = greedy[i];
fail:
    pn_free(keys);
    pn_free(greedy);
    pn_free(memory);
    return status;
}
