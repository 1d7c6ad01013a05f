/* See overlap.h. */
#include "graph/overlap.h"

#include "graph/device.h"

/* Whether the kernel's code waits (kernels/portable.h): code for older architectures, which a newer GPU runs as well, does not. */
static cudaError_t waits(const void *kernel, bool *out) {
    struct cudaFuncAttributes attributes = {.ptxVersion = 0};
    const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    *out = attributes.ptxVersion >= 90;
    return error;
}

/* Edges of this kind lead from kernel to kernel only; what follows several nodes waits for each of them. */
static cudaError_t follows_one_kernel(cudaStream_t stream, bool *out) {
    enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t *before = NULL;
    const cudaGraphEdgeData *edge = NULL;
    enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    size_t count = 0;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &state, NULL, NULL, &before, &edge, &count);
    *out = true;
    if (error != cudaSuccess || state == cudaStreamCaptureStatusNone) return error;
    if (count == 1 && cudaGraphNodeGetType(before[0], &type) != cudaSuccess) {
        type = cudaGraphNodeTypeConditional; /* which the call may not know */
        cudaGetLastError();
    }
    *out = count == 1 && type == cudaGraphNodeTypeKernel;
    return cudaSuccess;
}

pinn_status pn_launch_overlapping(const void *kernel, unsigned blocks, unsigned threads, size_t shared_bytes, void *stream, void **argument) {
    cudaLaunchAttribute overlap = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                          .val.programmaticStreamSerializationAllowed = 1};
    cudaLaunchConfig_t config = {
        .gridDim = {blocks, 1, 1}, .blockDim = {threads, 1, 1}, .dynamicSmemBytes = shared_bytes, .stream = stream, .attrs = &overlap};
    bool waiting = false, after_kernel = false;
    pinn_status status;
    PN_CUDA(waits(kernel, &waiting));
    if (waiting) PN_CUDA(follows_one_kernel(stream, &after_kernel));
    config.numAttrs = waiting && after_kernel;
    PN_CUDA(cudaLaunchKernelExC(&config, kernel, argument));
fail:
    return status;
}
