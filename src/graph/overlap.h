/* Launches of kernels that may begin while the kernel before them on the stream ends (programmatic dependent launch, sm_90 and later): blocks
 * are on their multiprocessors, with their instructions fetched and their shared memory cleared, when the last of the one before is done.
 *
 * Such a kernel calls pn_await_last() (kernels/portable.h; in generated text await_last()) in every thread before it reads or writes memory that
 * another kernel writes or reads. From there on the kernel after it may be placed: it may so be resident while kernels further back still write,
 * and loads that take memory as it was when a kernel began (const __restrict__ parameters, __ldg) are not for memory that changes. */
#ifndef PN_GRAPH_OVERLAP_H
#define PN_GRAPH_OVERLAP_H

#include <stddef.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* kernel: a cudaKernel_t, or the host symbol of a kernel; argument: [parameters] addresses, copied. Falls back to an ordinary launch where the
 * kernel's code was made for an architecture that cannot, and in a capture where the kernel would follow anything but one kernel. */
pinn_status pn_launch_overlapping(const void *kernel, unsigned blocks, unsigned threads, size_t shared_bytes, void *stream, void **argument);

#ifdef __cplusplus
}
#endif

#endif
