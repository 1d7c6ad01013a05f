/* Matrix products of the tiled network pass on the tensor cores' fastest arithmetic, half precision. Compiled by NVRTC only, after the
 * constants that src/network/tile_source.c prints; kernels/tile_products.cuh gives the same interface in T.
 *
 * Accuracy. A float32 x is kept as up*x = hi + lo, two halves of 11 bits each; `up` is the power of two that brings the largest of its unit
 * (its layer, for weights) to 2^14..2^15. What lies within 2^-17 of the largest so keeps 22 bits, the rest an error of 2^-39 of the largest.
 * HALFX3 adds lo*hi + hi*lo + hi*hi: what is left out is 2^-22 of the product. HALF keeps hi alone, as many bits as tf32. An infinity
 * becomes NaN. Tensor cores truncate when they add, so sums over many rows leave them after each unit.
 * Source of the split: Markidis et al., NVIDIA Tensor Core programmability, performance & precision, IPDPSW 2018; Ootomo and Yokota,
 * Recovering single precision accuracy from Tensor Cores, IJHPCA 36 (2022).
 *
 * Fragments (PTX ISA, mma.m16n8k16). With g = lane/4, t = lane%4 a lane holds of A(16 x 16) the pairs A(g, 2t..), A(g+8, 2t..),
 * A(g, 2t+8..), A(g+8, 2t+8..), of B(16 x 8) the pairs B(2t.., g), B(2t+8.., g), of C(16 x 8) C(g, 2t), C(g, 2t+1), C(g+8, ..).
 * So two tiles of C, side by side, are a fragment of A: a warp that owns whole rows multiplies its results without any memory.
 *
 * Banks. Arrays are rows of 16-byte chunks, chunk c of row r at c ^ turn(r): the eight rows that ldmatrix reads touch each bank once.
 * Rows that differ by a multiple of 8 have the same turn. The lower parts follow the upper ones, `PART` elements behind. */

typedef unsigned short element;
constexpr int K_STEP = 16, PARTS = PRODUCTS == PRODUCTS_HALFX3 ? 2 : 1;
constexpr bool SCALED = true, CHAINS = true;

template <int S> static __device__ __forceinline__ int turn(int row) { return S % 64 == 0 ? row & 7 : S % 32 == 0 ? row >> 1 & 3 : row >> 2 & 1; }
template <int S> static __device__ __forceinline__ int place(int row, int column) {
    return row * S + ((column >> 3 ^ turn<S>(row)) << 3 | (column & 7));
}

static __device__ __forceinline__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
template <int S> static __device__ __forceinline__ unsigned address_of(const element *array, int row, int column) {
    return shared_address(array) + 2 * place<S>(row, column);
}
/* The address `chunks` further on in the row of `at`, where no digit of the chunk's number is carried: arrays begin at multiples of
 * ARRAY_ALIGNMENT, so that the turned digits stand alone. One instruction, where place() takes several. */
template <int S> static __device__ __forceinline__ unsigned further(unsigned at, int chunks) {
    constexpr int turned = S % 64 == 0 ? 7 : S % 32 == 0 ? 3 : 1;
    return (at ^ (unsigned)((chunks & turned) << 4)) + (unsigned)((chunks & ~turned) << 4);
}

/* ---- scales ------------------------------------------------------------------------------------------------------------------- */

/* NaN doesn't count: it stays NaN at any scale. */
static __device__ __forceinline__ T larger_magnitude(T largest, T x) { return fmaxf(largest, fabsf(x)); }
static __device__ __forceinline__ T largest_of_warp(T largest) { /* bits of positive floats are ordered as their values */
    return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(largest)));
}
/* 2^k, so that 2^14 <= 2^k*largest < 2^15, as long as 2^k and 2^-k are normal numbers. */
static __device__ __forceinline__ T scale_up(T largest) {
    const unsigned exponent = __float_as_uint(largest) >> 23;
    return __uint_as_float((268 - (exponent > 15 ? exponent : 15)) << 23);
}
static __device__ __forceinline__ T scale_down(T up) { return __uint_as_float((254u << 23) - __float_as_uint(up)); }

