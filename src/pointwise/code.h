/* Compiled device code of one kernel, loaded on a context's device (code_cuda.c). */
#ifndef PN_POINTWISE_CODE_H
#define PN_POINTWISE_CODE_H

#include <stddef.h>

#include "pinn_graph.h"

typedef struct pn_code pn_code;

#define PN_ARCHITECTURE_BYTES 32

/* What to compile for, as NVRTC names it: the device's own architecture ("sm_90"), or, for a device newer than this NVRTC, the newest
 * intermediate code it can write ("compute_90"), which the driver finishes. */
pinn_status pn_code_architecture(const pinn_context *context, char name[PN_ARCHITECTURE_BYTES]);

/* Shared memory a block may have, in bytes, and the number of multiprocessors. */
pinn_status pn_code_limits(const pinn_context *context, size_t *shared_bytes, unsigned *processors);

/* Loads kernel `name` so that launching it, inside a capture too, loads nothing more. `image` is not needed afterwards. */
pinn_status pn_code_load(const pinn_context *context, const char *name, const void *image, pn_code **out);
/* Lets its blocks have so many bytes of dynamic shared memory; launches ask for that many. 0 at first. */
pinn_status pn_code_share(pn_code *code, size_t shared_bytes);
/* Unloads it now, or when no capture is open any more. NULL is fine. */
void pn_code_unload(pn_code *code);

/* `parameter`: the bytes of the kernel's one parameter, copied. */
pinn_status pn_code_launch(const pn_code *code, void *stream, unsigned blocks, unsigned threads, void *parameter);
/* The same for a kernel that waits by itself for the one before it: graph/overlap.h. */
pinn_status pn_code_launch_overlapping(const pn_code *code, void *stream, unsigned blocks, unsigned threads, void *parameter);

#endif
