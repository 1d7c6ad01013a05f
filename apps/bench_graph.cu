/* The small kernels of `pinn-bench graph`. */
#include "bench_graph.h"

#define THREADS 128

static __device__ void small(float *x, uint32_t count) {
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) x[i] = 0.5f * x[i] + 1;
}

static __global__ void small_kernel(float *x, uint32_t count) { small(x, count); }

static __global__ void last_kernel(float *x, uint32_t count, bench_words *words) {
    small(x, count);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        words->left -= words->left > 0;
        words->going = words->left > 0;
    }
}

static __global__ void set_kernel(bench_words *words, uint32_t trips) {
    words->going = 1;
    words->left = trips;
}

static unsigned blocks(uint32_t count) { return (count + THREADS - 1) / THREADS; }

static cudaStream_t stream_of(const pinn_run *run) { return static_cast<cudaStream_t>(run->stream); }

static pinn_status launched() { return cudaGetLastError() == cudaSuccess ? PINN_OK : PINN_DEVICE_FAILED; }

extern "C" pinn_status bench_small_cuda(const pinn_run *run) {
    const bench_sizes *s = static_cast<const bench_sizes *>(run->arguments);
    small_kernel<<<blocks(s->count), THREADS, 0, stream_of(run)>>>(static_cast<float *>(run->write[0]), s->count);
    return launched();
}

extern "C" pinn_status bench_last_cuda(const pinn_run *run) {
    const bench_sizes *s = static_cast<const bench_sizes *>(run->arguments);
    last_kernel<<<blocks(s->count), THREADS, 0, stream_of(run)>>>(static_cast<float *>(run->write[0]), s->count,
                                                                  static_cast<bench_words *>(run->write[1]));
    return launched();
}

extern "C" pinn_status bench_set_cuda(const pinn_run *run) {
    const bench_sizes *s = static_cast<const bench_sizes *>(run->arguments);
    set_kernel<<<1, 1, 0, stream_of(run)>>>(static_cast<bench_words *>(run->write[0]), s->trips);
    return launched();
}

extern "C" pinn_status bench_stream(void *stream, void *x, uint32_t count, uint64_t steps, uint32_t kernels) {
    cudaStream_t on = static_cast<cudaStream_t>(stream);
    for (uint64_t k = 0; k < steps * kernels; k++) small_kernel<<<blocks(count), THREADS, 0, on>>>(static_cast<float *>(x), count);
    const pinn_status status = launched();
    return cudaStreamSynchronize(on) == cudaSuccess ? status : PINN_DEVICE_FAILED;
}

extern "C" int bench_driver_version(void) {
    int version = 0;
    return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}
