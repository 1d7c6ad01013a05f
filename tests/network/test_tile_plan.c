/* Which tiles fit a GPU and which are promising: sizes only, so no GPU is needed. */
#include "network/stream.h"
#include "network/tile.h"

#include "pass_problems.h"

static const pass_case burgers = {"burgers", 2, {"x", "t"}, 1, 1, {"u"}, "tanh", 64, 3, 0,
                                  {{4000, false, {"u_t + u*u_x - 0.01*u_xx"}}, {200, false, {"u"}}}};
static const pass_case shallow = {"shallow", 1, {"x"}, -1, 1, {"u"}, "tanh", 16, 1, 0, {{100, false, {"u_x - 1"}}}};
static const pass_case narrow = {"narrow", 1, {"x"}, -1, 1, {"u"}, "tanh", 16, 2, 0, {{100, false, {"u_x - 1"}}}};
static const pn_device_limits h200 = {227 * 1024, 132};

static case_run r;

static void open_case(const pass_case *problem) { case_open(&r, problem, PN_FLOAT32, PN_LOWERING_TILED); }

START_TEST(candidates_are_sorted_and_fit) {
    enum { MOST = 12 };
    pn_tile_candidate best[MOST], one;
    pn_tile_plan plan = {0}, again = {0};
    open_case(&burgers);
    MUST(pn_tile_plan_create(r.pass, &h200, NULL, &plan));
    const pn_tile_choice automatic = plan.choice;
    ck_assert_uint_eq(pn_tile_candidates(r.pass, &h200, &plan, best, MOST), MOST);
    ck_assert_uint_eq(pn_tile_candidates(r.pass, &h200, &plan, &one, 1), 1);
    char a[PN_TILE_CHOICE_BYTES], b[PN_TILE_CHOICE_BYTES];
    pn_tile_choice_print(&automatic, a);
    pn_tile_choice_print(&best[0].choice, b);
    ck_assert_str_eq(a, b); /* the first is what "auto" takes ... */
    pn_tile_choice_print(&one.choice, a);
    ck_assert_str_eq(a, b); /* ... however many are asked for */
    for (size_t i = 0; i < MOST; i++) {
        ck_assert(best[i].time > 0 && (i == 0 || best[i].time >= best[i - 1].time));
        MUST(pn_tile_plan_create(r.pass, &h200, &best[i].choice, &again));
        ck_assert_uint_le(again.shared_bytes, h200.shared_bytes);
        pn_tile_plan_free(&again);
        pn_tile_choice_print(&best[i].choice, a);
        for (size_t k = 0; k < i; k++) {
            pn_tile_choice_print(&best[k].choice, b);
            ck_assert_str_ne(a, b);
        }
    }
    pn_tile_plan_free(&plan);
    case_close(&r);
}
END_TEST

static const pass_case mixed = {"mixed", 2, {"x", "t"}, 1, 1, {"u"}, "tanh", 64, 3, 0, /* 4 and 3 channels */
                                {{4000, false, {"u_t - u_xx"}}, {200, false, {"u_xx"}}}};
static const pass_case slope = {"slope", 1, {"x"}, -1, 1, {"u"}, "tanh", 64, 3, 0, {{100, false, {"u_x - 1"}}}}; /* 2 channels */
static const pass_case third = {"third", 2, {"x", "t"}, 1, 1, {"u"}, "tanh", 64, 3, 0, /* 10 and 9 channels */
                                {{4000, false, {"u_xxx + u_xxt + u_xtt + u_ttt"}}, {200, false, {"u_xxx + u_xxt + u_xtt"}}}};

/* One for each rule, in their order. */
static const struct {
    const pass_case *problem;
    pn_real real;
    pn_tile_choice choice;
    size_t shared_bytes;
    const char *reason;
} misfits[] = {{&burgers, PN_FLOAT32, {24, 8, true, true}, 227 * 1024, "units times splits is at most 24, not 192"},
               {&burgers, PN_FLOAT32, {999, 999, true, true}, 227 * 1024, "at most 24"},
               {&burgers, PN_FLOAT32, {1, 9, true, true}, 227 * 1024, "at most 8 splits, not 9"},
               {&burgers, PN_FLOAT32, {5, 3, true, true}, 227 * 1024, "8 tiles of 8 columns cannot be shared evenly by 3 splits"},
               {&burgers, PN_FLOAT64, {4, 1, true, true}, 227 * 1024, "a thread's sums have at most 96 registers, not 128"},
               {&third, PN_FLOAT64, {2, 4, true, true}, 227 * 1024, "a thread has at most 255 registers, not 288"},
               {&burgers, PN_FLOAT32, {24, 1, true, true}, 227 * 1024, "quarter of a multiprocessor have at most 512 registers a lane"},
               {&mixed, PN_FLOAT32, {1, 8, false, false}, 227 * 1024, "a tile has 32 rows, and the smallest part of a point set with fewer channels has 48"},
               {&third, PN_FLOAT32, {2, 8, false, false}, 227 * 1024, "for a point set with 9 channels no number of splits"},
               {&burgers, PN_FLOAT32, {5, 2, true, true}, 48 * 1024, "the device has 49152 bytes of shared memory"}};

