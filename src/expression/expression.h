/* From text to the pointwise IR: "u_t - alpha*u_xx" becomes a node over input slots.
 *
 * Grammar (loosest first): comparison (< <= > >= ==), sum, product, sign, power (right-associative, tighter than unary
 * minus: -pi^2 = -(pi^2)), call or name or number or parentheses. "**" is an error that names "^".
 * Names: coordinates, fields, constants, definitions, pi; nx, ny, ... (n + coordinate) on faces. Derivatives: u_t, u_xx, u_xy (the
 * suffix must split into coordinate names in exactly one way), d(e, x, x, y) of any expression, lap(e) over all coordinates but
 * time, dn(e) the outward normal derivative on a face. Functions: sin cos tan asin acos atan sinh cosh tanh exp expm1 log log1p
 * sqrt abs sign floor erf, min max atan2 pow, if(condition, a, b).
 */
#ifndef PN_EXPRESSION_EXPRESSION_H
#define PN_EXPRESSION_EXPRESSION_H

#include "core/diagnostics.h"
#include "pointwise/jet.h"

typedef enum pn_slot_kind { PN_SLOT_COORDINATE, PN_SLOT_NORMAL, PN_SLOT_FIELD } pn_slot_kind;

typedef struct pn_slot { /* what an input slot of the IR stands for */
    pn_slot_kind kind;
    unsigned index;     /* coordinate, or field */
    pn_channel channel; /* PN_SLOT_FIELD: which derivative */
} pn_slot;

/* Names an expression may use, and the IR it is built in. Coordinates come first: slot i < coordinates is coordinate i, slot
 * coordinates + i the i-th component of the outward normal; field channels get the slots after, as they are met. */
typedef struct pn_scope pn_scope;

/* `time`: index of the time coordinate or -1. Names are copied. A bad or repeated name is the caller's to check
 * (pn_scope_name_error). Errors: BAD_ARGUMENT (more than PN_MAX_COORDINATES), NO_MEMORY. */
pinn_status pn_scope_create(pn_ir *ir, const char *const *coordinates, size_t coordinate_count, int time, const char *const *fields,
                            size_t field_count, pn_scope **out);
void pn_scope_destroy(pn_scope *scope);
/* Why `name` can't be added to this scope as a coordinate, field, constant or definition (reserved word, not an identifier, taken,
 * a name that reads as a derivative of a field ...) or NULL; a whole clause that quotes the name. Scope-owned text, valid until the
 * next call. Coordinates and fields are checked by asking a scope made without them: one of the names before. */
const char *pn_scope_name_error(pn_scope *scope, const char *name);
/* Errors: BAD_ARGUMENT (not finite), NO_MEMORY. */
pinn_status pn_scope_constant(pn_scope *scope, const char *name, double value);
/* A named sub-expression; compiled at its first use, so that errors in it are reported once and at its own place. Definitions may
 * use earlier ones; a cycle or use before definition is an error. `text` is copied, `at` is where its first byte
 * stands in the file. */
pinn_status pn_scope_define(pn_scope *scope, const char *name, const char *text, pn_position at);

size_t pn_scope_slots(const pn_scope *scope);
pn_slot pn_scope_slot(const pn_scope *scope, uint32_t slot);
/* Slot of a field's channel, created if new. PN_NONE without memory. */
uint32_t pn_scope_field_slot(pn_scope *scope, unsigned field, const pn_channel *channel);

/* What an expression may mention; anything else is an error saying why. */
typedef enum pn_allow {
    PN_ALLOW_CONSTANTS = 1, /* numbers, pi, constants: always allowed */
    PN_ALLOW_COORDINATES = 2,
    PN_ALLOW_FIELDS = 4,
    PN_ALLOW_NORMAL = 8 /* dn(), nx: only on faces */
} pn_allow;

/* Compiles `text`, whose first byte stands at `at` of the diagnostics' file. All errors found are added to `list` (PINN_CONFIG).
 * A division by a literal zero, a function of the wrong number of arguments, a derivative of order over PN_MAX_ORDER, nesting
 * deeper than 200 or a text longer than 64 KiB are errors, not crashes. */
pinn_status pn_expression_compile(pn_scope *scope, const char *text, pn_position at, unsigned allow, pn_diagnostics *list,
                                  pn_value *out);
/* A constant expression ("2*pi", over numbers and constants of `scope`; scope may be NULL: numbers and pi only). */
pinn_status pn_expression_number(pn_scope *scope, const char *text, pn_position at, pn_diagnostics *list, double *out);

/* Total derivative of a node by coordinate i: coordinates, and every field channel one order up. PN_NONE without memory, and when a
 * channel would pass PN_MAX_ORDER or is a Laplacian. */
pn_value pn_expression_derivative(pn_scope *scope, pn_value value, unsigned i);
bool pn_expression_has_field(const pn_scope *scope, pn_value value);

/* The channels the residuals of one point set need, as a layout, after folding Laplacian-like sums: when every residual depends
 * on some pure second derivatives only through sum_i a_i u_ii with one vector of numbers a (the same for all residuals and
 * fields up to a common factor), and nothing else needs those derivatives, they are replaced by the Laplacian channel:
 * residual[] is rewritten in place. Otherwise the layout holds plain partial derivatives. The sum may run over some of the
 * coordinates only, time too (u_tt - u_xx has a = (-1, 1)), at least two; the smallest |a_i| is 1. Errors: NO_MEMORY; BAD_ARGUMENT
 * for residuals that hold a Laplacian channel already. */
pinn_status pn_expression_closure(pn_scope *scope, pn_value *residual, size_t count, pn_layout *out);

#endif
