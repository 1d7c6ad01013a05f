/* Tokens to a syntax tree, by precedence climbing (Richards 1979; the same as Pratt 1973 with numbers for binding powers).
 *
 * Mistakes whose meaning is plain ("**", "2x", "lhs = rhs", an unclosed parenthesis) are reported and parsed as meant, so that
 * names are checked too. Of the others only the first is reported: what follows it would mostly be its echo.
 */
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "expression/internal.h"

enum { COMPARISON = 1, SUM, PRODUCT, UNARY, POWER }; /* binding powers; 0 = ends an expression */

typedef struct parser {
    pn_source *source;
    pn_tree tree;
    size_t cursor;
    pn_token token, previous;
    unsigned depth;     /* nesting */
    bool broken;        /* a syntax error has been reported whose meaning is not plain */
    bool out_of_memory; /* the token is END from then on */
} parser;

static uint32_t parse_expression(parser *p, int least);

static void advance(parser *p) {
    p->previous = p->token;
    p->token = pn_lex_next(p->source, &p->cursor);
}

/* Everything left is skipped. */
static void abandon(parser *p) {
    p->cursor = p->source->length;
    p->token = (pn_token){PN_TOKEN_END, (uint32_t)p->cursor, (uint32_t)p->cursor, 0};
}

static uint32_t append(parser *p, pn_syntax node) {
    pn_tree *tree = &p->tree;
    if (tree->count == tree->capacity) {
        uint32_t capacity = tree->capacity ? 2 * tree->capacity : 64;
        pn_syntax *grown = pn_reallocate(tree->node, tree->count, capacity, sizeof *grown);
        if (!grown) {
            p->out_of_memory = true;
            abandon(p);
            return 0;
        }
        tree->node = grown;
        tree->capacity = capacity;
    }
    tree->node[tree->count] = node;
    return tree->count++;
}

static uint32_t append_bad(parser *p) {
    return append(p, (pn_syntax){.kind = PN_SYNTAX_BAD, .begin = p->token.begin, .end = p->token.begin, .at = p->token.begin});
}

/* True once: for errors whose echoes are not worth reading. */
static bool first_error(parser *p) {
    bool first = !p->broken;
    p->broken = true;
    return first;
}

static pn_excerpt token_text(const parser *p, pn_token token) { return pn_source_excerpt(p->source, token.begin, token.end); }

static int precedence(pn_token_kind kind) {
    switch (kind) {
    case PN_TOKEN_LT:
    case PN_TOKEN_LE:
    case PN_TOKEN_GT:
    case PN_TOKEN_GE:
    case PN_TOKEN_EQ:
    case PN_TOKEN_ASSIGN: return COMPARISON;
    case PN_TOKEN_ADD:
    case PN_TOKEN_SUB: return SUM;
    case PN_TOKEN_MUL:
    case PN_TOKEN_DIV: return PRODUCT;
    case PN_TOKEN_NUMBER:
    case PN_TOKEN_NAME:
    case PN_TOKEN_OPEN:
    case PN_TOKEN_BAD: return PRODUCT; /* its "*" is missing */
    case PN_TOKEN_POWER: return POWER;
    case PN_TOKEN_END:
    case PN_TOKEN_CLOSE:
    case PN_TOKEN_COMMA: break;
    }
    return 0;
}

static bool begins_operand(pn_token_kind kind) {
    return kind == PN_TOKEN_NUMBER || kind == PN_TOKEN_NAME || kind == PN_TOKEN_OPEN || kind == PN_TOKEN_BAD;
}

/* ---- Reports ----------------------------------------------------------------------------------------------------------- */

static void report_missing_operand(parser *p) {
    const char *hint = "put a number, a name or parentheses there";
    bool at_start = p->previous.end == 0;
    if (p->token.kind == PN_TOKEN_CLOSE && p->depth == 0) return; /* reported as a ")" without "(" */
    if (!first_error(p)) return;
    if (at_start || (precedence(p->token.kind) != 0 && p->token.kind != PN_TOKEN_END) || p->token.kind == PN_TOKEN_COMMA)
        pn_source_report(p->source, p->token.begin, hint, "nothing stands before \"%s\"", token_text(p, p->token).text);
    else
        pn_source_report(p->source, p->previous.begin, hint, "nothing stands after \"%s\"", token_text(p, p->previous).text);
}

/* "2x", "2 pi", "a (b)": two operands side by side. */
static void report_missing_operator(parser *p) {
    pn_token left = p->previous, right = p->token;
    if (left.kind == PN_TOKEN_BAD || right.kind == PN_TOKEN_BAD) return;
    const char *name = p->source->text + left.begin;
    if (left.kind == PN_TOKEN_NAME && pn_function_find(name, left.end - left.begin))
        return; /* "sin x": binding asks for sin(...) */
    char hint[160];
    snprintf(hint, sizeof hint, "write %s*%s", left.kind == PN_TOKEN_CLOSE ? "(...)" : token_text(p, left).text,
             right.kind == PN_TOKEN_OPEN ? "(...)" : token_text(p, right).text);
    pn_source_report(p->source, right.begin, hint, "an operator is missing between \"%s\" and \"%s\"", token_text(p, left).text,
                     token_text(p, right).text);
}

