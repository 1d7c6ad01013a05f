/* The device side of a context: stream, cuBLAS, memory. */
#include <stdlib.h>
#include <string.h>

#include "graph/device.h"

#define DEFAULT_WORKSPACE ((size_t)32 << 20) /* bytes: the cuBLAS manual's advice for Hopper */
#define ALIGNMENT 256                        /* bytes, of pageable planes: the same as cudaMalloc's */
#define OLDEST_MAJOR 8                       /* compute capability */
#define CONDITIONALS_VERSION 12040           /* of the driver, as cudaDriverGetVersion tells it */

/* Errors of which CUDA's manual says that "the process must be terminated and relaunched": every later call returns them too. */
static bool is_lost(cudaError_t error) {
    switch (error) {
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice: return true;
    default: return false;
    }
}

pinn_status pn_cuda_check(cudaError_t error, const char *call) {
    if (error == cudaSuccess) return PINN_OK;
    cudaGetLastError(); /* it is reported here: the next check must not see it again */
    return pn_fail(error == cudaErrorMemoryAllocation ? PINN_NO_MEMORY : PINN_DEVICE_FAILED, "%s: %s (%s)%s", call,
                   cudaGetErrorString(error), cudaGetErrorName(error),
                   is_lost(error)
                       ? ": work enqueued on the device, now or earlier, broke it; the device is lost to this process, which "
                         "can only destroy its objects and end (compute-sanitizer with the eager executor finds the kernel)"
                       : "");
}

pinn_status pn_device_explain(const pinn_graph *graph, pinn_status status) {
    if (status == PINN_OK) return status;
    const pn_device *device = graph->context->device;
    cudaError_t error = cudaStreamQuery(device->stream);
    cudaGetLastError();
    return is_lost(error) ? pn_fail_within(pn_cuda_check(error, "cudaStreamQuery"), "graph '%s'", graph->name) : status;
}

pinn_status pn_cuda_take_left(const pn_graph_node *node) {
    cudaError_t left = cudaGetLastError();
    if (left == cudaSuccess) return PINN_OK;
    return pn_fail(PINN_DEVICE_FAILED, "graph '%s', node %zu '%s' left a CUDA error: %s (%s)", node->graph->name, node->number,
                   node->name, cudaGetErrorString(left), cudaGetErrorName(left));
}

pinn_status pn_blas_check(cublasStatus_t error, const char *call) {
    if (error == CUBLAS_STATUS_SUCCESS) return PINN_OK;
    return pn_fail(error == CUBLAS_STATUS_ALLOC_FAILED ? PINN_NO_MEMORY : PINN_DEVICE_FAILED, "%s: %s", call,
                   cublasGetStatusString(error));
}

int pinn_device_count(void) {
    int count = 0, usable = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
    for (int i = 0; i < count; i++) {
        int major = 0;
        if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i) == cudaSuccess && major >= OLDEST_MAJOR) usable++;
    }
    cudaGetLastError();
    return usable;
}

pinn_status pn_backend_cuda(pinn_executor executor, const pn_backend **out) {
    *out = executor == PINN_EXECUTOR_GRAPH ? &pn_backend_graph : &pn_backend_eager;
    return PINN_OK;
}

pinn_status pn_device_select(const pinn_context *context) {
    const pn_device *device = context->device;
    return pn_cuda_check(cudaSetDevice(device->ordinal), "cudaSetDevice");
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

static pinn_status find_device(pinn_context *context, int ordinal) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        cudaGetLastError();
        if (error == cudaErrorInsufficientDriver) /* what CUDA says where there is no driver at all, too */
            return pn_fail(PINN_UNSUPPORTED, "no CUDA device can be used: there is no NVIDIA driver, or one too old for CUDA %d.%d", CUDART_VERSION / 1000,
                           CUDART_VERSION % 1000 / 10);
        return pn_fail(PINN_UNSUPPORTED, "no CUDA device can be used: %s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
    }
    if (ordinal < 0 || ordinal >= count) return pn_fail(PINN_UNSUPPORTED, "there is no CUDA device %d: %d found", ordinal, count);
    struct cudaDeviceProp properties;
    pinn_status status = pn_cuda_check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    if (status != PINN_OK) return status;
    if (properties.major < OLDEST_MAJOR)
        return pn_fail(PINN_UNSUPPORTED, "CUDA device %d (%s) has compute capability %d.%d: %d.0 or higher is needed", ordinal,
                       properties.name, properties.major, properties.minor, OLDEST_MAJOR);
    context->multiprocessors = properties.multiProcessorCount;
    context->memory = properties.totalGlobalMem;
    context->device_name = pn_duplicate(properties.name, strlen(properties.name));
    return context->device_name ? PINN_OK : PN_NO_MEMORY("a context");
}

