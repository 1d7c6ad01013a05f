/* Matrix products of the tiled network pass, on tensor cores, between arrays in shared memory. Compiled by NVRTC only, after the constants
 * that src/network/tile_source.c prints (T, PRODUCTS, STRIDE, WEIGHT_STRIDE ...).
 *
 * Fragments. One warp multiplies 16x8 by 8x8 at a time (PTX ISA, mma.m16n8k8). With g = lane/4, t = lane%4 a lane holds
 *   a[0..3] = A(g, t), A(g+8, t), A(g, t+4), A(g+8, t+4);   b[0..1] = B(t, g), B(t+4, g);   c[0..3] = C(g, 2t), C(g, 2t+1), C(g+8, ..).
 * The sum over k may run in any order, so k = t, t+4 may also be read as columns 2t, 2t+1 of both operands.
 *
 * Banks. Element (row, column) of an array lies at row*stride + (column ^ swizzle(row)), stride a multiple of the 32 banks. Then these
 * reads by one warp touch each bank once: 8 rows x 4 neighbouring columns, 4 rows x 8 columns, 8 rows x 4 pairs of columns. The first is A and
 * the transposed weights, the second the weights and both operands of a weight gradient, the third dZ and what a lane writes.
 *
 * Accuracy. tf32 keeps 11 bits. TF32X3 writes each operand as hi + lo, hi rounded to nearest, and adds lo*hi + hi*lo + hi*hi: what is left
 * out is 2^-22 of the product. Tensor cores truncate when they add, so long sums leave them every SUM_ROWS rows. */


static __device__ __forceinline__ int swizzle(int row) {
    return sizeof(T) == 4 ? (row & 3) << 3 | (row & 4) : (row & 3) << 2;
}
/* swizzle(row + 4) = swizzle(row) ^ NEXT_HALF for row < 4 */
constexpr int NEXT_HALF = sizeof(T) == 4 ? 4 : 0;

template <typename R> struct pair_of;
template <> struct pair_of<float> { typedef float2 type; };
template <> struct pair_of<double> { typedef double2 type; };
typedef pair_of<T>::type pair;

/* Rounded to tf32 where products see nothing else of it anyway. */
static __device__ __forceinline__ float rounded(float x) {
    return PRODUCTS == PRODUCTS_TF32 ? __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u) : x;
}
static __device__ __forceinline__ double rounded(double x) { return x; }

static __device__ __forceinline__ void split(float x, float &hi, float &lo) {
    hi = __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
    lo = x - hi;
}

static __device__ __forceinline__ void mma(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
          "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

static __device__ __forceinline__ void mma(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else /* sm_80 has 8x8x4 only: four of them, on the same fragments */
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 2; k++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
                : "d"(a[2 * k + half]), "d"(b[k]));
#endif
}

/* The same product without tensor cores, operands fetched from the lanes that hold them: slow, the oracle of the others. */
static __device__ __forceinline__ void fma_fragments(T (&c)[4], const T (&a)[4], const T (&b)[2]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int k = 0; k < 8; k++) {
        const T upper = __shfl_sync(~0u, k < 4 ? a[0] : a[2], 4 * g + k % 4), lower = __shfl_sync(~0u, k < 4 ? a[1] : a[3], 4 * g + k % 4);
        const T left = __shfl_sync(~0u, b[k / 4], 4 * (2 * t) + k % 4), right = __shfl_sync(~0u, b[k / 4], 4 * (2 * t + 1) + k % 4);
        c[0] = fma(upper, left, c[0]);
        c[1] = fma(upper, right, c[1]);
        c[2] = fma(lower, left, c[2]);
        c[3] = fma(lower, right, c[3]);
    }
}

/* c[m][n] += a[m] b[n]. The three parts of a split product follow each other as far apart as the tile allows. */
template <int M, int N> static __device__ __forceinline__ void multiply(const T (&a)[M][4], const T (&b)[N][2], T (&c)[M][N][4]) {
    if constexpr (PRODUCTS == PRODUCTS_TF32X3) {
        float hi_a[M][4], lo_a[M][4], hi_b[N][2], lo_b[N][2];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) split(a[m][i], hi_a[m][i], lo_a[m][i]);
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) split(b[n][i], hi_b[n][i], lo_b[n][i]);
#pragma unroll
        for (int part = 0; part < 3; part++)
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int m = 0; m < M; m++) mma(c[m][n], part == 0 ? lo_a[m] : hi_a[m], part == 1 ? lo_b[n] : hi_b[n]);
    } else {
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int m = 0; m < M; m++)
                if constexpr (PRODUCTS == PRODUCTS_FMA)
                    fma_fragments(c[m][n], a[m], b[n]);
                else
                    mma(c[m][n], a[m], b[n]);
    }
}

