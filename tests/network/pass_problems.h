/* The problems the network pass is tested on: every shape a real one takes, in small. */
#ifndef PN_TESTS_NETWORK_PASS_PROBLEMS_H
#define PN_TESTS_NETWORK_PASS_PROBLEMS_H

#include "pass_case.h"

#define MOMENTUM(u, x) "u_t*0+" #u "_t + u*" #u "_x + v*" #u "_y + p_" #x " - 0.01*(" #u "_xx + " #u "_yy)"

/* Micrometres and days; kilometres and nanoseconds. */
static const double micro_lower[] = {0, -1e-6, 0}, micro_upper[] = {1e-6, 2e-6, 2e5}, nano_lower[] = {0, 1e-9}, nano_upper[] = {1e4, 5e-9};

static const pass_case problems[] = {
    {"heat, tanh", 2, {"x", "t"}, 1, 1, {"u"}, "tanh", 12, 3, 0,
     {{37, false, {"u_t - 0.4*u_xx"}}, {7, false, {"u"}}, {5, false, {"u - sin(pi*x)"}}}},
    {"flow, silu: three fields, several residuals a set", 3, {"x", "y", "t"}, 2, 3, {"u", "v", "p"}, "silu", 10, 2, 0,
     {{23, false, {"u_x + v_y", MOMENTUM(u, x), MOMENTUM(v, y)}}, {9, false, {"u - y*(1-y)", "v"}}, {4, false, {"p + 0.1*x"}}}},
    {"fourth order, sin", 2, {"x", "t"}, 1, 1, {"u"}, "sin", 9, 3, 0,
     {{19, false, {"u_t + u*u_x + u_xx + u_xxxx"}}, {6, false, {"u_xt - cos(x)", "u - x*t"}}}},
    {"ten dimensions, Laplacian, gelu", 10, {"a", "b", "c", "e", "f", "g", "h", "i", "j", "k"}, -1, 1, {"u"}, "gelu", 8, 2, 0,
     {{13, false, {"lap(u) + u^2 - a*b"}}, {11, false, {"u - sin(a)*j"}}}},
    {"normal derivative, softplus", 2, {"x", "y"}, -1, 1, {"u"}, "softplus", 16, 2, 0,
     {{31, false, {"u_xx + u_yy - exp(-x^2)"}}, {8, true, {"dn(u) + 0.3*u - nx*y"}}}},
    {"Fourier features", 2, {"x", "t"}, 1, 2, {"u", "w"}, "tanh", 8, 2, 6,
     {{29, false, {"u_t - w_xx", "w_t + u_x*w"}}, {5, false, {"u - w"}}}},
    {"one hidden layer, one point", 1, {"x"}, -1, 1, {"u"}, "tanh", 5, 1, 0, {{1, false, {"u_xx + u"}}, {1, false, {"u_x - 1"}}}},
    {"Fourier features, one hidden layer, seven points", 1, {"x"}, -1, 1, {"u"}, "sin", 5, 1, 3, {{7, false, {"u_xx + u^3"}}}},
    {"several tiles", 2, {"x", "t"}, 1, 1, {"u"}, "tanh", 6, 2, 0, {{1021, false, {"u_t + u*u_x - 0.01*u_xx"}}, {513, false, {"u + sin(pi*x)"}}}},
    {"micrometres: derivatives far larger than values", 3, {"x", "y", "t"}, 2, 1, {"u"}, "tanh", 16, 3, 0,
     {{45, false, {"2e5*u_t - 1e-12*(u_xx + u_yy) + u^3 - u", "1e-12*u_xy - 0.3*u"}}, {9, false, {"u - sin(pi*1e6*x)"}}}, .lower = micro_lower, .upper = micro_upper},
    {"kilometres and nanoseconds: a Laplacian of two scales, order four", 2, {"x", "t"}, 1, 1, {"u"}, "sin", 12, 2, 0,
     {{33, false, {"1e-17*u_tt - 1e7*u_xx + u"}}, {17, false, {"1e14*u_xxxx + u", "1e-9*u_t"}}}, .lower = nano_lower, .upper = nano_upper},
    {"nanoseconds, Fourier features", 2, {"x", "t"}, 1, 1, {"u"}, "tanh", 10, 2, 5,
     {{21, false, {"1e-17*u_tt - 1e7*u_xx", "1e-9*u_t + u"}}}, .lower = nano_lower, .upper = nano_upper},
};
enum { PROBLEMS = sizeof problems / sizeof problems[0] };

/* Tiles the table would not choose for problems as small as these: weights of one layer at a time, several tiles a block. In float64 there is
 * room for another layer's weights meanwhile, but for those of the last. */
static const pass_case wide_layers = {"128 wide, two channels", 1, {"x"}, -1, 1, {"u"}, "tanh", 128, 3, 0, {{1300, false, {"u_x + u - x"}}}};
typedef struct tile_run {
    const pass_case *problem;
    const char *tiles;
} tile_run;
static const tile_run tile_runs[] = {
    {&problems[0], "units 4, splits 2, keep device, weights one"}, {&problems[2], "units 4, splits 1, keep shared, weights one"},
    {&problems[5], "units 4, splits 1, keep shared, weights one"}, {&problems[8], "units 1, splits 1, keep device, weights one"},
    {&wide_layers, "units 1, splits 8, keep device, weights one"}};
enum { TILE_RUNS = sizeof tile_runs / sizeof tile_runs[0] };

static inline pass_case tile_case(const tile_run *run) {
    pass_case problem = *run->problem;
    problem.tiles = run->tiles;
    return problem;
}

#endif
