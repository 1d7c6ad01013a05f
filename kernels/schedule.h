/* The learning rate as a function of the phase step s, counted from 0 (pn_config_schedule in src/problem/config.h).
 *
 *     s < warmup:   initial * (s + 1) / warmup
 *     constant:     initial
 *     exponential:  initial * decay_rate^((s - warmup) / every)      a smooth decay: the exponent is a real number
 *     cosine:       final + (initial - final) * (1 + cos(pi * x)) / 2,   x = (s - warmup) / (phase_steps - warmup), at most 1
 * Cosine: I. Loshchilov, F. Hutter, "SGDR", ICLR 2017, without restarts.
 */
#ifndef PN_KERNELS_SCHEDULE_H
#define PN_KERNELS_SCHEDULE_H

#include <math.h>

#include "kernels/portable.h"
#include "kernels/words.h"

PN_PORTABLE double pn_schedule(const pn_hyper *hyper, uint64_t s) {
    if (s < hyper->warmup) return hyper->initial * ((double)s + 1) / (double)hyper->warmup;
    const double passed = (double)(s - hyper->warmup);
    if (hyper->decay == PN_HYPER_EXPONENTIAL) return hyper->initial * pow(hyper->decay_rate, passed / (double)hyper->every);
    if (hyper->decay == PN_HYPER_COSINE) {
        const double x = s < hyper->phase_steps ? passed / (double)(hyper->phase_steps - hyper->warmup) : 1;
        return hyper->final + (hyper->initial - hyper->final) * (1 + cos(3.14159265358979323846 * x)) / 2;
    }
    return hyper->initial;
}

#endif
