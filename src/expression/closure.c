/* Which jet channels a point set carries, with Laplacian-like sums folded into one.
 *
 * Write p_i for the slots u_ii of a field and c_ri = d residual_r / d p_i. If on a set K of coordinates all these gradients are
 * multiples of one constant vector, c_ri = a_i g_r for i in K, then residual_r stays the same along every direction orthogonal to
 * a, so it depends on those p_i through L = sum_K a_i p_i only: put L for one p_k with a_k = 1 and 0 for the others. (Where the
 * gradient doesn't tell everything, under a condition, floor or sign, nothing is folded.) Being multiples by constants is an
 * equivalence between coordinates; its largest class is K. One channel serves all fields and residuals of the set, so a class holds
 * for all of them at once. What the algebra finds is checked at random points before use. The forward Laplacian itself: Li et al.,
 * Nature Machine Intelligence 2024; see jet.h.
 */
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "expression/internal.h"

enum { TRIAL_POINTS = 4, MOST_FACTORS = 64 /* constants taken out of one product */ };

typedef struct factored { /* value = factor * core, core not a product with a constant; the core of a constant is the node 1, of 0
                             the node 0 */
    double factor;
    pn_value core;
} factored;

typedef struct closure {
    pn_scope *scope;
    const pn_value *residual; /* [count] */
    size_t count;
    bool *reached;    /* [limit] nodes the residuals are built of */
    size_t limit;     /* largest residual + 1 */
    bool *used;       /* [slots] by any residual */
    size_t slots;     /* of the scope at the start */
    uint32_t *second; /* [seconds] used slots u_ii of candidate coordinates */
    size_t seconds;
    factored *gradient; /* [count][fields][coordinates] c_ri of field f: 0 where the slot is not used */
    unsigned class_of[PN_MAX_COORDINATES];
    double ratio[PN_MAX_COORDINATES];       /* c_ri = ratio[i] * c_r,class_of[i] */
    double coefficient[PN_MAX_COORDINATES]; /* a_i of the coordinates folded, else 0 */
    unsigned kept;                          /* the coordinate k whose slot becomes L */
} closure;

static bool is_pure_second(const pn_slot *slot) {
    return slot->kind == PN_SLOT_FIELD && !slot->channel.laplacian && slot->channel.order == 2 &&
           slot->channel.coordinate[0] == slot->channel.coordinate[1];
}

/* ---- Candidates -------------------------------------------------------------------------------------------------------- */

static pn_value operand(const pn_node *node, int k) { return k == 0 ? node->a : k == 1 ? node->b : node->c; }

static pinn_status find_used(closure *c) {
    const pn_ir *ir = c->scope->ir;
    c->slots = pn_scope_slots(c->scope);
    for (size_t r = 0; r < c->count; r++)
        if (c->residual[r] >= c->limit) c->limit = (size_t)c->residual[r] + 1;
    c->reached = pn_allocate(c->limit, sizeof *c->reached);
    c->used = pn_allocate(c->slots, sizeof *c->used);
    c->second = pn_allocate(c->slots, sizeof *c->second);
    if (!c->reached || !c->used || !c->second) return PN_NO_MEMORY("the derivatives of a point set");
    for (size_t r = 0; r < c->count; r++) c->reached[c->residual[r]] = true;
    for (size_t i = c->limit; i-- > 0;) {
        const pn_node *node = pn_ir_node(ir, (pn_value)i);
        if (!c->reached[i]) continue;
        if (node->op == PN_OP_INPUT && node->input < c->slots) c->used[node->input] = true;
        for (int k = 0; k < pn_op_arity(node->op); k++) c->reached[operand(node, k)] = true;
    }
    return PINN_OK;
}

/* Slots u_ii, without the coordinates whose u_ii some derivative of higher order needs anyway. */
static void find_candidates(closure *c) {
    bool blocked[PN_MAX_COORDINATES] = {false};
    const pn_scope *scope = c->scope;
    for (size_t s = 0; s < c->slots; s++) {
        const pn_channel *channel = &scope->slot[s].channel;
        if (!c->used[s] || scope->slot[s].kind != PN_SLOT_FIELD || channel->laplacian || channel->order < 3) continue;
        for (unsigned k = 1; k < channel->order; k++)
            if (channel->coordinate[k] == channel->coordinate[k - 1]) blocked[channel->coordinate[k]] = true;
    }
    for (size_t s = 0; s < c->slots; s++)
        if (c->used[s] && is_pure_second(&scope->slot[s]) && !blocked[scope->slot[s].channel.coordinate[0]])
            c->second[c->seconds++] = (uint32_t)s;
}