template <int M, int N> static __device__ __forceinline__ void clear(T (&c)[M][N][4]) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) c[m][n][i] = 0;
}

/* Z = A W. `a`: the warp's first row (a multiple of 8) in A; tile n has columns column[n]..column[n]+7 of Z; 8*STEPS columns of A. */
template <int M, int N, int STEPS>
static __device__ __forceinline__ void product_forward(const T *a, const T *w, const int (&column)[N], T (&z)[M][N][4]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, turn = swizzle(g);
    const T *row = a + g * STRIDE, *weight = w + t * WEIGHT_STRIDE;
    int at[N];
#pragma unroll
    for (int n = 0; n < N; n++) at[n] = (column[n] + g) ^ swizzle(t);
    clear(z);
#pragma unroll(STEPS <= 8 ? STEPS : 4)
    for (int k = 0; k < STEPS; k++) {
        T fa[M][4], fb[N][2];
        const int c = (8 * k + t) ^ turn;
#pragma unroll
        for (int m = 0; m < M; m++) {
            fa[m][0] = row[16 * m * STRIDE + c];
            fa[m][1] = row[(16 * m + 8) * STRIDE + c];
            fa[m][2] = row[16 * m * STRIDE + (c ^ 4)];
            fa[m][3] = row[(16 * m + 8) * STRIDE + (c ^ 4)];
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            fb[n][0] = weight[8 * k * WEIGHT_STRIDE + at[n]];
            fb[n][1] = weight[(8 * k + 4) * WEIGHT_STRIDE + (at[n] ^ NEXT_HALF)];
        }
        multiply<M, N>(fa, fb, z);
    }
}

/* dA = dZ W^T, likewise; 8*STEPS columns of dZ. */
template <int M, int N, int STEPS>
static __device__ __forceinline__ void product_backward(const T *dz, const T *w, const int (&column)[N], T (&da)[M][N][4]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, turn = swizzle(g);
    const T *row = dz + g * STRIDE, *weight[N];
#pragma unroll
    for (int n = 0; n < N; n++) weight[n] = w + (column[n] + g) * WEIGHT_STRIDE;
    clear(da);
#pragma unroll(STEPS <= 8 ? STEPS : 4)
    for (int k = 0; k < STEPS; k++) {
        T fa[M][4], fb[N][2];
        const int c = (8 * k + 2 * t) ^ turn;
#pragma unroll
        for (int m = 0; m < M; m++) {
            const pair upper = *(const pair *)&row[16 * m * STRIDE + c], lower = *(const pair *)&row[(16 * m + 8) * STRIDE + c];
            fa[m][0] = upper.x;
            fa[m][1] = lower.x;
            fa[m][2] = upper.y;
            fa[m][3] = lower.y;
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            const pair two = *(const pair *)&weight[n][c];
            fb[n][0] = two.x;
            fb[n][1] = two.y;
        }
        multiply<M, N>(fa, fb, da);
    }
}

/* dW += A^T dZ over `rows` rows (a multiple of 8): rows first_in.. of dW (M tiles of 16), columns first_out.. (N tiles of 8). */
template <int M, int N>
static __device__ __forceinline__ void product_weights(const T *a, const T *dz, int rows, int first_in, int first_out, T (&dw)[M][N][4]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const T *in = a + t * STRIDE, *out = dz + t * STRIDE;
    int at_in[M][2], at_out[N];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) at_in[m][h] = (first_in + 16 * m + 8 * h + g) ^ swizzle(t);
#pragma unroll
    for (int n = 0; n < N; n++) at_out[n] = (first_out + 8 * n + g) ^ swizzle(t);
    for (int first = 0; first < rows; first += SUM_ROWS) {
        T part[M][N][4];
        clear(part);
        const int end = first + SUM_ROWS < rows ? first + SUM_ROWS : rows;
#pragma unroll 4
        for (int r = first; r < end; r += 8) {
            T fa[M][4], fb[N][2];
            const T *in_row = in + r * STRIDE, *out_row = out + r * STRIDE;
#pragma unroll
            for (int m = 0; m < M; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    fa[m][h] = in_row[at_in[m][h]];
                    fa[m][h + 2] = in_row[4 * STRIDE + (at_in[m][h] ^ NEXT_HALF)];
                }
#pragma unroll
            for (int n = 0; n < N; n++) {
                fb[n][0] = out_row[at_out[n]];
                fb[n][1] = out_row[4 * STRIDE + (at_out[n] ^ NEXT_HALF)];
            }
            multiply<M, N>(fa, fb, part);
        }
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) dw[m][n][i] += part[m][n][i];
    }
}
