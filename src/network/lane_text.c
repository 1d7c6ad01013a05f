/* Wrappers of lane functions; see lane_text.h. */
#include "network/lane_text.h"

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
