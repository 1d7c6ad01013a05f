/* Kernels on the GPU against plain arithmetic and the interpreter: on a stream, and inside a recorded graph. */
#include "operation_case.h"
#include "pinn_graph.h"

static pinn_context *open_context(pinn_executor executor) {
    const pinn_context_options options = {.executor = executor};
    pinn_context *context;
    ck_assert_msg(pinn_context_create(&options, &context) == PINN_OK, "%s", pinn_error_message());
    return context;
}

/* A device plane with the host's content; at least one byte, since a plane is never empty. */
static pinn_plane *to_device(pinn_context *context, const void *from, size_t bytes) {
    pinn_plane *plane;
    ck_assert_msg(pinn_plane_create(context, "operand", PINN_DEVICE, bytes + !bytes, &plane) == PINN_OK, "%s", pinn_error_message());
    if (bytes > 0) ck_assert_int_eq(pinn_plane_write(plane, 0, from, bytes), PINN_OK);
    return plane;
}

static void from_device(pinn_plane *plane, void *to, size_t bytes) {
    if (bytes > 0) ck_assert_msg(pinn_plane_read(plane, 0, to, bytes) == PINN_OK, "%s", pinn_error_message());
    pinn_plane_destroy(plane);
}

/* ---- every kind of operand ---------------------------------------------------------------------------------------------------- */

enum { SECTIONS = 5 };

typedef struct sections {
    program_case c[SECTIONS];
    pn_section section[SECTIONS];
    pinn_plane *in[SECTIONS * CASE_INPUTS], *out[SECTIONS * CASE_OUTPUTS], *real[SECTIONS], *f64[SECTIONS];
    const void *in_address[SECTIONS * CASE_INPUTS];
    void *out_address[SECTIONS * CASE_OUTPUTS], *real_address[SECTIONS];
    double *f64_address[SECTIONS];
} sections;

static size_t out_bytes(const program_case *c, size_t o) {
    const bool f64 = c->kind[o] != PN_STORE && case_sums_f64(c, o);
    return c->out_count[o] * (f64 ? sizeof(double) : pn_real_bytes(c->real));
}

/* Two sections share their code, one has no points, one is wider than a block, one is a single column, two have several columns a thread. */
static void create_sections(sections *s, pinn_context *context, pn_real real) {
    static const size_t width[SECTIONS] = {64, 700, 64, 1, 256}, points[SECTIONS] = {1000, 90, 0, 1003, 777};
    for (size_t k = 0; k < SECTIONS; k++) {
        program_case *c = &s->c[k];
        case_create(c, real, width[k], points[k]);
        s->section[k] = (pn_section){c->program, points[k]};
        for (size_t i = 0; i < CASE_INPUTS; i++) {
            pinn_plane *plane = to_device(context, c->in[i], c->in_count[i] * pn_real_bytes(real));
            s->in[k * CASE_INPUTS + i] = plane;
            s->in_address[k * CASE_INPUTS + i] = pinn_plane_address(plane);
        }
        for (size_t o = 0; o < CASE_OUTPUTS; o++) {
            pinn_plane *plane = to_device(context, c->out[o], out_bytes(c, o));
            s->out[k * CASE_OUTPUTS + o] = plane;
            s->out_address[k * CASE_OUTPUTS + o] = pinn_plane_address(plane);
        }
    }
}

static size_t real_bytes(const sections *s, const pn_kernel *kernel, size_t k) {
    return pn_kernel_partial_rows(kernel, k) * 2 * s->c[k].width * pn_real_bytes(s->c[k].real);
}
static size_t f64_bytes(const sections *s, const pn_kernel *kernel, size_t k) {
    return pn_kernel_partial_rows(kernel, k) * s->c[k].width * sizeof(double);
}

