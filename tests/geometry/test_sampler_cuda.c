/* Points on the GPU are the CPU's, to the bit, through a replayed graph and through the eager executor. */
#include "drawing.h"

static const uint64_t steps[] = {0, 1, 0xfffffffe00000003u};

START_TEST(same_bits) {
    drawing d = mixed_drawing(PINN_EXECUTOR_CPU, _i % 2 ? PN_FLOAT64 : PN_FLOAT32, steps[_i / 2 % 3], _i < 6);
    void *cpu = draw(&d);
    for (int e = 0; e < 2; e++) {
        d.executor = e ? PINN_EXECUTOR_EAGER : PINN_EXECUTOR_GRAPH;
        void *device = draw(&d);
        ck_assert_mem_eq(cpu, device, MIXED_ELEMENTS * pn_real_bytes(d.real));
        free(device);
    }
    free(cpu);
}
END_TEST

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    Suite *suite = suite_create("sampler on the GPU");
    TCase *tests = tcase_create("sampler");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, same_bits, 0, 12);
    suite_add_tcase(suite, tests);
    return suite_run_nofork(suite);
}
