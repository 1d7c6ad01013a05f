/* What the files of this folder share: source text with error positions, tokens, the syntax tree, the scope's inside.
 *
 * The tree is an array in which operands stand before the node that uses them, so that binding is one loop from the first node to
 * the last: no recursion, however long a chain of sums is. Only the parser recurses, and it counts its depth.
 */
#ifndef PN_EXPRESSION_INTERNAL_H
#define PN_EXPRESSION_INTERNAL_H

#include "expression/expression.h"

enum {
    PN_MAX_NESTING = 200,    /* parentheses, calls, exponents; also definitions within definitions */
    PN_MAX_TEXT = 64 * 1024, /* bytes of one expression */
    PN_MAX_ERRORS = 50,      /* reported of one expression */
    PN_MAX_GROWTH = 1 << 18  /* nodes one expression may add to the IR; looked at after each derivative */
};

/* ---- Source text ------------------------------------------------------------------------------------------------------- */

typedef struct pn_source {
    const pn_scope *scope; /* borrowed: its names stand in hints */
    const char *text; /* borrowed */
    size_t length;    /* bytes */
    pn_position at;   /* where text[0] stands in the file */
    unsigned allow;   /* pn_allow bits: what it may mention */
    pn_diagnostics *list;
    size_t errors;
} pn_source;

typedef struct pn_excerpt { /* a piece of the source, cut to a length fit for a message */
    char text[64];
} pn_excerpt;

