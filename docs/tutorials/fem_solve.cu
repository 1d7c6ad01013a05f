/* The solver's operations on the GPU: a thread an unknown; one block where a scalar comes out. */
#include "fem_solve.h"

#define THREADS 128

static __device__ uint64_t thread(void) { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }

static __global__ void start_kernel(fem_sizes s, const double *b, double *u, double *r, double *p, fem_words *words,
                                    uint32_t *going) {
    for (uint64_t i = threadIdx.x; i < s.unknowns; i += TUTORIAL_LANES) {
        u[i] = 0;
        r[i] = b[i];
        p[i] = b[i];
    }
    const double bb = tutorial_dot(b, b, s.unknowns);
    if (threadIdx.x == 0) fem_begin(words, going, s.tolerance, bb);
}

static __global__ void multiply_kernel(fem_sizes s, const uint32_t *__restrict__ offset, const uint32_t *__restrict__ column,
                                       const double *__restrict__ value, const double *__restrict__ p, double *__restrict__ q) {
    const uint64_t i = thread();
    if (i < s.unknowns) q[i] = fem_row(offset, column, value, p, i);
}

static __global__ void length_kernel(fem_sizes s, const double *p, const double *q, fem_words *words) {
    const double pq = tutorial_dot(p, q, s.unknowns);
    if (threadIdx.x == 0) fem_step(words, pq);
}

static __global__ void update_kernel(fem_sizes s, const double *p, const double *q, const fem_words *words, double *u, double *r) {
    const uint64_t i = thread();
    if (i >= s.unknowns) return;
    u[i] += words->alpha * p[i];
    r[i] -= words->alpha * q[i];
}

static __global__ void residual_kernel(fem_sizes s, const double *r, fem_words *words, uint32_t *going) {
    const double rr = tutorial_dot(r, r, s.unknowns);
    if (threadIdx.x == 0) fem_decide(words, going, rr);
}

static __global__ void direction_kernel(fem_sizes s, const double *r, const fem_words *words, double *p) {
    const uint64_t i = thread();
    if (i < s.unknowns) p[i] = r[i] + words->beta * p[i];
}

/* Every form reads its planes in the order of fem_solve.h. */
#define SIZES (*(const fem_sizes *)run->arguments)
#define READ(type, k) ((const type *)run->read[k])
#define WRITE(type, k) ((type *)run->write[k])
#define ALL tutorial_blocks(SIZES.unknowns, THREADS), THREADS, 0, tutorial_stream(run)
#define ONE 1, TUTORIAL_LANES, 0, tutorial_stream(run)

extern "C" pinn_status fem_start_cuda(const pinn_run *run) {
    start_kernel<<<ONE>>>(SIZES, READ(double, 0), WRITE(double, 0), WRITE(double, 1), WRITE(double, 2), WRITE(fem_words, 3),
                          WRITE(uint32_t, 4));
    return tutorial_launched();
}

extern "C" pinn_status fem_multiply_cuda(const pinn_run *run) {
    multiply_kernel<<<ALL>>>(SIZES, READ(uint32_t, 0), READ(uint32_t, 1), READ(double, 2), READ(double, 3), WRITE(double, 0));
    return tutorial_launched();
}

extern "C" pinn_status fem_length_cuda(const pinn_run *run) {
    length_kernel<<<ONE>>>(SIZES, READ(double, 0), READ(double, 1), WRITE(fem_words, 0));
    return tutorial_launched();
}

extern "C" pinn_status fem_update_cuda(const pinn_run *run) {
    update_kernel<<<ALL>>>(SIZES, READ(double, 0), READ(double, 1), READ(fem_words, 2), WRITE(double, 0), WRITE(double, 1));
    return tutorial_launched();
}

extern "C" pinn_status fem_residual_cuda(const pinn_run *run) {
    residual_kernel<<<ONE>>>(SIZES, READ(double, 0), WRITE(fem_words, 0), WRITE(uint32_t, 1));
    return tutorial_launched();
}

extern "C" pinn_status fem_direction_cuda(const pinn_run *run) {
    direction_kernel<<<ALL>>>(SIZES, READ(double, 0), READ(fem_words, 1), WRITE(double, 0));
    return tutorial_launched();
}
