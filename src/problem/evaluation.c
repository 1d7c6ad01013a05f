/* The fixed points on which errors are measured, and the reference there.
 *
 * Points: a grid (last coordinate fastest, both bounds included), or points drawn by Philox4x32-10 (Salmon et al. 2011) as in
 * geometry/sampler.h for float64, with
 *     key     = (seed low, seed high)
 *     counter = (point, block, 0xFFFFFFFF, 0xFFFFFFFF)
 * The last two words are the step of a training point; no run gets to step 2^64 - 1, so the streams never meet.
 * Reference: formulas over the coordinates, evaluated in float64, or a file that brings its own points.
 */
#include <Random123/philox.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/solution.h"
#include "problem/problem_internal.h"

#define MAX_EVALUATION_NUMBERS 1000000000.0 /* coordinates, references and fields over all points: 8 GB */

/* ---- points --------------------------------------------------------------------------------------------------------------- */

static void fill_grid(pn_problem *p) {
    size_t stride = p->evaluation_points; /* points over which the coordinates so far are constant */
    for (size_t i = 0; i < p->coordinates; i++) {
        size_t n = p->evaluation_grid[i];
        stride /= n;
        double width = p->upper[i] - p->lower[i];
        for (size_t k = 0; k < p->evaluation_points; k++) {
            size_t j = k / stride % n;
            p->evaluation_coordinate[i * p->evaluation_points + k] = j == n - 1 ? p->upper[i] : fma(width, (double)j / (double)(n - 1), p->lower[i]);
        }
    }
}

static void fill_random(pn_problem *p, uint64_t seed) {
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    for (size_t k = 0; k < p->evaluation_points; k++)
        for (size_t block = 0; 2 * block < p->coordinates; block++) {
            philox4x32_ctr_t counter = {{(uint32_t)k, (uint32_t)block, UINT32_MAX, UINT32_MAX}};
            philox4x32_ctr_t words = philox4x32(counter, key);
            for (size_t i = 2 * block; i < 2 * block + 2 && i < p->coordinates; i++) {
                uint64_t word = (uint64_t)words.v[2 * (i & 1)] << 32 | words.v[2 * (i & 1) + 1];
                double u = (double)(word >> 11) * 0x1p-53 + 0x1p-54;
                p->evaluation_coordinate[i * p->evaluation_points + k] = fma(p->upper[i] - p->lower[i], u, p->lower[i]);
            }
        }
}

static pinn_status create_points(const pn_compiler *compiler) {
    const pn_config *c = compiler->config;
    pn_problem *p = compiler->problem;
    p->evaluation_points = 1;
    for (size_t i = 0; i < c->output.evaluate_count; i++) p->evaluation_points *= c->output.evaluate_points[i];
    if ((double)p->evaluation_points * (double)(p->coordinates + 2 * p->fields) > MAX_EVALUATION_NUMBERS) {
        pn_diagnose(compiler->list, c->output.evaluate_at, NULL, "%zu evaluation points of %zu coordinates and %zu fields do not fit in 8 GB",
                    p->evaluation_points, p->coordinates, p->fields);
        return PINN_OK;
    }
    p->evaluation_coordinate = pn_allocate(p->coordinates * p->evaluation_points, sizeof *p->evaluation_coordinate);
    p->reference = pn_allocate(p->fields * p->evaluation_points, sizeof *p->reference);
    if (!p->evaluation_coordinate || !p->reference)
        return pn_fail(PINN_NO_MEMORY, "out of memory for the evaluation set: %zu points need %zu bytes; fewer may be written as output.evaluate = { points = ... }",
                       p->evaluation_points, (p->coordinates + p->fields) * p->evaluation_points * sizeof *p->reference);
    for (size_t i = 0; i < p->fields * p->evaluation_points; i++) p->reference[i] = NAN;
    if (!c->output.evaluate_grid) {
        fill_random(p, c->seed);
        return PINN_OK;
    }
    p->evaluation_grid = pn_allocate(p->coordinates, sizeof *p->evaluation_grid);
    if (!p->evaluation_grid) return PN_NO_MEMORY("the evaluation set");
    memcpy(p->evaluation_grid, c->output.evaluate_points, p->coordinates * sizeof *p->evaluation_grid);
    fill_grid(p);
    return PINN_OK;
}