/* An error whose caret stands under text[offset]. */
void pn_source_report(pn_source *source, size_t offset, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
pn_excerpt pn_source_excerpt(const pn_source *source, size_t begin, size_t end);

/* ---- Tokens ------------------------------------------------------------------------------------------------------------ */

typedef enum pn_token_kind {
    PN_TOKEN_END,
    PN_TOKEN_BAD, /* already reported; stands where an operand would */
    PN_TOKEN_NUMBER,
    PN_TOKEN_NAME,
    PN_TOKEN_OPEN,
    PN_TOKEN_CLOSE,
    PN_TOKEN_COMMA,
    PN_TOKEN_ADD,
    PN_TOKEN_SUB,
    PN_TOKEN_MUL,
    PN_TOKEN_DIV,
    PN_TOKEN_POWER,
    PN_TOKEN_LT,
    PN_TOKEN_LE,
    PN_TOKEN_GT,
    PN_TOKEN_GE,
    PN_TOKEN_EQ,
    PN_TOKEN_ASSIGN /* "=": no operator, kept so that the error can quote both sides */
} pn_token_kind;

typedef struct pn_token {
    pn_token_kind kind;
    uint32_t begin, end; /* byte offsets, end exclusive */
    double number;
} pn_token;

/* The token at *cursor; moves the cursor behind it. Reports what is no token and goes on behind it. */
pn_token pn_lex_next(pn_source *source, size_t *cursor);

/* ---- Syntax tree ------------------------------------------------------------------------------------------------------- */

typedef enum pn_syntax_kind {
    PN_SYNTAX_BAD, /* already reported */
    PN_SYNTAX_NUMBER,
    PN_SYNTAX_NAME,
    PN_SYNTAX_NEGATE, /* operand a */
    PN_SYNTAX_BINARY, /* operands a, b; `operator` */
    PN_SYNTAX_CALL    /* `count` arguments: a, then next of each */
} pn_syntax_kind;

typedef struct pn_syntax {
    pn_syntax_kind kind;
    pn_token_kind operator;
    uint32_t begin, end;   /* bytes of the whole term, with its parentheses */
    uint32_t at, name_end; /* the operator, name or number itself */
    uint32_t a, b;
    uint32_t next; /* the argument after this one, 0 = none (node 0 is never an argument) */
    uint32_t count;
    double number;
    bool enclosed; /* stands in parentheses of its own */
    bool quoted;   /* a coordinate named in d(e, x): not a value */
    bool broken;   /* a call with a syntax error inside: its arguments don't count */
} pn_syntax;

typedef struct pn_tree {
    pn_syntax *node; /* owned; node 0 is a BAD node */
    uint32_t count, capacity;
    uint32_t root;
} pn_tree;

/* All syntax errors go to the source's list; the tree is usable in spite of them. Errors: NO_MEMORY. */
pinn_status pn_parse(pn_source *source, pn_tree *out);
void pn_tree_free(pn_tree *tree);

/* ---- Functions --------------------------------------------------------------------------------------------------------- */

typedef enum pn_function_kind {
    PN_FUNCTION_OP,
    PN_FUNCTION_POWER,
    PN_FUNCTION_IF,
    PN_FUNCTION_D,
    PN_FUNCTION_LAP,
    PN_FUNCTION_DN
} pn_function_kind;

typedef struct pn_function {
    const char *name;
    pn_function_kind kind;
    unsigned least, most; /* arguments */
    pn_op op;             /* PN_FUNCTION_OP */
    const char *usage;
} pn_function;

const pn_function *pn_function_find(const char *name, size_t length);
/* Repair for a call of a function that isn't there ("ln": write log(a)), or NULL. `buffer` may hold the result. */
const char *pn_function_hint(const char *name, size_t length, char *buffer, size_t size);

/* ---- Scope ------------------------------------------------------------------------------------------------------------- */

typedef enum pn_name_kind { PN_NAME_NONE, PN_NAME_COORDINATE, PN_NAME_FIELD, PN_NAME_CONSTANT, PN_NAME_DEFINITION } pn_name_kind;

typedef struct pn_name {
    char *text; /* owned */
    size_t length;
    pn_name_kind kind;
    unsigned index; /* among its kind */
    double value;   /* of a constant */
} pn_name;

typedef enum pn_definition_state { PN_DEFINITION_NEW, PN_DEFINITION_READY, PN_DEFINITION_WRONG } pn_definition_state;

typedef struct pn_definition {
    char *text; /* owned */
    pn_position at;
    pn_definition_state state;
    pn_value value;
    unsigned uses; /* pn_allow bits: what it mentions */
} pn_definition;

typedef enum pn_trouble { PN_TROUBLE_NONE, PN_TROUBLE_ORDER, PN_TROUBLE_SIZE, PN_TROUBLE_MEMORY } pn_trouble;

struct pn_scope {
    pn_ir *ir;     /* borrowed */
    pn_name *name; /* coordinates, fields, then constants and definitions as they came */
    size_t names, name_capacity;
    size_t coordinates, fields;
    int time; /* coordinate or -1 */
    pn_definition *definition;
    size_t definitions, definition_capacity;
    pn_slot *slot;
    size_t slots, slot_capacity;
    uint32_t *bucket;   /* open-addressing table of field slots: slot or PN_NONE */
    size_t buckets;     /* a power of two */
    unsigned depth;     /* definitions being compiled within each other */
    pn_trouble trouble; /* why the last derivative is PN_NONE */
    size_t node_limit;  /* of the IR, for derivatives */
    char message[256];  /* of pn_scope_name_error */
};

/* NULL when unknown. A definition counts only when its index is below `visible`. */
const pn_name *pn_scope_find(const pn_scope *scope, const char *name, size_t length, size_t visible);
const pn_name *pn_scope_coordinate(const pn_scope *scope, const char *name, size_t length);
const pn_name *pn_scope_field(const pn_scope *scope, const char *name, size_t length);
/* "nx": the coordinate whose normal component this is, else NULL. Time has none. */
const pn_name *pn_scope_normal(const pn_scope *scope, const char *name, size_t length);
/* "x, y, t" for hints: the names of one kind, the first few. */
void pn_scope_list(const pn_scope *scope, pn_name_kind kind, char *buffer, size_t size);
/* The known name nearest to `name` among the kinds in `mask` (1 << kind), or NULL. Upper and lower case count as near. */
const char *pn_scope_nearest(const pn_scope *scope, const char *name, size_t length, unsigned mask, size_t visible);

/* ---- Derivatives written as a suffix ----------------------------------------------------------------------------------- */

typedef struct pn_reading { /* one way to read a name as a derivative */
    const pn_name *field;
    unsigned order;
    unsigned coordinate[PN_MAX_ORDER]; /* as far as they fit */
} pn_reading;

typedef struct pn_suffix {
    unsigned ways;         /* 0: the name is no derivative; more than one: ambiguous (counted up to 3 a field) */
    pn_reading reading[2]; /* the first two ways */
} pn_suffix;

/* Reads "u_xxt". Errors: NO_MEMORY. */
pinn_status pn_suffix_split(const pn_scope *scope, const char *name, size_t length, pn_suffix *out);
/* True and reports when `name` looks like a derivative that can't be read: unknown coordinate, field, derivative of a constant ...
 */
bool pn_suffix_report(const pn_scope *scope, pn_source *source, size_t begin, size_t length, size_t visible);
void pn_suffix_report_ambiguous(const pn_scope *scope, pn_source *source, size_t begin, size_t length, const pn_suffix *suffix);

/* The total derivative; PN_NONE once scope->trouble is set (by it, or before). */
pn_value pn_derivative(pn_scope *scope, pn_value value, unsigned i);
/* sum over the coordinates but time of d2/dx_i2; sum of n_i d/dx_i. */
pn_value pn_derivative_laplacian(pn_scope *scope, pn_value value);
pn_value pn_derivative_normal(pn_scope *scope, pn_value value);

#endif