static void report_assignment(parser *p, pn_token sign, uint32_t left, uint32_t right) {
    if (p->depth) {
        pn_source_report(p->source, sign.begin, "to compare write \"==\"", "\"=\" inside an expression");
        return;
    }
    if (!(p->source->allow & PN_ALLOW_FIELDS)) {
        pn_source_report(p->source, sign.begin, "write the right-hand side alone", "\"=\" inside an expression");
        return;
    }
    const pn_syntax *lhs = &p->tree.node[left], *rhs = &p->tree.node[right];
    char hint[256] = "a residual is one expression that should be zero: write lhs - (rhs)";
    if (lhs->end - lhs->begin < 60 && rhs->end - rhs->begin < 60 && lhs->end > lhs->begin && rhs->end > rhs->begin)
        snprintf(hint, sizeof hint, "a residual is one expression that should be zero: write %s - %s%s%s",
                 pn_source_excerpt(p->source, lhs->begin, lhs->end).text, rhs->enclosed ? "" : "(",
                 pn_source_excerpt(p->source, rhs->begin, rhs->end).text, rhs->enclosed ? "" : ")");
    pn_source_report(p->source, sign.begin, hint, "\"=\" inside an expression");
}

/* ---- Operands ---------------------------------------------------------------------------------------------------------- */

/* One level down; false, with an error, when that is too deep. */
static bool enter(parser *p) {
    if (p->depth == PN_MAX_NESTING) {
        if (first_error(p))
            pn_source_report(p->source, p->previous.begin, "give parts of it names in [define]", "nested deeper than %d levels",
                             PN_MAX_NESTING);
        abandon(p);
        return false;
    }
    p->depth++;
    return true;
}

/* Takes the ")" that belongs to `open`; returns the offset where the enclosed term ends. */
static uint32_t close_parenthesis(parser *p, pn_token open, const char *name, uint32_t name_length) {
    if (p->token.kind == PN_TOKEN_CLOSE) {
        advance(p);
        return p->previous.end;
    }
    if (first_error(p)) {
        if (name_length)
            pn_source_report(p->source, open.begin, "add \")\" where its arguments end", "the \"(\" of %.*s is never closed",
                             (int)(name_length < 60 ? name_length : 60), name);
        else
            pn_source_report(p->source, open.begin, "add \")\" where the group ends", "this \"(\" is never closed");
    }
    return p->token.begin;
}

static uint32_t parse_group(parser *p) {
    pn_token open = p->token;
    advance(p);
    if (p->token.kind == PN_TOKEN_CLOSE) {
        if (first_error(p)) pn_source_report(p->source, open.begin, "put an expression between them", "empty parentheses");
        advance(p);
        return append_bad(p);
    }
    if (!enter(p)) return append_bad(p);
    uint32_t inner = p->token.kind == PN_TOKEN_END ? append_bad(p) : parse_expression(p, COMPARISON);
    while (p->token.kind == PN_TOKEN_COMMA) {
        if (first_error(p))
            pn_source_report(p->source, p->token.begin, "a comma only parts the arguments of a function",
                             "\",\" in plain parentheses");
        advance(p);
        parse_expression(p, COMPARISON);
    }
    p->depth--;
    uint32_t end = close_parenthesis(p, open, "", 0);
    pn_syntax *node = &p->tree.node[inner];
    node->enclosed = true;
    node->begin = open.begin;
    node->end = end;
    return inner;
}

static uint32_t parse_call(parser *p, pn_token name) {
    const char *text = p->source->text + name.begin;
    uint32_t length = name.end - name.begin;
    pn_syntax call = {.kind = PN_SYNTAX_CALL, .begin = name.begin, .at = name.begin, .name_end = name.end};
    const pn_function *function = pn_function_find(text, length);
    bool was_broken = p->broken;
    pn_token open = p->token;
    advance(p);
    if (!enter(p)) return append_bad(p);
    uint32_t last = 0;
    while (p->token.kind != PN_TOKEN_END && (p->token.kind != PN_TOKEN_CLOSE || p->previous.kind == PN_TOKEN_COMMA)) {
        uint32_t argument = parse_expression(p, COMPARISON);
        if (last)
            p->tree.node[last].next = argument;
        else
            call.a = argument;
        last = argument;
        /* In d(e, x, y) what follows e are names of coordinates, not values. */
        if (function && function->kind == PN_FUNCTION_D && call.count > 0 && p->tree.node[argument].kind == PN_SYNTAX_NAME)
            p->tree.node[argument].quoted = true;
        call.count++;
        if (p->token.kind != PN_TOKEN_COMMA) break;
        advance(p);
    }
    p->depth--;
    call.end = close_parenthesis(p, open, text, length);
    call.broken = p->broken && !was_broken;
    return append(p, call);
}

