/* Wide problems for the streamed pass: full and padded widths, point sets that fill their last tile or not, even and odd numbers of channels,
 * several fields, sets that share a group, both kinds of first layer, one hidden product and several. `tiles`: about the largest that fit. */
#ifndef PN_TESTS_NETWORK_PASS_WIDE_H
#define PN_TESTS_NETWORK_PASS_WIDE_H

#include "pass_problems.h"

static const pass_case wide_problems[] = {
    {"256 wide, three sets in two groups", 2, {"x", "t"}, 1, 1, {"u"}, "tanh", 256, 4, 0,
     {{517, false, {"u_t - 0.1*u_xx + 5*u^3 - 5*u"}}, {70, false, {"u - sin(x)"}}, {9, false, {"u - x*t"}}}, .tiles = "rows 128"},
    {"128 wide, odd channels", 2, {"x", "t"}, 1, 1, {"u"}, "sin", 128, 3, 0, {{1045, false, {"u_t + u*u_x"}}, {133, false, {"u - sin(x)"}}}, .tiles = "rows 256"},
    {"100 wide, two fields, Fourier features", 2, {"x", "t"}, 1, 2, {"u", "w"}, "tanh", 100, 2, 37,
     {{241, false, {"u_t - w_xx", "w_t + u_x*w"}}, {21, false, {"u - w"}}}, .tiles = "rows 128"},
    {"201 wide, fourth order, normals", 2, {"x", "t"}, 1, 1, {"u"}, "gelu", 201, 2, 0,
     {{227, false, {"u_t + u*u_x + u_xx + u_xxxx"}}, {113, true, {"dn(u) - x"}}}, .tiles = "rows 128"},
    {"64 wide, 128 features, one product", 2, {"x", "t"}, 1, 1, {"u"}, "softplus", 64, 1, 64, {{350, false, {"u_t - u_xx"}}}, .tiles = "rows 256"},
    {"256 wide, three fields, five channels", 3, {"x", "y", "t"}, 2, 3, {"u", "v", "p"}, "silu", 256, 2, 0,
     {{323, false, {"u_x + v_y", MOMENTUM(u, x), MOMENTUM(v, y)}}, {19, false, {"u_x - y", "u_y + v_x", "p_y"}}, {4, false, {"p + 0.1*x"}}}, .tiles = "rows 96"},
    {"192 wide, Laplacian in ten dimensions", 10, {"a", "b", "c", "e", "f", "g", "h", "i", "j", "k"}, -1, 1, {"u"}, "tanh", 192, 3, 0,
     {{43, false, {"lap(u) + u^2 - a*b"}}, {211, false, {"u - sin(a)*j"}}}, .tiles = "rows 128"},
};
enum { WIDE_PROBLEMS = sizeof wide_problems / sizeof wide_problems[0] };

#endif