/* Shared memory that is left keeps what the layers multiplied by for the way back: one array more each time one fits. */
START_TEST(room_keeps_operands) {
    const pn_tile_choice two = {5, 2, false, true}, in_registers = {5, 1, false, true};
    pn_tile_plan plan = {0};
    size_t operands = 0, array = 0, fitted = 0;
    open_case(&burgers);
    for (size_t bytes = 64 * 1024; bytes <= h200.shared_bytes; bytes += 1024) {
        const pn_device_limits limits = {bytes, h200.processors};
        if (pn_tile_plan_create(r.pass, &limits, &two, &plan) != PINN_OK) continue;
        ck_assert_uint_le(plan.shared_bytes, bytes);
        array = plan.rows * plan.stride * 4; /* two halves */
        ck_assert(plan.operands == operands || plan.operands == operands + 1);
        ck_assert(plan.operands == plan.net.hidden || plan.shared_bytes + array > bytes);
        operands = plan.operands;
        fitted++;
        pn_tile_plan_free(&plan);
    }
    ck_assert(fitted > 2 && operands > 1);
    MUST(pn_tile_plan_create(r.pass, &h200, &in_registers, &plan));
    ck_assert_uint_eq(plan.operands, 1);
    pn_tile_plan_free(&plan);
    case_close(&r);
}
END_TEST

/* Where not all weights are in shared memory there are those of two layers if they need no scale and there is room. */
START_TEST(room_fetches_weights_meanwhile) {
    static const struct {
        pn_real real;
        pn_tile_choice choice;
        size_t kib;
        unsigned slots;
    } known[] = {{PN_FLOAT64, {1, 8, false, false}, 227, 2}, {PN_FLOAT64, {1, 8, false, false}, 80, 1},
                 {PN_FLOAT64, {1, 8, false, true}, 227, 1},  {PN_FLOAT32, {1, 8, false, false}, 227, 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const pn_device_limits limits = {known[i].kib * 1024, h200.processors};
        pn_tile_plan plan = {0};
        case_open(&r, &slope, known[i].real, PN_LOWERING_TILED);
        MUST(pn_tile_plan_create(r.pass, &limits, &known[i].choice, &plan));
        ck_assert_uint_eq(plan.weight_slots, known[i].slots);
        ck_assert_uint_le(plan.shared_bytes, limits.shared_bytes);
        pn_tile_plan_free(&plan);
        case_close(&r);
    }
}
END_TEST

/* What test_pass_cuda runs. */
START_TEST(given_tiles_fit) {
    const pass_case problem = tile_case(&tile_runs[_i % TILE_RUNS]);
    const bool wide = tile_runs[_i % TILE_RUNS].problem == &wide_layers;
    pn_tile_choice choice;
    pn_tile_plan plan = {0};
    case_open(&r, &problem, _i < TILE_RUNS ? PN_FLOAT64 : PN_FLOAT32, PN_LOWERING_TILED);
    MUST(pn_tile_choice_parse(problem.tiles, &choice));
    MUST(pn_tile_plan_create(r.pass, &h200, &choice, &plan));
    ck_assert_uint_eq(plan.weight_slots, _i < TILE_RUNS && !wide && plan.net.hidden > 1 ? 2 : 1);
    ck_assert_uint_gt(plan.tiles, wide || problem.width == 6 ? plan.blocks : 0);
    pn_tile_plan_free(&plan);
    case_close(&r);
}
END_TEST

START_TEST(what_does_not_fit_says_why) {
    const pn_device_limits limits = {misfits[_i].shared_bytes, 132};
    pn_tile_plan plan = {0};
    case_open(&r, misfits[_i].problem, misfits[_i].real, PN_LOWERING_TILED);
    ck_assert_int_eq(pn_tile_plan_create(r.pass, &limits, &misfits[_i].choice, &plan), PINN_UNSUPPORTED);
    ck_assert_msg(strstr(pinn_error_message(), misfits[_i].reason) && strstr(pinn_error_message(), "tiles of units "), "%s", pinn_error_message());
    ck_assert_ptr_null(plan.group);
    case_close(&r);
}
END_TEST

static const struct {
    const char *tiles, *reason;
} streamed_misfits[] = {{"rows 64, warps 16, blocks 2", "rows 64, warps 16, blocks 2: there is no such combination"},
                        {"rows 64, warps 16, blocks 2", "\"warps 8, blocks 1\", \"warps 16, blocks 1\" and \"warps 8, blocks 2\""},
                        {"rows 64, warps 4, blocks 1", "no such combination"},
                        {"rows 300", "tiles of rows 300 don't fit: a tile has 16 to 256 rows"},
                        {"units 5, splits 2, keep shared, weights all", "as \"rows 128\", not as \"units 5, splits 2, keep shared, weights all\""}};

START_TEST(what_is_not_streamed_says_why) {
    pn_stream_plan plan = {0};
    open_case(&narrow);
    ck_assert_int_eq(pn_stream_plan_create(r.pass, &h200, streamed_misfits[_i].tiles, &plan), PINN_UNSUPPORTED);
    ck_assert_msg(strstr(pinn_error_message(), streamed_misfits[_i].reason) != NULL, "%s", pinn_error_message());
    MUST(pn_stream_plan_create(r.pass, &h200, "rows 64, warps 8, blocks 2", &plan));
    pn_stream_plan_free(&plan);
    case_close(&r);
}
END_TEST

/* It keeps A and dZ of all points: from AUTO the tiled pass, which does not, then takes over. */
START_TEST(a_device_too_small_is_not_streamed_on) {
    pn_device_limits limits = h200;
    pn_stream_plan plan = {0};
    open_case(&narrow);
    MUST(pn_stream_plan_create(r.pass, &limits, NULL, &plan));
    limits.memory = plan.work_bytes;
    pn_stream_plan_free(&plan);
    MUST(pn_stream_plan_create(r.pass, &limits, NULL, &plan));
    pn_stream_plan_free(&plan);
    limits.memory--;
    ck_assert_int_eq(pn_stream_plan_create(r.pass, &limits, NULL, &plan), PINN_UNSUPPORTED);
    ck_assert_msg(strstr(pinn_error_message(), "the device has") != NULL, "%s", pinn_error_message());
    case_close(&r);
}
END_TEST

START_TEST(no_tiles_for_some_networks) {
    const pn_tile_choice choice = {1, 1, true, true};
    pn_tile_plan plan = {0};
    open_case(&shallow);
    ck_assert_int_eq(pn_tile_plan_create(r.pass, &h200, NULL, &plan), PINN_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "one hidden layer"));
    ck_assert_int_eq(pn_tile_plan_create(r.pass, &h200, &choice, &plan), PINN_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "one hidden layer"));
    case_close(&r);
}
END_TEST