/* ---- instructions ------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ void load_fragment(unsigned (&r)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
static __device__ __forceinline__ void load_transposed(unsigned (&r)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
static __device__ __forceinline__ void mma(T (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Two neighbouring values as pairs of halves. */
static __device__ __forceinline__ void split(T x0, T x1, T up, unsigned &hi, unsigned &lo) {
    const float y0 = x0 * up, y1 = x1 * up;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(hi) : "f"(y1), "f"(y0));
    if constexpr (PARTS == 2) {
        float h0, h1;
        asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}" : "=f"(h0), "=f"(h1) : "r"(hi));
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(lo) : "f"(y1 - h1), "f"(y0 - h0));
    }
}

template <int S, int PART> static __device__ __forceinline__ void store_pair(element *to, int row, int column, T x0, T x1, T up) {
    unsigned hi, lo;
    split(x0, x1, up, hi, lo);
    *(unsigned *)&to[place<S>(row, column)] = hi;
    if constexpr (PARTS == 2) *(unsigned *)&to[PART + place<S>(row, column)] = lo;
}
template <int S, int PART> static __device__ __forceinline__ void store_one(element *to, int row, int column, T x, T up) {
    unsigned hi, lo;
    split(x, 0, up, hi, lo);
    to[place<S>(row, column)] = (element)hi;
    if constexpr (PARTS == 2) to[PART + place<S>(row, column)] = (element)lo;
}

/* N neighbours from a multiple of N on, N = 1, 2, 4: they are neighbours in the array too. */
template <int S, int PART, int N> static __device__ __forceinline__ void store_run(element *to, int row, int column, const T (&x)[N], T up) {
    if constexpr (N < 4) {
        if constexpr (N == 1)
            store_one<S, PART>(to, row, column, x[0], up);
        else
            store_pair<S, PART>(to, row, column, x[0], x[1], up);
    } else {
        uint2 hi, lo;
        split(x[0], x[1], up, hi.x, lo.x);
        split(x[2], x[3], up, hi.y, lo.y);
        *(uint2 *)&to[place<S>(row, column)] = hi;
        if constexpr (PARTS == 2) *(uint2 *)&to[PART + place<S>(row, column)] = lo;
    }
}

/* ---- operands ----------------------------------------------------------------------------------------------------------------- */

/* A warp's rows, M tiles of 16, by N tiles of 8 columns, as fragments. */
template <int M, int N> struct packed {
    unsigned hi[M][(N + 1) / 2][4], lo[PARTS == 2 ? M : 1][PARTS == 2 ? (N + 1) / 2 : 1][4];
};

template <int M, int N> static __device__ __forceinline__ void pack(const T (&z)[M][N][4], T up, packed<M, N> &p) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < 2 * ((N + 1) / 2); n++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                unsigned hi = 0, lo = 0;
                if (n < N) split(z[m][n][2 * h], z[m][n][2 * h + 1], up, hi, lo);
                p.hi[m][n / 2][n % 2 * 2 + h] = hi;
                if constexpr (PARTS == 2) p.lo[m][n / 2][n % 2 * 2 + h] = lo;
            }
}
/* Whether addresses of a warp's N tiles of columns differ from the first's by exclusive or: its first_column/8 is a multiple of N, no carry. */
template <int N> constexpr bool APART = (N & (N - 1)) == 0;

