/* Matrix products on tensor cores. C = op(A) op(B) in float32, each operand split into tf32 parts (10 bits of fraction each):
 *
 *   a = hi + lo,  hi = a rounded to tf32,  lo = a - hi  (exact, 12 bits; the tensor core drops the last)
 *   a b = lo hi' + hi lo' + hi hi'                      (lo lo' is below 2^-24 of a b)
 *
 * Tensor cores cut off what they add instead of rounding it, so the three products of WINDOW x 8 values of k are added up there, from
 * zero, the small ones first, and leave for a float32 sum that rounds. Source: Ootomo and Yokota, "Recovering single precision accuracy from
 * Tensor Cores while surpassing the FP32 theoretical peak performance", IJHPCA 36 (2022). What is not finite stays so, but an infinity
 * becomes NaN.
 *
 * A block computes tiles of C, BM x BN, one after another; of op(A) and op(B) it copies stages of BK values of k into shared memory
 * (cp.async, STAGES in flight, also from one tile to the next). A warp has WM x WN of the tile and multiplies slabs of 8 values of k.
 *
 * An operand lies in memory BY_K (k is the contiguous index) or not, and in shared memory as it lies in memory: rows of 16-byte chunks,
 * chunk c of row r at c ^ swizzle(r), so that no two threads want the same bank. Which k of a slab and which row of a tile a lane gets
 * is free as long as both operands and C agree; chosen so that lanes read and write vectors. With g = lane / 4, t = lane % 4 and
 * spread(g) = 0 4 1 5 2 6 3 7 -> position of g:
 *   the tensor core's k = t, t + 4                is  k = 2 t, 2 t + 1 of the slab
 *   row g of its tiles 4G + e (of 8 rows)         is  row 32 G + 4 spread(g) + e of the warp's
 * so a lane's two columns of C, 2t and 2t + 1, become columns 4t .. 4t+3 and 16+4t .. of four tiles: whole sectors are written.
 */
#include "network/product_split.h"

#include <cuda_runtime.h>
#include <stdint.h>

#include "core/status.h"

static constexpr int BK = 32, SLAB = 8, SLABS = BK / SLAB;
enum form { NN, NT, TN, FORMS };

typedef struct arguments {
    const float *a, *b;
    float *c;
    unsigned m, n, k;
    size_t stride_a, stride_b, stride_c; /* elements, from one of the batch to the next */
    unsigned steps; /* stages of a tile */
    unsigned row_tiles, column_tiles, tiles;
} arguments;

/* ---- instructions ------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ unsigned shared_address(const void *pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

/* 16 bytes, zeros unless valid. */
static __device__ __forceinline__ void copy_chunk(unsigned target, const float *source, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(valid ? 16 : 0) : "memory");
}
static __device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING>
static __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* d += a b, 16 x 8 x 8; of a and b only the upper 19 bits count. */
static __device__ __forceinline__ void multiply(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
          "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

/* NaN need not stay NaN in hi: it does in lo. */
static __device__ __forceinline__ void split(float x, float &hi, float &lo) {
    hi = __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
    lo = x - hi;
}

/* ---- memory to shared memory --------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ int spread(int g) { return g >> 1 | (g & 1) << 2; }

/* Chunks are exchanged within groups of eight: 128 bytes, all banks once. */
template <bool BY_K>
static __device__ __forceinline__ int swizzle(int row) {
    return BY_K ? (row >> 4 & 1) << 1 | (row >> 2 & 1) << 2 /* of g, (g & 3) << 1 */ : row >> 1 & 3 /* t */;
}

/* One thread's part in copying an operand's tiles, `ROWS` of m or n. */
template <int ROWS, int THREADS, bool BY_K>
struct loader {
    static constexpr int CHUNKS = (BY_K ? BK : ROWS) / 4, STEP = THREADS / CHUNKS, COUNT = (BY_K ? ROWS : BK) / STEP;
    const float *source;
    int left; /* of m or n, from this thread's first chunk on */

    static __device__ __forceinline__ unsigned first() { return threadIdx.x / CHUNKS; }
    static __device__ __forceinline__ unsigned chunk() { return threadIdx.x % CHUNKS; }
    static __device__ __forceinline__ size_t pitch(unsigned rows, unsigned k) { return BY_K ? k : rows; } /* elements */

    __device__ __forceinline__ void begin(const float *operand, unsigned rows, unsigned k, unsigned row) {
        left = (int)(rows - row - (BY_K ? first() : 4 * chunk()));
        source = operand + first() * pitch(rows, k) + 4 * chunk() + row * (BY_K ? (size_t)k : 1);
    }
    /* One stage from k = `at` on; moves on to the next. */
    __device__ __forceinline__ void copy(unsigned target, unsigned rows, unsigned k, unsigned at) {
        const int k_left = (int)(k - at - (BY_K ? 4 * chunk() : first()));
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int row = first() + i * STEP;
            copy_chunk(target + (unsigned)(row * CHUNKS + (chunk() ^ swizzle<BY_K>(row))) * 16, source + i * STEP * pitch(rows, k),
                       (BY_K ? left : k_left) > i * STEP && (BY_K ? k_left : left) > 0);
        }
        source += BY_K ? BK : BK * pitch(rows, k);
    }
};