START_TEST(every_operand) {
    pinn_context *context = open_context(PINN_EXECUTOR_EAGER);
    sections *s = calloc(1, sizeof *s);
    pn_kernel *kernel;
    create_sections(s, context, (pn_real)_i);
    ck_assert_msg(pn_kernel_create(context, "every_operand", s->section, SECTIONS, &kernel) == PINN_OK, "%s", pinn_error_message());
    for (size_t k = 0; k < SECTIONS; k++) {
        void *nothing = calloc(1, real_bytes(s, kernel, k) + f64_bytes(s, kernel, k) + 1);
        s->real[k] = to_device(context, nothing, real_bytes(s, kernel, k));
        s->f64[k] = to_device(context, nothing, f64_bytes(s, kernel, k));
        s->real_address[k] = pinn_plane_address(s->real[k]);
        s->f64_address[k] = pinn_plane_address(s->f64[k]);
        free(nothing);
    }
    void *first[SECTIONS] = {NULL};
    for (int repeat = 0; repeat < 2; repeat++) {
        ck_assert_msg(pn_kernel_launch(kernel, pinn_context_stream(context), s->in_address, s->out_address, s->real_address,
                                       s->f64_address) == PINN_OK,
                      "%s", pinn_error_message());
        ck_assert_msg(pinn_context_synchronize(context) == PINN_OK, "%s", pinn_error_message());
        for (size_t k = 0; k < SECTIONS && real_bytes(s, kernel, k) > 0; k++) { /* the same sums, bit for bit, from a second launch */
            void *sums = malloc(real_bytes(s, kernel, k));
            ck_assert_int_eq(pinn_plane_read(s->real[k], 0, sums, real_bytes(s, kernel, k)), PINN_OK);
            if (first[k]) ck_assert_mem_eq(first[k], sums, real_bytes(s, kernel, k));
            free(first[k]);
            first[k] = sums;
        }
    }
    for (size_t k = 0; k < SECTIONS; k++) {
        program_case *c = &s->c[k];
        double *partial_f64 = malloc(f64_bytes(s, kernel, k) + 1);
        void *partial_real = malloc(real_bytes(s, kernel, k) + 1);
        from_device(s->f64[k], partial_f64, f64_bytes(s, kernel, k));
        from_device(s->real[k], partial_real, real_bytes(s, kernel, k));
        for (size_t i = 0; i < CASE_INPUTS; i++) pinn_plane_destroy(s->in[k * CASE_INPUTS + i]);
        for (size_t o = 0; o < CASE_OUTPUTS; o++) from_device(s->out[k * CASE_OUTPUTS + o], c->out[o], out_bytes(c, o));
        case_fold(c, pn_kernel_partial_rows(kernel, k), partial_real, partial_f64);
        case_verify(c);
        case_destroy(c);
        free(partial_real);
        free(partial_f64);
        free(first[k]);
    }
    pn_kernel_destroy(kernel);
    pinn_context_destroy(context);
    free(s);
}
END_TEST

/* ---- every operation ------------------------------------------------------------------------------------------------------------ */

START_TEST(every_operation) {
    enum { BYTES = OPERATION_POINTS * sizeof(double) };
    pinn_context *context = open_context(PINN_EXECUTOR_EAGER);
    pn_program *program = operation_program((pn_real)_i);
    const pn_section section = {program, OPERATION_POINTS};
    pinn_plane *in_plane[3], *out_plane[OPERATIONS];
    void *in[3], *out[OPERATIONS], *out_address[OPERATIONS], *none = NULL;
    const void *in_address[3];
    double *none_f64 = NULL;
    pn_kernel *kernel;
    for (int k = 0; k < 3; k++) in[k] = calloc(1, BYTES);
    operation_data((pn_real)_i, in);
    for (int k = 0; k < 3; k++) in_address[k] = pinn_plane_address(in_plane[k] = to_device(context, in[k], BYTES));
    for (int o = 0; o < OPERATIONS; o++) {
        out[o] = calloc(1, BYTES);
        out_address[o] = pinn_plane_address(out_plane[o] = to_device(context, out[o], BYTES));
    }
    ck_assert_msg(pn_kernel_create(context, "every_operation", &section, 1, &kernel) == PINN_OK, "%s", pinn_error_message());
    ck_assert_msg(pn_kernel_launch(kernel, pinn_context_stream(context), in_address, out_address, &none, &none_f64) == PINN_OK, "%s",
                  pinn_error_message());
    for (int o = 0; o < OPERATIONS; o++) from_device(out_plane[o], out[o], BYTES);
    operation_compare(program, (const void *const *)in, out);
    for (int k = 0; k < 3; k++) {
        pinn_plane_destroy(in_plane[k]);
        free(in[k]);
    }
    for (int o = 0; o < OPERATIONS; o++) free(out[o]);
    pn_kernel_destroy(kernel);
    pn_program_destroy(program);
    pinn_context_destroy(context);
}
END_TEST