/* Where a lane stores what it holds of a warp's rows, N tiles of columns. */
template <int S, int PART, int N> struct lane_tiles {
    element *array;
    int row, column;
    unsigned at;
    __device__ __forceinline__ lane_tiles(element *to, int first_row, int first_column)
        : array(to), row(first_row + threadIdx.x % 32 / 4), column(first_column + threadIdx.x % 4 * 2), at(2 * place<S>(row, column)) {}
    __device__ __forceinline__ unsigned *pair_at(int m, int n, int h) const {
        const unsigned of_tile = APART<N> ? further<S>(at, n) : 2 * place<S>(row, column + 8 * n);
        return (unsigned *)((char *)array + of_tile + (16 * m + 8 * h) * S * 2);
    }
    __device__ __forceinline__ void put(int m, int n, int h, unsigned hi, unsigned lo) const {
        unsigned *const to = pair_at(m, n, h);
        *to = hi;
        if constexpr (PARTS == 2) to[PART / 2] = lo;
    }
    __device__ __forceinline__ void put(int m, int n, int h, T x0, T x1, T up) const {
        unsigned hi, lo = 0;
        split(x0, x1, up, hi, lo);
        put(m, n, h, hi, lo);
    }
};
static __device__ __forceinline__ void store_fragment(unsigned address, const unsigned (&r)[4]) {
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
#endif
}
template <int S, int PART, int M, int N>
static __device__ __forceinline__ void store_packed(const packed<M, N> &p, element *to, int first_row, int first_column) {
#if __CUDA_ARCH__ >= 900
    if constexpr (N % 2 == 0) {
        const int row = first_row + threadIdx.x % 16, column = first_column + threadIdx.x % 32 / 16 * 8;
        const unsigned at = address_of<S>(to, row, column);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            const unsigned of_tiles = APART<N> ? further<S>(at, n) : address_of<S>(to, row, column + 8 * n);
#pragma unroll
            for (int m = 0; m < M; m++) {
                store_fragment(of_tiles + 16 * m * S * 2, p.hi[m][n / 2]);
                if constexpr (PARTS == 2) store_fragment(of_tiles + (16 * m * S + PART) * 2, p.lo[m][n / 2]);
            }
        }
        return;
    }
#endif
    const lane_tiles<S, PART, N> lane(to, first_row, first_column);
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int h = 0; h < 2; h++) lane.put(m, n, h, p.hi[m][n / 2][n % 2 * 2 + h], PARTS == 2 ? p.lo[m][n / 2][n % 2 * 2 + h] : 0);
}

/* Where a product takes its left operand from. */
template <int M, int N> struct from_packed {
    static constexpr bool ROLLED = false; /* registers have no index */
    const packed<M, N> &p;
    __device__ __forceinline__ void step(int k, unsigned (&hi)[M][4], unsigned (&lo)[M][4]) const {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                hi[m][i] = p.hi[m][k][i];
                if constexpr (PARTS == 2) lo[m][i] = p.lo[m][k][i];
            }
    }
};
template <int M, int S, int PART> struct from_shared {
    static constexpr bool ROLLED = true; /* a loop of many steps stays in the instruction cache */
    unsigned first;
    __device__ __forceinline__ from_shared(const element *a, int first_row)
        : first(address_of<S>(a, first_row + threadIdx.x % 16, threadIdx.x % 32 / 16 * 8)) {}
    __device__ __forceinline__ void step(int k, unsigned (&hi)[M][4], unsigned (&lo)[M][4]) const {
        const unsigned at = further<S>(first, 2 * k);
#pragma unroll
        for (int m = 0; m < M; m++) {
            load_fragment(hi[m], at + 16 * m * S * 2);
            if constexpr (PARTS == 2) load_fragment(lo[m], at + (16 * m * S + PART) * 2);
        }
    }
};

/* ---- products ----------------------------------------------------------------------------------------------------------------- */

