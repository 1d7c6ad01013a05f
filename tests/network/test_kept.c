/* A hidden layer's remember, recall and adjoint (pn_kept) against its forward and backward programs, in float64. */
#include "network/description.h"
#include "pointwise/jet.h"

#include "pass_case.h"

enum { WIDTH = 11, POINTS = 29, LANES = POINTS * WIDTH, LAYER = 2, MOST_CHANNELS = 16, MOST_OPERANDS = 2 * MOST_CHANNELS + 1 };

/* A group with derivatives up to the fourth order, one with the value alone. */
static const pass_case problem = {"kept", 2, {"x", "t"}, 1, 1, {"u"}, NULL, WIDTH, 2, 0,
                                  {{30, false, {"u_t + u*u_x - u_xx + u_xxxx"}}, {20, false, {"u"}}}};

/* The activations whose outputs and adjoints are polynomials in one elementary function: it is kept, and z's value is needed no more. The
 * derivatives of the others need z itself or a second function. */
static bool keeps_function(const char *activation) { return strcmp(activation, "tanh") == 0; }

typedef struct operands {
    double z[MOST_CHANNELS][LANES], da[MOST_CHANNELS][LANES], bias[WIDTH];
    const void *in[MOST_OPERANDS]; /* Z [C], bias, dA [C] */
} operands;

typedef struct results {
    double lane[MOST_CHANNELS + 1][LANES], sum[WIDTH];
    void *out[MOST_CHANNELS + 2];
} results;

static void draw(operands *o, size_t channels) {
    uint64_t state = 3;
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < LANES; i++) {
            o->z[c][i] = 2 * case_random(&state);
            o->da[c][i] = case_random(&state);
        }
    for (size_t i = 0; i < WIDTH; i++) o->bias[i] = case_random(&state);
    for (size_t c = 0; c < channels; c++) o->in[c] = o->z[c], o->in[channels + 1 + c] = o->da[c];
    o->in[channels] = o->bias;
}

/* Runs the program: `lanes` outputs a lane, then, if `sums`, the bias's. */
static void run(const pn_program *program, const operands *o, size_t inputs, size_t lanes, bool sums, results *r) {
    void *scratch = pn_allocate(pn_program_scratch(program), 1);
    ck_assert_uint_eq(pn_program_inputs(program), inputs);
    ck_assert_uint_eq(pn_program_outputs(program), lanes + sums);
    memset(r, 0, sizeof *r);
    for (size_t k = 0; k < lanes; k++) r->out[k] = r->lane[k];
    r->out[lanes] = r->sum;
    pn_program_run(program, POINTS, o->in, r->out, scratch);
    pn_free(scratch);
}

static void compare(const double *got, const double *expected, size_t count, const char *activation, const char *what) {
    double largest = 1;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(expected[i]));
    for (size_t i = 0; i < count; i++) /* the same arithmetic in another order: some hundred roundings of 1.1e-16 at most */
        ck_assert_msg(fabs(got[i] - expected[i]) <= 1e-13 * largest, "%s, %s: %.17g, not %.17g", activation, what, got[i], expected[i]);
}