/* ---- in a graph, in place -------------------------------------------------------------------------------------------------------- */

enum { WIDTH = 20, POINTS = 333, LANES = WIDTH * POINTS };

static pinn_status launch_in_place(const pinn_run *run) {
    const pn_kernel *kernel = *(pn_kernel *const *)run->arguments;
    void *none = NULL;
    double *none_f64 = NULL;
    return pn_kernel_launch(kernel, run->stream, (const void *const *)run->write, run->write, &none, &none_f64);
}

/* x, y <- 2y - x, x + 3y, five times over: replayed, and by the interpreter; small integers are exact in both. */
START_TEST(in_place_in_a_graph) {
    const pinn_executor executor = _i ? PINN_EXECUTOR_GRAPH : PINN_EXECUTOR_EAGER;
    pinn_context *context = open_context(executor);
    pn_ir *ir;
    ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
    const uint32_t slot[2] = {0, 1};
    const pn_stride stride[2] = {{WIDTH, 1}, {WIDTH, 1}};
    const pn_output_kind kind[2] = {PN_STORE, PN_STORE};
    const pn_value x = pn_ir_input(ir, 0), y = pn_ir_input(ir, 1);
    const pn_value output[2] = {pn_ir_sub(ir, pn_ir_mul(ir, pn_ir_const(ir, 2), y), x), pn_ir_add(ir, x, pn_ir_mul(ir, pn_ir_const(ir, 3), y))};
    const pn_program_spec spec = {.ir = ir, .real = PN_FLOAT32, .width = WIDTH, .input = slot, .input_stride = stride, .inputs = 2,
                                  .output = output, .kind = kind, .output_stride = stride, .outputs = 2};
    pn_program *program;
    ck_assert_int_eq(pn_program_create(&spec, &program), PINN_OK);
    float *host[2], *got = malloc(LANES * sizeof(float));
    pinn_plane *plane[2];
    for (int k = 0; k < 2; k++) {
        host[k] = malloc(LANES * sizeof(float));
        for (size_t l = 0; l < LANES; l++) host[k][l] = (float)((l * 7 + (size_t)k) % 50);
        plane[k] = to_device(context, host[k], LANES * sizeof(float));
    }
    const pn_section section = {program, POINTS};
    pn_kernel *kernel;
    pinn_graph *graph;
    const pinn_operation operation = {.name = "in place", .cuda = launch_in_place};
    ck_assert_msg(pn_kernel_create(context, "in_place", &section, 1, &kernel) == PINN_OK, "%s", pinn_error_message());
    ck_assert_int_eq(pinn_graph_create(context, "in place", &graph), PINN_OK);
    ck_assert_int_eq(pinn_graph_begin(graph), PINN_OK);
    ck_assert_int_eq(pinn_graph_operation(graph, &operation, &kernel, sizeof kernel, PINN_PLANES(plane[0], plane[1]),
                                          PINN_PLANES(plane[0], plane[1])),
                     PINN_OK);
    ck_assert_msg(pinn_graph_launch(graph, 5) == PINN_OK, "%s", pinn_error_message());
    void *scratch = pn_allocate(pn_program_scratch(program), 1);
    for (int n = 0; n < 5; n++) pn_program_run(program, POINTS, (const void *const *)host, (void *const *)host, scratch);
    pinn_graph_destroy(graph);
    for (int k = 0; k < 2; k++) {
        from_device(plane[k], got, LANES * sizeof(float));
        ck_assert_mem_eq(got, host[k], LANES * sizeof(float));
        free(host[k]);
    }
    pn_free(scratch);
    free(got);
    pn_kernel_destroy(kernel);
    pn_program_destroy(program);
    pn_ir_destroy(ir);
    pinn_context_destroy(context);
}
END_TEST

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    Suite *suite = suite_create("kernel on the device");
    TCase *device = tcase_create("device");
    tcase_set_timeout(device, 120);
    tcase_add_loop_test(device, every_operand, 0, 2);
    tcase_add_loop_test(device, every_operation, 0, 2);
    tcase_add_loop_test(device, in_place_in_a_graph, 0, 2);
    suite_add_tcase(suite, device);
    return suite_run_nofork(suite);
}
