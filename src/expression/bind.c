/* The syntax tree to IR nodes: names get their meaning, and what can't mean anything is reported.
 *
 * One loop over the tree's nodes, operands first. A node that is wrong has the value PN_NONE and says so once; what is built on it
 * is PN_NONE without a word. Definitions are compiled at their first use, with everything allowed; what they mention is checked
 * against what the place of use allows.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "expression/internal.h"

enum { REMEMBERED = 32 /* unknown names told once each */ };

static const unsigned ALLOW_ALL = PN_ALLOW_CONSTANTS | PN_ALLOW_COORDINATES | PN_ALLOW_FIELDS | PN_ALLOW_NORMAL;

typedef struct binding {
    pn_scope *scope;
    pn_source *source;
    const pn_tree *tree;
    pn_value *value; /* [tree->count] */
    unsigned allow, uses;
    size_t visible; /* definitions that may be used: those before this one */
    const pn_syntax *told[REMEMBERED];
    size_t told_count;
    pinn_status status; /* NO_MEMORY of a definition */
} binding;

static pinn_status compile(pn_scope *scope, pn_source *source, size_t visible, unsigned *uses, pn_value *out);

static pn_excerpt node_text(const binding *b, const pn_syntax *node) {
    return pn_source_excerpt(b->source, node->begin, node->end);
}
static pn_excerpt name_text(const binding *b, const pn_syntax *node) {
    return pn_source_excerpt(b->source, node->at, node->name_end);
}
static const char *name_bytes(const binding *b, const pn_syntax *node) { return b->source->text + node->at; }
static size_t name_length(const pn_syntax *node) { return node->name_end - node->at; }
static const pn_syntax *operand(const binding *b, uint32_t index) { return &b->tree->node[index]; }

/* False the second time the same name is wrong in one expression. */
static bool tell(binding *b, const pn_syntax *node) {
    size_t length = name_length(node);
    for (size_t i = 0; i < b->told_count; i++)
        if (name_length(b->told[i]) == length && memcmp(name_bytes(b, b->told[i]), name_bytes(b, node), length) == 0) return false;
    if (b->told_count < REMEMBERED) b->told[b->told_count++] = node;
    return true;
}

/* Notes that the expression mentions something of this kind; false, with an error, where that is not allowed. */
static bool permit(binding *b, const pn_syntax *node, pn_allow kind) {
    b->uses |= kind;
    if (b->allow & kind) return true;
    if (!tell(b, node)) return false;
    pn_excerpt name = name_text(b, node);
    const char *hint = b->allow & PN_ALLOW_FIELDS        ? "a formula of coordinates, fields and constants stands here"
                       : b->allow & PN_ALLOW_COORDINATES ? "a formula of coordinates and constants stands here"
                                                         : "numbers, pi and constants stand here";
    if (kind == PN_ALLOW_NORMAL) hint = "the outward normal exists in conditions on faces only";
    pn_source_report(b->source, node->at, hint, "%s\"%s\" is not allowed here",
                     node->kind == PN_SYNTAX_CALL || kind == PN_ALLOW_NORMAL ? ""
                     : kind == PN_ALLOW_FIELDS                               ? "field "
                                                                             : "coordinate ",
                     name.text);
    return false;
}

/* ---- Names ------------------------------------------------------------------------------------------------------------- */

static void list_coordinates(const binding *b, char *hint, size_t size) {
    char list[160];
    pn_scope_list(b->scope, PN_NAME_COORDINATE, list, sizeof list);
    snprintf(hint, size, b->scope->coordinates ? "the coordinates are %s" : "there are no coordinates%s", list);
}

/* "write sin(a)"; d's own in a coordinate that is there. */
static void write_usage(const binding *b, const pn_function *function, char *hint, size_t size) {
    if (function->kind == PN_FUNCTION_D && b->scope->coordinates)
        snprintf(hint, size, "write d(a, %s), or more coordinates for higher orders", b->scope->name[0].text);
    else
        snprintf(hint, size, "write %s", function->usage);
}

/* Names that other languages know. */
static const struct {
    const char *name, *hint;
} foreign_names[] = {
    {"e", "for Euler's number write exp(1)"},
    {"inf", "every number is finite"},
    {"nan", "every number is finite"},
    {"true", "write 1"},
    {"false", "write 0"},
    {"and", "for \"and\" multiply conditions: (a < b)*(c < d)"},
    {"or", "for \"or\" write max(a < b, c < d)"},
    {"not", "for \"not\" write 1 - (a < b)"},
};

