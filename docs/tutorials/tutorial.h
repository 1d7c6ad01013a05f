/* What the tutorials share: the command line, the end of a program that met a failure, and a sum whose order is fixed.
 *
 * Lines that may differ from machine to machine (device, times, the schedule) are printed behind "# "; all others are the same
 * numbers on every device. Arithmetic that both compilers must do alike stands once, as TUTORIAL_PORTABLE functions: with + - * /
 * only, and both compilers told to fuse nothing (-ffp-contract=off, -fmad=false), a function gives the same bits on the CPU and the
 * GPU.
 */
#ifndef TUTORIAL_H
#define TUTORIAL_H

#include <stdint.h>

#include "pinn_graph.h"

#ifdef __CUDACC__
#define TUTORIAL_PORTABLE static __host__ __device__ __forceinline__
#else
#define TUTORIAL_PORTABLE static inline
#endif

/* The CUDA form of an operation, or none in a build without CUDA. */
#ifdef PINN_HAVE_CUDA
#define TUTORIAL_CUDA(form) form
#else
#define TUTORIAL_CUDA(form) NULL
#endif

#define TUTORIAL_LANES 1024 /* of a sum; a power of two, and one thread block */

#ifdef __CUDACC__

/* Inner product of x and y, shape [n]. All TUTORIAL_LANES threads of the block take part, and each returns the sum. */
static __device__ double tutorial_dot(const double *x, const double *y, uint64_t n) {
    __shared__ double lane[TUTORIAL_LANES];
    double sum = 0;
    for (uint64_t i = threadIdx.x; i < n; i += TUTORIAL_LANES) sum += x[i] * y[i];
    lane[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = TUTORIAL_LANES / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) lane[threadIdx.x] += lane[threadIdx.x + half];
        __syncthreads();
    }
    return lane[0];
}

static inline cudaStream_t tutorial_stream(const pinn_run *run) { return (cudaStream_t)run->stream; }
static inline unsigned tutorial_blocks(uint64_t items, unsigned threads) { return (unsigned)((items + threads - 1) / threads); }
static inline pinn_status tutorial_launched(void) { return cudaGetLastError() == cudaSuccess ? PINN_OK : PINN_DEVICE_FAILED; }

#else

/* The same sum in the same order: lane l adds the products l, l + TUTORIAL_LANES, ..., then the lanes fold in halves. */
static inline double tutorial_dot(const double *x, const double *y, uint64_t n) {
    double lane[TUTORIAL_LANES] = {0};
    for (uint64_t i = 0; i < n; i++) lane[i % TUTORIAL_LANES] += x[i] * y[i];
    for (unsigned half = TUTORIAL_LANES / 2; half > 0; half /= 2)
        for (unsigned l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The context that `--device WHERE` asks for: cuda (a CUDA graph), eager (the same nodes one by one on a CUDA stream), cpu,
 * strict:SEED (the CPU in the order and with the storage of a test). Without the option: cuda where there is a GPU, else cpu. The
 * option is taken out of the arguments. Where it asks for a GPU that is not there, the program ends with status 77, which test
 * drivers read as "skipped". */
pinn_context *tutorial_context(int *count, char **argument);
/* Ends the program with status 1 and the library's message unless `status` is PINN_OK. */
void tutorial_must(pinn_status status);
/* Ends the program with status 2 and how to call it. */
void tutorial_usage(const char *form);
/* Ends the program with status 1 and the text unless `holds`. */
void tutorial_check(bool holds, const char *format, ...);
/* A new zeroed plane. */
pinn_plane *tutorial_plane(pinn_context *context, const char *name, pinn_place place, size_t bytes);
/* Prints the graph's schedule, each line behind "# ". */
void tutorial_explain(const pinn_graph *graph);
/* Seconds of a clock that only goes forward. */
double tutorial_seconds(void);

#ifdef __cplusplus
}
#endif
#endif
