/* Stages of the tiled network pass that need no product: the hidden layers' jets and adjoints, the first stage, the turn from fields to residuals
 * and back. All of it on what a lane holds. Compiled by NVRTC only, after lane_stages.cuh; kernels/tile_pass.cuh tells how it all works. */

/* ---- pointwise ---------------------------------------------------------------------------------------------------------------- */

/* Each lane's own values, two columns at a time; sixteen bytes a thread, threads side by side. */
struct alignas(16) quad { T value[16 / sizeof(T)]; };

/* Of device memory, read for the last time: the second-level cache gives up its place before those of others. */
static __device__ __forceinline__ quad last_of(const quad *at) {
    unsigned word[4];
    asm volatile("{\n.reg .b64 first;\ncreatepolicy.fractional.L2::evict_first.b64 first, 1.0;\n"
                 "ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], first;\n}"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3]) : "l"(at) : "memory");
    quad q;
    memcpy(&q, word, sizeof q);
    return q;
}

template <typename G> struct kept {
    static constexpr int AT_ONCE = 16 / sizeof(T), QUADS = 4 / AT_ONCE * layout<G>::M_TILES;
    static __device__ __forceinline__ quad *at(T *keep, int stage, int n, int i) {
        return (quad *)(keep + (stage - 1) * KEEP_STAGE) + (n * QUADS + i) * THREADS + threadIdx.x;
    }
    static __device__ __forceinline__ void put(T *keep, int stage, int n, const typename layout<G>::columns &z) {
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            quad q;
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) q.value[k] = (&z[0][0][0])[i * AT_ONCE + k];
            *at(keep, stage, n, i) = q;
        }
    }
    template <bool LAST> static __device__ __forceinline__ void get(T *keep, int stage, int n, typename layout<G>::columns &z) {
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            const quad q = LAST && !KEEP_SHARED ? last_of(at(keep, stage, n, i)) : *at(keep, stage, n, i);
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) (&z[0][0][0])[i * AT_ONCE + k] = q.value[k];
        }
    }
};

/* A from Z, in place; what is needed going back is kept. */
template <typename G> static __device__ __forceinline__ void hidden_forward(const shared_memory &s, int stage, typename layout<G>::tile &z, T *keep) {
#pragma unroll
    for (int n = 0; n < layout<G>::N_TILES; n++) {
        typename layout<G>::columns put;
        remember_columns<G>(hidden_vectors(s, stage), z, n, put);
        kept<G>::put(keep, stage, n, put);
    }
}

/* A of a stage from what was kept of it, stored. */
template <typename G> static __device__ __forceinline__ void recall(const shared_memory &s, int stage, T *keep, T up, element *to) {
    typedef layout<G> L;
    const lane_tiles<STRIDE, ROWS_PART, L::N_TILES> lane(to, L::first_row(), L::first_column());
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++) {
        typename L::columns z, a;
        kept<G>::template get<false>(keep, stage, n, z);
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[VECTORS];
            vectors_at(hidden_vectors(s, stage), L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T in[G::C], out[G::C];
                gather<G>(z, p, 0, e, in);
                G::recall(in, v, out);
                scatter<G>(out, p, 0, e, a);
            }
        }
#pragma unroll
        for (int m = 0; m < L::M_TILES; m++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                lane.put(m, n, h, a[m][0][2 * h], a[m][0][2 * h + 1], up);
    }
}

/* dZ from what was kept and dA, over dA; both as parts of `back`. Stores the unit's part of the vectors' sums, at `part`. */
template <typename G>
static __device__ __forceinline__ void hidden_backward(shared_memory &s, int stage, T *keep, T back, int part, typename layout<G>::tile &da) {
    typedef layout<G> L;
    T sum[VECTORS][L::N_TILES][2];
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++) {
        typename L::columns z;
        kept<G>::template get<true>(keep, stage, n, z);
        adjoint_columns<G>(hidden_vectors(s, stage), z, da, n, sum);
    }
#pragma unroll
    for (int k = 0; k < VECTORS; k++) add_columns(sum[k], back, part_row(s, L::unit(), part + k), L::first_column());
}

/* ---- stage 0 ------------------------------------------------------------------------------------------------------------------ */

/* Jets of the first columns, each pair of a lane given to put(row, column, x0, x1); lane j gives column j of each of FIRST_BLOCKS blocks. */
template <typename G, typename PUT> static __device__ __forceinline__ void first_columns(const shared_memory &s, const T *coordinate, PUT put) {
    typedef layout<G> L;
    for (int tile = L::split(); tile < padded(FIRST_LANES) / 8; tile += G::SPLITS) {
        const int j = 8 * tile + lane_column();
        T v[2][FIRST_VECTORS]; /* zeros beyond FIRST_LANES */
        vectors_at(s.vector, j, v[0]);
        vectors_at(s.vector, j + 1, v[1]);
#pragma unroll
        for (int p = 0; p < L::LANE_POINTS; p++) {
            T x[COORDINATES], out[2][FIRST_BLOCKS * G::C];
            coordinates_at(coordinate, L::point(p), x);
            G::first(x, v[0], out[0]);
            G::first(x, v[1], out[1]);
#pragma unroll
            for (int b = 0; b < FIRST_BLOCKS; b++)
#pragma unroll
                for (int c = 0; c < G::C; c++)
                    if (j < FIRST_LANES) put(L::row(c, p), b * FIRST_LANES + j, out[0][b * G::C + c], j + 1 < FIRST_LANES ? out[1][b * G::C + c] : T(0));
        }
    }
}

