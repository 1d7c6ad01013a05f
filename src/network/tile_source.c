/* The text of the tiled pass's kernel. The lane functions are the programs' of description.h; what is printed here gives them the
 * uniform signatures that kernels/lane_stages.cuh and tile_stages.cuh call: arrays in the programs' operand order. */
#include "network/lane_text.h"
#include "network/tile.h"
#include "pointwise/kernel.h"

static void print_constant(const char *name, size_t value, pn_text *out) { pn_text_printf(out, "constexpr int %s = %zu;\n", name, value); }

static const char *products(const pn_pass *pass) {
    return pass->real == PN_FLOAT64 ? "PRODUCTS_FLOAT64" : pass->products_fma ? "PRODUCTS_FMA" : pass->tf32 ? "PRODUCTS_HALF" : "PRODUCTS_HALFX3";
}

/* Weights that may be read at a time: 16 bytes, if every row of every layer begins at a multiple of them. The parameters do. */
static size_t weights_together(const pn_pass *pass) {
    const pn_network *network = pass->network;
    size_t together = 16 / pn_real_bytes(pass->real);
    for (size_t l = 1; l + 1 < network->layers; l += 2)
        while (network->layer[l].parameter[0].offset % together || network->layer[l].out % together) together /= 2;
    return together;
}

static void print_constants(const pn_pass *pass, const pn_tile_plan *p, pn_text *out) {
    const pn_network *network = pass->network;
    const struct {
        const char *name;
        size_t value;
    } constant[] = {{"WARPS", p->warps},
                    {"FIELDS", network->fields},
                    {"COORDINATES", network->coordinates},
                    {"HIDDEN", p->net.hidden},
                    {"WIDTH", p->net.width},
                    {"FIRST", p->net.first},
                    {"FIRST_LANES", p->net.first_lanes},
                    {"FIRST_BLOCKS", network->layer[0].blocks},
                    {"FIRST_VECTORS", p->net.first_vectors},
                    {"FIRST_TRAINED", p->net.first_trained},
                    {"VECTORS", p->net.vectors},
                    {"VECTOR_ROWS", p->net.first_vectors + p->net.hidden * p->net.vectors},
                    {"TERMS", pass->terms},
                    {"MEMBERS", pass->members},
                    {"ROWS", p->rows},
                    {"POINTS_MOST", p->points_most},
                    {"COLUMNS_MOST", p->columns_most},
                    {"UNITS_MOST", p->units_most},
                    {"SPLITS_MOST", p->splits_most},
                    {"RAW_MOST", p->splits_most * p->rows},
                    {"PADDED_ROWS", p->padded_rows},
                    {"TOGETHER", weights_together(pass)},
                    {"A_ARRAYS", p->operands},
                    {"WEIGHT_SLOTS", p->weight_slots},
                    {"STRIDE", p->stride},
                    {"WEIGHT_STRIDE", p->weight_stride},
                    {"WEIGHTS_ALL", p->choice.weights_all},
                    {"KEEP_SHARED", p->choice.keep_shared},
                    {"KEEP_STAGE", p->keep_stage},
                    {"KEEP_BLOCK", p->keep_block},
                    {"GRADIENT_M", p->gradient_m},
                    {"GRADIENT_N", p->gradient_n},
                    {"GRADIENT_FIRST", p->net.first * p->net.width},
                    {"GRADIENT_VECTORS", p->net.first * p->net.width + (p->net.hidden - 1) * p->net.width * p->net.width},
                    {"GRADIENT_ROW", p->gradient_row},
                    {"SUM_ROWS", 64},
                    {"ARRAY_ALIGNMENT", 128}, /* of arrays that products read, in bytes */
                    {"ARGUMENT_WORDS", pn_tile_words(pass, p)},
                    {"SHARED_BYTES", p->shared_bytes}};
    const char *real = pass->real == PN_FLOAT32 ? "float" : "double";
    pn_text_printf(out, "typedef unsigned long long size;\ntypedef %s T;\ntypedef %s2 pair;\n", real, real);
    for (size_t i = 0; i < sizeof constant / sizeof constant[0]; i++) print_constant(constant[i].name, constant[i].value, out);
    pn_text_printf(out, "enum { PRODUCTS_FMA, PRODUCTS_HALF, PRODUCTS_HALFX3, PRODUCTS_FLOAT64 };\nconstexpr int PRODUCTS = %s;\n", products(pass));
    pn_text_string(out, "struct arguments;\nstruct shared_memory;\n\n");
}

