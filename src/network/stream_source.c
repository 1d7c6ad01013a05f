/* The text of the streamed pass's kernels: what kernels/stream_*.cuh expect before them and call. */
#include "network/lane_text.h"
#include "network/stream.h"
#include "pointwise/kernel.h"

static void print_constants(const pn_pass *pass, const pn_stream_plan *p, pn_text *out) {
    const pn_network *network = pass->network;
    const struct {
        const char *name;
        size_t value;
    } constant[] = {{"PARTS", p->parts},
                    {"WARPS", p->warps},
                    {"RESIDENTS", p->residents},
                    {"COLUMNS_STEP", PN_STREAM_COLUMNS_STEP},
                    {"GRADIENT_THREADS", PN_STREAM_GRADIENT_THREADS},
                    {"STAGES", p->stages},
                    {"SLABS", p->slabs},
                    {"WINDOW_CHUNKS", p->window_chunks},
                    {"PREPARE_THREADS", PN_STREAM_PREPARE_THREADS},
                    {"SPLITS", p->splits},
                    {"FIELDS", network->fields},
                    {"COORDINATES", network->coordinates},
                    {"HIDDEN", p->net.hidden},
                    {"WIDTH", p->net.width},
                    {"PADDED", p->padded},
                    {"FIRST", p->net.first},
                    {"FIRST_PADDED", p->first_padded},
                    {"FIRST_LANES", p->net.first_lanes},
                    {"FIRST_BLOCKS", network->layer[0].blocks},
                    {"FIRST_VECTORS", p->net.first_vectors},
                    {"FIRST_TRAINED", p->net.first_trained},
                    {"FIRST_CHUNKS", p->first_chunks},
                    {"NEXT_CHUNKS", p->next_chunks},
                    {"CHUNKS", p->chunks},
                    {"PITCH", p->pitch},
                    {"VECTORS", p->net.vectors},
                    {"VECTOR_ROWS", p->net.first_vectors + p->net.hidden * p->net.vectors},
                    {"TERMS", pass->terms},
                    {"MEMBERS", pass->members},
                    {"ROWS", p->rows},
                    {"ROW_WARPS_MOST", p->row_warps_most},
                    {"RAW_MOST", p->raw_most},
                    {"POINTS_MOST", p->points_most},
                    {"COLUMNS_MOST", p->columns_most},
                    {"KEEP_TILES", p->keep_tiles},
                    {"GRADIENT_ROW", p->gradient_row},
                    {"CHUNK_K", PN_STREAM_CHUNK_K},
                    {"SIDE", PN_STREAM_SIDE},
                    {"SLAB_ROWS", PN_STREAM_SLAB_ROWS},
                    {"GRADIENT_SHARED_BYTES", p->gradient_shared_bytes},
                    {"ARGUMENT_WORDS", pn_stream_words(pass, p)},
                    {"SHARED_BYTES", p->shared_bytes}};
    pn_text_string(out, "typedef unsigned long long size;\ntypedef float T;\n");
    for (size_t i = 0; i < sizeof constant / sizeof constant[0]; i++)
        pn_text_printf(out, "constexpr int %s = %zu;\n", constant[i].name, constant[i].value);
    pn_text_string(out, "struct shared_memory;\n\n");
}

static void print_group(const pn_pass *pass, const pn_stream_plan *plan, size_t g, pn_text *out) {
    const pn_stream_group *group = &plan->group[g];
    pn_lane_group(pass, &plan->net, g, &group->kept, (const pn_lane_array[]){{"UNITS", group->units}, {"ROW_WARPS", group->row_warps}},
                  "static __device__ __forceinline__ void turn(int set, shared_memory &s, int valid)", out);
}

static void print_turn(const pn_pass *pass, const pn_stream_plan *plan, size_t g, pn_text *out) {
    pn_text_printf(out, "__device__ __forceinline__ void group%zu::turn(int set, shared_memory &s, int valid) {\n", g);
    pn_lane_sets(pass, plan->order, g, "    if (set == %zu) residuals<group%zu, %zu>(s, valid);\n", out);
    pn_text_string(out, "}\n\n");
}

static void print_pass(const pn_pass *pass, const pn_stream_plan *plan, pn_text *out) {
    pn_text_string(out, "extern \"C\" __global__ void __launch_bounds__(THREADS, RESIDENTS) " PN_STREAM_PASS "(const __grid_constant__ arguments a) {\n"
                        "    static_assert(sizeof(shared_memory) <= SHARED_BYTES, \"the plan counts as this text does\");\n"
                        "    extern __shared__ __align__(128) unsigned char memory[];\n"
                        "    shared_memory &s = *(shared_memory *)memory;\n"
                        "    stream w;\n"
                        "    begin_block(a, s);\n"
                        "    stream_begin(w, (const word *)(a.work + a.weights), s.ring);\n"
                        "    float4 *const keep = (float4 *)(a.work + a.keep) + (size)blockIdx.x * ((HIDDEN - 1) * KEEP_TILES * THREADS);\n"
                        "    for (size tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {\n"
                        "        int set = 0;\n"
                        "        while (tile >= a.set[set].end) set++;\n");
    pn_lane_groups(pass, plan->order, "        if (set <= %zu) {\n            run_tile<group%zu>(a, s, w, keep, set, tile);\n            continue;\n        }\n", out);
    pn_text_string(out, "    }\n    copy_wait<0>();\n    end_block(a, s);\n}\n\n");
}

pinn_status pn_stream_source(const pn_pass *pass, const pn_stream_plan *plan, pn_text *out) {
    pinn_status status = PINN_OK;
    print_constants(pass, plan, out);
    pn_lane_prelude(pass->tf32, out);
    for (size_t g = 0; g < pass->groups; g++) {
        PN_TRY(pn_lane_check_layers(pass, &pass->group[g], "streamed"));
        print_group(pass, plan, g, out);
    }
    pn_text_string(out, pn_stream_instructions_text);
    pn_text_string(out, pn_stream_products_text);
    pn_text_string(out, pn_stream_layout_text);
    pn_text_string(out, pn_lane_stages_text);
    pn_text_string(out, pn_stream_pass_text);
    pn_text_string(out, pn_stream_gradient_text);
    for (size_t at = 0; at < pass->members; at++) pn_lane_set(pass, &pass->member[plan->order[at]], at, out);
    for (size_t g = 0; g < pass->groups; g++) print_turn(pass, plan, g, out);
    print_pass(pass, plan, out);
    pn_text_string(out, "extern \"C\" __global__ void __launch_bounds__(PREPARE_THREADS) " PN_STREAM_PREPARE "(const __grid_constant__ arguments a) {\n"
                        "    prepare_weights(a);\n}\n\n"
                        "extern \"C\" __global__ void __launch_bounds__(GRADIENT_THREADS, 1) " PN_STREAM_GRADIENT "(const __grid_constant__ arguments a) {\n"
                        "    extern __shared__ __align__(128) word slabs[];\n"
                        "    weight_gradients(a, slabs);\n}\n");
    status = pn_text_check(out);
fail:
    return status;
}
