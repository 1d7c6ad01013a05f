/* The network pass on the CPU: gradients against differences, both lowerings against each other, values and derivatives against the
 * network written down plainly, independence of the number of threads. All tests run in one process (CK_NOFORK): the pass uses
 * OpenMP. */
#include <omp.h>

#include "pass_outcome.h"

static const pn_lowering lowerings[] = {PN_LOWERING_TILED, PN_LOWERING_LAYERED};

/* ---- gradients ---------------------------------------------------------------------------------------------------------------- */

/* d loss/d theta . v by the central difference of order 4 with step h along the unit vector v. */
static double directional_difference(case_run *r, const double *parameters, const double *v, double h, double *moved) {
    static const struct { double step, factor; } stencil[] = {{1, 8}, {-1, -8}, {2, -1}, {-2, 1}};
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        for (size_t i = 0; i < r->network->parameters; i++) moved[i] = parameters[i] + stencil[k].step * h * v[i];
        sum += stencil[k].factor * case_evaluate(r, moved, NULL);
    }
    return sum / (12 * h);
}

/* Error of the difference: h^4 times the fifth derivative over 30, about 1e-12 of it at h = 1e-3, plus rounding, about
 * 1e-15 loss/h = 1e-12 loss; a random direction sees |gradient|/sqrt(parameters). 1e-7 leaves room for steep losses, and a wrong
 * term in any adjoint is of the order 1e-2. */
START_TEST(gradient_matches_differences) {
    const pass_case *problem = &problems[_i % PROBLEMS];
    case_run r;
    case_open(&r, problem, PN_FLOAT64, lowerings[_i / PROBLEMS]);
    const size_t n = r.network->parameters;
    double *theta = case_parameters(r.network), *gradient = pn_allocate(3 * n, sizeof *gradient), *v = gradient + n, *moved = v + n;
    const double loss = case_evaluate(&r, theta, gradient);
    ck_assert(isfinite(loss) && loss > 0);
    uint64_t state = 3;
    for (int direction = 0; direction < 20; direction++) {
        double exact = 0;
        for (size_t i = 0; i < n; i++) v[i] = case_random(&state);
        const double length = case_norm(v, n);
        for (size_t i = 0; i < n; i++) exact += gradient[i] * (v[i] /= length);
        const double difference = directional_difference(&r, theta, v, 1e-3, moved);
        const double typical = fmax(fabs(exact), case_norm(gradient, n) / sqrt((double)n));
        ck_assert_msg(fabs(exact - difference) < 1e-7 * typical, "%s, %s, direction %d: gradient %.15g, difference %.15g (typical %g)",
                      problem->name, pn_pass_lowering_name(r.pass), direction, exact, difference, typical);
    }
    pn_free(theta);
    pn_free(gradient);
    case_close(&r);
}
END_TEST

/* Both lowerings run the same programs over the same numbers; only the order of sums differs. */
START_TEST(lowerings_agree) {
    case_outcome one[2];
    for (int k = 0; k < 2; k++) one[k] = case_outcome_of(&problems[_i], PINN_EXECUTOR_CPU, PN_FLOAT64, lowerings[k], 1);
    case_check_agreement(&problems[_i], &one[0], &one[1], 1e-13);
}
END_TEST

/* float32 against float64: rounding of 6e-8 an operation, amplified by the cancellations of high derivatives. */
START_TEST(float32_agrees_with_float64) {
    case_outcome one[2];
    for (int k = 0; k < 2; k++)
        one[k] = case_outcome_of(&problems[_i], PINN_EXECUTOR_CPU, k ? PN_FLOAT32 : PN_FLOAT64, PN_LOWERING_AUTO, 1);
    case_check_agreement(&problems[_i], &one[0], &one[1], 1e-5);
}
END_TEST

/* In units 2^20 times as large, exactly, the same to rounding: in the residual's adjoint factors come in another order. */
START_TEST(units_do_not_change_results) {
    static const double lower[] = {-0x1p-20, 0}, upper[] = {0x1p-20, 2};
    static const pass_case plain = {"units of one", 2, {"x", "t"}, 1, 1, {"u"}, "tanh", 16, 3, 0, {{130, false, {"u_t + u*u_x - 0.25*u_xx"}}}};
    pass_case narrow = plain;
    narrow.set[0].residual[0] = "u_t + u*(9.5367431640625e-07*u_x) - 2.2737367544323206e-13*u_xx"; /* 2^-20, 2^-42 */
    narrow.lower = lower, narrow.upper = upper;
    case_outcome a = case_outcome_of(&plain, PINN_EXECUTOR_CPU, PN_FLOAT32, lowerings[_i], 1);
    case_outcome b = case_outcome_of(&narrow, PINN_EXECUTOR_CPU, PN_FLOAT32, lowerings[_i], 1);
    case_check_agreement(&narrow, &a, &b, 1e-6);
}
END_TEST

/* ---- against the plain network ------------------------------------------------------------------------------------------------ */

