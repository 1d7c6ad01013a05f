/* The text of the tiled pass's kernel. The lane functions are the programs' of description.h; what is printed here gives them the
 * uniform signatures that kernels/tile_pass.cuh calls: arrays in the programs' operand order. */
#include <stdio.h>
#include <string.h>

#include "network/tile.h"
#include "pointwise/kernel.h"

/* Arguments of a lane function: `count` elements of array `name` from input (output) `first` on; unused inputs are left out. */
static void print_inputs(const pn_program *program, const char *name, size_t first, size_t count, const char **between, pn_text *out) {
    for (size_t i = 0; i < count; i++)
        if (pn_program_uses_input(program, first + i)) {
            pn_text_printf(out, "%s%s[%zu]", *between, name, i);
            *between = ", ";
        }
}

static void print_outputs(const char *name, size_t count, const char **between, pn_text *out) {
    for (size_t i = 0; i < count; i++, *between = ", ") pn_text_printf(out, "%s%s[%zu]", *between, name, i);
}

typedef struct array { /* of a wrapper's parameters */
    const char *name;
    size_t count;
} array;

/* static void NAME(const T (&in)[n].., T (&out)[n]..) { LANE(in[0], .., out[0], ..); } Arrays of no elements are left out. */
static void print_wrapper(const pn_program *program, const char *name, const char *lane, const array *in, size_t ins, const array *out_array,
                          size_t outs, pn_text *out) {
    const char *between = "";
    pn_text_printf(out, "    static __device__ __forceinline__ void %s(", name);
    for (size_t i = 0; i < ins + outs; i++) {
        const array *a = i < ins ? &in[i] : &out_array[i - ins];
        if (a->count == 0) continue;
        pn_text_printf(out, "%s%sT (&%s)[%zu]", between, i < ins ? "const " : "", a->name, a->count);
        between = ", ";
    }
    pn_text_printf(out, ") {\n        %s(", lane);
    between = "";
    size_t first = 0;
    for (size_t i = 0; i < ins; first += in[i++].count) print_inputs(program, in[i].name, first, in[i].count, &between, out);
    for (size_t i = 0; i < outs; i++) print_outputs(out_array[i].name, out_array[i].count, &between, out);
    pn_text_string(out, ");\n    }\n");
}

static void print_constant(const char *name, size_t value, pn_text *out) { pn_text_printf(out, "constexpr int %s = %zu;\n", name, value); }

static const char *products(const pn_pass *pass) {
    return pass->real == PN_FLOAT64 ? "PRODUCTS_FLOAT64" : pass->products_fma ? "PRODUCTS_FMA" : pass->tf32 ? "PRODUCTS_HALF" : "PRODUCTS_HALFX3";
}

static void print_constants(const pn_pass *pass, const pn_tile_plan *p, pn_text *out) {
    const pn_network *network = pass->network;
    const struct {
        const char *name;
        size_t value;
    } constant[] = {{"WARPS", p->warps},
                    {"FIELDS", network->fields},
                    {"COORDINATES", network->coordinates},
                    {"HIDDEN", p->hidden},
                    {"WIDTH", p->width},
                    {"FIRST", p->first},
                    {"FIRST_LANES", p->first_lanes},
                    {"FIRST_BLOCKS", network->layer[0].blocks},
                    {"FIRST_VECTORS", p->first_vectors},
                    {"FIRST_TRAINED", p->first_trained},
                    {"VECTORS", p->vectors},
                    {"VECTOR_ROWS", p->first_vectors + p->hidden * p->vectors},
                    {"TERMS", pass->terms},
                    {"MEMBERS", pass->members},
                    {"ROWS", p->rows},
                    {"POINTS_MOST", p->points_most},
                    {"COLUMNS_MOST", p->columns_most},
                    {"UNITS_MOST", p->units_most},
                    {"SPLITS_MOST", p->splits_most},
                    {"RAW_MOST", p->splits_most * p->rows},
                    {"PADDED_ROWS", p->padded_rows},
                    {"STRIDE", p->stride},
                    {"WEIGHT_STRIDE", p->weight_stride},
                    {"WEIGHTS_ALL", p->choice.weights_all},
                    {"KEEP_SHARED", p->choice.keep_shared},
                    {"KEEP_STAGE", p->keep_stage},
                    {"KEEP_BLOCK", p->keep_block},
                    {"GRADIENT_M", p->gradient_m},
                    {"GRADIENT_N", p->gradient_n},
                    {"GRADIENT_FIRST", p->first * p->width},
                    {"GRADIENT_VECTORS", p->first * p->width + (p->hidden - 1) * p->width * p->width},
                    {"GRADIENT_ROW", p->gradient_row},
                    {"SUM_ROWS", 64},
                    {"SHARED_BYTES", p->shared_bytes}};
    const char *real = pass->real == PN_FLOAT32 ? "float" : "double";
    pn_text_printf(out, "typedef unsigned long long size;\ntypedef %s T;\ntypedef %s2 pair;\n", real, real);
    for (size_t i = 0; i < sizeof constant / sizeof constant[0]; i++) print_constant(constant[i].name, constant[i].value, out);
    pn_text_printf(out, "enum { PRODUCTS_FMA, PRODUCTS_HALF, PRODUCTS_HALFX3, PRODUCTS_FLOAT64 };\nconstexpr int PRODUCTS = %s;\n", products(pass));
    pn_text_string(out, "struct arguments;\nstruct shared_memory;\n\n");
}