static const char *foreign_hint(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof foreign_names / sizeof *foreign_names; i++)
        if (strlen(foreign_names[i].name) == length && memcmp(foreign_names[i].name, name, length) == 0)
            return foreign_names[i].hint;
    return NULL;
}

/* Kinds of names that may stand in the expression, as bits 1 << kind. */
static unsigned allowed_names(const binding *b) {
    unsigned mask = 1u << PN_NAME_CONSTANT;
    if (b->allow & PN_ALLOW_COORDINATES) mask |= 1u << PN_NAME_COORDINATE | 1u << PN_NAME_DEFINITION;
    if (b->allow & PN_ALLOW_FIELDS) mask |= 1u << PN_NAME_FIELD;
    return mask;
}

static const char *allowed_words(const binding *b) {
    return b->allow & PN_ALLOW_FIELDS        ? "it must be a coordinate, a field, pi, or a name in [constants] or [define]"
           : b->allow & PN_ALLOW_COORDINATES ? "it must be a coordinate, pi, or a name in [constants] or [define]"
                                             : "it must be pi or a name in [constants]; a constant may use those before it";
}

static void report_unknown(binding *b, const pn_syntax *node) {
    pn_scope *scope = b->scope;
    const char *name = name_bytes(b, node);
    size_t length = name_length(node);
    if (!tell(b, node)) return;
    pn_excerpt shown = name_text(b, node);
    const pn_name *later = pn_scope_find(scope, name, length, scope->definitions);
    const pn_function *function = pn_function_find(name, length);
    char hint[256];
    if (function) {
        write_usage(b, function, hint, sizeof hint);
        pn_source_report(b->source, node->at, hint, "\"%s\" is a function", function->name);
        return;
    }
    if (later) {
        pn_source_report(b->source, node->at, "a definition may use those before it in [define]", "\"%s\" is defined later",
                         shown.text);
        return;
    }
    /* A name with an underscore may be a misspelt constant before it is a misspelt derivative. */
    bool underscore = memchr(name, '_', length) != NULL;
    const unsigned named = 1u << PN_NAME_CONSTANT | 1u << PN_NAME_DEFINITION, mask = allowed_names(b);
    const char *nearest = pn_scope_nearest(scope, name, length, underscore ? mask & named : mask, b->visible);
    if (!(nearest && (!underscore || strchr(nearest, '_')))) {
        if (b->allow & PN_ALLOW_FIELDS && pn_suffix_report(scope, b->source, node->at, length, b->visible)) return;
        nearest = pn_scope_nearest(scope, name, length, mask, b->visible);
    }
    const char *foreign = foreign_hint(name, length);
    if (foreign)
        snprintf(hint, sizeof hint, "%s", foreign);
    else if (nearest)
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", nearest);
    else if (b->allow & PN_ALLOW_NORMAL && length > 1 && *name == 'n' && pn_scope_coordinate(scope, name + 1, length - 1))
        snprintf(hint, sizeof hint, "time has no component of the normal");
    else
        snprintf(hint, sizeof hint, "%s", allowed_words(b));
    pn_source_report(b->source, node->at, hint, "unknown name \"%s\"", shown.text);
}

static pn_value bind_channel(binding *b, unsigned field, const unsigned *coordinate, unsigned order) {
    pn_channel channel = {0};
    for (unsigned i = 0; i < order; i++) channel = pn_channel_derivative(&channel, coordinate[i]);
    uint32_t slot = pn_scope_field_slot(b->scope, field, &channel);
    if (slot != PN_NONE) return pn_ir_input(b->scope->ir, slot);
    b->status = PINN_NO_MEMORY;
    return PN_NONE;
}

static pn_value bind_derivative(binding *b, const pn_syntax *node, const pn_suffix *suffix) {
    if (suffix->ways > 1) {
        if (tell(b, node)) pn_suffix_report_ambiguous(b->scope, b->source, node->at, name_length(node), suffix);
        return PN_NONE;
    }
    if (!permit(b, node, PN_ALLOW_FIELDS)) return PN_NONE;
    const pn_reading *reading = &suffix->reading[0];
    if (reading->order > PN_MAX_ORDER) {
        char hint[64];
        snprintf(hint, sizeof hint, "the highest order is %d", PN_MAX_ORDER);
        if (tell(b, node))
            pn_source_report(b->source, node->at, hint, "\"%s\" is a derivative of order %u", name_text(b, node).text,
                             reading->order);
        return PN_NONE;
    }
    return bind_channel(b, reading->field->index, reading->coordinate, reading->order);
}