/* Mixed derivative of field 0 at x, one central difference of order 6 inside another. */
static double derivative(const pass_case *c, const pn_network *network, const double *theta, double *x, const int *coordinate, int order,
                         double h) {
    if (!order) {
        double u[3];
        case_network(c, network, theta, x, u);
        return u[0];
    }
    static const double factor[] = {45.0, -9.0, 1.0}; /* /60: f(x+kh) - f(x-kh), k = 1, 2, 3 */
    const double home = x[*coordinate];
    double sum = 0;
    for (int k = 1; k <= 3; k++)
        for (int sign = -1; sign <= 1; sign += 2) {
            x[*coordinate] = home + sign * k * h;
            sum += sign * factor[k - 1] * derivative(c, network, theta, x, coordinate + 1, order - 1, h);
        }
    x[*coordinate] = home;
    return sum / (60 * h);
}

static const struct jet_case {
    const char *residual;
    int order, coordinate[4];
} jets[] = {{"u", 0, {0}},      {"u_x", 1, {0}},       {"u_t", 1, {1}},       {"u_xx", 2, {0, 0}},
            {"u_xt", 2, {0, 1}}, {"u_xxt", 3, {0, 0, 1}}, {"u_xxxx", 4, {0, 0, 0, 0}}, {"u_xxtt", 4, {0, 0, 1, 1}}};
enum { JETS = sizeof jets / sizeof jets[0] };
static const char *const activations[] = {"tanh", "sin", "silu", "gelu", "softplus"};

/* With one point, one residual and weight 1 the loss is the square of the channel. The difference is of order 6 with h = 0.02:
 * truncation h^6/140 = 5e-13 of the seventh derivative, rounding 1e-16/h^4 = 1e-9 at order 4. Fourier features bring frequencies w up
 * to about 30: h = 0.003 keeps (w h)^6/140 and rounding, 1e-6 of derivatives of order 4 that exceed 10, small. */
START_TEST(jets_match_differences) {
    const struct jet_case *jet = &jets[_i % JETS];
    const pass_case problem = {jet->residual, 2, {"x", "t"}, 1, 1, {"u"}, activations[_i / JETS % 5], 7, 2, _i / JETS / 5 ? 4 : 0,
                               {{1, false, {jet->residual}}}};
    const double h = problem.fourier ? 3e-3 : 2e-2;
    case_run r;
    case_open(&r, &problem, PN_FLOAT64, PN_LOWERING_AUTO);
    double *theta = case_parameters(r.network), x[2] = {r.points[0], r.points[1]};
    const double value = sqrt(case_evaluate(&r, theta, NULL));
    const double difference = fabs(derivative(&problem, r.network, theta, x, jet->coordinate, jet->order, h));
    const double tolerance = jet->order ? 1e-6 : 1e-14;
    ck_assert_msg(fabs(value - difference) <= tolerance * fmax(1, difference), "%s of %s: %.12g, difference %.12g", jet->residual,
                  problem.activation, value, difference);
    pn_free(theta);
    case_close(&r);
}
END_TEST

/* The loss itself, weights and means and all, where no derivative is needed. */
START_TEST(value_loss_matches) {
    const pass_case problem = {"values", 2, {"x", "t"}, 1, 2, {"u", "w"}, "tanh", 11, 3, 0,
                               {{300, false, {"u - x*t", "w + 1"}}, {7, false, {"u*w"}}}};
    for (int k = 0; k < 2; k++) {
        case_run r;
        case_open(&r, &problem, PN_FLOAT64, lowerings[k]);
        double *theta = case_parameters(r.network), expected = 0;
        for (size_t s = 0; s < r.sets; s++)
            for (size_t p = 0; p < r.set[s].points; p++) {
                const double *column = r.points + r.set[s].point_offset, x[2] = {column[p], column[r.set[s].points + p]};
                double u[2];
                case_network(&problem, r.network, theta, x, u);
                const double residual[2][2] = {{u[0] - x[0] * x[1], u[1] + 1}, {u[0] * u[1], 0}};
                for (size_t i = 0; i < r.set[s].residuals; i++)
                    expected += r.weight[r.set[s].first_term + i] * residual[s][i] * residual[s][i] / (double)r.set[s].points;
            }
        const double loss = case_evaluate(&r, theta, NULL);
        ck_assert_msg(fabs(loss - expected) <= 1e-13 * expected, "loss %.17g, expected %.17g", loss, expected);
        pn_free(theta);
        case_close(&r);
    }
}
END_TEST

START_TEST(evaluation_matches) {
    case_check_evaluation(&problems[_i % PROBLEMS], PINN_EXECUTOR_CPU, lowerings[_i / PROBLEMS], 1e-13);
}
END_TEST

/* ---- order of sums ------------------------------------------------------------------------------------------------------------ */

START_TEST(threads_do_not_change_bits) {
    const int saved = omp_get_max_threads();
    case_outcome one[2];
    for (int k = 0; k < 2; k++) {
        omp_set_num_threads(k + 1);
        one[k] = case_outcome_of(&problems[8], PINN_EXECUTOR_CPU, PN_FLOAT32, PN_LOWERING_TILED, 3);
        ck_assert_uint_gt(one[k].cost.tile_groups, 4);
    }
    omp_set_num_threads(saved);
    case_check_equal(&one[0], &one[1]);
}
END_TEST