/* ---- shared memory to registers ------------------------------------------------------------------------------------------------- */

/* x[r][v]: row g of the warp's tile r, k = 2 t + v of the slab. `tile`: of ROWS rows; `first`: the warp's. */
template <int ROWS, int EXTENT, bool BY_K>
static __device__ __forceinline__ void read_slab(const float *tile, int first, int slab, float (&x)[EXTENT / 8][2]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    if (BY_K) {
        const int row = first + 4 * spread(g), chunk = (2 * slab + (t >> 1)) ^ swizzle<true>(4 * spread(g));
        const float *lane = tile + row * BK + chunk * 4 + (t & 1) * 2;
#pragma unroll
        for (int r = 0; r < EXTENT / 8; r++) {
            const float2 pair = *reinterpret_cast<const float2 *>(lane + (r / 4 * 32 + r % 4) * BK);
            x[r][0] = pair.x, x[r][1] = pair.y;
        }
    } else {
        const float *lane = tile + (slab * SLAB + 2 * t) * ROWS + first + (spread(g) ^ t) * 4;
#pragma unroll
        for (int group = 0; group < EXTENT / 32; group++)
#pragma unroll
            for (int v = 0; v < 2; v++) {
                const float4 four = *reinterpret_cast<const float4 *>(lane + v * ROWS + group * 32);
                x[4 * group][v] = four.x, x[4 * group + 1][v] = four.y, x[4 * group + 2][v] = four.z, x[4 * group + 3][v] = four.w;
            }
    }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------------------ */

/* WINDOW: slabs whose products are added in the tensor core. */
template <int BM_, int BN_, int WM_, int WN_, int STAGES_, int BLOCKS_, int WINDOW_>
struct shape {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, STAGES = STAGES_, BLOCKS = BLOCKS_, WINDOW = WINDOW_;
    static constexpr int THREADS = BM / WM * (BN / WN) * 32, STAGE_BYTES = (BM + BN) * BK * (int)sizeof(float);
    static constexpr int MT = WM / 16, NT = WN / 8; /* a warp's tiles of 16 x 8 */
    static_assert(WM % 32 == 0 && WN % 32 == 0, "lanes read 32 rows together");
    static_assert(SLABS % WINDOW == 0, "windows end with stages");
};

/* Rows g, g + 8 of tile i of 16 rows, then the same with k + 4: the order of the instruction's operand. */
template <class S>
static __device__ __forceinline__ float pick(const float (&a)[S::WM / 8][2], int i, int q) {
    return a[2 * i + q % 2][q / 2];
}

/* Products of split operands; `part` is the tensor cores' sum since the window's first slab. */
template <class S>
static __device__ __forceinline__ void multiply_slab(const float (&a)[S::WM / 8][2], const float (&b)[S::WN / 8][2], int slab,
                                                           float (&part)[S::MT][S::NT][4], float (&sum)[S::MT][S::NT][4]) {
    float b_hi[S::NT][2], b_lo[S::NT][2];
#pragma unroll
    for (int j = 0; j < S::NT; j++) split(b[j][0], b_hi[j][0], b_lo[j][0]), split(b[j][1], b_hi[j][1], b_lo[j][1]);
#pragma unroll
    for (int i = 0; i < S::MT; i++) {
        float hi[4], lo[4];
#pragma unroll
        for (int q = 0; q < 4; q++) split(pick<S>(a, i, q), hi[q], lo[q]);
        if (slab % S::WINDOW == 0)
#pragma unroll
            for (int j = 0; j < S::NT; j++) part[i][j][0] = part[i][j][1] = part[i][j][2] = part[i][j][3] = 0;
#pragma unroll
        for (int j = 0; j < S::NT; j++) multiply(part[i][j], lo, b_hi[j]);
#pragma unroll
        for (int j = 0; j < S::NT; j++) multiply(part[i][j], hi, b_lo[j]);
#pragma unroll
        for (int j = 0; j < S::NT; j++) multiply(part[i][j], hi, b_hi[j]);
        if ((slab + 1) % S::WINDOW == 0)
#pragma unroll
            for (int j = 0; j < S::NT; j++)
#pragma unroll
                for (int q = 0; q < 4; q++) sum[i][j][q] += part[i][j][q];
    }
}

template <class S, bool A_BY_K, bool B_BY_K>
static __device__ __forceinline__ void read_slabs(const float *a, const float *b, int first_row, int first_column, int slab,
                                                  float (&a_slab)[S::WM / 8][2], float (&b_slab)[S::WN / 8][2]) {
    read_slab<S::BM, S::WM, A_BY_K>(a, first_row, slab, a_slab);
    read_slab<S::BN, S::WN, B_BY_K>(b, first_column, slab, b_slab);
}

template <class S, bool A_BY_K, bool B_BY_K>
static __device__ __forceinline__ void multiply_stage(const float *a, const float *b, int first_row, int first_column,
                                                      float (&sum)[S::MT][S::NT][4]) {
    float part[S::MT][S::NT][4], a_slab[S::WM / 8][2], b_slab[S::WN / 8][2];
#pragma unroll
    for (int slab = 0; slab < SLABS; slab++) {
        read_slabs<S, A_BY_K, B_BY_K>(a, b, first_row, first_column, slab, a_slab, b_slab);
        multiply_slab<S>(a_slab, b_slab, slab, part, sum);
    }
}

/* The warp's part of C from (row, column) on, which is then set to zero. */
template <class S>
static __device__ __forceinline__ void store(const arguments &g, unsigned batch, unsigned row, unsigned column, float (&sum)[S::MT][S::NT][4]) {
    const unsigned lane = threadIdx.x % 32, first = row + 4 * spread(lane / 4);
    column += lane % 4 * 4;
    float *c = g.c + batch * g.stride_c + (size_t)first * g.n + column;
#pragma unroll
    for (int r = 0; r < S::WM / 8; r++) { /* row g of tile r of 8 rows */
        const unsigned further = r / 4 * 32 + r % 4;
#pragma unroll
        for (int j = 0; j < S::NT; j += 4)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float(*tile)[4] = &sum[r / 2][j];
                const int q = r % 2 * 2 + e;
                if (first + further < g.m && column + j * 8 + e * 16 < g.n)
                    *reinterpret_cast<float4 *>(c + (size_t)further * g.n + j * 8 + e * 16) = make_float4(tile[0][q], tile[1][q], tile[2][q], tile[3][q]);
                tile[0][q] = tile[1][q] = tile[2][q] = tile[3][q] = 0;
            }
    }
}