/* Compiles a definition unless that has been done; its own errors stand at its own place, once. */
static pn_value bind_definition(binding *b, const pn_syntax *node, unsigned index) {
    pn_scope *scope = b->scope;
    if (scope->definition[index].state == PN_DEFINITION_NEW) {
        if (scope->depth == PN_MAX_NESTING) {
            pn_source_report(b->source, node->at, "write some of them out", "definitions within definitions, deeper than %d levels",
                             PN_MAX_NESTING);
            return PN_NONE;
        }
        pn_definition *definition = &scope->definition[index];
        pn_source source = {.scope = scope, .text = definition->text, .at = definition->at, .allow = ALLOW_ALL, .list = b->source->list};
        unsigned uses = 0;
        pn_value value = PN_NONE;
        scope->depth++;
        pinn_status status = compile(scope, &source, index, &uses, &value);
        scope->depth--;
        if (status == PINN_NO_MEMORY) {
            b->status = status;
            return PN_NONE;
        }
        definition->value = value;
        definition->uses = uses;
        definition->state = status == PINN_OK ? PN_DEFINITION_READY : PN_DEFINITION_WRONG;
    }
    const pn_definition *definition = &scope->definition[index];
    if (definition->state == PN_DEFINITION_WRONG) {
        b->source->errors++; /* told at the definition */
        return PN_NONE;
    }
    static const struct {
        pn_allow kind;
        const char *what;
    } kinds[] = {{PN_ALLOW_FIELDS, "a field"}, {PN_ALLOW_NORMAL, "the outward normal"}, {PN_ALLOW_COORDINATES, "a coordinate"}};
    b->uses |= definition->uses;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (definition->uses & kinds[i].kind & ~b->allow) {
            char hint[128];
            snprintf(hint, sizeof hint, "its definition uses %s, which can't stand here", kinds[i].what);
            if (tell(b, node)) pn_source_report(b->source, node->at, hint, "\"%s\" is not allowed here", name_text(b, node).text);
            return PN_NONE;
        }
    return definition->value;
}

static pn_value bind_name(binding *b, const pn_syntax *node) {
    pn_scope *scope = b->scope;
    const char *name = name_bytes(b, node);
    size_t length = name_length(node);
    const pn_name *known = pn_scope_find(scope, name, length, b->visible);
    switch (known ? known->kind : PN_NAME_NONE) {
    case PN_NAME_COORDINATE: return permit(b, node, PN_ALLOW_COORDINATES) ? pn_ir_input(scope->ir, known->index) : PN_NONE;
    case PN_NAME_FIELD: return permit(b, node, PN_ALLOW_FIELDS) ? bind_channel(b, known->index, NULL, 0) : PN_NONE;
    case PN_NAME_CONSTANT: return pn_ir_const(scope->ir, known->value);
    case PN_NAME_DEFINITION: return bind_definition(b, node, known->index);
    case PN_NAME_NONE: break;
    }
    if (length == 2 && memcmp(name, "pi", 2) == 0) return pn_ir_const(scope->ir, M_PI);
    const pn_name *coordinate = pn_scope_normal(scope, name, length);
    if (coordinate)
        return permit(b, node, PN_ALLOW_NORMAL) ? pn_ir_input(scope->ir, (uint32_t)(scope->coordinates + coordinate->index))
                                                : PN_NONE;
    pn_suffix suffix;
    pinn_status status = pn_suffix_split(scope, name, length, &suffix);
    if (status != PINN_OK) {
        b->status = status;
        return PN_NONE;
    }
    if (suffix.ways) return bind_derivative(b, node, &suffix);
    report_unknown(b, node);
    return PN_NONE;
}

/* ---- Operators --------------------------------------------------------------------------------------------------------- */

