/* What the C kernels and their CUDA twins share: one spelling for functions compiled by both, and how a form is published.
 *
 * The arithmetic of a family stands once, in its header, as PN_PORTABLE functions. Both compilers are told to fuse nothing by
 * themselves (-ffp-contract=off, -fmad=false), so a function gives the same bits on both sides as long as it keeps to + - * /,
 * sqrt, an explicit fma, comparisons and conversions. pow, cos, log and expm1 may differ in the last place between glibc and CUDA.
 */
#ifndef PN_KERNELS_PORTABLE_H
#define PN_KERNELS_PORTABLE_H

#include <stddef.h>
#include <stdint.h>

#include "core/real.h"
#include "core/status.h"
#include "pinn_graph.h"

#ifdef __CUDACC__
#define PN_PORTABLE static __host__ __device__ __forceinline__
#else
#define PN_PORTABLE static inline
#endif

/* Elements from which a CPU form uses threads: below, waking them takes longer than the loop. */
#define PN_PARALLEL 2048

/* The CUDA form of an operation, or none in a build without CUDA. */
#ifdef PINN_HAVE_CUDA
#define PN_CUDA_FORM(form) form
#else
#define PN_CUDA_FORM(form) NULL
#endif

#ifdef __CUDACC__
/* By every thread of a kernel launched by pn_launch_overlapping (graph/overlap.h), before it reads or writes memory that other kernels write
 * or read. The kernel after it may begin from here on; it waits for this one in the same way. */
static __device__ __forceinline__ void pn_await_last() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Turns a failed launch into an error that names the kernel. A failure while a kernel runs shows at the next wait instead. */
static inline pinn_status pn_launch_check(const char *kernel) {
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return PINN_OK;
    return pn_fail(PINN_DEVICE_FAILED, "kernel \"%s\" could not be launched: %s", kernel, cudaGetErrorString(error));
}
#endif

#endif
