/* Storage of the pointwise IR: nodes in one growing array, found again by their content through a hash table (hash-consing; Ershov
 * 1958), so that equal expressions are one node and a node's operands always have smaller ids than itself.
 */
#include "pointwise/ir.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "pointwise/ir_internal.h"

enum { FIRST_CAPACITY = 64 };

static const struct {
    const char *text;
    int arity;
} op_table[PN_OP_COUNT] = {
#define X(name, arity, text) {text, arity},
    PN_OP_TABLE(X)
#undef X
};

int pn_op_arity(pn_op op) { return op_table[op].arity; }
const char *pn_op_text(pn_op op) { return op_table[op].text; }

double pn_op_apply(pn_op op, double a, double b, double c) {
    switch (op) {
    case PN_OP_CONST:
    case PN_OP_INPUT:
    case PN_OP_COUNT: break;
    case PN_OP_NEG: return -a;
    case PN_OP_ABS: return fabs(a);
    case PN_OP_SIGN: return isnan(a) ? a : (double)((a > 0) - (a < 0));
    case PN_OP_FLOOR: return floor(a);
    case PN_OP_SQRT: return sqrt(a);
    case PN_OP_EXP: return exp(a);
    case PN_OP_EXPM1: return expm1(a);
    case PN_OP_LOG: return log(a);
    case PN_OP_LOG1P: return log1p(a);
    case PN_OP_SIN: return sin(a);
    case PN_OP_COS: return cos(a);
    case PN_OP_TAN: return tan(a);
    case PN_OP_ASIN: return asin(a);
    case PN_OP_ACOS: return acos(a);
    case PN_OP_ATAN: return atan(a);
    case PN_OP_SINH: return sinh(a);
    case PN_OP_COSH: return cosh(a);
    case PN_OP_TANH: return tanh(a);
    case PN_OP_ERF: return erf(a);
    case PN_OP_SOFTPLUS: return isnan(a) ? a : fmax(a, 0) + log1p(exp(-fabs(a)));
    case PN_OP_ADD: return a + b;
    case PN_OP_SUB: return a - b;
    case PN_OP_MUL: return a * b;
    case PN_OP_DIV: return a / b;
    case PN_OP_POW: return pow(a, b);
    case PN_OP_ATAN2: return atan2(a, b);
    case PN_OP_MIN: return fmin(a, b);
    case PN_OP_MAX: return fmax(a, b);
    case PN_OP_LT: return a < b;
    case PN_OP_LE: return a <= b;
    case PN_OP_EQ: return a == b;
    case PN_OP_SELECT: return a != 0 ? b : c;
    }
    return (double)NAN;
}

/* ---- nodes and their table ------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u; /* Fibonacci hashing, folded so that the high bits count too */
    return hash ^ (hash >> 32);
}

static uint64_t node_hash(const pn_node *node) {
    uint64_t bits;
    memcpy(&bits, &node->constant, sizeof bits);
    uint64_t hash = mix((uint64_t)node->op + 1, node->a);
    hash = mix(hash, node->b);
    hash = mix(hash, node->c);
    hash = mix(hash, node->input);
    return mix(hash, bits);
}

/* By bits: NaN is one constant here, and pn_ir_const has made all zeros and all NaNs alike. */
static bool node_equal(const pn_node *x, const pn_node *y) {
    return x->op == y->op && x->a == y->a && x->b == y->b && x->c == y->c && x->input == y->input &&
           memcmp(&x->constant, &y->constant, sizeof x->constant) == 0;
}

/* The bucket that holds this content, or the free one where it belongs. */
static size_t find_bucket(const pn_ir *ir, const pn_node *node) {
    size_t mask = ir->buckets - 1;
    size_t bucket = (size_t)node_hash(node) & mask;
    while (ir->table[bucket] != PN_NONE && !node_equal(&ir->node[ir->table[bucket]], node)) bucket = (bucket + 1) & mask;
    return bucket;
}

/* Doubles the arrays. The graph is unchanged when memory is short. */
static bool grow(pn_ir *ir) {
    size_t capacity = ir->capacity ? 2 * ir->capacity : FIRST_CAPACITY;
    size_t buckets = 4 * capacity;
    if (capacity >= PN_NONE) return false;
    pn_node *node = pn_allocate(capacity, sizeof *node);
    uint8_t *trait = pn_allocate(capacity, sizeof *trait);
    pn_known *known = pn_allocate(capacity, sizeof *known);
    pn_value *table = pn_allocate(buckets, sizeof *table);
    if (!node || !trait || !known || !table) {
        pn_free(node);
        pn_free(trait);
        pn_free(known);
        pn_free(table);
        return false;
    }
    if (ir->count) {
        memcpy(node, ir->node, ir->count * sizeof *node);
        memcpy(trait, ir->trait, ir->count * sizeof *trait);
        memcpy(known, ir->known, ir->count * sizeof *known);
    }
    pn_free(ir->node);
    pn_free(ir->trait);
    pn_free(ir->known);
    pn_free(ir->table);
    ir->node = node;
    ir->trait = trait;
    ir->known = known;
    ir->table = table;
    ir->capacity = capacity;
    ir->buckets = buckets;
    for (size_t i = 0; i < buckets; i++) table[i] = PN_NONE;
    for (size_t i = 0; i < ir->count; i++) table[find_bucket(ir, &node[i])] = (pn_value)i;
    return true;
}

