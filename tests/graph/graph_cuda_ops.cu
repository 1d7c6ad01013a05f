/* Kernels of the graph layer's tests. Every one of them is launched for the first time inside a capture: nothing warms them up. */
#include <cuda_runtime.h>

#include "graph_cuda_ops.h"

static __global__ void add_kernel(int32_t *x, int32_t count, int32_t amount) {
    int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) x[i] += amount;
}

static __global__ void double_kernel(const int32_t *x, int32_t *y, int32_t count) {
    int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) y[i] = 2 * x[i];
}

static __global__ void accumulate_kernel(const int32_t *x, int32_t *y, int32_t count) {
    int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) y[i] += x[i];
}

static __global__ void fill_kernel(uint8_t *x, int32_t count, uint8_t value) {
    int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) x[i] = value;
}

static const long long SECOND = 1000 * 1000 * 1000LL; /* in ns */

static __device__ long long now() {
    long long nanoseconds;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    return nanoseconds;
}

static __global__ void slow_kernel(int32_t *x, long long nanoseconds) {
    const long long start = now();
    while (now() - start < nanoseconds) continue;
    x[0] = 1;
}

/* Does *word become at least `least`? */
static __device__ bool comes(const volatile int32_t *word, int32_t least, long long nanoseconds) {
    const long long start = now();
    while (*word < least)
        if (now() - start >= nanoseconds) return false;
    return true;
}

static __global__ void await_kernel(const volatile int32_t *gate, int32_t *x, long long nanoseconds) {
    x[0] += comes(gate, 1, nanoseconds) ? 1 : -1000;
}

static __global__ void meet_kernel(volatile int32_t *mine, const volatile int32_t *other, int32_t *x, long long nanoseconds) {
    const int32_t turn = *mine + 1;
    *mine = turn;
    __threadfence();
    x[0] = comes(other, turn, nanoseconds) ? turn : -1;
}

static __global__ void stray_kernel(volatile int32_t *nowhere) { *nowhere = 1; }

static __global__ void trap_kernel() { __trap(); }

static cudaStream_t stream_of(const pinn_run *run) { return static_cast<cudaStream_t>(run->stream); }

static unsigned blocks(int32_t count) { return (unsigned)((count + 127) / 128); }

static pinn_status check(cudaError_t error) { return error == cudaSuccess ? PINN_OK : PINN_DEVICE_FAILED; }

static cudaError_t add_on(const pinn_run *run, cudaStream_t stream) {
    const add_arguments *a = static_cast<const add_arguments *>(run->arguments);
    add_kernel<<<blocks(a->count), 128, 0, stream>>>(static_cast<int32_t *>(run->write[0]), a->count, a->amount);
    return cudaGetLastError();
}

extern "C" pinn_status add_cuda(const pinn_run *run) { return check(add_on(run, stream_of(run))); }

extern "C" pinn_status double_cuda(const pinn_run *run) {
    const add_arguments *a = static_cast<const add_arguments *>(run->arguments);
    double_kernel<<<blocks(a->count), 128, 0, stream_of(run)>>>(static_cast<const int32_t *>(run->read[0]),
                                                                static_cast<int32_t *>(run->write[0]), a->count);
    return check(cudaGetLastError());
}

extern "C" pinn_status accumulate_cuda(const pinn_run *run) {
    const add_arguments *a = static_cast<const add_arguments *>(run->arguments);
    accumulate_kernel<<<blocks(a->count), 128, 0, stream_of(run)>>>(static_cast<const int32_t *>(run->read[0]),
                                                                    static_cast<int32_t *>(run->write[0]), a->count);
    return check(cudaGetLastError());
}

extern "C" pinn_status fill_cuda(const pinn_run *run) {
    const fill_arguments *a = static_cast<const fill_arguments *>(run->arguments);
    fill_kernel<<<blocks(a->count), 128, 0, stream_of(run)>>>(static_cast<uint8_t *>(run->write[0]), a->count, a->value);
    return check(cudaGetLastError());
}

extern "C" pinn_status nothing_cuda(const pinn_run *run) {
    (void)run;
    return PINN_OK;
}

extern "C" pinn_status allocate_cuda(const pinn_run *run) {
    void *memory = nullptr;
    cudaError_t error = cudaMalloc(&memory, 256);
    cudaError_t added = add_on(run, stream_of(run));
    if (memory) cudaFree(memory);
    return check(error == cudaSuccess ? added : error);
}