/* The first call of a cuBLAS routine allocates and loads, which a capture forbids: both precisions are called once here. */
static pinn_status warm_blas(const pn_device *device) {
    enum { N = 16 };
    float one_f = 1, zero_f = 0;
    double one = 1, zero = 0;
    void *matrix = NULL; /* three of [N, N], float64 */
    pinn_status status;
    PN_CUDA(cudaMalloc(&matrix, 3 * N * N * sizeof(double)));
    PN_CUDA(cudaMemsetAsync(matrix, 0, 3 * N * N * sizeof(double), device->stream));
    float *f = matrix;
    double *d = matrix;
    PN_BLAS(cublasSgemm(device->blas, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one_f, f, N, f + N * N, N, &zero_f, f + 2 * N * N, N));
    PN_BLAS(cublasDgemm(device->blas, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, d, N, d + N * N, N, &zero, d + 2 * N * N, N));
    PN_CUDA(cudaStreamSynchronize(device->stream));
fail:
    if (matrix) {
        pinn_status freed = pn_cuda_check(cudaFree(matrix), "cudaFree");
        if (status == PINN_OK) status = freed;
    }
    return status;
}

/* Conditional nodes came with CUDA 12.4. PINN_NO_CONDITIONALS=1 plays a driver without them. */
static pinn_status find_conditionals(pn_device *device) {
    int version = 0;
    const char *off = getenv("PINN_NO_CONDITIONALS");
    pinn_status status;
    PN_CUDA(cudaDriverGetVersion(&version));
    device->conditionals = version >= CONDITIONALS_VERSION && !(off && strcmp(off, "1") == 0);
fail:
    return status;
}

static pinn_status open_device(pinn_context *context, const pinn_context_options *options) {
    pn_device *device = context->device;
    pinn_status status;
    PN_TRY(pn_device_select(context));
    PN_TRY(find_conditionals(device));
    device->workspace_bytes = options->blas_workspace ? options->blas_workspace : DEFAULT_WORKSPACE;
    PN_TRY(pn_lanes_create(context, 1, 0));
    device->stream = device->lane[0].stream;
    PN_CUDA(cudaEventCreateWithFlags(&device->event, cudaEventDisableTiming));
    PN_CUDA(cudaHostAlloc((void **)&device->word, sizeof *device->word, cudaHostAllocDefault));
    PN_BLAS(cublasCreate(&device->blas));
    PN_BLAS(cublasSetPointerMode(device->blas, CUBLAS_POINTER_MODE_HOST));
    PN_BLAS(cublasSetMathMode(device->blas, CUBLAS_DEFAULT_MATH));
    PN_TRY(pn_lane_use(context, device->stream, 0));
    PN_TRY(warm_blas(device));
    context->blas = device->blas;
fail:
    return status;
}

pinn_status pn_device_open(pinn_context *context, const pinn_context_options *options) {
    pinn_status status = find_device(context, options->device);
    if (status != PINN_OK) return status;
    pn_device *device = pn_allocate(1, sizeof *device);
    if (!device) return PN_NO_MEMORY("a context");
    device->ordinal = options->device;
    context->device = device;
    status = pn_exclusive_open(); /* cublasCreate and the warm-up synchronize and free: no other thread's capture would survive that */
    if (status != PINN_OK) return pn_fail_within(status, "pinn_context_create");
    status = open_device(context, options);
    pn_exclusive_close();
    return status;
}