/* ---- refusals and memory ------------------------------------------------------------------------------------------------------ */

START_TEST(refusals) {
    case_run r;
    case_open(&r, &problems[0], PN_FLOAT32, PN_LOWERING_AUTO);
    ck_assert_str_eq(pn_pass_lowering_name(r.pass), "tiled");
    pn_pass_spec spec = {.context = r.context, .real = PN_FLOAT32, .network = r.network, .scope = r.scope, .ir = r.ir, .set = r.set,
                         .sets = r.sets, .terms = r.terms, .parameters = r.parameter_plane, .points = r.point_plane, .scale = r.scale_plane};
    pn_pass *pass = NULL;
    spec.tf32 = true;
    ck_assert_int_eq(pn_pass_create(&spec, &pass), PINN_UNSUPPORTED);
    spec.tf32 = false;
    spec.terms = r.terms - 1;
    ck_assert_int_eq(pn_pass_create(&spec, &pass), PINN_BAD_ARGUMENT);
    spec.terms = r.terms;
    spec.points = r.scale_plane;
    ck_assert_int_eq(pn_pass_create(&spec, &pass), PINN_BAD_ARGUMENT);
    ck_assert_ptr_null(pass);
    case_close(&r);
}
END_TEST

/* Every allocation of a creation fails once: a clean status each time, and leaks are for the sanitizer to find. */
START_TEST(creation_survives_lack_of_memory) {
    case_run r;
    case_open(&r, &problems[_i % 2 ? 5 : 6], PN_FLOAT32, PN_LOWERING_AUTO);
    pn_pass_spec spec = {.context = r.context, .real = PN_FLOAT32, .lowering = lowerings[_i / 2], .network = r.network, .scope = r.scope,
                         .ir = r.ir, .set = r.set, .sets = r.sets, .terms = r.terms, .parameters = r.parameter_plane,
                         .points = r.point_plane, .scale = r.scale_plane};
    pinn_status status = PINN_NO_MEMORY;
    long n = 0;
    for (; status != PINN_OK; n++) {
        pn_pass *pass = NULL;
        ck_assert_int_lt(n, 100000);
        pn_memory_fail_after(n);
        status = pn_pass_create(&spec, &pass);
        pn_memory_fail_after(-1);
        ck_assert_msg(status == PINN_OK || status == PINN_NO_MEMORY || status == PINN_REFUSED, "allocation %ld: %s", n, pinn_error_message());
        ck_assert(!pass == (status != PINN_OK));
        pn_pass_destroy(pass);
        if (status != PINN_OK && pn_ir_check(r.ir) != PINN_OK) { /* the caller's IR has lost a node: start over with a new one */
            case_close(&r);
            case_open(&r, &problems[_i % 2 ? 5 : 6], PN_FLOAT32, PN_LOWERING_AUTO);
            spec.context = r.context, spec.network = r.network, spec.scope = r.scope, spec.ir = r.ir, spec.set = r.set;
            spec.parameters = r.parameter_plane, spec.points = r.point_plane, spec.scale = r.scale_plane;
        }
    }
    ck_assert_int_gt(n, 20);
    case_close(&r);
}
END_TEST

START_TEST(cost_counts) {
    case_run r;
    case_open(&r, &problems[6], PN_FLOAT64, PN_LOWERING_LAYERED); /* 1-5x1-1: one point with {u, u_x, u_xx}, one with {u, u_x} */
    pn_pass_cost cost;
    pn_pass_get_cost(r.pass, &cost);
    ck_assert_uint_eq(cost.rows, 5);
    ck_assert_double_eq(cost.product_operations, 3.0 * 2 * 5 * 5 * 1); /* forward, weight, input: 2 rows in out */
    ck_assert(cost.pointwise_operations > 0 && cost.bytes > 0 && cost.workspace_bytes > 0 && cost.partial_bytes > 0);
    ck_assert_uint_eq(cost.tile_groups, 0);
    case_close(&r);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("network pass");
    TCase *tests = tcase_create("cpu");
    tcase_add_loop_test(tests, gradient_matches_differences, 0, 2 * PROBLEMS);
    tcase_add_loop_test(tests, lowerings_agree, 0, PROBLEMS);
    tcase_add_loop_test(tests, float32_agrees_with_float64, 0, PROBLEMS);
    tcase_add_loop_test(tests, units_do_not_change_results, 0, 2);
    tcase_add_loop_test(tests, jets_match_differences, 0, 2 * 5 * JETS);
    tcase_add_test(tests, value_loss_matches);
    tcase_add_loop_test(tests, evaluation_matches, 0, 2 * PROBLEMS);
    tcase_add_test(tests, threads_do_not_change_bits);
    tcase_add_test(tests, refusals);
    tcase_add_loop_test(tests, creation_survives_lack_of_memory, 0, 4);
    tcase_add_test(tests, cost_counts);
    suite_add_tcase(suite, tests);
    return suite_run_nofork(suite);
}