/* True when the gradient hides how a residual depends on the candidates: through a comparison, a condition, floor or sign. */
static pinn_status find_hidden(const closure *c, bool *hidden) {
    const pn_ir *ir = c->scope->ir;
    bool *depends = pn_allocate(c->limit, sizeof *depends), *candidate = pn_allocate(c->slots, sizeof *candidate);
    pinn_status status = PINN_OK;
    if (!depends || !candidate) {
        status = PN_NO_MEMORY("the derivatives of a point set");
        goto fail;
    }
    for (size_t i = 0; i < c->seconds; i++) candidate[c->second[i]] = true;
    *hidden = false;
    for (size_t i = 0; i < c->limit; i++) {
        const pn_node *node = pn_ir_node(ir, (pn_value)i);
        if (!c->reached[i]) continue;
        if (node->op == PN_OP_INPUT) depends[i] = node->input < c->slots && candidate[node->input];
        for (int k = 0; k < pn_op_arity(node->op); k++) depends[i] |= depends[operand(node, k)];
        bool steps = node->op == PN_OP_LT || node->op == PN_OP_LE || node->op == PN_OP_EQ || node->op == PN_OP_FLOOR ||
                     node->op == PN_OP_SIGN;
        *hidden |= (steps && depends[i]) || (node->op == PN_OP_SELECT && depends[node->a]);
    }
fail:
    pn_free(candidate);
    pn_free(depends);
    return status;
}

/* ---- Gradients --------------------------------------------------------------------------------------------------------- */

/* If value = k * rest with a constant k other than 1: true. */
static bool split_factor(pn_ir *ir, pn_value value, double *k, pn_value *rest) {
    const pn_node node = *pn_ir_node(ir, value);
    *k = -1;
    *rest = node.a;
    if (node.op == PN_OP_NEG || (node.op == PN_OP_MUL && pn_ir_is_const(ir, node.b, k))) return true;
    *rest = node.b;
    if (node.op == PN_OP_MUL && pn_ir_is_const(ir, node.a, k)) return true;
    *rest = pn_ir_const(ir, 1);
    return pn_ir_is_const(ir, value, k) && *k != 1 && *k != 0;
}

static factored factor_out(pn_ir *ir, pn_value value) {
    factored result = {1, value};
    double k;
    pn_value rest;
    for (int steps = 0; steps < MOST_FACTORS && result.core != PN_NONE; steps++) {
        const pn_node node = *pn_ir_node(ir, result.core);
        if (split_factor(ir, result.core, &k, &rest)) {
            result = (factored){result.factor * k, rest};
        } else if (node.op == PN_OP_DIV && pn_ir_is_const(ir, node.b, &k)) {
            result = (factored){result.factor / k, node.a};
        } else if (node.op == PN_OP_DIV && split_factor(ir, node.a, &k, &rest)) {
            result = (factored){result.factor * k, pn_ir_div(ir, rest, node.b)};
        } else {
            break;
        }
    }
    if (pn_ir_is_const(ir, result.core, &k)) result = (factored){result.factor * k, pn_ir_const(ir, k != 0)};
    return result;
}

/* One reverse sweep a residual. */
static pinn_status find_gradients(closure *c) {
    pn_ir *ir = c->scope->ir;
    size_t fields = c->scope->fields, coordinates = c->scope->coordinates;
    pinn_status status = PINN_OK;
    pn_value *adjoint = pn_allocate(c->seconds, sizeof *adjoint);
    c->gradient = pn_allocate(c->count * fields * coordinates, sizeof *c->gradient);
    if (!adjoint || !c->gradient) {
        status = PN_NO_MEMORY("the derivatives of a point set");
        goto fail;
    }
    const pn_value zero = pn_ir_const(ir, 0), one = pn_ir_const(ir, 1);
    for (size_t i = 0; i < c->count * fields * coordinates; i++) c->gradient[i] = (factored){0, zero};
    for (size_t r = 0; r < c->count; r++) {
        PN_TRY(pn_ir_adjoint(ir, &c->residual[r], &one, 1, c->second, c->seconds, adjoint));
        for (size_t i = 0; i < c->seconds; i++) {
            const pn_slot *slot = &c->scope->slot[c->second[i]];
            c->gradient[(r * fields + slot->index) * coordinates + slot->channel.coordinate[0]] = factor_out(ir, adjoint[i]);
        }
    }
    PN_TRY(pn_ir_check(ir));
fail:
    pn_free(adjoint);
    return status;
}

/* ---- Classes ----------------------------------------------------------------------------------------------------------- */

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-14 * fmax(fabs(a), fabs(b));
} /* factors are products of few numbers */