START_TEST(limits_of_architectures) {
    static const struct {
        const char *name;
        size_t kib;
    } known[] = {{"sm_80", 163}, {"sm_86", 99}, {"sm_87", 163}, {"sm_88", 99}, {"sm_89", 99}, {"sm_90", 227}, {"compute_90", 227},
                 {"sm_100", 227}, {"sm_120", 99}, {"sm_999", 99}, {"nonsense", 99}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        ck_assert_uint_eq(pn_limits_of(known[i].name).shared_bytes, known[i].kib * 1024);
        ck_assert_uint_gt(pn_limits_of(known[i].name).processors, 0);
    }
}
END_TEST

/* All that NVRTC compiles for; none in a build without CUDA. */
START_TEST(limits_of_every_supported_architecture) {
    for (unsigned number = 80; number < 1000; number++) {
        char name[16];
        snprintf(name, sizeof name, "sm_%u", number);
        ck_assert_msg(pn_limits_known(name) || pn_architecture_check(name) != PINN_OK, "%s", name);
    }
    ck_assert(!pn_limits_known("sm_999") && !pn_limits_known("nonsense"));
}
END_TEST

START_TEST(a_cpu_pass_has_no_tilings) {
    pn_pass_tiling tiling[2];
    size_t count = 7;
    open_case(&burgers);
    MUST(pn_pass_tilings(r.pass, tiling, 2, &count));
    ck_assert_uint_eq(count, 0);
    case_close(&r);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tile plan");
    TCase *tests = tcase_create("plan");
    tcase_add_test(tests, candidates_are_sorted_and_fit);
    tcase_add_test(tests, room_keeps_operands);
    tcase_add_test(tests, room_fetches_weights_meanwhile);
    tcase_add_loop_test(tests, given_tiles_fit, 0, 2 * TILE_RUNS);
    tcase_add_loop_test(tests, what_does_not_fit_says_why, 0, sizeof misfits / sizeof *misfits);
    tcase_add_loop_test(tests, what_is_not_streamed_says_why, 0, sizeof streamed_misfits / sizeof *streamed_misfits);
    tcase_add_test(tests, a_device_too_small_is_not_streamed_on);
    tcase_add_test(tests, no_tiles_for_some_networks);
    tcase_add_test(tests, limits_of_architectures);
    tcase_add_test(tests, limits_of_every_supported_architecture);
    tcase_add_test(tests, a_cpu_pass_has_no_tilings);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