typedef struct place {
    unsigned batch, row, column;
} place;

/* Tiles of one row follow one another, so that blocks at work at the same time share its part of A. */
template <class S>
static __device__ __forceinline__ place place_tile(const arguments &g, unsigned tile) {
    const unsigned rows = tile / g.column_tiles;
    return {rows / g.row_tiles, rows % g.row_tiles * S::BM, tile % g.column_tiles * S::BN};
}

template <class S, bool A_BY_K, bool B_BY_K>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS) product_kernel(const __grid_constant__ arguments g) {
    extern __shared__ __align__(128) float shared[]; /* [STAGES][op(A): BM x BK, op(B): BN x BK] */
    const int warp = threadIdx.x / 32, first_row = warp / (S::BN / S::WN) * S::WM, first_column = warp % (S::BN / S::WN) * S::WN;
    loader<S::BM, S::THREADS, A_BY_K> a;
    loader<S::BN, S::THREADS, B_BY_K> b;
    unsigned next = blockIdx.x, ahead = 0; /* tile and step to be copied next */
    const auto fetch = [&](int stage) {
        if (next < g.tiles) {
            if (ahead == 0) {
                const place p = place_tile<S>(g, next);
                a.begin(g.a + p.batch * g.stride_a, g.m, g.k, p.row);
                b.begin(g.b + p.batch * g.stride_b, g.n, g.k, p.column);
            }
            const unsigned target = shared_address(shared) + stage * S::STAGE_BYTES;
            a.copy(target, g.m, g.k, ahead * BK);
            b.copy(target + S::BM * BK * (unsigned)sizeof(float), g.n, g.k, ahead * BK);
            if (++ahead == g.steps) ahead = 0, next += gridDim.x;
        }
        copy_commit(); /* a group even if empty: the wait counts groups */
    };
    for (int stage = 0; stage < S::STAGES - 1; stage++) fetch(stage);
    float sum[S::MT][S::NT][4] = {};
    int stage = 0;
    for (unsigned tile = blockIdx.x; tile < g.tiles; tile += gridDim.x) {
        for (unsigned step = 0; step < g.steps; step++) {
            copy_wait<S::STAGES - 2>();
            __syncthreads(); /* all have copied this stage and have done with the one before, which is filled next */
            fetch(stage == 0 ? S::STAGES - 1 : stage - 1);
            const float *at = shared + stage * (S::STAGE_BYTES / (int)sizeof(float));
            multiply_stage<S, A_BY_K, B_BY_K>(at, at + S::BM * BK, first_row, first_column, sum);
            if (++stage == S::STAGES) stage = 0;
        }
        const place p = place_tile<S>(g, tile);
        store<S>(g, p.batch, p.row + first_row, p.column + first_column, sum);
    }
    copy_wait<0>();
}