/* Runs as a release (or after a failed open). Return codes are of no use any more: there is nobody to tell, nothing to undo. */
void pn_device_close(pinn_context *context) {
    pn_device *device = context->device;
    if (!device) return;
    cudaSetDevice(device->ordinal);
    if (device->stream) cudaStreamSynchronize(device->stream);
    if (device->blas) cublasDestroy(device->blas);
    if (device->event) cudaEventDestroy(device->event);
    if (device->word) cudaFreeHost(device->word);
    pn_lanes_destroy(device);
    cudaGetLastError();
    pn_free(device);
    context->device = NULL;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

static pinn_status allocate_device(const pn_device *device, size_t bytes, void **out) {
    void *memory = NULL;
    pinn_status status;
    PN_CUDA(cudaMalloc(&memory, bytes));
    *out = memory;
    PN_CUDA(cudaMemsetAsync(memory, 0, bytes, device->stream));
    PN_CUDA(cudaStreamSynchronize(device->stream));
fail:
    return status;
}

pinn_status pn_device_allocate(pinn_context *context, pinn_place place, size_t bytes, void **out) {
    void *memory = NULL;
    pinn_status status;
    PN_TRY(pn_device_select(context));
    switch (place) {
    case PINN_DEVICE: PN_TRY(allocate_device(context->device, bytes, &memory)); break;
    case PINN_PINNED:
        PN_CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
        memset(memory, 0, bytes);
        break;
    case PINN_HOST:
        if (posix_memalign(&memory, ALIGNMENT, bytes) != 0) {
            memory = NULL;
            status = pn_fail(PINN_NO_MEMORY, "out of memory");
            goto fail;
        }
        memset(memory, 0, bytes);
        break;
    }
    *out = memory;
    return PINN_OK;
fail:
    if (memory) cudaFree(memory); /* of the three, only the device's can have come so far; its failure is being reported */
    return status;
}

/* A release: as in pn_device_close, failures have nowhere to go. */
void pn_device_release(pinn_context *context, pinn_place place, void *address) {
    const pn_device *device = context->device;
    cudaSetDevice(device->ordinal);
    switch (place) {
    case PINN_DEVICE: cudaFree(address); break;
    case PINN_PINNED: cudaFreeHost(address); break;
    case PINN_HOST: free(address); break;
    }
    cudaGetLastError();
}

pinn_status pn_device_check(pinn_context *context, const char *name, pinn_place place, const void *address) {
    const pn_device *device = context->device;
    struct cudaPointerAttributes attributes;
    pinn_status status;
    PN_TRY(pn_device_select(context));
    PN_CUDA(cudaPointerGetAttributes(&attributes, address));
    if (attributes.type == cudaMemoryTypeManaged)
        return pn_fail(PINN_UNSUPPORTED,
                       "plane '%s': %p is managed (unified) memory, which is not supported: use cudaMalloc or cudaHostAlloc", name,
                       address);
    bool on_device = attributes.type == cudaMemoryTypeDevice;
    if (on_device && attributes.device != device->ordinal)
        return pn_fail(PINN_BAD_ARGUMENT, "plane '%s': %p lies on CUDA device %d, the context uses device %d", name, address,
                       attributes.device, device->ordinal);
    bool fits = place == PINN_DEVICE ? on_device : place == PINN_PINNED ? attributes.type == cudaMemoryTypeHost : !on_device;
    if (!fits)
        return pn_fail(PINN_BAD_ARGUMENT, "plane '%s': %p is not %s memory: it is %s", name, address, pinn_place_name(place),
                       on_device                               ? "device memory"
                       : attributes.type == cudaMemoryTypeHost ? "page-locked host memory"
                                                               : "pageable host memory");
fail:
    return status;
}

/* With memory that is the caller's and pageable, so the copy is staged: both ends of it are waited for. */
static pinn_status transfer(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind) {
    const pn_device *device = context->device;
    pinn_status status;
    PN_TRY(pn_device_select(context));
    PN_CUDA(cudaStreamSynchronize(device->stream));
    if (place != PINN_DEVICE) {
        memcpy(to, from, bytes);
        return PINN_OK;
    }
    PN_CUDA(cudaMemcpyAsync(to, from, bytes, kind, device->stream));
    PN_CUDA(cudaStreamSynchronize(device->stream));
fail:
    return status;
}

pinn_status pn_device_write(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes) {
    return transfer(context, place, to, from, bytes, cudaMemcpyHostToDevice);
}

pinn_status pn_device_read(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes) {
    return transfer(context, place, to, from, bytes, cudaMemcpyDeviceToHost);
}

/* ---- order ----------------------------------------------------------------------------------------------------------------- */

pinn_status pn_device_synchronize(pinn_context *context) {
    const pn_device *device = context->device;
    pinn_status status;
    PN_TRY(pn_device_select(context));
    PN_CUDA(cudaStreamSynchronize(device->stream));
fail:
    return status;
}

pinn_status pn_device_synchronize_all(pinn_context *context) {
    pinn_status status = pn_exclusive_open(); /* it would break another thread's capture */
    if (status != PINN_OK) return status;
    PN_TRY(pn_device_select(context));
    PN_CUDA(cudaDeviceSynchronize());
fail:
    pn_exclusive_close();
    return status;
}

pinn_status pn_device_join(pinn_context *context, void *stream) {
    const pn_device *device = context->device;
    pinn_status status;
    PN_TRY(pn_device_select(context));
    PN_CUDA(cudaEventRecord(device->event, stream ? (cudaStream_t)stream : cudaStreamLegacy));
    PN_CUDA(cudaStreamWaitEvent(device->stream, device->event, cudaEventWaitDefault));
fail:
    return status;
}