/* Is the column of j (over residuals and fields) a constant times the column of i? Columns are not zero. */
static bool proportional(const closure *c, unsigned i, unsigned j, double *ratio) {
    *ratio = 0;
    for (size_t k = 0; k < c->count * c->scope->fields; k++) {
        const factored *x = &c->gradient[k * c->scope->coordinates + i], *y = &c->gradient[k * c->scope->coordinates + j];
        if (x->core != y->core) return false;
        if (x->factor == 0 && y->factor == 0) continue;
        if (x->factor == 0 || y->factor == 0 || !isfinite(x->factor) || !isfinite(y->factor)) return false;
        double here = y->factor / x->factor;
        if (*ratio != 0 && !near(here, *ratio)) return false;
        *ratio = here;
    }
    return *ratio != 0;
}

/* Groups the candidate coordinates; the size of the largest class, whose first coordinate is *first. */
static size_t find_classes(closure *c, unsigned *first) {
    size_t members[PN_MAX_COORDINATES] = {0}, largest = 0;
    bool candidate[PN_MAX_COORDINATES] = {false};
    for (size_t i = 0; i < c->seconds; i++) candidate[c->scope->slot[c->second[i]].channel.coordinate[0]] = true;
    for (unsigned j = 0; j < c->scope->coordinates; j++) {
        if (!candidate[j]) continue;
        c->class_of[j] = j;
        c->ratio[j] = 1;
        for (unsigned i = 0; i < j; i++) {
            double ratio;
            if (!candidate[i] || c->class_of[i] != i || !proportional(c, i, j, &ratio)) continue;
            c->class_of[j] = i;
            c->ratio[j] = ratio;
            break;
        }
        members[c->class_of[j]]++;
    }
    for (unsigned j = 0; j < c->scope->coordinates; j++)
        if (members[j] > largest) {
            largest = members[j];
            *first = j;
        }
    for (unsigned j = 0; j < c->scope->coordinates; j++)
        if (!candidate[j]) c->class_of[j] = PN_NONE;
    return largest;
}

/* a_i = ratio over the smallest ratio: 2*u_xx + u_yy has a = (2, 1), -alpha*(u_xx + u_yy) has (1, 1). */
static void set_coefficients(closure *c, unsigned class) {
    unsigned smallest = class;
    for (unsigned i = 0; i < c->scope->coordinates; i++)
        if (c->class_of[i] == class && fabs(c->ratio[i]) < fabs(c->ratio[smallest])) smallest = i;
    for (unsigned i = 0; i < c->scope->coordinates; i++)
        if (c->class_of[i] == class)
            c->coefficient[i] = near(c->ratio[i], c->ratio[smallest]) ? 1 : c->ratio[i] / c->ratio[smallest];
    c->kept = smallest;
}

/* ---- Substitution ------------------------------------------------------------------------------------------------------ */

static const pn_channel LAPLACIAN = {.order = 2, .laplacian = true};

static bool is_folded(const closure *c, uint32_t slot) {
    return slot < c->slots && c->used[slot] && is_pure_second(&c->scope->slot[slot]) &&
           c->coefficient[c->scope->slot[slot].channel.coordinate[0]] != 0;
}

static pn_value fold_input(void *user, pn_ir *ir, uint32_t slot) {
    const closure *c = user;
    if (!is_folded(c, slot)) return PN_NONE;
    const pn_slot *meaning = &c->scope->slot[slot];
    if (meaning->channel.coordinate[0] != c->kept) return pn_ir_const(ir, 0);
    return pn_ir_input(ir, pn_scope_field_slot(c->scope, meaning->index, &LAPLACIAN)); /* exists: see make_laplacians */
}

/* The Laplacian slots of all fields that get one. */
static pinn_status make_laplacians(closure *c) {
    for (size_t i = 0; i < c->seconds; i++)
        if (pn_scope_field_slot(c->scope, c->scope->slot[c->second[i]].index, &LAPLACIAN) == PN_NONE)
            return PN_NO_MEMORY("input slots");
    return PINN_OK;
}

/* Uniform in [0.5, 1.5): xorshift64* (Vigna 2016), the same numbers in every run. */
static double next_trial(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return 0.5 + (double)(*state * 2685821657736338717u >> 11) * 0x1p-53;
}

