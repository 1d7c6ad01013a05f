/* Fisher's equation u_t = D lap(u) + r u (1 - u), a front that spreads, on a periodic picture, explicit in time:
 *
 *     u' = u + d*(up + down + left + right - 4 u) + g*u*(1 - u),   d = D dt/h^2, g = r dt.
 *
 * (Fisher, The wave of advance of advantageous genes, 1937.)
 */
#ifndef FRAMES_H
#define FRAMES_H

#include "tutorial.h"

typedef struct frames_sizes {
    uint64_t height, width; /* pixels; a frame has the shape [height][width], float */
} frames_sizes;

TUTORIAL_PORTABLE float frames_next(const frames_sizes *s, const float *u, uint64_t i, uint64_t j) {
    const uint64_t up = i ? i - 1 : s->height - 1, down = i + 1 < s->height ? i + 1 : 0;
    const uint64_t left = j ? j - 1 : s->width - 1, right = j + 1 < s->width ? j + 1 : 0;
    const float here = u[i * s->width + j];
    const float around = (u[up * s->width + j] + u[down * s->width + j]) + (u[i * s->width + left] + u[i * s->width + right]);
    return here + 0.125f * (around - 4 * here) + 0.0625f * (here * (1 - here));
}

#ifdef __cplusplus
extern "C" {
#endif
pinn_status frames_step_cuda(const pinn_run *run); /* reads u, writes the next u */
#ifdef __cplusplus
}
#endif
#endif
