/* Layouts of jets: closed downward and in one order, their units, how their channels are printed. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "channels.h"
#include "suite.h"

static const char *const names[] = {"x", "y", "z"};

static void check_layout(const pn_layout *layout, const char *expected) {
    pn_text text = {0};
    for (size_t c = 0; c < layout->count; c++) {
        pn_channel_print(layout, &layout->channel[c], "u", names, -1, &text);
        pn_text_string(&text, " ");
        ck_assert_int_eq(pn_layout_find(layout, &layout->channel[c]), (int)c);
    }
    ck_assert_str_eq(pn_text_get(&text), expected);
    pn_text_free(&text);
}

START_TEST(layouts_are_closed_downward) {
    pn_layout layout, other;
    const double a[] = {1, 0, 2};
    ck_assert_int_eq(pn_layout_create(3, NULL, 0, NULL, &layout), PINN_OK);
    check_layout(&layout, "u ");
    pn_layout_free(&layout);

    const pn_channel third[] = {channel("xxz"), channel("y"), channel("y")};
    ck_assert_int_eq(pn_layout_create(3, third, 3, NULL, &layout), PINN_OK);
    check_layout(&layout, "u u_x u_y u_z u_xx u_xz u_xxz ");
    const pn_channel absent = channel("yy");
    ck_assert_int_eq(pn_layout_find(&layout, &absent), -1);
    ck_assert_int_eq(pn_layout_find(&layout, &laplacian_channel), -1);

    const pn_channel again[] = {channel("y"), channel("zxx"), channel("xx")}; /* another order of asking, unsorted coordinates */
    ck_assert_int_eq(pn_layout_create(3, again, 3, NULL, &other), PINN_OK);
    ck_assert(pn_layout_equal(&layout, &other));
    pn_layout_free(&other);

    const pn_channel sum[] = {laplacian_channel, channel("xy")};
    ck_assert_int_eq(pn_layout_create(3, sum, 2, a, &other), PINN_OK);
    check_layout(&other, "u u_x u_y u_z u_xy u_xx + 2*u_zz ");
    ck_assert(!pn_layout_equal(&layout, &other));
    pn_layout_free(&other);
    ck_assert_int_eq(pn_layout_create(3, sum, 1, a, &other), PINN_OK);
    check_layout(&other, "u u_x u_z u_xx + 2*u_zz ");
    pn_layout_free(&other);
    pn_layout_free(&layout);
    ck_assert_ptr_null(layout.channel);
}
END_TEST

START_TEST(bad_layouts_are_refused) {
    pn_layout layout = {.count = 77};
    pn_channel want = channel("xy");
    const double zero[] = {0, 0}, bad[] = {1, (double)NAN};
    ck_assert_int_eq(pn_layout_create(1, &want, 1, NULL, &layout), PINN_BAD_ARGUMENT); /* y is no coordinate */
    want.order = PN_MAX_ORDER + 1;
    ck_assert_int_eq(pn_layout_create(2, &want, 1, NULL, &layout), PINN_BAD_ARGUMENT);
    ck_assert_int_eq(pn_layout_create(2, &laplacian_channel, 1, NULL, &layout), PINN_BAD_ARGUMENT);
    ck_assert_int_eq(pn_layout_create(2, &laplacian_channel, 1, zero, &layout), PINN_BAD_ARGUMENT);
    ck_assert_int_eq(pn_layout_create(2, &laplacian_channel, 1, bad, &layout), PINN_BAD_ARGUMENT);
    ck_assert_int_eq(pn_layout_create(PN_MAX_COORDINATES + 1, NULL, 0, NULL, &layout), PINN_BAD_ARGUMENT);
    ck_assert_uint_eq(layout.count, 77);
}
END_TEST

START_TEST(many_coordinates) {
    enum { N = PN_MAX_COORDINATES };
    pn_channel *want = malloc(sizeof *want * N * N);
    size_t count = 0;
    for (unsigned i = 0; i < N; i++)
        for (unsigned j = 0; j < N; j++) want[count++] = (pn_channel){.order = 2, .coordinate = {(uint8_t)i, (uint8_t)j}};
    pn_layout layout;
    ck_assert_int_eq(pn_layout_create(N, want, count, NULL, &layout), PINN_OK);
    ck_assert_uint_eq(layout.count, 1 + N + N * (N + 1) / 2);
    pn_layout_free(&layout);
    free(want);
}
END_TEST