static uint8_t node_trait(const pn_ir *ir, const pn_node *node) {
    uint8_t a = node->a == PN_NONE ? 0 : ir->trait[node->a];
    uint8_t b = node->b == PN_NONE ? 0 : ir->trait[node->b];
    uint8_t c = node->c == PN_NONE ? 0 : ir->trait[node->c];
    switch (node->op) {
    case PN_OP_CONST:
        if (node->constant == 0 || node->constant == 1) return PN_TRAIT_BOOLEAN | PN_TRAIT_NONNEGATIVE;
        return node->constant > 0 ? PN_TRAIT_NONNEGATIVE : 0;
    case PN_OP_LT:
    case PN_OP_LE:
    case PN_OP_EQ: return PN_TRAIT_BOOLEAN | PN_TRAIT_NONNEGATIVE;
    case PN_OP_ABS:
    case PN_OP_SQRT:
    case PN_OP_EXP:
    case PN_OP_COSH:
    case PN_OP_SOFTPLUS: return PN_TRAIT_NONNEGATIVE;
    case PN_OP_MUL: return (uint8_t)((a & b) | (node->a == node->b ? PN_TRAIT_NONNEGATIVE : 0));
    case PN_OP_ADD:
    case PN_OP_DIV: return a & b & PN_TRAIT_NONNEGATIVE;
    case PN_OP_MIN: return a & b;
    case PN_OP_MAX: return (uint8_t)((a & b) | ((a | b) & PN_TRAIT_NONNEGATIVE));
    case PN_OP_POW: return a & PN_TRAIT_NONNEGATIVE;
    case PN_OP_SELECT: return b & c;
    default: return 0;
    }
}

static pn_value intern(pn_ir *ir, const pn_node *node) {
    if (ir->buckets) {
        pn_value known = ir->table[find_bucket(ir, node)];
        if (known != PN_NONE) return known;
    }
    if (ir->count == ir->capacity && !grow(ir)) {
        ir->failed = true;
        return PN_NONE;
    }
    pn_value value = (pn_value)ir->count;
    ir->node[value] = *node;
    ir->trait[value] = node_trait(ir, node);
    ir->known[value] = (pn_known){PN_NONE, PN_NONE};
    ir->table[find_bucket(ir, node)] = value;
    ir->count++;
    return value;
}

pn_value pn_ir_intern(pn_ir *ir, pn_op op, pn_value a, pn_value b, pn_value c) {
    int arity = pn_op_arity(op);
    if ((arity > 0 && a == PN_NONE) || (arity > 1 && b == PN_NONE) || (arity > 2 && c == PN_NONE)) return PN_NONE;
    pn_node node = {.op = op, .a = a, .b = b, .c = c};
    return intern(ir, &node);
}

pn_value pn_ir_const(pn_ir *ir, double value) {
    pn_node node = {.op = PN_OP_CONST, .a = PN_NONE, .b = PN_NONE, .c = PN_NONE, .constant = value};
    if (value == 0) node.constant = 0; /* -0 too */
    if (isnan(value)) node.constant = (double)NAN;
    return intern(ir, &node);
}

pn_value pn_ir_input(pn_ir *ir, uint32_t slot) {
    pn_node node = {.op = PN_OP_INPUT, .a = PN_NONE, .b = PN_NONE, .c = PN_NONE, .input = slot};
    return intern(ir, &node);
}

void pn_ir_know(pn_ir *ir, pn_value v, pn_value argument, pn_value derivative) {
    if (v == PN_NONE || argument == PN_NONE || derivative == PN_NONE) return;
    if (v > argument && pn_op_arity(ir->node[v].op) > 0 && ir->known[v].argument == PN_NONE)
        ir->known[v] = (pn_known){argument, derivative};
}

/* ---- the graph as a whole -------------------------------------------------------------------------------------------------- */

pinn_status pn_ir_create(pn_ir **out) {
    pn_ir *ir = pn_allocate(1, sizeof *ir);
    if (!ir || !grow(ir)) {
        pn_free(ir);
        return PN_NO_MEMORY("an expression graph");
    }
    *out = ir;
    return PINN_OK;
}

void pn_ir_destroy(pn_ir *ir) {
    if (!ir) return;
    pn_free(ir->node);
    pn_free(ir->trait);
    pn_free(ir->known);
    pn_free(ir->table);
    pn_free(ir);
}

pinn_status pn_ir_check(const pn_ir *ir) { return ir->failed ? PN_NO_MEMORY("an expression graph") : PINN_OK; }
size_t pn_ir_count(const pn_ir *ir) { return ir->count; }
const pn_node *pn_ir_node(const pn_ir *ir, pn_value value) { return &ir->node[value]; }

bool pn_ir_is_const(const pn_ir *ir, pn_value value, double *constant) {
    if (value == PN_NONE || ir->node[value].op != PN_OP_CONST) return false;
    *constant = ir->node[value].constant;
    return true;
}
