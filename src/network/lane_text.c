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

void pn_lane_group(const pn_pass *pass, const pn_uniform *net, size_t g, const pn_kept *kept, const pn_lane_array size[2], const char *turn, pn_text *text) {
    const pn_group *group = &pass->group[g];
    const size_t channels = group->channels, blocks = pass->network->layer[0].blocks;
    char first[PN_LANE_NAME], first_adjoint[PN_LANE_NAME], remember[PN_LANE_NAME], recall[PN_LANE_NAME], adjoint[PN_LANE_NAME];
    const pn_lane_array x = {"x", pass->network->coordinates}, v0 = {"v", net->first_vectors}, a0 = {"a", blocks * channels};
    const pn_lane_array z = {"z", channels}, v = {"v", net->vectors}, a = {"a", channels}, da = {"da", channels};
    const pn_lane_array dz[] = {{"dz", channels}, {"sum", net->vectors}}, sum0 = {"sum", net->first_vectors}, value = {"kept", 1};
    pn_lane_print(group->forward[0], "first", g, first, text);
    if (net->first_trained) pn_lane_print(group->backward[0], "first_adjoint", g, first_adjoint, text);
    pn_lane_print(kept->remember, "remember", g, remember, text);
    pn_lane_print(kept->recall, "recall", g, recall, text);
    pn_lane_print(kept->adjoint, "adjoint", g, adjoint, text);
    pn_text_printf(text, "struct group%zu {\n    static constexpr int C = %zu, %s = %zu, %s = %zu;\n", g, channels, size[0].name, size[0].count, size[1].name,
                   size[1].count);
    pn_lane_wrapper(group->forward[0], "first", first, (const pn_lane_array[]){x, v0}, 2, &a0, 1, text);
    if (net->first_trained) pn_lane_wrapper(group->backward[0], "first_adjoint", first_adjoint, (const pn_lane_array[]){x, v0, da}, 3, &sum0, 1, text);
    pn_lane_wrapper(kept->remember, "remember", remember, (const pn_lane_array[]){z, v}, 2, (const pn_lane_array[]){a, value}, 2, text);
    pn_lane_wrapper(kept->recall, "recall", recall, (const pn_lane_array[]){z, v}, 2, &a, 1, text);
    pn_lane_wrapper(kept->adjoint, "adjoint", adjoint, (const pn_lane_array[]){z, v, da}, 3, dz, 2, text);
    pn_text_printf(text, "    %s;\n};\n\n", turn);
}

void pn_lane_sets(const pn_pass *pass, const size_t *order, size_t g, const char *format, pn_text *text) {
    for (size_t at = 0; at < pass->members; at++)
        if (pass->member[order[at]].group == g) pn_text_printf(text, format, at, g, at);
}

void pn_lane_groups(const pn_pass *pass, const size_t *order, const char *format, pn_text *text) {
    for (size_t at = 0; at < pass->members; at++) {
        const size_t group = pass->member[order[at]].group;
        if (at + 1 == pass->members || pass->member[order[at + 1]].group != group) pn_text_printf(text, format, at, group);
    }
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