/* `result`, unless arithmetic on constants has left the finite numbers. */
static pn_value checked(binding *b, const pn_syntax *node, pn_value result) {
    double constant;
    if (!pn_ir_is_const(b->scope->ir, result, &constant) || isfinite(constant)) return result;
    char hint[64];
    snprintf(hint, sizeof hint, "its value is %s", isnan(constant) ? "not a number" : constant > 0 ? "infinite" : "minus infinity");
    pn_source_report(b->source, node->begin, hint, "\"%s\" is not a finite number", node_text(b, node).text);
    return PN_NONE;
}

static pn_value bind_quotient(binding *b, const pn_syntax *node, pn_value dividend, pn_value divisor) {
    double constant;
    if (!pn_ir_is_const(b->scope->ir, divisor, &constant) || constant != 0) return pn_ir_div(b->scope->ir, dividend, divisor);
    const pn_syntax *below = operand(b, node->b);
    if (below->kind == PN_SYNTAX_NUMBER)
        pn_source_report(b->source, below->begin, "divide by a number that is not 0", "division by zero");
    else
        pn_source_report(b->source, below->begin, "divide by something that is not 0", "division by zero: \"%s\" is 0",
                         node_text(b, below).text);
    return PN_NONE;
}

static pn_value bind_binary(binding *b, const pn_syntax *node) {
    pn_ir *ir = b->scope->ir;
    pn_value x = b->value[node->a], y = b->value[node->b];
    if (x == PN_NONE || y == PN_NONE) return PN_NONE;
    switch (node->operator) {
    case PN_TOKEN_ADD: return pn_ir_add(ir, x, y);
    case PN_TOKEN_SUB: return pn_ir_sub(ir, x, y);
    case PN_TOKEN_MUL: return pn_ir_mul(ir, x, y);
    case PN_TOKEN_DIV: return bind_quotient(b, node, x, y);
    case PN_TOKEN_POWER: return pn_ir_binary(ir, PN_OP_POW, x, y);
    case PN_TOKEN_LT: return pn_ir_binary(ir, PN_OP_LT, x, y);
    case PN_TOKEN_LE: return pn_ir_binary(ir, PN_OP_LE, x, y);
    case PN_TOKEN_GT: return pn_ir_binary(ir, PN_OP_LT, y, x);
    case PN_TOKEN_GE: return pn_ir_binary(ir, PN_OP_LE, y, x);
    case PN_TOKEN_EQ: return pn_ir_binary(ir, PN_OP_EQ, x, y);
    default: return PN_NONE; /* "=", reported by the parser */
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------- */

/* "u(x, t)", "sinn(x)": a call of what is no function. */
static void report_callee(binding *b, const pn_syntax *node) {
    const char *name = name_bytes(b, node);
    size_t length = name_length(node);
    if (!tell(b, node)) return;
    pn_excerpt shown = name_text(b, node);
    const pn_name *known = pn_scope_find(b->scope, name, length, b->visible);
    bool is_pi = length == 2 && memcmp(name, "pi", 2) == 0;
    pn_suffix suffix = {0};
    if (!known && pn_suffix_split(b->scope, name, length, &suffix) != PINN_OK) b->status = PINN_NO_MEMORY;
    char buffer[256];
    if ((known && known->kind == PN_NAME_FIELD) || suffix.ways) {
        snprintf(buffer, sizeof buffer, "write %s alone: fields depend on all coordinates; for a product write %s*(...)",
                 shown.text, shown.text);
        pn_source_report(b->source, node->at, buffer, "\"%s\" is a %s, not a function", shown.text, known ? "field" : "derivative");
    } else if (known || is_pi || pn_scope_normal(b->scope, name, length)) {
        snprintf(buffer, sizeof buffer, "for a product write %s*(...)", shown.text);
        pn_source_report(b->source, node->at, buffer, "\"%s\" is not a function", shown.text);
    } else {
        const char *hint = pn_function_hint(name, length, buffer, sizeof buffer);
        pn_source_report(b->source, node->at, hint ? hint : "docs/expressions.md lists the functions", "unknown function \"%s\"",
                         shown.text);
    }
}

static bool check_count(binding *b, const pn_syntax *node, const pn_function *function) {
    if (node->broken || (node->count >= function->least && node->count <= function->most)) return true;
    char hint[128];
    write_usage(b, function, hint, sizeof hint);
    if (function->kind == PN_FUNCTION_D && node->count > function->most) {
        snprintf(hint, sizeof hint, "the highest order is %d", PN_MAX_ORDER);
        pn_source_report(b->source, node->at, hint, "a derivative of order %u", node->count - 1);
    } else if (function->kind == PN_FUNCTION_D) {
        pn_source_report(b->source, node->at, hint,
                         "d takes an expression and the coordinates to differentiate by, not %u argument%s", node->count,
                         node->count == 1 ? "" : "s");
    } else {
        pn_source_report(b->source, node->at, hint, "%s takes %u argument%s, not %u", function->name, function->least,
                         function->least == 1 ? "" : "s", node->count);
    }
    return false;
}

/* Says why a derivative came back as PN_NONE. */
static pn_value derived(binding *b, const pn_syntax *node, pn_value result) {
    switch (b->scope->trouble) {
    case PN_TROUBLE_NONE: return result;
    case PN_TROUBLE_MEMORY: b->status = PINN_NO_MEMORY; return PN_NONE;
    case PN_TROUBLE_ORDER: {
        char hint[64];
        snprintf(hint, sizeof hint, "the highest order is %d", PN_MAX_ORDER);
        pn_source_report(b->source, node->at, hint, "a field is differentiated more than %d times", PN_MAX_ORDER);
        return PN_NONE;
    }
    case PN_TROUBLE_SIZE:
        pn_source_report(b->source, node->at, "differentiate a simpler expression",
                         "this derivative grows to more than %d operations", PN_MAX_GROWTH);
        return PN_NONE;
    }
    return result;
}

static pn_value bind_d(binding *b, const pn_syntax *node) {
    pn_value value = b->value[node->a];
    bool good = true;
    for (uint32_t i = operand(b, node->a)->next; i != 0; i = operand(b, i)->next) {
        const pn_syntax *argument = operand(b, i);
        if (argument->kind == PN_SYNTAX_BAD) return PN_NONE;
        const pn_name *coordinate =
            argument->quoted ? pn_scope_coordinate(b->scope, name_bytes(b, argument), name_length(argument)) : NULL;
        if (coordinate) {
            good = permit(b, argument, PN_ALLOW_COORDINATES) && good;
            if (good) value = pn_derivative(b->scope, value, coordinate->index);
            continue;
        }
        good = false;
        char hint[256];
        list_coordinates(b, hint, sizeof hint);
        const char *nearest = argument->quoted ? pn_scope_nearest(b->scope, name_bytes(b, argument), name_length(argument),
                                                                  1u << PN_NAME_COORDINATE, 0)
                                               : NULL;
        if (nearest) snprintf(hint, sizeof hint, "did you mean \"%s\"?", nearest);
        pn_source_report(b->source, argument->begin, hint, "d differentiates by coordinates, and \"%s\" is none",
                         node_text(b, argument).text);
    }
    return good ? derived(b, node, value) : PN_NONE;
}

static pn_value bind_lap(binding *b, const pn_syntax *node) {
    size_t space = b->scope->coordinates - (b->scope->time >= 0);
    if (space == 0) {
        pn_source_report(b->source, node->at, "it sums over all coordinates but time", "lap without a space coordinate");
        return PN_NONE;
    }
    /* The coordinates are not written out, but the result is a derivative by them. */
    return permit(b, node, PN_ALLOW_COORDINATES) ? derived(b, node, pn_derivative_laplacian(b->scope, b->value[node->a])) : PN_NONE;
}

static pn_value bind_call(binding *b, const pn_syntax *node) {
    pn_ir *ir = b->scope->ir;
    const pn_function *function = pn_function_find(name_bytes(b, node), name_length(node));
    if (!function) {
        report_callee(b, node);
        return PN_NONE;
    }
    if (!check_count(b, node, function) || node->count < function->least) return PN_NONE;
    pn_value argument[3] = {PN_NONE, PN_NONE, PN_NONE};
    size_t count = 0;
    for (uint32_t i = node->a; count < 3 && count < node->count; i = operand(b, i)->next) argument[count++] = b->value[i];
    b->scope->trouble = PN_TROUBLE_NONE;
    switch (function->kind) {
    case PN_FUNCTION_OP:
        return function->least == 1 ? pn_ir_unary(ir, function->op, argument[0])
                                    : pn_ir_binary(ir, function->op, argument[0], argument[1]);
    case PN_FUNCTION_POWER: return pn_ir_binary(ir, PN_OP_POW, argument[0], argument[1]);
    case PN_FUNCTION_IF: return pn_ir_select(ir, argument[0], argument[1], argument[2]);
    case PN_FUNCTION_D: return bind_d(b, node);
    case PN_FUNCTION_LAP: return bind_lap(b, node);
    case PN_FUNCTION_DN:
        return permit(b, node, PN_ALLOW_NORMAL) ? derived(b, node, pn_derivative_normal(b->scope, argument[0])) : PN_NONE;
    }
    return PN_NONE;
}

/* ---- Whole texts ------------------------------------------------------------------------------------------------------- */

static pn_value bind_node(binding *b, const pn_syntax *node) {
    switch (node->kind) {
    case PN_SYNTAX_BAD: return PN_NONE;
    case PN_SYNTAX_NUMBER: return pn_ir_const(b->scope->ir, node->number);
    case PN_SYNTAX_NAME: return node->quoted ? PN_NONE : bind_name(b, node);
    case PN_SYNTAX_NEGATE: return pn_ir_neg(b->scope->ir, b->value[node->a]);
    case PN_SYNTAX_BINARY: return checked(b, node, bind_binary(b, node));
    case PN_SYNTAX_CALL: return checked(b, node, bind_call(b, node));
    }
    return PN_NONE;
}

static pinn_status bind(binding *b, pn_value *out) {
    b->value = pn_allocate(b->tree->count, sizeof *b->value);
    if (!b->value) return PN_NO_MEMORY("an expression");
    for (uint32_t i = 0; i < b->tree->count && b->status == PINN_OK; i++) b->value[i] = bind_node(b, &b->tree->node[i]);
    *out = b->value[b->tree->root];
    pn_free(b->value);
    if (b->status != PINN_OK) return PN_NO_MEMORY("an expression");
    return PINN_OK;
}

/* `source` has all but its length, which is found here. `out` is written only on success. */
static pinn_status compile(pn_scope *scope, pn_source *source, size_t visible, unsigned *uses, pn_value *out) {
    pinn_status status = PINN_OK;
    pn_tree tree = {0};
    binding b = {.scope = scope, .source = source, .tree = &tree, .allow = source->allow, .visible = visible};
    pn_value value = PN_NONE;
    source->length = strnlen(source->text, PN_MAX_TEXT + 1);
    if (source->length > PN_MAX_TEXT) {
        pn_source_report(source, 0, "give parts of it names in [define]", "an expression longer than %d bytes", PN_MAX_TEXT);
        return PINN_CONFIG;
    }
    if (scope->depth == 0) scope->node_limit = pn_ir_count(scope->ir) + PN_MAX_GROWTH;
    PN_TRY(pn_parse(source, &tree));
    PN_TRY(bind(&b, &value));
    PN_TRY(pn_ir_check(scope->ir));
    if (source->errors)
        status = PINN_CONFIG;
    else {
        *uses = b.uses;
        *out = value;
    }
fail:
    pn_tree_free(&tree);
    return status;
}

pinn_status pn_expression_compile(pn_scope *scope, const char *text, pn_position at, unsigned allow, pn_diagnostics *list,
                                  pn_value *out) {
    pn_source source = {.scope = scope, .text = text, .at = at, .allow = allow, .list = list};
    unsigned uses;
    pinn_status status = compile(scope, &source, scope->definitions, &uses, out);
    return status == PINN_CONFIG ? pn_fail(PINN_CONFIG, "an expression has errors; its diagnostics say which") : status;
}

pinn_status pn_expression_number(pn_scope *scope, const char *text, pn_position at, pn_diagnostics *list, double *out) {
    pinn_status status = PINN_OK;
    pn_ir *ir = NULL;
    pn_scope *own = NULL;
    pn_value value;
    double number = 0;
    if (!scope) {
        PN_TRY(pn_ir_create(&ir));
        PN_TRY(pn_scope_create(ir, NULL, 0, -1, NULL, 0, &own));
        scope = own;
    }
    PN_TRY(pn_expression_compile(scope, text, at, PN_ALLOW_CONSTANTS, list, &value));
    if (!pn_ir_is_const(scope->ir, value, &number))
        status = pn_fail(PINN_INTERNAL, "constant \"%.60s\" did not fold to a number", text);
    if (status == PINN_OK) *out = number;
fail:
    pn_scope_destroy(own);
    pn_ir_destroy(ir);
    return status;
}
