/* Matrix products of the tiled network pass in T: float64 on tensor cores, and an oracle by plain multiply-adds. Between arrays in shared
 * memory. Compiled by NVRTC only, after the constants that src/network/tile_source.c prints; kernels/tile_halves.cuh is float32's.
 *
 * Fragments. One warp multiplies 16x8 by 8x8 at a time (PTX ISA, mma.m16n8k8). With g = lane/4, t = lane%4 a lane holds
 *   a[0..3] = A(g, t), A(g+8, t), A(g, t+4), A(g+8, t+4);   b[0..1] = B(t, g), B(t+4, g);   c[0..3] = C(g, 2t), C(g, 2t+1), C(g+8, ..).
 * The sum over k may run in any order, so k = t, t+4 may also be read as columns 2t, 2t+1 of both operands.
 *
 * Banks. Element (row, column) of an array lies at row*stride + (column ^ swizzle(row)), stride a multiple of the 32 banks. Then these
 * reads by one warp touch each bank once: 8 rows x 4 neighbouring columns, 4 rows x 8 columns, 8 rows x 4 pairs of columns. The first is A and
 * the transposed weights, the second the weights and both operands of a weight gradient, the third dZ and what a lane writes. */

typedef T element;
constexpr int K_STEP = 8, PARTS = 1;
constexpr bool SCALED = false, CHAINS = false; /* no scales; operands come from shared memory */

static __device__ __forceinline__ int swizzle(int row) {
    return sizeof(T) == 4 ? (row & 3) << 3 | (row & 4) : (row & 3) << 2;
}
/* swizzle(row + 4) = swizzle(row) ^ NEXT_HALF for row < 4 */
constexpr int NEXT_HALF = sizeof(T) == 4 ? 4 : 0;

static __device__ __forceinline__ T larger_magnitude(T largest, T) { return largest; }
static __device__ __forceinline__ T largest_of_warp(T largest) { return largest; }
static __device__ __forceinline__ T scale_up(T) { return 1; }
static __device__ __forceinline__ T scale_down(T) { return 1; }

template <int S> static __device__ __forceinline__ int place(int row, int column) { return row * S + (column ^ swizzle(row)); }

template <int S, int PART> static __device__ __forceinline__ void store_pair(element *to, int row, int column, T x0, T x1, T) {
    *(pair *)&to[place<S>(row, column)] = pair{x0, x1};
}
template <int S, int PART> static __device__ __forceinline__ void store_one(element *to, int row, int column, T x, T) {
    to[place<S>(row, column)] = x;
}
/* N neighbours from a multiple of N on, N = 1, 2, 4: they are neighbours in the array too. */
template <int S, int PART, int N> static __device__ __forceinline__ void store_run(element *to, int row, int column, const T (&x)[N], T) {
#pragma unroll
    for (int i = 0; i < N; i++) to[place<S>(row, column) + i] = x[i];
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

/* c[m][n] += a[m] b[n] */
template <int M, int N> static __device__ __forceinline__ void multiply(const T (&a)[M][4], const T (&b)[N][2], T (&c)[M][N][4]) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int m = 0; m < M; m++)
            if constexpr (PRODUCTS == PRODUCTS_FLOAT64)
                mma(c[m][n], a[m], b[n]);
            else
                fma_fragments(c[m][n], a[m], b[n]);
}

template <int M, int N> static __device__ __forceinline__ void clear(T (&c)[M][N][4]) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) c[m][n][i] = 0;
}

/* ---- operands ----------------------------------------------------------------------------------------------------------------- */

/* A warp's rows, M tiles of 16, by N tiles of 8 columns, ready to be stored. */
template <int M, int N> struct packed { T value[M][N][4]; };

