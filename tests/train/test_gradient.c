/* The gradient of the whole loss, for every config of configs/ and configs/bench/, in float64: along random directions against
 * fourth-order central differences of the loss,
 *     dL/de ~ (8 (L(e) - L(-e)) - (L(2e) - L(-2e))) / (12 e),   truncation O(e^4), rounding ~ 1e-16 L / e.
 * Points are those of step 0 each time: the step word is put back before every evaluation. */
#include "gradient_tools.h"

enum { DIRECTIONS = 20 };

/* Few points: the check is of the formulas, and every formula is the same at any point count. */
static const gradient_options small = {.device = "cpu", .precision = "float64", .most = 33};

static double loss_at(pinn_training *training, const double *parameters) {
    pn_words words = {0};
    must(pinn_plane_write(training->words, 0, &words, sizeof words));
    must(pinn_plane_write(training->parameter, 0, parameters, training->network->parameters * sizeof *parameters));
    must(pinn_graph_launch(training->chunk_graph, 1)); /* of one step: no run has begun */
    must(pinn_plane_read(training->words, 0, &words, sizeof words));
    return words.loss;
}

static void check_config(const char *path) {
    pinn_training *training = gradient_create(path, &small);
    size_t n;
    double *parameter = gradient_parameters(training, &n), *gradient = malloc(n * sizeof *gradient), *direction = malloc(n * sizeof *direction),
           *moved = malloc(n * sizeof *moved);
    uint64_t random = 54321;
    loss_at(training, parameter);
    must(pinn_plane_read(pn_step_gradient(training->machinery.step), 0, gradient, n * sizeof *gradient));
    for (int d = 0; d < DIRECTIONS; d++) {
        double norm = 0, product = 0, value[4];
        for (size_t i = 0; i < n; i++) {
            direction[i] = gradient_random(&random);
            norm += direction[i] * direction[i];
        }
        for (size_t i = 0; i < n; i++) product += gradient[i] * (direction[i] /= sqrt(norm));
        const double e = 1e-3, at[4] = {e, -e, 2 * e, -2 * e};
        for (int k = 0; k < 4; k++) {
            for (size_t i = 0; i < n; i++) moved[i] = parameter[i] + at[k] * direction[i];
            value[k] = loss_at(training, moved);
        }
        double slope = (8 * (value[0] - value[1]) - (value[2] - value[3])) / (12 * e);
        double length = 0;
        for (size_t i = 0; i < n; i++) length += gradient[i] * gradient[i];
        /* Relative to the slope, or to a typical slope |gradient|/sqrt(n) where this direction happens to be nearly level. */
        double scale = fmax(fabs(slope), sqrt(length / (double)n));
        ck_assert_msg(fabs(slope - product) < 1e-7 * scale, "%s, direction %d: differences give %.15g, the gradient %.15g (relative %.2g)", path,
                      d, slope, product, fabs(slope - product) / scale);
    }
    free(parameter);
    free(gradient);
    free(direction);
    free(moved);
    pinn_training_destroy(training);
}

START_TEST(gradient_of_every_config) { gradient_every_config(check_config); }
END_TEST

int main(void) {
    Suite *suite = suite_create("gradient");
    TCase *group = tcase_create("configs");
    tcase_set_timeout(group, 500);
    tcase_add_test(group, gradient_of_every_config);
    suite_add_tcase(suite, group);
    return suite_run_nofork(suite);
}