/* The lane functions of a program under `lane`, its text in `out`. */
static void print_lane(const pn_program *program, const char *kind, size_t group, char lane[48], pn_text *out) {
    snprintf(lane, 48, "%s_lane%zu", kind, group);
    pn_lane_source(program, lane, out);
}

/* All hidden layers of a group run the same programs; said with their text. */
static pinn_status check_equal(const pn_program *a, const pn_program *b) {
    pn_text one = {0}, other = {0};
    pn_lane_source(a, "lane", &one);
    pn_lane_source(b, "lane", &other);
    pinn_status status = pn_text_check(&one);
    if (status == PINN_OK) status = pn_text_check(&other);
    if (status == PINN_OK && strcmp(pn_text_get(&one), pn_text_get(&other)) != 0)
        status = pn_fail(PINN_UNSUPPORTED, "no tiled pass: the hidden layers differ");
    pn_text_free(&one);
    pn_text_free(&other);
    return status;
}

static pinn_status print_group(const pn_pass *pass, const pn_tile_plan *plan, size_t g, pn_text *out) {
    const pn_group *group = &pass->group[g];
    const size_t channels = group->channels, blocks = pass->network->layer[0].blocks;
    char first[48], first_adjoint[48], remember[48], recall[48], adjoint[48];
    const pn_kept *kept = &plan->group[g].kept;
    for (size_t l = 4; l < pass->network->layers; l += 2) {
        pinn_status status = check_equal(group->forward[2], group->forward[l]);
        if (status == PINN_OK) status = check_equal(group->backward[2], group->backward[l]);
        if (status != PINN_OK) return status;
    }
    print_lane(group->forward[0], "first", g, first, out);
    if (plan->first_trained) print_lane(group->backward[0], "first_adjoint", g, first_adjoint, out);
    print_lane(kept->remember, "remember", g, remember, out);
    print_lane(kept->recall, "recall", g, recall, out);
    print_lane(kept->adjoint, "adjoint", g, adjoint, out);
    const array x = {"x", pass->network->coordinates}, z = {"z", channels}, v = {"v", plan->vectors}, v0 = {"v", plan->first_vectors};
    const array a0 = {"a", blocks * channels}, a = {"a", channels}, da = {"da", channels}, dz = {"dz", channels}, sum = {"sum", plan->vectors};
    const array sum0 = {"sum", plan->first_vectors}, value = {"kept", 1};
    pn_text_printf(out, "struct group%zu {\n    static constexpr int C = %zu, UNITS = %u, SPLITS = %u;\n", g, channels, plan->group[g].units,
                   plan->group[g].splits);
    print_wrapper(group->forward[0], "first", first, (const array[]){x, v0}, 2, &a0, 1, out);
    if (plan->first_trained) print_wrapper(group->backward[0], "first_adjoint", first_adjoint, (const array[]){x, v0, da}, 3, &sum0, 1, out);
    print_wrapper(kept->remember, "remember", remember, (const array[]){z, v}, 2, (const array[]){a, value}, 2, out);
    print_wrapper(kept->recall, "recall", recall, (const array[]){z, v}, 2, &a, 1, out);
    print_wrapper(kept->adjoint, "adjoint", adjoint, (const array[]){z, v, da}, 3, (const array[]){dz, sum}, 2, out);
    pn_text_string(out, "    static __device__ void turn(int set, shared_memory &s, const T *coordinate, int valid);\n};\n\n");
    return PINN_OK;
}