/* ---- reference ------------------------------------------------------------------------------------------------------------ */

static void report_value(const pn_compiler *compiler, pn_position at, size_t field, size_t point) {
    const pn_problem *p = compiler->problem;
    pn_text text = {0};
    pn_text_printf(&text, "the reference of \"%s\" is ", p->field_name[field]);
    pn_text_number(&text, p->reference[field * p->evaluation_points + point]);
    pn_text_string(&text, " at ");
    for (size_t i = 0; i < p->coordinates && i < 6; i++) {
        pn_text_printf(&text, "%s%s = ", i ? ", " : "", p->coordinate_name[i]);
        pn_config_number(p->evaluation_coordinate[i * p->evaluation_points + point], &text);
    }
    if (p->coordinates > 6) pn_text_string(&text, ", ...");
    pn_diagnose(compiler->list, at, "it must be finite on the whole evaluation set", "%s", pn_text_get(&text));
    pn_text_free(&text);
}

/* An error relative to the reference needs the reference's norm: finite, and not 0. */
static bool has_norm(const pn_compiler *compiler, pn_position at, size_t field) {
    const pn_problem *p = compiler->problem;
    double squares = 0, largest = 0;
    for (size_t k = 0; k < p->evaluation_points; k++) {
        const double value = p->reference[field * p->evaluation_points + k];
        squares += value * value;
        largest = fmax(largest, fabs(value));
    }
    if (squares > 0 && isfinite(squares)) return true;
    if (largest == 0)
        pn_diagnose(compiler->list, at, "leave its reference out",
                    "the reference of \"%s\" is 0 at all %zu points: the relative L2 error of a zero field is undefined",
                    p->field_name[field], p->evaluation_points);
    else {
        pn_text shown = {0};
        pn_text_number(&shown, largest);
        pn_diagnose(compiler->list, at, "rescale the field",
                    "the reference of \"%s\" has values up to %s: the square of its norm is %s in float64",
                    p->field_name[field], pn_text_get(&shown), squares > 0 ? "infinite" : "0");
        pn_text_free(&shown);
    }
    return false;
}

/* Reports the first value of a field's reference that is not finite. */
static bool all_finite(const pn_compiler *compiler, pn_position at, size_t field) {
    const pn_problem *p = compiler->problem;
    for (size_t k = 0; k < p->evaluation_points; k++)
        if (!isfinite(p->reference[field * p->evaluation_points + k])) {
            report_value(compiler, at, field, k);
            return false;
        }
    return true;
}

static void evaluate_formula(const pn_problem *p, const pn_ir *ir, pn_value formula, size_t field) {
    double input[2 * PN_MAX_COORDINATES] = {0}; /* slots of coordinates, then normals (unused) */
    for (size_t k = 0; k < p->evaluation_points; k++) {
        for (size_t i = 0; i < p->coordinates; i++) input[i] = p->evaluation_coordinate[i * p->evaluation_points + k];
        p->reference[field * p->evaluation_points + k] = pn_ir_evaluate(ir, formula, input);
    }
}