static __device__ __forceinline__ void store_first(element *to, int row, int column, T x0, T x1, T up) {
    if (FIRST_BLOCKS == 1 || FIRST_LANES % 2 == 0)
        store_pair<STRIDE, ROWS_PART>(to, row, column, x0, x1, up);
    else {
        store_one<STRIDE, ROWS_PART>(to, row, column, x0, up);
        if (column % FIRST_LANES + 1 < FIRST_LANES) store_one<STRIDE, ROWS_PART>(to, row, column + 1, x1, up);
    }
}

/* A of stage 0, stored; its scale is found first, or known. */
template <typename G> static __device__ __forceinline__ T first_scale(shared_memory &s, const T *coordinate) {
    T largest = 0;
    if constexpr (SCALED)
        first_columns<G>(s, coordinate, [&](int, int, T x0, T x1) { largest = larger_magnitude(larger_magnitude(largest, x0), x1); });
    return unit_scale<G>(s, largest);
}
template <typename G> static __device__ __forceinline__ void first_stored(const shared_memory &s, const T *coordinate, T up, element *to) {
    first_columns<G>(s, coordinate, [&](int row, int column, T x0, T x1) { store_first(to, row, column, x0, x1, up); });
}

/* A of stage 0 in registers (FIRST_IN_TILE). */
template <typename G> static __device__ __forceinline__ void first_forward(const shared_memory &s, const T *coordinate, typename layout<G>::tile &a) {
    typedef layout<G> L;
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[FIRST_VECTORS];
            vectors_at(s.vector, L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T x[COORDINATES], out[G::C];
                coordinates_at(coordinate, L::point(p), x);
                G::first(x, v, out);
#pragma unroll
                for (int c = 0; c < G::C; c++) L::at(a, c, p, n, e) = out[c];
            }
        }
}

/* The unit's part of the sums of the first stage's vectors from dA, given as parts of `back`, at `part` (FIRST_IN_TILE). */
template <typename G>
static __device__ __forceinline__ void first_backward(shared_memory &s, const T *coordinate, T back, int part, typename layout<G>::tile &da) {
    typedef layout<G> L;
    if constexpr (FIRST_TRAINED) {
        T sum[FIRST_VECTORS][L::N_TILES][2];
        first_adjoint<G>(s.vector, coordinate, da, sum);
#pragma unroll
        for (int k = 0; k < FIRST_VECTORS; k++) add_columns(sum[k], back, part_row(s, L::unit(), part + k), L::first_column());
    }
}

/* ---- the turn: fields, residuals, their adjoint ------------------------------------------------------------------------------- */

/* One lane a point of the unit, in the unit's first warp. `valid`: points of the unit; the others repeat the last one and count for nothing. */
template <typename G, int SET> static __device__ __forceinline__ void residuals(shared_memory &s, const T *coordinate, int valid) {
    typedef layout<G> L;
    const int lane = threadIdx.x % 32, local = lane % L::UNIT_POINTS;
    point_residuals<G, SET, G::SPLITS, L::UNIT_POINTS>(s, coordinate, L::unit() * L::UNIT_POINTS + local, L::first_row() + local, ROWS,
                                                       lane < L::UNIT_POINTS, lane < valid && lane < L::UNIT_POINTS);
}

/* Hides from the compiler where values come from. */
template <int M, int N> static __device__ __forceinline__ void forget(T (&z)[M][N][4]) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if constexpr (sizeof(T) == 4)
                    asm volatile("" : "+f"(z[m][n][i]));
                else
                    asm volatile("" : "+d"(z[m][n][i]));
}

/* dZ of the last stage from the fields' adjoints, over what was kept of it; stores the unit's part of the sums of vectors and output weights. */
template <typename G> static __device__ __forceinline__ void turn_back(shared_memory &s, typename layout<G>::tile &z) {
    typedef layout<G> L;
    forget(z); /* or the compiler keeps what last_forward computed from it, in registers there are none of */
    T sum[FIELDS][L::N_TILES][2], vector_sum[VECTORS][L::N_TILES][2];
    turn_adjoint<G>(s, z, vector_sum, sum);
#pragma unroll
    for (int k = 0; k < VECTORS; k++) add_columns(vector_sum[k], 1, part_row(s, L::unit(), TURN_PART + k), L::first_column());
#pragma unroll
    for (int f = 0; f < FIELDS; f++) add_columns(sum[f], 1, part_row(s, L::unit(), TURN_PART + VECTORS + f), L::first_column());
}