/* Point set `at` of the plan's order. */
static void print_set(const pn_pass *pass, const pn_tile_plan *plan, size_t at, pn_text *out) {
    const pn_member *member = &pass->member[plan->order[at]];
    const size_t d = pass->network->coordinates, fields = pass->network->fields;
    const size_t geometric = member->point_columns >= 2 * d ? 2 * d : d, raws = pass->group[member->group].channels * fields;
    char lane[48];
    print_lane(member->residual, "residual", at, lane, out);
    pn_text_printf(out, "template <> struct set_of<%zu> {\n    static constexpr int GEOMETRIC = %zu, RESIDUALS = %zu, TERM = %zu;\n", at, geometric,
                   member->residuals, member->first_term);
    const array in[] = {{"x", geometric}, {"raw", raws}, {"bias", fields}, {"scale", member->residuals}};
    const array to[] = {{"square", member->residuals}, {"adjoint", raws}, {"dbias", fields}};
    print_wrapper(member->residual, "residual", lane, in, 4, to, 3, out);
    pn_text_string(out, "};\n\n");
}

static void print_turn(const pn_pass *pass, const pn_tile_plan *plan, size_t g, pn_text *out) {
    pn_text_printf(out, "__device__ void group%zu::turn(int set, shared_memory &s, const T *coordinate, int valid) {\n", g);
    for (size_t at = 0; at < pass->members; at++)
        if (pass->member[plan->order[at]].group == g)
            pn_text_printf(out, "    if (set == %zu) residuals<group%zu, %zu>(s, coordinate, valid);\n", at, g, at);
    pn_text_string(out, "}\n\n");
}

/* For each group: the last of its sets in the plan's order, where they stand together; `format` takes that and the group. */
static void print_groups(const pn_pass *pass, const pn_tile_plan *plan, const char *format, pn_text *out) {
    for (size_t at = 0; at < pass->members; at++) {
        const size_t group = pass->member[plan->order[at]].group;
        if (at + 1 == pass->members || pass->member[plan->order[at + 1]].group != group) pn_text_printf(out, format, at, group);
    }
}

static void print_entry(const pn_pass *pass, const pn_tile_plan *plan, pn_text *out) {
    pn_text_string(out, "static __device__ __forceinline__ int set_of_tile(const arguments &a, size tile) {\n"
                        "    int set = 0;\n"
                        "    while (tile >= a.set[set].end) set++;\n"
                        "    return set;\n"
                        "}\n\n"
                        "static __device__ void fetch_tile(const arguments &a, size tile, T *coordinate) {\n"
                        "    if (tile >= a.set[MEMBERS - 1].end) return;\n"
                        "    const int set = set_of_tile(a, tile);\n");
    print_groups(pass, plan, "    if (set <= %zu) return fetch_points<group%zu>(a, set, tile, coordinate);\n", out);
    pn_text_string(out, "}\n\n"
                        "extern \"C\" __global__ void __launch_bounds__(THREADS, 1) " PN_TILE_KERNEL "(const __grid_constant__ arguments a) {\n"
                        "    static_assert(sizeof(shared_memory) <= SHARED_BYTES, \"the plan counts as this text does\");\n"
                        "    extern __shared__ __align__(16) unsigned char memory[];\n"
                        "    shared_memory &s = *(shared_memory *)memory;\n"
                        "    begin_block(a, s);\n"
                        "    T *const keep = KEEP_SHARED ? s.keep : a.keep + (size)blockIdx.x * KEEP_BLOCK;\n"
                        "    T *const gradient = a.gradient + (size)blockIdx.x * GRADIENT_ROW;\n"
                        "    int buffer = 0;\n"
                        "    for (size tile = blockIdx.x; tile < a.set[MEMBERS - 1].end; tile += gridDim.x, buffer ^= 1) {\n"
                        "        const int set = set_of_tile(a, tile);\n"
                        "        const place_in_tile at = {keep, gradient, s.coordinate[buffer], set, 0, tile == blockIdx.x};\n");
    print_groups(pass, plan, "        if (set <= %zu) {\n            run_tile<group%zu>(a, s, at, tile);\n            continue;\n        }\n", out);
    pn_text_string(out, "    }\n    end_block(s, gradient, a.loss + blockIdx.x * TERMS);\n}\n");
}

pinn_status pn_tile_source(const pn_pass *pass, const pn_tile_plan *plan, pn_text *out) {
    pinn_status status = PINN_OK;
    print_constants(pass, plan, out);
    pn_lane_prelude(out);
    for (size_t g = 0; g < pass->groups; g++) PN_TRY(print_group(pass, plan, g, out));
    pn_text_string(out, pass->real == PN_FLOAT64 || pass->products_fma ? pn_tile_products_text : pn_tile_halves_text);
    pn_text_string(out, pn_tile_pass_text);
    for (size_t at = 0; at < pass->members; at++) print_set(pass, plan, at, out);
    for (size_t g = 0; g < pass->groups; g++) print_turn(pass, plan, g, out);
    print_entry(pass, plan, out);
    status = pn_text_check(out);
fail:
    return status;
}
