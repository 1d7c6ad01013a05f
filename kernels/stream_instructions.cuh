/* Instructions of the streamed network pass that C++ has no words for. Compiled by NVRTC only, for compute capability 8.0 and later.
 *
 * Fragments of mma.m16n8k16 (PTX ISA). With g = lane/4, t = lane%4, two neighbours in a word, the first in its lower half:
 *   a[0..3] = A(g, 2t..), A(g+8, 2t..), A(g, 2t+8..), A(g+8, 2t+8..);   b[0..1] = B(2t.., g), B(2t+8.., g);   c[0..3] = C(g, 2t..), C(g+8, 2t..)
 * load_matrices: four matrices of 8 x 8, rows of 16 bytes; lane i gives the address of row i%8 of matrix i/8 and gets elements
 * (g, 2t..) of each, or (2t.., g) transposed. */
typedef unsigned word; /* two fp16, or bits */

static __device__ __forceinline__ unsigned shared_address(const void *pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

/* 16 bytes to shared memory, in the background. */
static __device__ __forceinline__ void copy_chunk(unsigned target, const void *source) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(source) : "memory");
}
/* The same, or zeros. */
static __device__ __forceinline__ void copy_chunk_if(bool valid, unsigned target, const void *source) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(valid ? 16 : 0) : "memory");
}
static __device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> static __device__ __forceinline__ void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

static __device__ __forceinline__ void load_matrices(word (&x)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(address));
}
static __device__ __forceinline__ void load_transposed(word (&x)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address));
}

static __device__ __forceinline__ void mma(float (&c)[4], const word (&a)[4], const word (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Rounded to fp16, to nearest; `first` in the lower half. */
static __device__ __forceinline__ word round_pair(float first, float second) {
    word pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
static __device__ __forceinline__ float lower(word pair) {
    float x;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }" : "=f"(x) : "r"(pair));
    return x;
}
static __device__ __forceinline__ float upper(word pair) {
    float x;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "r"(pair));
    return x;
}

static __device__ __forceinline__ float from_lane(float x, int step) { return __shfl_xor_sync(~0u, x, step); }
static __device__ __forceinline__ float sum_lanes(float x, int step) { return x + __shfl_xor_sync(~0u, x, step); }
static __device__ __forceinline__ unsigned most_lanes(unsigned x, int step) {
    const unsigned y = __shfl_xor_sync(~0u, x, step);
    return x > y ? x : y;
}