static uint32_t parse_operand(parser *p) {
    pn_token token = p->token;
    pn_syntax leaf = {.begin = token.begin, .end = token.end, .at = token.begin, .name_end = token.end, .number = token.number};
    switch (token.kind) {
    case PN_TOKEN_NAME:
        advance(p);
        if (p->token.kind == PN_TOKEN_OPEN) return parse_call(p, token);
        leaf.kind = PN_SYNTAX_NAME;
        return append(p, leaf);
    case PN_TOKEN_NUMBER:
        advance(p);
        leaf.kind = PN_SYNTAX_NUMBER;
        return append(p, leaf);
    case PN_TOKEN_OPEN: return parse_group(p);
    case PN_TOKEN_BAD: advance(p); return append_bad(p);
    default: report_missing_operand(p); return append_bad(p);
    }
}

/* Signs, then an operand with its powers: -a^b is -(a^b). */
static uint32_t parse_signed(parser *p) {
    size_t negations = 0;
    uint32_t begin = p->token.begin;
    if (p->token.kind != PN_TOKEN_SUB && p->token.kind != PN_TOKEN_ADD) return parse_operand(p);
    while (p->token.kind == PN_TOKEN_SUB || p->token.kind == PN_TOKEN_ADD) {
        negations += p->token.kind == PN_TOKEN_SUB;
        advance(p);
    }
    uint32_t operand = parse_expression(p, POWER);
    for (; negations > 0; negations--)
        operand = append(
            p, (pn_syntax){.kind = PN_SYNTAX_NEGATE, .begin = begin, .end = p->tree.node[operand].end, .at = begin, .a = operand});
    return operand;
}

/* ---- Operators --------------------------------------------------------------------------------------------------------- */

static uint32_t parse_right(parser *p, int power) {
    if (power != POWER) return parse_expression(p, power + 1);
    if (!enter(p)) return append_bad(p);
    uint32_t exponent = parse_expression(p, POWER); /* right-associative: 2^3^2 = 2^(3^2) */
    p->depth--;
    return exponent;
}

static uint32_t parse_expression(parser *p, int least) {
    uint32_t left = parse_signed(p);
    for (;;) {
        pn_token sign = p->token;
        int power = precedence(sign.kind);
        if (power == 0 || power < least) return left;
        if (begins_operand(sign.kind)) {
            report_missing_operator(p);
            sign.kind = PN_TOKEN_MUL;
        } else {
            advance(p);
        }
        const pn_syntax *chained = &p->tree.node[left];
        if (power == COMPARISON && sign.kind != PN_TOKEN_ASSIGN && chained->kind == PN_SYNTAX_BINARY && !chained->enclosed &&
            precedence(chained->operator) == COMPARISON && chained->operator!= PN_TOKEN_ASSIGN && first_error(p))
            pn_source_report(p->source, sign.begin, "write (a < b)*(b < c)", "comparisons can't be chained");
        uint32_t right = parse_right(p, power);
        if (sign.kind == PN_TOKEN_ASSIGN) report_assignment(p, sign, left, right);
        left = append(p, (pn_syntax){.kind = PN_SYNTAX_BINARY,
                                     .operator= sign.kind,
                                     .begin = p->tree.node[left].begin,
                                     .end = p->tree.node[right].end,
                                     .at = sign.begin,
                                     .a = left,
                                     .b = right});
    }
}

static void parse_text(parser *p) {
    advance(p);
    p->previous = (pn_token){0};
    if (p->token.kind == PN_TOKEN_END) {
        if (p->source->errors == 0) pn_source_report(p->source, 0, "write a formula, or 0", "the expression is empty");
        return;
    }
    p->tree.root = parse_expression(p, COMPARISON);
    while (p->token.kind != PN_TOKEN_END) { /* only ")" and "," end an expression early */
        if (first_error(p)) {
            if (p->token.kind == PN_TOKEN_CLOSE)
                pn_source_report(p->source, p->token.begin, "delete it, or add its \"(\"", "\")\" without a \"(\"");
            else
                pn_source_report(p->source, p->token.begin, "one text holds one expression",
                                 "\",\" outside a function's arguments");
        }
        advance(p);
        if (p->token.kind != PN_TOKEN_END) parse_expression(p, COMPARISON);
    }
}

pinn_status pn_parse(pn_source *source, pn_tree *out) {
    parser p = {.source = source};
    append_bad(&p);
    if (!p.out_of_memory) parse_text(&p);
    if (p.out_of_memory) {
        pn_tree_free(&p.tree);
        return PN_NO_MEMORY("a syntax tree");
    }
    *out = p.tree;
    return PINN_OK;
}

void pn_tree_free(pn_tree *tree) {
    pn_free(tree->node);
    *tree = (pn_tree){0};
}
