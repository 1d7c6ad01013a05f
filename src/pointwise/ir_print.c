/* Text of expressions, for --plan, messages and tests: a line a shared node ("let v7 = tanh(in0)"), then a line an output.
 * A node used once stands where it is used, unless its text would nest deeper than MOST_NESTING.
 */
#include "core/memory.h"
#include "pointwise/ir_internal.h"

enum { MOST_NESTING = 16 };

typedef struct printer {
    const pn_ir *ir;
    const bool *bound; /* [node] printed as its let-name */
    const char *(*input_name)(void *user, uint32_t slot);
    void *user;
    pn_text *out;
} printer;

static void print_node(const printer *print, pn_value value, bool whole);

static void print_leaf(const printer *print, const pn_node *node) {
    if (node->op == PN_OP_CONST) {
        bool negative = node->constant < 0;
        if (negative) pn_text_string(print->out, "(");
        pn_text_number(print->out, node->constant);
        if (negative) pn_text_string(print->out, ")");
        return;
    }
    const char *name = print->input_name ? print->input_name(print->user, node->input) : NULL;
    if (name)
        pn_text_string(print->out, name);
    else
        pn_text_printf(print->out, "in%u", (unsigned)node->input);
}

static bool is_infix(pn_op op) {
    return op == PN_OP_ADD || op == PN_OP_SUB || op == PN_OP_MUL || op == PN_OP_DIV || op == PN_OP_LT || op == PN_OP_LE ||
           op == PN_OP_EQ;
}

static void print_operation(const printer *print, const pn_node *node, bool whole) {
    if (is_infix(node->op)) {
        if (!whole) pn_text_string(print->out, "(");
        print_node(print, node->a, false);
        pn_text_printf(print->out, " %s ", pn_op_text(node->op));
        print_node(print, node->b, false);
        if (!whole) pn_text_string(print->out, ")");
        return;
    }
    pn_text_printf(print->out, "%s(", pn_op_text(node->op));
    for (int k = 0; k < pn_op_arity(node->op); k++) {
        if (k) pn_text_string(print->out, ", ");
        print_node(print, pn_node_operand(node, k), true);
    }
    pn_text_string(print->out, ")");
}

static void print_node(const printer *print, pn_value value, bool whole) {
    const pn_node *node = &print->ir->node[value];
    if (print->bound[value])
        pn_text_printf(print->out, "v%u", (unsigned)value);
    else if (pn_op_arity(node->op) == 0)
        print_leaf(print, node);
    else
        print_operation(print, node, whole);
}

/* Chooses the nodes that get a name: those used twice, and the ends of long chains. */
static void bind(const pn_ir *ir, const bool *reached, size_t limit, uint8_t *uses, uint8_t *nesting, bool *bound) {
    for (size_t i = 0; i < limit; i++)
        for (int k = 0; reached[i] && k < pn_op_arity(ir->node[i].op); k++) {
            pn_value operand = pn_node_operand(&ir->node[i], k);
            if (uses[operand] < 2) uses[operand]++;
        }
    for (size_t i = 0; i < limit; i++) {
        if (!reached[i] || pn_op_arity(ir->node[i].op) == 0) continue;
        for (int k = 0; k < pn_op_arity(ir->node[i].op); k++) {
            pn_value operand = pn_node_operand(&ir->node[i], k);
            if (!bound[operand] && nesting[operand] >= nesting[i]) nesting[i] = (uint8_t)(nesting[operand] + 1);
        }
        bound[i] = uses[i] > 1 || nesting[i] >= MOST_NESTING;
    }
}

void pn_ir_print(const pn_ir *ir, const pn_value *value, size_t count, const char *(*input_name)(void *user, uint32_t slot),
                 void *user, pn_text *out) {
    size_t limit = 0;
    bool *reached = pn_ir_reach(ir, value, count, PN_WALK_VALUES, &limit);
    uint8_t *uses = pn_allocate(limit, sizeof *uses), *nesting = pn_allocate(limit, sizeof *nesting);
    bool *bound = pn_allocate(limit, sizeof *bound);
    if (!reached || !uses || !nesting || !bound) {
        out->failed = true;
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        if (value[i] != PN_NONE && uses[value[i]] < 2) uses[value[i]]++;
    bind(ir, reached, limit, uses, nesting, bound);
    printer print = {ir, bound, input_name, user, out};
    for (size_t i = 0; i < limit; i++) {
        if (!bound[i]) continue;
        pn_text_printf(out, "let v%u = ", (unsigned)i);
        print_operation(&print, &ir->node[i], true);
        pn_text_string(out, "\n");
    }
    for (size_t i = 0; i < count; i++) {
        pn_text_printf(out, "out%zu = ", i);
        if (value[i] == PN_NONE)
            pn_text_string(out, "none");
        else
            print_node(&print, value[i], true);
        pn_text_string(out, "\n");
    }
done:
    pn_free(bound);
    pn_free(nesting);
    pn_free(uses);
    pn_free(reached);
}
