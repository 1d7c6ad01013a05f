/* Networks: shape and names of the parameter vector, initial values, errors that say what is possible. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "network/network.h"
#include "suite.h"

static const double lower[] = {0, -1}, upper[] = {2, 1};
static pn_network_spec burgers(void) { return (pn_network_spec){"mlp", "tanh", 2, 1, 64, 4, lower, upper, 0, 0, 1}; }

START_TEST(parameter_vector) {
    const pn_network_spec spec = burgers();
    pn_network *network = NULL;
    ck_assert_int_eq(pn_network_create(&spec, &network), PINN_OK);
    ck_assert_uint_eq(network->parameters, 2 * 64 + 64 + 3 * (64 * 64 + 64) + 64 + 1);
    ck_assert_uint_eq(network->layers, 1 + 2 * 3 + 1);
    ck_assert_uint_eq(network->parameter_blocks, 10);
    ck_assert_str_eq(network->parameter[0].name, "layer1/weight");
    ck_assert_str_eq(network->parameter[9].name, "layer5/bias");
    ck_assert_uint_eq(network->output_bias, network->parameters - 1);
    size_t end = 0;
    for (size_t b = 0; b < network->parameter_blocks; b++) {
        ck_assert_uint_eq(network->parameter[b].offset, end);
        end += network->parameter[b].rows * (network->parameter[b].columns ? network->parameter[b].columns : 1);
    }
    ck_assert_uint_eq(end, network->parameters);
    for (size_t l = 0; l < network->layers; l++) ck_assert_int_eq(network->layer[l].kind, l % 2 ? PN_LAYER_LINEAR : PN_LAYER_POINTWISE);
    pn_network_destroy(network);
}
END_TEST

/* Of jets: what makes the slope 2/width, with Fourier features times 2 pi scale, about 1; none where it is between 1/4 and 4. */
START_TEST(units_follow_the_domain) {
    static const double low[] = {0, -1, 0, 0}, high[] = {2e-6, 1, 0.5, 3e9};
    pn_network_spec spec = {"mlp", "tanh", 4, 1, 8, 2, low, high, 0, 0, 1};
    pn_network *network = NULL;
    ck_assert_int_eq(pn_network_create(&spec, &network), PINN_OK);
    const double unit[] = {0x1p-19, 1, 0.25, 0x1p30};
    for (int i = 0; i < 4; i++) ck_assert_double_eq(network->unit[i], unit[i]);
    pn_network_destroy(network);
    spec.fourier_features = 3, spec.fourier_scale = 10; /* 2 pi 10 = 62.8 */
    ck_assert_int_eq(pn_network_create(&spec, &network), PINN_OK);
    ck_assert_double_eq(network->unit[1], 0x1p-5);
    pn_network_destroy(network);
}
END_TEST

/* U(-r, r) has mean 0 and variance r^2/3; over 4096 numbers the sample mean strays by r/sqrt(3*4096) = 0.009 r, so 0.05 r is
 * five standard deviations, and the sample variance by about 1.4 %. */
START_TEST(glorot_uniform) {
    const pn_network_spec spec = burgers();
    pn_network *network = NULL;
    ck_assert_int_eq(pn_network_create(&spec, &network), PINN_OK);
    double *a = pn_allocate(2 * network->parameters, sizeof *a), *b = a + network->parameters;
    pn_network_initialise(network, 1, a);
    const pn_parameter *block = &network->parameter[2];
    const double range = sqrt(6.0 / 128.0), count = 4096;
    double mean = 0, square = 0;
    for (size_t i = 0; i < 4096; i++) {
        const double w = a[block->offset + i];
        ck_assert(fabs(w) <= range);
        mean += w / count;
        square += w * w / count;
    }
    ck_assert(fabs(mean) < 0.05 * range);
    ck_assert(fabs(square / (range * range / 3) - 1) < 0.07);
    for (size_t i = 0; i < 64; i++) ck_assert(a[network->parameter[3].offset + i] == 0.0);
    pn_network_initialise(network, 1, b);
    ck_assert_mem_eq(a, b, network->parameters * sizeof *a);
    pn_network_initialise(network, 2, b);
    ck_assert(a[0] != b[0] && a[0] != a[1] && a[0] != a[network->parameter[2].offset]);
    pn_free(a);
    pn_network_destroy(network);
}
END_TEST

/* 2000 normal numbers: the sample variance strays by sqrt(2/2000) = 3.2 %, the mean by 2.2 % of the deviation. */
START_TEST(fourier_matrix) {
    pn_network_spec spec = burgers();
    spec.fourier_features = 1000;
    spec.fourier_scale = 3.0;
    pn_network *network = NULL;
    ck_assert_int_eq(pn_network_create(&spec, &network), PINN_OK);
    ck_assert_uint_eq(network->fixed_count, 2000);
    ck_assert_uint_eq(network->layer[0].out, 2000);
    ck_assert_uint_eq(network->parameters, 2000 * 64 + 64 + 3 * (64 * 64 + 64) + 64 + 1);
    double mean = 0, square = 0;
    for (size_t i = 0; i < 2000; i++) {
        mean += network->fixed[i] / 2000;
        square += network->fixed[i] * network->fixed[i] / 2000;
    }
    ck_assert(fabs(mean) < 0.11 * 3.0);
    ck_assert(fabs(square / 9.0 - 1) < 0.16);
    pn_network_destroy(network);
}
END_TEST

START_TEST(errors_name_what_is_known) {
    pn_network *network = NULL;
    pn_network_spec spec = burgers();
    spec.kind = "mpl";
    ck_assert_int_eq(pn_network_create(&spec, &network), PINN_CONFIG);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "mlp"));
    spec = burgers();
    spec.activation = "tahn";
    ck_assert_int_eq(pn_network_create(&spec, &network), PINN_CONFIG);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "tanh"));
    spec = burgers();
    spec.width = 0;
    ck_assert_int_eq(pn_network_create(&spec, &network), PINN_BAD_ARGUMENT);
    spec = burgers();
    spec.lower = upper;
    ck_assert_int_eq(pn_network_create(&spec, &network), PINN_BAD_ARGUMENT);
    ck_assert_ptr_null(network);
}
END_TEST

START_TEST(creation_survives_lack_of_memory) {
    pn_network_spec spec = burgers();
    spec.fourier_features = 8;
    pinn_status status = PINN_NO_MEMORY;
    for (long n = 0; status != PINN_OK; n++) {
        pn_network *network = NULL;
        ck_assert_int_lt(n, 1000);
        pn_memory_fail_after(n);
        status = pn_network_create(&spec, &network);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK || status == PINN_NO_MEMORY);
        pn_network_destroy(network);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("network");
    TCase *tests = tcase_create("network");
    tcase_add_test(tests, parameter_vector);
    tcase_add_test(tests, units_follow_the_domain);
    tcase_add_test(tests, glorot_uniform);
    tcase_add_test(tests, fourier_matrix);
    tcase_add_test(tests, errors_name_what_is_known);
    tcase_add_test(tests, creation_survives_lack_of_memory);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