/* Formulas live in an IR of their own: pn_ir_evaluate then runs over their nodes only. */
static pinn_status read_formulas(const pn_compiler *compiler, bool evaluate) {
    const pn_config *c = compiler->config;
    pn_problem *p = compiler->problem;
    pn_diagnostics known; /* errors of names, reported when the problem's own scope was made */
    pn_ir *ir = NULL;
    pn_scope *scope = NULL;
    pinn_status status;
    bool good;
    pn_config_diagnostics(c, &known);
    PN_TRY(pn_ir_create(&ir));
    PN_TRY(pn_scope_of_config(compiler, ir, &known, &good, &scope));
    for (size_t i = 0; i < c->reference_count; i++) {
        const pn_config_named *formula = &c->reference[i];
        pn_value value = PN_NONE;
        status = pn_expression_compile(scope, formula->value.text, formula->value.at, PN_ALLOW_CONSTANTS | PN_ALLOW_COORDINATES,
                                       compiler->list, &value);
        if (status == PINN_CONFIG) continue;
        if (status != PINN_OK) goto fail;
        for (size_t f = 0; f < p->fields; f++) {
            if (strcmp(p->field_name[f], formula->name.text) != 0) continue;
            p->has_reference[f] = true;
            if (!evaluate) continue;
            evaluate_formula(p, ir, value, f);
            if (all_finite(compiler, formula->value.at, f)) has_norm(compiler, formula->value.at, f);
        }
    }
    status = pn_ir_check(ir);
fail:
    pn_scope_destroy(scope);
    pn_ir_destroy(ir);
    pn_diagnostics_free(&known);
    return status;
}

char *pn_config_reference_path(const pn_config *config) {
    const char *file = config->reference_file.text, *slash = strrchr(config->path, '/');
    pn_text path = {0};
    if (*file != '/' && slash) pn_text_append(&path, config->path, (size_t)(slash - config->path) + 1);
    pn_text_string(&path, file);
    char *copy = path.failed ? NULL : pn_duplicate(pn_text_get(&path), path.length);
    pn_text_free(&path);
    return copy;
}

static pinn_status read_file(const pn_compiler *compiler) {
    const pn_string *file = &compiler->config->reference_file;
    pn_problem *p = compiler->problem;
    pn_reference reference;
    char *path = pn_config_reference_path(compiler->config);
    if (!path) return PN_NO_MEMORY("a path");
    pinn_status status = pn_reference_read(path, p->coordinate_name, p->lower, p->upper, p->coordinates, p->field_name, p->fields, &reference);
    pn_free(path);
    if (status == PINN_IO || status == PINN_CONFIG) {
        pn_diagnose(compiler->list, file->at, NULL, "%s", pinn_error_message());
        return PINN_OK;
    }
    if (status != PINN_OK) return status;
    p->evaluation_points = reference.points;
    p->evaluation_grid = reference.grid;
    p->evaluation_coordinate = reference.coordinate;
    p->reference = reference.field;
    memcpy(p->has_reference, reference.has, p->fields * sizeof *p->has_reference);
    for (size_t f = 0; f < p->fields; f++)
        if (p->has_reference[f] && all_finite(compiler, file->at, f) && has_norm(compiler, file->at, f))
            p->reference_error[f] = reference.error;
    reference.grid = NULL; /* the problem owns them now */
    reference.coordinate = reference.field = NULL;
    pn_reference_free(&reference);
    return PINN_OK;
}

pinn_status pn_evaluation_create(const pn_compiler *compiler, bool evaluate) {
    const pn_config *c = compiler->config;
    pn_problem *p = compiler->problem;
    pinn_status status = PINN_OK;
    p->has_reference = pn_allocate(p->fields, sizeof *p->has_reference);
    p->reference_error = pn_allocate(p->fields, sizeof *p->reference_error);
    if (!p->has_reference || !p->reference_error) return PN_NO_MEMORY("the evaluation set");
    for (size_t f = 0; f < p->fields; f++) p->reference_error[f] = NAN;
    if (c->reference_file.text) {
        PN_TRY(read_file(compiler));
    } else {
        if (evaluate) PN_TRY(create_points(compiler));
        PN_TRY(read_formulas(compiler, evaluate && p->reference));
    }
    if (c->stop.relative_l2 > 0 && !compiler->list->count)
        for (size_t f = 0; f < p->fields; f++)
            if (!p->has_reference[f])
                pn_diagnose(compiler->list, c->stop.relative_l2_at, "give every field a reference, or remove the rule",
                            "stop.relative_l2 needs a reference of \"%s\"", p->field_name[f]);
fail:
    return status;
}
