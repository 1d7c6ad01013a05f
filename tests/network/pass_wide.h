/* Wide problems for the streamed pass: full and padded widths, point sets that fill their last tile or not, even and odd numbers of channels,
 * several fields, sets that share a group, both kinds of first layer, one hidden product and several. */
#ifndef PN_TESTS_NETWORK_PASS_WIDE_H
#define PN_TESTS_NETWORK_PASS_WIDE_H

#include "pass_problems.h"

static const pass_case wide_problems[] = {
    {"256 wide, three sets in two groups", 2, {"x", "t"}, 1, 1, {"u"}, "tanh", 256, 4, 0,
     {{517, false, {"u_t - 0.1*u_xx + 5*u^3 - 5*u"}}, {70, false, {"u - sin(x)"}}, {9, false, {"u - x*t"}}}},
    {"128 wide, odd channels", 2, {"x", "t"}, 1, 1, {"u"}, "softplus", 128, 3, 0, {{1045, false, {"u_t + u*u_x"}}, {133, false, {"u - sin(x)"}}}},
    {"100 wide, two fields, Fourier features", 2, {"x", "t"}, 1, 2, {"u", "w"}, "tanh", 100, 2, 37,
     {{241, false, {"u_t - w_xx", "w_t + u_x*w"}}, {21, false, {"u - w"}}}},
    {"201 wide, fourth order, normals", 2, {"x", "t"}, 1, 1, {"u"}, "gelu", 201, 2, 0,
     {{227, false, {"u_t + u*u_x + u_xx + u_xxxx"}}, {113, true, {"dn(u) - x"}}}},
    {"64 wide, 128 features, one product", 2, {"x", "t"}, 1, 1, {"u"}, "sin", 64, 1, 64, {{350, false, {"u_t - u_xx"}}}},
    {"256 wide, three fields, five channels", 3, {"x", "y", "t"}, 2, 3, {"u", "v", "p"}, "silu", 256, 2, 0,
     {{323, false, {"u_x + v_y", MOMENTUM(u, x), MOMENTUM(v, y)}}, {19, false, {"u_x - y", "u_y + v_x", "p_y"}}, {4, false, {"p + 0.1*x"}}}},
    {"192 wide, Laplacian in ten dimensions", 10, {"a", "b", "c", "e", "f", "g", "h", "i", "j", "k"}, -1, 1, {"u"}, "tanh", 192, 3, 0,
     {{43, false, {"lap(u) + u^2 - a*b"}}, {211, false, {"u - sin(a)*j"}}}},
};
enum { WIDE_PROBLEMS = sizeof wide_problems / sizeof wide_problems[0] };

/* What runs of them: every problem at both accuracies; small and large tiles, 8 and 16 warps, one and two blocks a multiprocessor. A tile's
 * products are multiplied in one part or several, with registers for 8 warps or for 16. */
typedef struct wide_run {
    size_t problem;
    bool tf32;
    const char *tiles; /* NULL: by the estimate */
} wide_run;
static const wide_run wide_runs[] = {
    {0, false, NULL}, {0, false, "rows 96, warps 16, blocks 1"}, {0, true, "rows 64, warps 16, blocks 1"}, {0, true, "rows 32, warps 8, blocks 2"},
    {1, false, "rows 96, warps 8, blocks 1"}, {1, true, NULL}, {2, false, "rows 96, warps 16, blocks 1"}, {2, true, "rows 128"},
    {3, false, NULL}, {3, true, "rows 96, warps 16, blocks 1"}, {4, false, "rows 128, warps 8, blocks 2"}, {4, true, "rows 256"},
    {5, false, "rows 96"}, {5, true, NULL}, {6, false, NULL}, {6, true, "rows 128"},
};
enum { WIDE_RUNS = sizeof wide_runs / sizeof wide_runs[0] };

static inline pass_case wide_case(const wide_run *run) {
    pass_case problem = wide_problems[run->problem];
    problem.tf32 = run->tf32;
    problem.tiles = run->tiles;
    return problem;
}

#endif