template <int M, int N> static __device__ __forceinline__ void pack(const T (&z)[M][N][4], T, packed<M, N> &p) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) p.value[m][n][i] = z[m][n][i];
}
/* Where a lane stores what it holds of a warp's rows, N tiles of columns. */
template <int S, int PART, int N> struct lane_tiles {
    element *array;
    int row, column;
    __device__ __forceinline__ lane_tiles(element *to, int first_row, int first_column)
        : array(to), row(first_row + threadIdx.x % 32 / 4), column(first_column + threadIdx.x % 4 * 2) {}
    __device__ __forceinline__ void put(int m, int n, int h, T x0, T x1, T up) const {
        store_pair<S, PART>(array, row + 16 * m + 8 * h, column + 8 * n, x0, x1, up);
    }
};
template <int S, int PART, int M, int N>
static __device__ __forceinline__ void store_packed(const packed<M, N> &p, element *to, int first_row, int first_column) {
    const lane_tiles<S, PART, N> lane(to, first_row, first_column);
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int h = 0; h < 2; h++) lane.put(m, n, h, p.value[m][n][2 * h], p.value[m][n][2 * h + 1], 1);
}

template <int M, int N> struct from_packed; /* none: CHAINS is false */

/* A product's left operand; `pairs`: as columns 2t, 2t+1. */
template <int M, int S, int PART> struct from_shared {
    const T *row;
    __device__ __forceinline__ from_shared(const element *a, int first_row) : row(a + (first_row + threadIdx.x % 32 / 4) * S) {}
    __device__ __forceinline__ void step(int k, bool pairs, T (&a)[M][4]) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, c = (8 * k + (pairs ? 2 * t : t)) ^ swizzle(g);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const T *const at = row + (16 * m + 8 * h) * S;
                if (pairs) {
                    const pair two = *(const pair *)&at[c];
                    a[m][h] = two.x;
                    a[m][h + 2] = two.y;
                } else {
                    a[m][h] = at[c];
                    a[m][h + 2] = at[c ^ 4];
                }
            }
    }
};

/* ---- products ----------------------------------------------------------------------------------------------------------------- */

/* Z = A W (columns from first_column on), or A W^T. S, PART: of the weights. */
template <int M, int N, int STEPS, bool TRANSPOSED, int S, int PART, typename A>
static __device__ __forceinline__ void product(const A &a, const element *w, int first_column, T, T (&z)[M][N][4]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    clear(z);
#pragma unroll(STEPS <= 8 ? STEPS : 4)
    for (int k = 0; k < STEPS; k++) {
        T fa[M][4], fb[N][2];
        a.step(k, TRANSPOSED, fa);
#pragma unroll
        for (int n = 0; n < N; n++) {
            const int column = first_column + 8 * n + g;
            if constexpr (TRANSPOSED) {
                const pair two = *(const pair *)&w[column * S + ((8 * k + 2 * t) ^ swizzle(g))];
                fb[n][0] = two.x;
                fb[n][1] = two.y;
            } else {
                fb[n][0] = w[(8 * k + t) * S + (column ^ swizzle(t))];
                fb[n][1] = w[(8 * k + 4 + t) * S + (column ^ swizzle(t) ^ NEXT_HALF)];
            }
        }
        multiply<M, N>(fa, fb, z);
    }
}

/* dW += A^T dZ over `units` units of UNIT_ROWS rows: rows first_in.. of dW (M tiles of 16), columns first_out.. (N tiles of 8). */
template <int M, int N, int UNIT_ROWS, int S, int PART>
static __device__ __forceinline__ void product_weights(const element *a, const element *dz, int units, const T *, int first_in, int first_out,
                                                       T (&dw)[M][N][4]) {
    const int rows = units * UNIT_ROWS;
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const T *in = a + t * S, *out = dz + t * S;
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
            const T *in_row = in + r * S, *out_row = out + r * S;
#pragma unroll
            for (int m = 0; m < M; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    fa[m][h] = in_row[at_in[m][h]];
                    fa[m][h + 2] = in_row[4 * S + (at_in[m][h] ^ NEXT_HALF)];
                }
#pragma unroll
            for (int n = 0; n < N; n++) {
                fb[n][0] = out_row[at_out[n]];
                fb[n][1] = out_row[4 * S + (at_out[n] ^ NEXT_HALF)];
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
