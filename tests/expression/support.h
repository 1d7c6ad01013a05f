/* One scope for all expression tests: x, y, t (time); fields u, v, p; some constants. Input slots: coordinates 0..2, normals 3..5,
 * then field channels as they are met. */
#ifndef PN_TESTS_EXPRESSION_SUPPORT_H
#define PN_TESTS_EXPRESSION_SUPPORT_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "expression/expression.h"
#include "suite.h"

enum { ALL = PN_ALLOW_CONSTANTS | PN_ALLOW_COORDINATES | PN_ALLOW_FIELDS | PN_ALLOW_NORMAL };

typedef struct world {
    pn_ir *ir;
    pn_scope *scope;
    pn_diagnostics list;
} world;

static inline void world_open_with(world *w, const char *const *coordinates, size_t coordinate_count, int time,
                                   const char *const *fields, size_t field_count) {
    pn_diagnostics_init(&w->list, "test.toml", NULL);
    ck_assert_int_eq(pn_ir_create(&w->ir), PINN_OK);
    ck_assert_int_eq(pn_scope_create(w->ir, coordinates, coordinate_count, time, fields, field_count, &w->scope), PINN_OK);
}

static inline void world_open(world *w) {
    static const char *const coordinates[] = {"x", "y", "t"}, *const fields[] = {"u", "v", "p"};
    world_open_with(w, coordinates, 3, 2, fields, 3);
    ck_assert_int_eq(pn_scope_constant(w->scope, "alpha", 0.4), PINN_OK);
    ck_assert_int_eq(pn_scope_constant(w->scope, "zero", 0), PINN_OK);
    ck_assert_int_eq(pn_scope_constant(w->scope, "k", 3), PINN_OK);
}

static inline void world_close(world *w) {
    pn_diagnostics_free(&w->list);
    pn_scope_destroy(w->scope);
    pn_ir_destroy(w->ir);
}

static inline pn_value world_compile(world *w, const char *text) {
    pn_value value = PN_NONE;
    pinn_status status = pn_expression_compile(w->scope, text, (pn_position){1, 1}, ALL, &w->list, &value);
    ck_assert_msg(status == PINN_OK, "\"%s\": %s", text, w->list.count ? w->list.item[0].message : pinn_error_message());
    return value;
}

/* A smooth stand-in for the fields, u_f = sin(c.x + f), so that every derivative is known in closed form: d^n/dx_i.. = product of
 * the c_i times sin(c.x + f + n*pi/2). */
static const double support_slope[3] = {0.7, -1.3, 0.9};

static inline double support_field(unsigned field, const pn_channel *channel, const double *x) {
    double phase = 0.3 * field, factor = 1;
    for (int i = 0; i < 3; i++) phase += support_slope[i] * x[i];
    for (int k = 0; k < channel->order; k++) {
        factor *= support_slope[channel->coordinate[k]];
        phase += M_PI / 2;
    }
    return factor * sin(phase);
}

static const double support_normal[3] = {0.6, -0.8, 0.25};

/* The value of a node at x (3 coordinates) with the stand-in fields; plain derivatives only. */
static inline double world_evaluate(const world *w, pn_value value, const double *x) {
    size_t slots = pn_scope_slots(w->scope);
    double *input = malloc(slots * sizeof *input);
    for (size_t s = 0; s < slots; s++) {
        pn_slot slot = pn_scope_slot(w->scope, (uint32_t)s);
        input[s] = slot.kind == PN_SLOT_COORDINATE ? x[slot.index]
                   : slot.kind == PN_SLOT_NORMAL   ? support_normal[slot.index]
                                                   : support_field(slot.index, &slot.channel, x);
    }
    double result = pn_ir_evaluate(w->ir, value, input);
    free(input);
    return result;
}

#endif