/* Towards 1, and nothing near it. */
START_TEST(powers_of_two) {
    static const double size[] = {1, 3.99, 0.26, 4, 7.9, 8, 1e6, 0.25, 0.2, 1e-6, 0x1p1000, INFINITY, 0};
    static const double power[] = {1, 1, 1, 4, 4, 8, 0x1p19, 0.25, 0.25, 0x1p-19, 0x1p1000, 1, 1};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) ck_assert_double_eq(pn_power_of_two(size[i]), power[i]);
}
END_TEST

/* u = x^3 y^2 at (2, 3), by x/unit and y/unit: factor times what is carried is the derivative, the Laplacian's too. */
START_TEST(units) {
    const double unit[] = {0x1p-10, 0x1p6}, a[] = {1, 0x1p30}, one[] = {1, 1}, x = 2, y = 3;
    const pn_channel want[] = {channel("xxy"), laplacian_channel};
    pn_layout layout;
    ck_assert_int_eq(pn_layout_create(2, want, 2, a, &layout), PINN_OK);
    const pn_layout carried = pn_layout_carried(&layout, unit);
    ck_assert_double_eq(pn_channel_factor(&layout, &want[0], unit) * (unit[0] * unit[0] * unit[1]), 1);
    const double uxx = 6 * x * y * y, uyy = 2 * x * x * x, seconds[] = {unit[0] * unit[0] * uxx, unit[1] * unit[1] * uyy};
    const double sum = carried.laplacian[0] * seconds[0] + carried.laplacian[1] * seconds[1];
    ck_assert_double_eq(pn_channel_factor(&layout, &laplacian_channel, unit) * sum, a[0] * uxx + a[1] * uyy);
    ck_assert(fmax(carried.laplacian[0], carried.laplacian[1]) < 4 && fmax(carried.laplacian[0], carried.laplacian[1]) >= 1);
    for (size_t c = 0; c < layout.count; c++)
        if (!layout.channel[c].laplacian) ck_assert_double_eq(pn_channel_factor(&layout, &layout.channel[c], one), 1);
    pn_layout_free(&layout);
}
END_TEST

/* "lap" leaves time out, as in an expression. */
START_TEST(sums_are_printed_as_written) {
    static const struct {
        double a[3];
        int time;
        const char *text;
    } cases[] = {{{1, 1, 1}, -1, "lap(u)"},
                 {{1, 1, 0}, 2, "lap(u)"},
                 {{0, 1, 1}, 0, "lap(u)"},
                 {{1, 1, 0}, -1, "u_xx + u_yy"},
                 {{1, 1, 1}, 2, "u_zz + u_xx + u_yy"},
                 {{1, 1, -1}, 2, "u_xx + u_yy - u_zz"},
                 {{-4, 0, 1}, 2, "u_zz - 4*u_xx"},
                 {{1, 0, -0.25}, 2, "u_xx - 0.25*u_zz"},
                 {{2, 1, 0}, -1, "2*u_xx + u_yy"},
                 {{-1, 0, 1}, -1, "u_zz - u_xx"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_layout layout;
        pn_text text = {0};
        ck_assert_int_eq(pn_layout_create(3, &laplacian_channel, 1, cases[i].a, &layout), PINN_OK);
        pn_channel_print(&layout, &laplacian_channel, "u", names, cases[i].time, &text);
        ck_assert_str_eq(pn_text_get(&text), cases[i].text);
        pn_text_free(&text);
        pn_layout_free(&layout);
    }
}
END_TEST

START_TEST(long_sums_are_cut) {
    enum { N = PN_MAX_COORDINATES };
    const char *many[N];
    double a[N];
    pn_layout layout;
    pn_text text = {0};
    for (int i = 0; i < N; i++) many[i] = "q", a[i] = i == 7 ? -2 : 1;
    ck_assert_int_eq(pn_layout_create(N, &laplacian_channel, 1, a, &layout), PINN_OK);
    pn_channel_print(&layout, &laplacian_channel, "u", many, -1, &text);
    ck_assert_str_eq(pn_text_get(&text), "u_qq + u_qq + u_qq + u_qq + u_qq + u_qq + u_qq + u_qq + ...");
    pn_text_free(&text);
    pn_layout_free(&layout);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("jet layouts");
    TCase *all = tcase_create("all");
    tcase_add_test(all, powers_of_two);
    tcase_add_test(all, units);
    tcase_add_test(all, layouts_are_closed_downward);
    tcase_add_test(all, bad_layouts_are_refused);
    tcase_add_test(all, many_coordinates);
    tcase_add_test(all, sums_are_printed_as_written);
    tcase_add_test(all, long_sums_are_cut);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