extern "C" pinn_status allocate_async_cuda(const pinn_run *run) {
    void *memory = nullptr;
    cudaError_t error = cudaMallocAsync(&memory, 256, stream_of(run));
    if (error == cudaSuccess) error = add_on(run, stream_of(run));
    if (error == cudaSuccess) error = cudaFreeAsync(memory, stream_of(run));
    return check(error);
}

extern "C" pinn_status wait_cuda(const pinn_run *run) {
    cudaError_t error = add_on(run, stream_of(run));
    cudaStreamSynchronize(stream_of(run)); /* its failure is dropped: the capture must notice by itself */
    return check(error);
}

extern "C" pinn_status default_stream_cuda(const pinn_run *run) {
    cudaError_t error = add_on(run, stream_of(run));
    add_on(run, cudaStreamLegacy); /* dropped as above */
    return check(error);
}

/* The helper stream and its events live as long as the process. */
static cudaError_t fork_once(const pinn_run *run, bool join) {
    static cudaStream_t other;
    static cudaEvent_t forked, joined;
    cudaError_t error = cudaSuccess;
    if (!other) error = cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    if (error == cudaSuccess && !forked) error = cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
    if (error == cudaSuccess && !joined) error = cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventRecord(forked, stream_of(run));
    if (error == cudaSuccess) error = cudaStreamWaitEvent(other, forked, 0);
    if (error == cudaSuccess) error = add_on(run, other);
    if (error == cudaSuccess) error = cudaEventRecord(joined, other);
    if (error == cudaSuccess && join) error = cudaStreamWaitEvent(stream_of(run), joined, 0);
    return error;
}

extern "C" pinn_status unjoined_cuda(const pinn_run *run) { return check(fork_once(run, false)); }

extern "C" pinn_status forked_cuda(const pinn_run *run) { return check(fork_once(run, true)); }

extern "C" pinn_status bad_launch_cuda(const pinn_run *run) {
    add_kernel<<<1, 1 << 20, 0, stream_of(run)>>>(static_cast<int32_t *>(run->write[0]), 1, 1);
    return PINN_OK;
}

extern "C" pinn_status fail_cuda(const pinn_run *run) {
    add_on(run, stream_of(run));
    return PINN_NUMERIC;
}

extern "C" pinn_status pageable_cuda(const pinn_run *run) {
    static int32_t source = 1000;
    cudaError_t error = add_on(run, stream_of(run));
    if (error == cudaSuccess) error = cudaMemcpyAsync(run->write[0], &source, 4, cudaMemcpyHostToDevice, stream_of(run));
    return check(error);
}

static void do_nothing(void *) {}

extern "C" pinn_status host_call_cuda(const pinn_run *run) {
    cudaError_t error = add_on(run, stream_of(run));
    if (error == cudaSuccess) error = cudaLaunchHostFunc(stream_of(run), do_nothing, nullptr);
    return check(error);
}

extern "C" pinn_status stray_cuda(const pinn_run *run) {
    stray_kernel<<<1, 1, 0, stream_of(run)>>>(reinterpret_cast<volatile int32_t *>(16));
    return check(cudaGetLastError());
}

extern "C" pinn_status trap_cuda(const pinn_run *run) {
    trap_kernel<<<1, 1, 0, stream_of(run)>>>();
    return check(cudaGetLastError());
}

extern "C" pinn_status slow_cuda(const pinn_run *run) {
    slow_kernel<<<1, 1, 0, stream_of(run)>>>(static_cast<int32_t *>(run->write[0]), SECOND / 20);
    return check(cudaGetLastError());
}

extern "C" pinn_status await_cuda(const pinn_run *run) {
    const await_arguments *a = static_cast<const await_arguments *>(run->arguments);
    await_kernel<<<1, 1, 0, stream_of(run)>>>(a->gate, static_cast<int32_t *>(run->write[0]), 5 * SECOND);
    return check(cudaGetLastError());
}

extern "C" pinn_status meet_cuda(const pinn_run *run) {
    const meet_arguments *a = static_cast<const meet_arguments *>(run->arguments);
    meet_kernel<<<1, 1, 0, stream_of(run)>>>(a->mine, a->other, static_cast<int32_t *>(run->write[0]), 5 * SECOND);
    return check(cudaGetLastError());
}