static void print_group(const pn_pass *pass, const pn_tile_plan *plan, size_t g, pn_text *out) {
    const pn_tile_group *group = &plan->group[g];
    pn_lane_group(pass, &plan->net, g, &group->kept, (const pn_lane_array[]){{"UNITS", group->units}, {"SPLITS", group->splits}},
                  "static __device__ __noinline__ void turn(int set, shared_memory &s, const T *coordinate, int valid)", out);
}

/* A call: few warps run it, and in line its registers would be missing to what all carry across it. */
static void print_turn(const pn_pass *pass, const pn_tile_plan *plan, size_t g, pn_text *out) {
    pn_text_printf(out, "__device__ __noinline__ void group%zu::turn(int set, shared_memory &s, const T *coordinate, int valid) {\n", g);
    pn_lane_sets(pass, plan->order, g, "    if (set == %zu) residuals<group%zu, %zu>(s, coordinate, valid);\n", out);
    pn_text_string(out, "}\n\n");
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
    pn_lane_groups(pass, plan->order, "    if (set <= %zu) return fetch_points<group%zu>(a, set, tile, coordinate);\n", out);
    pn_text_string(out, "}\n\n"
                        "extern \"C\" __global__ void __launch_bounds__(THREADS, 1) " PN_TILE_KERNEL "(const __grid_constant__ arguments a) {\n"
                        "    static_assert(sizeof(shared_memory) <= SHARED_BYTES, \"the plan counts as this text does\");\n"
                        "    extern __shared__ __align__(ARRAY_ALIGNMENT) unsigned char memory[];\n"
                        "    shared_memory &s = *(shared_memory *)memory;\n"
                        "    begin_block(a, s);\n"
                        "    T *const keep = KEEP_SHARED ? s.keep : a.keep + (size)blockIdx.x * KEEP_BLOCK;\n"
                        "    T *const gradient = a.gradient + (size)blockIdx.x * GRADIENT_ROW;\n"
                        "    int buffer = 0;\n"
                        "    for (size tile = blockIdx.x; tile < a.set[MEMBERS - 1].end; tile += gridDim.x, buffer ^= 1) {\n"
                        "        const int set = set_of_tile(a, tile);\n"
                        "        const place_in_tile at = {keep, gradient, s.coordinate[buffer], set, 0, tile == blockIdx.x};\n");
    pn_lane_groups(pass, plan->order, "        if (set <= %zu) {\n            run_tile<group%zu>(a, s, at, tile);\n            continue;\n        }\n", out);
    pn_text_string(out, "    }\n    end_block(s, gradient, a.loss + blockIdx.x * TERMS);\n}\n");
}

pinn_status pn_tile_source(const pn_pass *pass, const pn_tile_plan *plan, pn_text *out) {
    pinn_status status = PINN_OK;
    print_constants(pass, plan, out);
    pn_lane_prelude(pass->tf32, out);
    for (size_t g = 0; g < pass->groups; g++) {
        PN_TRY(pn_lane_check_layers(pass, &pass->group[g], "tiled"));
        print_group(pass, plan, g, out);
    }
    pn_text_string(out, pass->real == PN_FLOAT64 || pass->products_fma ? pn_tile_products_text : pn_tile_halves_text);
    pn_text_string(out, pn_tile_layout_text);
    pn_text_string(out, pn_lane_stages_text);
    pn_text_string(out, pn_tile_stages_text);
    pn_text_string(out, pn_tile_pass_text);
    for (size_t at = 0; at < pass->members; at++) pn_lane_set(pass, &pass->member[plan->order[at]], at, out);
    for (size_t g = 0; g < pass->groups; g++) print_turn(pass, plan, g, out);
    print_entry(pass, plan, out);
    status = pn_text_check(out);
fail:
    return status;
}