/* c += a b for two tiles of columns. */
template <int M, int N>
static __device__ __forceinline__ void multiply(const unsigned (&hi)[M][4], const unsigned (&lo)[M][4], const unsigned (&b_hi)[4],
                                                const unsigned (&b_lo)[4], int first, T (&c)[M][N][4]) {
#pragma unroll
    for (int part = PARTS == 2 ? 0 : 2; part < 3; part++)
#pragma unroll
        for (int n = 0; n < 2; n++)
            if (first + n < N)
#pragma unroll
                for (int m = 0; m < M; m++) {
                    const unsigned(&b)[4] = part == 1 ? b_lo : b_hi;
                    mma(c[m][first + n], part == 0 ? lo[m] : hi[m], b[2 * n], b[2 * n + 1]);
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

/* z = down * A W (columns from first_column on), or A W^T. S, PART: of the weights. */
template <int M, int N, int STEPS, bool TRANSPOSED, int S, int PART, typename A>
static __device__ __forceinline__ void product(const A &a, const element *w, int first_column, T down, T (&z)[M][N][4]) {
    constexpr int PAIRS = (N + 1) / 2;
    const int lane = threadIdx.x % 32;
    unsigned at[PAIRS];
#pragma unroll
    for (int p = 0; p < PAIRS; p++)
        at[p] = TRANSPOSED ? address_of<S>(w, first_column + 16 * p + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8)
                           : address_of<S>(w, lane % 16, first_column + 16 * p + lane / 16 * 8);
    clear(z);
#pragma unroll(A::ROLLED && STEPS > 4 ? 4 : STEPS)
    for (int k = 0; k < STEPS; k++) {
        unsigned hi[M][4], lo[M][4];
        a.step(k, hi, lo);
#pragma unroll
        for (int p = 0; p < PAIRS; p++) {
            unsigned b_hi[4], b_lo[4];
            if constexpr (TRANSPOSED) {
                load_fragment(b_hi, further<S>(at[p], 2 * k));
                if constexpr (PARTS == 2) load_fragment(b_lo, further<S>(at[p], 2 * k) + 2 * PART);
            } else {
                load_transposed(b_hi, at[p] + 16 * k * S * 2);
                if constexpr (PARTS == 2) load_transposed(b_lo, at[p] + (16 * k * S + PART) * 2);
            }
            multiply<M, N>(hi, lo, b_hi, b_lo, 2 * p, z);
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) z[m][n][i] *= down;
}

/* dW += A^T dZ over `units` units of UNIT_ROWS rows, each scaled by its `down`: rows first_in.. of dW (M tiles of 16), columns first_out.. */
template <int M, int N, int UNIT_ROWS, int S, int PART>
static __device__ __forceinline__ void product_weights(const element *a, const element *dz, int units, const T *down, int first_in, int first_out,
                                                       T (&dw)[M][N][4]) {
    static_assert(N % 2 == 0, "tiles of columns are loaded in pairs");
    const int lane = threadIdx.x % 32;
    unsigned at_in[M], at_out[N / 2];
#pragma unroll
    for (int m = 0; m < M; m++) at_in[m] = address_of<S>(a, lane / 16 * 8 + lane % 8, first_in + 16 * m + lane / 8 % 2 * 8);
#pragma unroll
    for (int p = 0; p < N / 2; p++) at_out[p] = address_of<S>(dz, lane % 16, first_out + 16 * p + lane / 16 * 8);
#pragma unroll(M * N > 4 ? 1 : 2) /* two small units overlap; two large ones take registers */
    for (int unit = 0; unit < units; unit++) {
        T part[M][N][4];
        clear(part);
#pragma unroll
        for (int r = 0; r < UNIT_ROWS; r += 16) {
            const unsigned row = (unsigned)((unit * UNIT_ROWS + r) * S * 2);
            unsigned hi[M][4], lo[M][4];
#pragma unroll
            for (int m = 0; m < M; m++) {
                load_transposed(hi[m], at_in[m] + row);
                if constexpr (PARTS == 2) load_transposed(lo[m], at_in[m] + row + 2 * PART);
            }
#pragma unroll
            for (int p = 0; p < N / 2; p++) {
                unsigned b_hi[4], b_lo[4];
                load_transposed(b_hi, at_out[p] + row);
                if constexpr (PARTS == 2) load_transposed(b_lo, at_out[p] + row + 2 * PART);
                multiply<M, N>(hi, lo, b_hi, b_lo, 2 * p, part);
            }
        }
        const T scale = down[unit];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) dw[m][n][i] = fma(part[m][n][i], scale, dw[m][n][i]);
    }
}
