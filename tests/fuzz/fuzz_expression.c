/* Random texts through the expression compiler, the derivative and the closure.
 *
 * The first byte picks what the text may mention and whether it is a definition; the rest is the text. What compiles is
 * differentiated and closed; what doesn't is printed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "expression/expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)         \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

static void close_set(pn_scope *scope, pn_value residual) {
    pn_layout layout = {0};
    pinn_status status = pn_expression_closure(scope, &residual, 1, &layout);
    REQUIRE(status == PINN_OK);
    for (uint32_t s = 0; s < pn_scope_slots(scope); s++)
        if (pn_scope_slot(scope, s).kind == PN_SLOT_FIELD) REQUIRE(pn_scope_slot(scope, s).channel.order <= PN_MAX_ORDER);
    REQUIRE(layout.count >= 1 && layout.channel[0].order == 0);
    pn_layout_free(&layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const coordinates[] = {"x", "x1", "y", "t"}, *const fields[] = {"u", "v"};
    if (size < 1 || size > 4096) return 0;
    char *text = malloc(size);
    pn_ir *ir = NULL;
    pn_scope *scope = NULL;
    pn_diagnostics list;
    pn_value value = PN_NONE;
    REQUIRE(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    pn_diagnostics_init(&list, "fuzz.toml", text);
    REQUIRE(pn_ir_create(&ir) == PINN_OK);
    REQUIRE(pn_scope_create(ir, coordinates, 4, 3, fields, 2, &scope) == PINN_OK);
    REQUIRE(pn_scope_constant(scope, "k", 0.5) == PINN_OK);
    REQUIRE(pn_scope_define(scope, "f", (data[0] & 16) ? text : "k*sin(x)*u", (pn_position){1, 1}) == PINN_OK);
    pn_scope_name_error(scope, text);
    pinn_status status =
        pn_expression_compile(scope, (data[0] & 16) ? "f + d(f, x)" : text, (pn_position){1, 1}, data[0] & 15, &list, &value);
    REQUIRE((status == PINN_OK) == (list.count == 0));
    if (status == PINN_OK) {
        REQUIRE(value < pn_ir_count(ir));
        pn_expression_has_field(scope, value);
        if (pn_ir_count(ir) < 4000) pn_expression_derivative(scope, value, 0);
        close_set(scope, value);
    } else {
        pn_text shown = {0};
        pn_diagnostics_print(&list, &shown);
        REQUIRE(shown.length > 0);
        pn_text_free(&shown);
    }
    pn_diagnostics_free(&list);
    pn_scope_destroy(scope);
    pn_ir_destroy(ir);
    free(text);
    return 0;
}
