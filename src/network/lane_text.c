/* Lane functions and their wrappers; see lane_text.h. */
#include "network/lane_text.h"

#include <stdio.h>
#include <string.h>

#include "pointwise/kernel.h"

/* Elements of an array that stand for inputs from `first` on; unused ones are left out. */
static void print_inputs(const pn_program *program, const pn_lane_array *array, size_t first, const char **between, pn_text *text) {
    for (size_t i = 0; i < array->count; i++)
        if (pn_program_uses_input(program, first + i)) {
            pn_text_printf(text, "%s%s[%zu]", *between, array->name, i);
            *between = ", ";
        }
}

static void print_outputs(const pn_lane_array *array, const char **between, pn_text *text) {
    for (size_t i = 0; i < array->count; i++, *between = ", ") pn_text_printf(text, "%s%s[%zu]", *between, array->name, i);
}

void pn_lane_wrapper(const pn_program *program, const char *name, const char *lane, const pn_lane_array *in, size_t ins, const pn_lane_array *out,
                     size_t outs, pn_text *text) {
    const char *between = "", *type = pn_program_real(program) == PN_FLOAT32 ? "float" : "double";
    size_t first = 0;
    pn_text_printf(text, "    static __device__ __forceinline__ void %s(", name);
    for (size_t i = 0; i < ins + outs; i++) {
        const pn_lane_array *a = i < ins ? &in[i] : &out[i - ins];
        if (a->count == 0) continue;
        pn_text_printf(text, "%s%s%s (&%s)[%zu]", between, i < ins ? "const " : "", type, a->name, a->count);
        between = ", ";
    }
    pn_text_printf(text, ") {\n        %s(", lane);
    between = "";
    for (size_t i = 0; i < ins; first += in[i++].count) print_inputs(program, &in[i], first, &between, text);
    for (size_t i = 0; i < outs; i++) print_outputs(&out[i], &between, text);
    pn_text_string(text, ");\n    }\n");
}

void pn_lane_print(const pn_program *program, const char *kind, size_t number, char lane[PN_LANE_NAME], pn_text *text) {
    snprintf(lane, PN_LANE_NAME, "%s_lane%zu", kind, number);
    pn_lane_source(program, lane, text);
}

void pn_lane_set(const pn_pass *pass, const pn_member *member, size_t number, pn_text *text) {
    const size_t d = pass->network->coordinates, fields = pass->network->fields;
    const size_t geometric = member->point_columns >= 2 * d ? 2 * d : d, raws = pass->group[member->group].channels * fields;
    const pn_lane_array in[] = {{"x", geometric}, {"raw", raws}, {"bias", fields}, {"scale", member->residuals}};
    const pn_lane_array out[] = {{"square", member->residuals}, {"adjoint", raws}, {"dbias", fields}};
    char lane[PN_LANE_NAME];
    pn_lane_print(member->residual, "residual", number, lane, text);
    pn_text_printf(text, "template <> struct set_of<%zu> {\n    static constexpr int GEOMETRIC = %zu, RESIDUALS = %zu, TERM = %zu;\n", number, geometric,
                   member->residuals, member->first_term);
    pn_lane_wrapper(member->residual, "residual", lane, in, 4, out, 3, text);
    pn_text_string(text, "};\n\n");
}

/* Said with the programs' text. */
static pinn_status check_equal(const pn_program *a, const pn_program *b, const char *lowering) {
    pn_text one = {0}, other = {0};
    pn_lane_source(a, "lane", &one);
    pn_lane_source(b, "lane", &other);
    pinn_status status = pn_text_check(&one);
    if (status == PINN_OK) status = pn_text_check(&other);
    if (status == PINN_OK && strcmp(pn_text_get(&one), pn_text_get(&other)) != 0)
        status = pn_fail(PINN_UNSUPPORTED, "no %s pass: the hidden layers differ", lowering);
    pn_text_free(&one);
    pn_text_free(&other);
    return status;
}

pinn_status pn_lane_check_layers(const pn_pass *pass, const pn_group *group, const char *lowering) {
    pinn_status status = PINN_OK;
    for (size_t l = 4; status == PINN_OK && l < pass->network->layers; l += 2) {
        status = check_equal(group->forward[2], group->forward[l], lowering);
        if (status == PINN_OK) status = check_equal(group->backward[2], group->backward[l], lowering);
    }
    return status;
}