/* Do the folded residuals agree with the original ones at points where L = sum a_i u_ii? */
static pinn_status agree(const closure *c, const pn_value *folded, bool *out) {
    const pn_scope *scope = c->scope;
    double *input = pn_allocate(scope->slots, sizeof *input);
    uint64_t state = 88172645463325252u;
    if (!input) return PN_NO_MEMORY("the derivatives of a point set");
    *out = true;
    for (int trial = 0; trial < TRIAL_POINTS && *out; trial++) {
        for (size_t s = 0; s < scope->slots; s++) input[s] = next_trial(&state);
        for (size_t f = 0; f < scope->fields; f++) {
            double sum = 0;
            for (size_t i = 0; i < c->seconds; i++) {
                const pn_slot *slot = &scope->slot[c->second[i]];
                if (slot->index == f) sum += c->coefficient[slot->channel.coordinate[0]] * input[c->second[i]];
            }
            for (size_t s = 0; s < scope->slots; s++)
                if (scope->slot[s].kind == PN_SLOT_FIELD && scope->slot[s].index == f && scope->slot[s].channel.laplacian)
                    input[s] = sum;
        }
        for (size_t r = 0; r < c->count; r++) {
            double before = pn_ir_evaluate(scope->ir, c->residual[r], input), after = pn_ir_evaluate(scope->ir, folded[r], input);
            /* Rounding of a few hundred operations on numbers near 1. Outside a function's domain there is nothing to compare. */
            if (isfinite(before) && isfinite(after) && fabs(before - after) > 1e-9 * (1 + fabs(before))) *out = false;
        }
    }
    pn_free(input);
    return PINN_OK;
}

/* Rewrites the residuals if some sum can be folded; *folds says whether. */
static pinn_status fold(closure *c, pn_value *residual, bool *folds) {
    pinn_status status = PINN_OK;
    unsigned class = 0;
    bool hidden = false, right = false;
    pn_value *folded = NULL;
    *folds = false;
    find_candidates(c);
    if (c->seconds < 2) return PINN_OK;
    PN_TRY(find_hidden(c, &hidden));
    if (hidden) return PINN_OK;
    PN_TRY(find_gradients(c));
    if (find_classes(c, &class) < 2) return PINN_OK;
    set_coefficients(c, class);
    PN_TRY(make_laplacians(c));
    folded = pn_allocate(c->count, sizeof *folded);
    if (!folded) return PN_NO_MEMORY("the derivatives of a point set");
    for (size_t r = 0; r < c->count; r++) folded[r] = pn_ir_substitute(c->scope->ir, residual[r], fold_input, c);
    PN_TRY(pn_ir_check(c->scope->ir));
    PN_TRY(agree(c, folded, &right));
    if (right) memcpy(residual, folded, c->count * sizeof *residual);
    *folds = right;
fail:
    pn_free(folded);
    return status;
}

/* ---- Layout ------------------------------------------------------------------------------------------------------------ */

static pinn_status make_layout(closure *c, bool folds, pn_layout *out) {
    const pn_scope *scope = c->scope;
    pn_channel *want = pn_allocate(c->slots + 1, sizeof *want);
    size_t wanted = 0;
    if (!want) return PN_NO_MEMORY("the derivatives of a point set");
    for (uint32_t s = 0; s < c->slots; s++)
        if (c->used[s] && scope->slot[s].kind == PN_SLOT_FIELD && !(folds && is_folded(c, s)))
            want[wanted++] = scope->slot[s].channel;
    if (folds) want[wanted++] = LAPLACIAN;
    pinn_status status = pn_layout_create(scope->coordinates, want, wanted, c->coefficient, out);
    pn_free(want);
    return status;
}

pinn_status pn_expression_closure(pn_scope *scope, pn_value *residual, size_t count, pn_layout *out) {
    pinn_status status = PINN_OK;
    closure c = {.scope = scope, .residual = residual, .count = count};
    bool folds = false;
    pn_value *rewritten = NULL;
    for (size_t r = 0; r < count; r++)
        if (residual[r] == PN_NONE) return pn_fail(PINN_BAD_ARGUMENT, "residual %zu is no value", r);
    rewritten = pn_allocate(count, sizeof *rewritten);
    if (!rewritten) return PN_NO_MEMORY("the derivatives of a point set");
    if (count) memcpy(rewritten, residual, count * sizeof *rewritten);
    PN_TRY(find_used(&c));
    for (size_t s = 0; s < c.slots; s++)
        if (c.used[s] && scope->slot[s].channel.laplacian) {
            status = pn_fail(PINN_BAD_ARGUMENT, "these residuals have been through pn_expression_closure before");
            goto fail;
        }
    PN_TRY(fold(&c, rewritten, &folds));
    PN_TRY(make_layout(&c, folds, out));
    if (count) memcpy(residual, rewritten, count * sizeof *residual);
fail:
    pn_free(rewritten);
    pn_free(c.gradient);
    pn_free(c.second);
    pn_free(c.used);
    pn_free(c.reached);
    return status;
}