/* ---- launches ------------------------------------------------------------------------------------------------------------------- */

/* The fastest of fifteen on an H200. */
typedef shape<128, 64, 64, 32, 4, 2, 4> best;
static constexpr int SHARED_BYTES = best::STAGES * best::STAGE_BYTES;
static const void *const form[FORMS] = {(const void *)product_kernel<best, true, false>, (const void *)product_kernel<best, true, true>,
                                        (const void *)product_kernel<best, false, false>};

static bool aligned(const void *pointer) { return (uintptr_t)pointer % 16 == 0; }

/* 0 where it can't be asked. */
static int attribute(cudaDeviceAttr which) {
    int device = 0, value = 0;
    return cudaGetDevice(&device) == cudaSuccess && cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

/* The sizes of a product cut into tiles; false when they are too many. */
static bool cut_tiles(const pn_product *p, arguments *g) {
    const size_t rows = (p->m + best::BM - 1) / best::BM, columns = (p->n + best::BN - 1) / best::BN;
    if (p->batch > INT32_MAX / rows / columns) return false;
    g->m = (unsigned)p->m;
    g->n = (unsigned)p->n;
    g->k = (unsigned)p->k;
    g->stride_a = p->stride_a;
    g->stride_b = p->stride_b;
    g->stride_c = p->stride_c;
    g->steps = (unsigned)((p->k + BK - 1) / BK);
    g->row_tiles = (unsigned)rows;
    g->column_tiles = (unsigned)columns;
    g->tiles = (unsigned)(rows * columns * p->batch);
    return true;
}

extern "C" bool pn_split_takes(const pn_product *p, const void *a, const void *b, const void *c) {
    const size_t pitch_a = p->transpose_a ? p->m : p->k, pitch_b = p->transpose_b ? p->k : p->n;
    const size_t strides = p->batch > 1 ? p->stride_a | p->stride_b | p->stride_c : 0;
    arguments g;
    return !(p->transpose_a && p->transpose_b) && p->m > 0 && p->n > 0 && p->k > 0 && (pitch_a | pitch_b | p->n | strides) % 4 == 0 &&
           aligned(a) && aligned(b) && aligned(c) && cut_tiles(p, &g) && attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >= SHARED_BYTES;
}

extern "C" pinn_status pn_split_launch(const pn_product *p, void *stream, const void *a, const void *b, void *c) {
    const void *entry = form[p->transpose_a ? TN : p->transpose_b ? NT : NN];
    arguments g = {};
    g.a = (const float *)a;
    g.b = (const float *)b;
    g.c = (float *)c;
    if (!cut_tiles(p, &g)) return pn_fail(PINN_UNSUPPORTED, "a product of more than %d tiles", INT32_MAX);
    const unsigned most = (unsigned)attribute(cudaDevAttrMultiProcessorCount) * best::BLOCKS;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(g.tiles < most ? g.tiles : most);
    config.blockDim = dim3(best::THREADS);
    config.dynamicSmemBytes = SHARED_BYTES;
    config.stream = (cudaStream_t)stream;
    void *argument[] = {&g};
    cudaError_t error = cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error == cudaSuccess) error = cudaLaunchKernelExC(&config, entry, argument);
    if (error == cudaSuccess) return PINN_OK;
    cudaGetLastError();
    return pn_fail(PINN_DEVICE_FAILED, "split product [%u, %u] x [%u, %u]: %s", g.m, g.k, g.k, g.n, cudaGetErrorString(error));
}
