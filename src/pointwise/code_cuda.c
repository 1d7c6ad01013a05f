/* Loads compiled kernels into the device and launches them. The CUDA runtime alone is used (cudaLibrary_t), so nothing links the
 * driver's library. */
#include "pointwise/code.h"

#include <cuda_runtime_api.h>
#include <nvrtc.h>
#include <stdio.h>

#include "core/memory.h"
#include "graph/device.h"
#include "graph/overlap.h"

struct pn_code {
    pn_release release; /* first: what the graph layer gives back is the whole */
    int device;         /* CUDA ordinal */
    cudaLibrary_t library;
    cudaKernel_t entry;
    size_t shared_bytes; /* dynamic shared memory of a block */
};

static int ordinal(const pinn_context *context) { return ((const pn_device *)context->device)->ordinal; }

pinn_status pn_code_architecture(const pinn_context *context, char name[PN_ARCHITECTURE_BYTES]) {
    enum { MOST = 64 };
    pinn_status status;
    int major = 0, minor = 0, known[MOST], count = 0, newest = 0;
    PN_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal(context)));
    PN_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal(context)));
    const int own = 10 * major + minor;
    if (nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count < 1 || count > MOST || nvrtcGetSupportedArchs(known) != NVRTC_SUCCESS)
        return pn_fail(PINN_DEVICE_FAILED, "NVRTC does not say which architectures it supports");
    for (int i = 0; i < count; i++)
        if (known[i] <= own && known[i] > newest) newest = known[i];
    if (newest == 0) return pn_fail(PINN_UNSUPPORTED, "this NVRTC cannot compile for compute capability %d.%d", major, minor);
    snprintf(name, PN_ARCHITECTURE_BYTES, "%s_%d", newest == own ? "sm" : "compute", newest);
fail:
    return status;
}

pinn_status pn_code_limits(const pinn_context *context, size_t *shared_bytes, unsigned *processors) {
    pinn_status status;
    int bytes = 0, count = 0;
    PN_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal(context)));
    PN_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, ordinal(context)));
    *shared_bytes = (size_t)bytes;
    *processors = (unsigned)count;
fail:
    return status;
}

static void unload(pn_release *release) {
    pn_code *code = (pn_code *)(void *)release;
    int before = 0;
    const bool known = cudaGetDevice(&before) == cudaSuccess;
    if (cudaSetDevice(code->device) == cudaSuccess) cudaLibraryUnload(code->library); /* fails only when the process is ending anyway */
    if (known) cudaSetDevice(before);
    pn_free(code);
}

static pinn_status load(const pinn_context *context, const char *name, const void *image, pn_code *code) {
    pinn_status status;
    struct cudaFuncAttributes attributes;
    PN_TRY(pn_device_select(context));
    PN_CUDA(cudaLibraryLoadData(&code->library, image, NULL, NULL, 0, NULL, NULL, 0));
    PN_CUDA(cudaLibraryGetKernel(&code->entry, code->library, name));
    PN_CUDA(cudaFuncGetAttributes(&attributes, (const void *)code->entry)); /* libraries load lazily: this makes it load now */
fail:
    if (status != PINN_OK && code->library) cudaLibraryUnload(code->library); /* the first failure is the one reported */
    return status;
}

pinn_status pn_code_load(const pinn_context *context, const char *name, const void *image, pn_code **out) {
    pinn_status status = pn_enter_or_eager(context, __func__); /* a host function must not call CUDA, and may be waited for below */
    if (status != PINN_OK) return status;
    pn_code *code = pn_allocate(1, sizeof *code);
    if (!code) return PN_NO_MEMORY("a kernel");
    code->release.run = unload;
    code->device = ordinal(context);
    status = pn_exclusive_open(); /* loading may synchronize: no other thread's capture would survive that */
    if (status != PINN_OK) {
        pn_fail_within(status, "loading kernel '%s'", name);
        goto fail;
    }
    status = load(context, name, image, code);
    pn_exclusive_close();
    if (status != PINN_OK) goto fail;
    *out = code;
    return PINN_OK;
fail:
    pn_free(code);
    return status;
}

void pn_code_unload(pn_code *code) {
    if (code) pn_release_push(&code->release);
}

pinn_status pn_code_share(pn_code *code, size_t shared_bytes) {
    const cudaError_t result =
        cudaKernelSetAttributeForDevice(code->entry, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes, code->device);
    if (result == cudaSuccess) code->shared_bytes = shared_bytes;
    return pn_cuda_check(result, "cudaKernelSetAttributeForDevice");
}

pinn_status pn_code_launch(const pn_code *code, void *stream, unsigned blocks, unsigned threads, void *parameter) {
    void *argument[] = {parameter};
    const cudaLaunchConfig_t config = {.gridDim = {blocks, 1, 1}, .blockDim = {threads, 1, 1}, .dynamicSmemBytes = code->shared_bytes, .stream = stream};
    return pn_cuda_check(cudaLaunchKernelExC(&config, (const void *)code->entry, argument), "cudaLaunchKernelExC");
}

pinn_status pn_code_launch_overlapping(const pn_code *code, void *stream, unsigned blocks, unsigned threads, void *parameter) {
    void *argument[] = {parameter};
    return pn_launch_overlapping((const void *)code->entry, blocks, threads, code->shared_bytes, stream, argument);
}