static void check_group(const pn_pass *pass, const pn_group *group, const char *activation) {
    static operands of_z, of_kept;
    static results expected, got, kept_value;
    const size_t channels = group->channels;
    size_t arithmetic, special;
    pn_kept kept = {0};
    ck_assert_uint_le(channels, MOST_CHANNELS);
    MUST(pn_describe_kept(pass, group, LAYER, &kept));
    draw(&of_z, channels);
    run(group->forward[LAYER], &of_z, channels + 1, channels, false, &expected);
    run(kept.remember, &of_z, channels + 1, channels + 1, false, &kept_value);
    for (size_t c = 0; c < channels; c++) compare(kept_value.lane[c], expected.lane[c], LANES, activation, "remember");
    for (size_t i = 0; i < LANES; i++) {
        const double z = of_z.z[0][i], a = case_activation(activation, z + of_z.bias[i % WIDTH]), value = kept_value.lane[channels][i];
        if (keeps_function(activation))
            ck_assert_msg(fabs(value - a) < 1e-15 * 4, "%s: %.17g kept, not %.17g", activation, value, a); /* both within 4 units in the last place */
        else
            ck_assert(value == z);
    }
    /* from here on z's value exists only as what was kept of it */
    of_kept = of_z;
    memcpy(of_kept.z[0], kept_value.lane[channels], sizeof of_kept.z[0]);
    for (size_t c = 0; c < channels; c++) of_kept.in[c] = of_kept.z[c], of_kept.in[channels + 1 + c] = of_kept.da[c];
    of_kept.in[channels] = of_kept.bias;
    run(kept.recall, &of_kept, channels + 1, channels, false, &got);
    for (size_t c = 0; c < channels; c++) compare(got.lane[c], expected.lane[c], LANES, activation, "recall");
    run(group->backward[LAYER], &of_z, 2 * channels + 1, channels, true, &expected);
    run(kept.adjoint, &of_kept, 2 * channels + 1, channels, true, &got);
    for (size_t c = 0; c < channels; c++) compare(got.lane[c], expected.lane[c], LANES, activation, "adjoint");
    compare(got.sum, expected.sum, WIDTH, activation, "sum of the bias's adjoint");
    if (keeps_function(activation)) {
        pn_program_count(kept.recall, &arithmetic, &special);
        ck_assert_uint_eq(special, 0);
        pn_program_count(kept.adjoint, &arithmetic, &special);
        ck_assert_uint_eq(special, 0);
        ck_assert(!pn_program_uses_input(kept.recall, channels)); /* the bias is in what was kept */
    }
    pn_kept_free(&kept);
    ck_assert_ptr_null(kept.remember);
}

/* As while the pass is made: with its layout. */
static pn_group group_of(const case_run *r, size_t g) {
    pn_group group = r->pass->group[g];
    for (size_t m = 0; m < r->sets; m++)
        if (r->pass->member[m].group == g) group.layout = &r->layout[m], group.carried = r->layout[m];
    return group;
}

START_TEST(kept_layers_are_the_plain_ones) {
    case_run r;
    pass_case c = problem;
    c.activation = pn_activation_names[_i];
    case_open(&r, &c, PN_FLOAT64, PN_LOWERING_TILED);
    ck_assert_uint_eq(r.pass->groups, 2);
    for (size_t g = 0; g < r.pass->groups; g++) {
        const pn_group group = group_of(&r, g);
        check_group(r.pass, &group, c.activation);
    }
    case_close(&r);
}
END_TEST

START_TEST(short_memory_is_reported) {
    case_run r;
    pass_case c = problem;
    pinn_status status = PINN_NO_MEMORY;
    long failures = 0;
    c.activation = "tanh";
    case_open(&r, &c, PN_FLOAT64, PN_LOWERING_TILED);
    const pn_group group = group_of(&r, 1);
    for (; status != PINN_OK; failures++) {
        pn_kept kept = {0};
        pn_memory_fail_after(failures);
        status = pn_describe_kept(r.pass, &group, LAYER, &kept);
        pn_memory_fail_after(-1);
        if (status != PINN_OK) {
            ck_assert_int_eq(status, PINN_NO_MEMORY);
            ck_assert(!kept.remember && !kept.recall && !kept.adjoint);
        }
        pn_kept_free(&kept);
        ck_assert_int_lt(failures, 5000);
    }
    ck_assert_int_gt(failures, 20);
    case_close(&r);
}
END_TEST

int main(void) {
    int activations = 0;
    while (pn_activation_names[activations]) activations++;
    Suite *suite = suite_create("kept layers");
    TCase *tests = tcase_create("kept");
    tcase_add_loop_test(tests, kept_layers_are_the_plain_ones, 0, activations);
    tcase_add_test(tests, short_memory_is_reported);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
