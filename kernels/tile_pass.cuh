/* The whole network pass of a tile of points in one thread block: forward through all layers with the jets, residual and adjoint, backward,
 * gradient. Compiled by NVRTC only, after tile_products.cuh and what src/network/tile_source.c prints: the constants, one structure a group
 * of point sets with equal channels (its lane functions); after it come the residuals of the point sets and the kernel.
 *
 * Stages. Stage 0 turns coordinates into the jets of FIRST columns; stage s = 1..HIDDEN is Z = A W_s, then the activation's jets of WIDTH
 * columns; at the end FIELDS columns, FMA and sums over lanes.
 *
 * Rows. UNITS units of points stand below each other, each of M_TILES*16 rows. An even number of channels: a unit is 8 points, channel c of
 * point p its row 8c + p; odd: 16 points, row 16c + p. So a lane of the products' accumulators holds every channel of one point (two points
 * when odd) in two neighbouring columns, and the jets need no exchange. The SPLITS warps of a unit share the columns.
 *
 * Memory. Shared: two arrays of ROWS rows (going forward the layers' outputs in turn, going back A and dZ), weights, vectors, small sums.
 * Z of the hidden layers is kept, each lane's own, in shared or in device memory, and A is computed from it again for the way back. The
 * last Z never leaves the registers.
 *
 * Sums. A block adds its tiles, a fixed set in fixed order, into its own row of gradient partials; each element belongs to one thread.
 * Vectors (biases, first weights, output weights) are summed over the lanes of a unit and kept in shared memory, a row a unit, until the end. */

struct member { size points, end, point, columns; }; /* end: the first tile after its own; column k of its points from point + k*points */
struct arguments {
    const T *parameter, *fixed, *point, *scale;
    T *gradient; /* [blocks][GRADIENT_ROW] */
    double *loss; /* [blocks][TERMS] */
    T *keep;     /* [blocks][KEEP_BLOCK] when kept in device memory */
    size weight[HIDDEN], vector[VECTOR_ROWS], output, bias; /* where they start among the parameters (untrained: in `fixed`) */
    member set[MEMBERS];
};

__host__ __device__ constexpr int padded(int columns) { return (columns + 7) / 8 * 8; }
__host__ __device__ constexpr int most(int a, int b) { return a > b ? a : b; }
constexpr int THREADS = 32 * WARPS;
constexpr int WIDTH_STEPS = padded(WIDTH) / 8, FIRST_STEPS = padded(FIRST) / 8;
constexpr int WEIGHT_FIRST = padded(FIRST) * WEIGHT_STRIDE, WEIGHT_NEXT = padded(WIDTH) * WEIGHT_STRIDE;
constexpr int WEIGHTS = WEIGHTS_ALL ? WEIGHT_FIRST + (HIDDEN - 1) * WEIGHT_NEXT : most(WEIGHT_FIRST, HIDDEN > 1 ? WEIGHT_NEXT : 0);
constexpr int VECTOR = most(padded(FIRST_LANES), padded(WIDTH)); /* of vectors in shared memory; rows: first stage, hidden stages, output */
constexpr int SUM_VECTORS = FIRST_TRAINED * FIRST_VECTORS + HIDDEN * VECTORS + FIELDS;
constexpr int FIRST_SUM = FIRST_TRAINED * FIRST_VECTORS;

struct shared_memory {
    alignas(16) T a[ROWS * STRIDE], b[ROWS * STRIDE], weight[WEIGHTS];
    alignas(16) T keep[KEEP_SHARED && KEEP_BLOCK ? KEEP_BLOCK : 4];
    T vector[(VECTOR_ROWS + FIELDS) * VECTOR];
    T sum[UNITS_MOST * SUM_VECTORS * VECTOR];
    T raw[RAW_MOST * FIELDS], adjoint[ROWS * FIELDS], bias[FIELDS], scale[TERMS];
    T coordinate[POINTS_MOST * COLUMNS_MOST];
    T bias_sum[WARPS * FIELDS];
    double loss_sum[WARPS * TERMS];
};

static __device__ __forceinline__ int lane_row() { return threadIdx.x % 32 / 4; }
static __device__ __forceinline__ int lane_column() { return threadIdx.x % 4 * 2; }

/* What depends on a group's channels. G: C, UNITS, SPLITS and the lane functions. */
template <typename G> struct layout {
    static constexpr bool EVEN = G::C % 2 == 0;
    static constexpr int M_TILES = EVEN ? G::C / 2 : G::C, UNIT_ROWS = 16 * M_TILES, UNIT_POINTS = EVEN ? 8 : 16;
    static constexpr int LANE_POINTS = EVEN ? 1 : 2, POINTS = G::UNITS * UNIT_POINTS;
    static constexpr int N_TILES = (WIDTH_STEPS + G::SPLITS - 1) / G::SPLITS;
    static constexpr int REGISTERS = M_TILES * N_TILES * 4;
    typedef T tile[M_TILES][N_TILES][4];
    static __device__ __forceinline__ int unit() { return threadIdx.x / 32 / G::SPLITS; }
    static __device__ __forceinline__ int split() { return threadIdx.x / 32 % G::SPLITS; }
    static __device__ __forceinline__ int first_column() { return split() * N_TILES * 8; }
    /* the lane's column e of tile n; column 0 beyond the last, where what is computed is thrown away */
    static __device__ __forceinline__ int column(int n, int e) {
        const int own = first_column() + 8 * n + lane_column() + e;
        return own < padded(WIDTH) ? own : 0;
    }
    static __device__ __forceinline__ bool active() { return unit() < G::UNITS; }
    static __device__ __forceinline__ int first_row() { return unit() * UNIT_ROWS; }
    static __device__ __forceinline__ int row(int channel, int point) { return first_row() + (EVEN ? 8 : 16) * channel + 8 * point + lane_row(); }
    static __device__ __forceinline__ int point(int point) { return unit() * UNIT_POINTS + 8 * point + lane_row(); }
    /* channel c of the lane's point p in column e of tile n */
    static __device__ __forceinline__ T &at(tile &z, int c, int p, int n, int e) {
        return EVEN ? z[c / 2][n][c % 2 * 2 + e] : z[c][n][p * 2 + e];
    }
};

static __device__ __forceinline__ int place(int row, int column) { return row * STRIDE + (column ^ swizzle(row)); }

/* ---- loading ------------------------------------------------------------------------------------------------------------------ */

/* `to` keeps zeros in what pads its columns; rows are padded here, as another stage's weights may have stood there. */
static __device__ void load_weights(const arguments &a, int stage, T *to) {
    const int rows = stage == 1 ? FIRST : WIDTH;
    const T *from = a.parameter + a.weight[stage - 1];
#pragma unroll 8
    for (int i = threadIdx.x; i < padded(rows) * WIDTH; i += THREADS) {
        const int k = i / WIDTH, n = i % WIDTH;
        to[k * WEIGHT_STRIDE + (n ^ swizzle(k))] = k < rows ? rounded(from[i]) : T(0);
    }
}

static __device__ __forceinline__ T *weights_of(shared_memory &s, int stage) {
    return s.weight + (!WEIGHTS_ALL || stage == 1 ? 0 : WEIGHT_FIRST + (stage - 2) * WEIGHT_NEXT);
}

static __device__ void begin_block(const arguments &a, shared_memory &s) {
    for (int i = threadIdx.x; i < (int)(sizeof(shared_memory) / sizeof(int4)); i += THREADS) ((int4 *)&s)[i] = int4{0, 0, 0, 0};
    __syncthreads();
    for (int stage = 1; stage <= (WEIGHTS_ALL ? HIDDEN : 1); stage++) load_weights(a, stage, weights_of(s, stage));
    for (int i = threadIdx.x; i < VECTOR_ROWS * VECTOR; i += THREADS) {
        const int k = i / VECTOR, j = i % VECTOR;
        const T *from = k < FIRST_VECTORS && !FIRST_TRAINED ? a.fixed : a.parameter;
        if (j < (k < FIRST_VECTORS ? FIRST_LANES : WIDTH)) s.vector[i] = from[a.vector[k] + j];
    }
    for (int i = threadIdx.x; i < FIELDS * WIDTH; i += THREADS)
        s.vector[(VECTOR_ROWS + i % FIELDS) * VECTOR + i / FIELDS] = a.parameter[a.output + i];
    for (int i = threadIdx.x; i < FIELDS; i += THREADS) s.bias[i] = a.parameter[a.bias + i];
    for (int i = threadIdx.x; i < TERMS; i += THREADS) s.scale[i] = a.scale[i];
}

/* ---- sums --------------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ T *sum_row(shared_memory &s, int unit, int vector) { return s.sum + (unit * SUM_VECTORS + vector) * VECTOR; }

/* Adds value[n][e], a lane's summand for its columns, over the unit's points. */
template <int N> static __device__ __forceinline__ void add_columns(T (&value)[N][2], T *sum, int first_column, int columns) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 2; e++)
#pragma unroll
            for (int step = 4; step < 32; step *= 2) value[n][e] += __shfl_xor_sync(~0u, value[n][e], step);
    if (lane_row() == 0)
#pragma unroll
        for (int n = 0; n < N; n++)
            if (first_column + 8 * n < columns) {
                sum[first_column + 8 * n + lane_column()] += value[n][0];
                sum[first_column + 8 * n + lane_column() + 1] += value[n][1];
            }
}

/* ---- pointwise ---------------------------------------------------------------------------------------------------------------- */

template <typename G> static __device__ __forceinline__ void gather(typename layout<G>::tile &z, int p, int n, int e, T (&out)[G::C]) {
#pragma unroll
    for (int c = 0; c < G::C; c++) out[c] = layout<G>::at(z, c, p, n, e);
}

template <int M, int N> static __device__ __forceinline__ void copy_tile(const T (&from)[M][N][4], T (&to)[M][N][4]) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) to[m][n][i] = from[m][n][i];
}

static __device__ __forceinline__ void vectors_at(const shared_memory &s, int stage, int column, T (&v)[VECTORS]) {
#pragma unroll
    for (int k = 0; k < VECTORS; k++) v[k] = s.vector[(FIRST_VECTORS + (stage - 1) * VECTORS + k) * VECTOR + column];
}

/* A from Z, in place. */
template <typename G> static __device__ __forceinline__ void hidden_forward(const shared_memory &s, int stage, typename layout<G>::tile &z) {
    typedef layout<G> L;
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[VECTORS];
            vectors_at(s, stage, L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T in[G::C], out[G::C];
                gather<G>(z, p, n, e, in);
                G::hidden(in, v, out);
#pragma unroll
                for (int c = 0; c < G::C; c++) L::at(z, c, p, n, e) = out[c];
            }
        }
}

/* dZ from Z and dA, over dA; adds the vectors' sums. */
template <typename G>
static __device__ __forceinline__ void hidden_backward(shared_memory &s, int stage, typename layout<G>::tile &z, typename layout<G>::tile &da) {
    typedef layout<G> L;
    T sum[VECTORS][L::N_TILES][2];
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[VECTORS];
            vectors_at(s, stage, L::column(n, e), v);
#pragma unroll
            for (int k = 0; k < VECTORS; k++) sum[k][n][e] = 0;
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T in[G::C], seed[G::C], out[G::C], part[VECTORS];
                gather<G>(z, p, n, e, in);
                gather<G>(da, p, n, e, seed);
                G::hidden_adjoint(in, v, seed, out, part);
#pragma unroll
                for (int c = 0; c < G::C; c++) L::at(da, c, p, n, e) = out[c];
#pragma unroll
                for (int k = 0; k < VECTORS; k++) sum[k][n][e] += part[k];
            }
        }
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
        add_columns(sum[k], sum_row(s, L::unit(), FIRST_SUM + (stage - 1) * VECTORS + k), L::first_column(), padded(WIDTH));
}

template <typename G> static __device__ __forceinline__ void store_tile(typename layout<G>::tile &z, T *to) {
    typedef layout<G> L;
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++) {
        const int column = L::first_column() + 8 * n + lane_column();
        if (L::first_column() + 8 * n < padded(WIDTH))
#pragma unroll
            for (int m = 0; m < L::M_TILES; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    pair two;
                    two.x = rounded(z[m][n][2 * h]);
                    two.y = rounded(z[m][n][2 * h + 1]);
                    *(pair *)&to[place(L::first_row() + 16 * m + 8 * h + lane_row(), column)] = two;
                }
    }
}

/* Each lane's own values, sixteen bytes at a time; threads side by side. */
static __device__ __forceinline__ T *keep_place(T *keep, int stage, int i) {
    constexpr int at_once = 16 / sizeof(T);
    return keep + (stage - 1) * KEEP_STAGE + (i / at_once * THREADS + threadIdx.x) * at_once;
}
struct alignas(16) quad { T value[16 / sizeof(T)]; };
template <typename G> static __device__ __forceinline__ void keep_tile(T *keep, int stage, typename layout<G>::tile &z) {
    constexpr int at_once = 16 / sizeof(T);
    const T *value = &z[0][0][0];
#pragma unroll
    for (int i = 0; i < layout<G>::REGISTERS; i += at_once) {
        quad q;
#pragma unroll
        for (int k = 0; k < at_once; k++) q.value[k] = value[i + k];
        *(quad *)keep_place(keep, stage, i) = q;
    }
}
template <typename G> static __device__ __forceinline__ void kept_tile(T *keep, int stage, typename layout<G>::tile &z) {
    constexpr int at_once = 16 / sizeof(T);
    T *value = &z[0][0][0];
#pragma unroll
    for (int i = 0; i < layout<G>::REGISTERS; i += at_once) {
        const quad q = *(const quad *)keep_place(keep, stage, i);
#pragma unroll
        for (int k = 0; k < at_once; k++) value[i + k] = q.value[k];
    }
}

/* ---- stage 0 ------------------------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ void coordinates_at(const shared_memory &s, int point, T (&x)[COORDINATES]) {
#pragma unroll
    for (int i = 0; i < COORDINATES; i++) x[i] = s.coordinate[i * POINTS_MOST + point];
}
static __device__ __forceinline__ void first_vectors_at(const shared_memory &s, int column, T (&v)[FIRST_VECTORS]) {
#pragma unroll
    for (int k = 0; k < FIRST_VECTORS; k++) v[k] = s.vector[k * VECTOR + column];
}

/* Jets of the first columns; lane j gives column j of each of FIRST_BLOCKS blocks. */
template <typename G> static __device__ void first_forward(const shared_memory &s, T *to) {
    typedef layout<G> L;
    for (int tile = L::split(); tile < padded(FIRST_LANES) / 8; tile += G::SPLITS)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int j = 8 * tile + lane_column() + e;
            if (j >= FIRST_LANES) continue;
            T v[FIRST_VECTORS];
            first_vectors_at(s, j, v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T x[COORDINATES], out[FIRST_BLOCKS * G::C];
                coordinates_at(s, L::point(p), x);
                G::first(x, v, out);
#pragma unroll
                for (int b = 0; b < FIRST_BLOCKS; b++)
#pragma unroll
                    for (int c = 0; c < G::C; c++) to[place(L::row(c, p), b * FIRST_LANES + j)] = rounded(out[b * G::C + c]);
            }
        }
}

/* Sums of the first stage's vectors from dA (FIRST_BLOCKS = 1, FIRST = WIDTH). */
template <typename G> static __device__ __forceinline__ void first_backward(shared_memory &s, typename layout<G>::tile &da) {
    typedef layout<G> L;
    if constexpr (FIRST_TRAINED) {
        T sum[FIRST_VECTORS][L::N_TILES][2];
#pragma unroll
        for (int n = 0; n < L::N_TILES; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                T v[FIRST_VECTORS];
                first_vectors_at(s, L::column(n, e), v);
#pragma unroll
                for (int k = 0; k < FIRST_VECTORS; k++) sum[k][n][e] = 0;
#pragma unroll
                for (int p = 0; p < L::LANE_POINTS; p++) {
                    T x[COORDINATES], seed[G::C], part[FIRST_VECTORS];
                    coordinates_at(s, L::point(p), x);
                    gather<G>(da, p, n, e, seed);
                    G::first_adjoint(x, v, seed, part);
#pragma unroll
                    for (int k = 0; k < FIRST_VECTORS; k++) sum[k][n][e] += part[k];
                }
            }
#pragma unroll
        for (int k = 0; k < FIRST_VECTORS; k++) add_columns(sum[k], sum_row(s, L::unit(), k), L::first_column(), padded(WIDTH));
    }
}

/* ---- the turn: fields, residuals, their adjoint ------------------------------------------------------------------------------- */

/* A lane's part of the raw fields, summed over the four lanes of a row. `a`: the last stage's output. */
template <typename G> static __device__ __forceinline__ void store_raw(shared_memory &s, typename layout<G>::tile &a) {
    typedef layout<G> L;
#pragma unroll
    for (int p = 0; p < L::LANE_POINTS; p++)
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) {
                T sum = 0;
#pragma unroll
                for (int n = 0; n < L::N_TILES; n++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const int column = L::first_column() + 8 * n + lane_column() + e;
                        if (L::first_column() + 8 * n < padded(WIDTH))
                            sum = fma(L::at(a, c, p, n, e), s.vector[(VECTOR_ROWS + f) * VECTOR + column], sum);
                    }
                sum += __shfl_xor_sync(~0u, sum, 1);
                sum += __shfl_xor_sync(~0u, sum, 2);
                if (threadIdx.x % 4 == 0) s.raw[(L::split() * ROWS + L::row(c, p)) * FIELDS + f] = sum;
            }
}

template <int SET> struct set_of; /* GEOMETRIC, RESIDUALS, TERM and residual() of a point set */

/* One thread a point. `valid`: points of the tile; the others repeat the last one and count for nothing. */
template <typename G, int SET> static __device__ __forceinline__ void residuals(shared_memory &s, int valid) {
    typedef layout<G> L;
    typedef set_of<SET> S;
    static_assert(L::POINTS <= THREADS, "a thread a point");
    const int i = threadIdx.x;
    if (i / 32 * 32 >= L::POINTS) return;
    const bool counts = i < valid;
    const int point = i < L::POINTS ? i : L::POINTS - 1;
    const int first = point / L::UNIT_POINTS * L::UNIT_ROWS + point % L::UNIT_POINTS;
    T x[S::GEOMETRIC], raw[G::C * FIELDS], scale[S::RESIDUALS], square[S::RESIDUALS], adjoint[G::C * FIELDS], bias[FIELDS];
#pragma unroll
    for (int k = 0; k < S::GEOMETRIC; k++) x[k] = s.coordinate[k * POINTS_MOST + point];
#pragma unroll
    for (int c = 0; c < G::C; c++)
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            T sum = 0;
#pragma unroll
            for (int split = 0; split < G::SPLITS; split++) sum += s.raw[(split * ROWS + first + c * L::UNIT_POINTS) * FIELDS + f];
            raw[c * FIELDS + f] = sum;
        }
#pragma unroll
    for (int k = 0; k < S::RESIDUALS; k++) scale[k] = s.scale[S::TERM + k];
    S::residual(x, raw, s.bias, scale, square, adjoint, bias);
    if (i < L::POINTS)
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) s.adjoint[(first + c * L::UNIT_POINTS) * FIELDS + f] = counts ? adjoint[c * FIELDS + f] : T(0);
#pragma unroll
    for (int k = 0; k < S::RESIDUALS; k++) {
        double sum = counts ? (double)square[k] : 0.0;
#pragma unroll
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (i % 32 == 0) s.loss_sum[i / 32 * TERMS + S::TERM + k] += sum;
    }
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
        T sum = counts ? bias[f] : T(0);
#pragma unroll
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (i % 32 == 0) s.bias_sum[i / 32 * FIELDS + f] += sum;
    }
}

/* dZ of the last stage from the fields' adjoints, over `z`; adds the sums of output weights and vectors. */
template <typename G> static __device__ __forceinline__ void turn_back(shared_memory &s, typename layout<G>::tile &z) {
    typedef layout<G> L;
    typename L::tile da;
    T sum[FIELDS][L::N_TILES][2];
#pragma unroll
    for (int f = 0; f < FIELDS; f++)
#pragma unroll
        for (int n = 0; n < L::N_TILES; n++) sum[f][n][0] = sum[f][n][1] = 0;
#pragma unroll
    for (int p = 0; p < L::LANE_POINTS; p++) {
        T adjoint[G::C][FIELDS];
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) adjoint[c][f] = s.adjoint[L::row(c, p) * FIELDS + f];
#pragma unroll
        for (int n = 0; n < L::N_TILES; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int inside = L::column(n, e);
                T v[VECTORS], in[G::C], out[G::C];
                vectors_at(s, HIDDEN, inside, v);
                gather<G>(z, p, n, e, in);
                G::hidden(in, v, out);
#pragma unroll
                for (int f = 0; f < FIELDS; f++)
#pragma unroll
                    for (int c = 0; c < G::C; c++) sum[f][n][e] = fma(out[c], adjoint[c][f], sum[f][n][e]);
#pragma unroll
                for (int c = 0; c < G::C; c++) {
                    T value = 0;
#pragma unroll
                    for (int f = 0; f < FIELDS; f++) value = fma(adjoint[c][f], s.vector[(VECTOR_ROWS + f) * VECTOR + inside], value);
                    L::at(da, c, p, n, e) = value;
                }
            }
    }
#pragma unroll
    for (int f = 0; f < FIELDS; f++)
        add_columns(sum[f], sum_row(s, L::unit(), FIRST_SUM + HIDDEN * VECTORS + f), L::first_column(), padded(WIDTH));
    hidden_backward<G>(s, HIDDEN, z, da);
    copy_tile(da, z);
}

/* ---- weight gradients --------------------------------------------------------------------------------------------------------- */

/* A warp's tiles of dW from or to the block's row of partials. */
template <int COLUMNS, bool STORE>
static __device__ __forceinline__ void exchange_weights(T (&dw)[GRADIENT_M][GRADIENT_N][4], T *gradient, int first_in, int first_out) {
#pragma unroll
    for (int m = 0; m < GRADIENT_M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < GRADIENT_N; n++) {
                const int in = first_in + 16 * m + 8 * h + lane_row(), out = first_out + 8 * n + lane_column();
                T *const at = gradient + in * WIDTH + out, *const value = &dw[m][n][2 * h];
                if (in >= COLUMNS || out >= WIDTH) continue;
                if constexpr (WIDTH % 2 == 0) {
                    if (STORE)
                        *(pair *)at = pair{value[0], value[1]};
                    else {
                        const pair two = *(const pair *)at;
                        value[0] = two.x;
                        value[1] = two.y;
                    }
                } else
                    for (int e = 0; e < 2 && out + e < WIDTH; e++) {
                        if (STORE)
                            at[e] = value[e];
                        else
                            value[e] = at[e];
                    }
            }
}

template <int COLUMNS> static __device__ __forceinline__ void add_weights(const shared_memory &s, int rows, T *gradient, bool first_tile) {
    constexpr int M = GRADIENT_M, N = GRADIENT_N;
    constexpr int tiles_in = (padded(COLUMNS) + 16 * M - 1) / (16 * M), tiles_out = (padded(WIDTH) + 8 * N - 1) / (8 * N);
    for (int item = threadIdx.x / 32; item < tiles_in * tiles_out; item += WARPS) {
        const int first_in = item % tiles_in * 16 * M, first_out = item / tiles_in * 8 * N;
        T dw[M][N][4];
        clear(dw);
        if (!first_tile) exchange_weights<COLUMNS, false>(dw, gradient, first_in, first_out);
        product_weights<M, N>(s.a, s.b, rows, first_in, first_out, dw);
        exchange_weights<COLUMNS, true>(dw, gradient, first_in, first_out);
    }
}

/* ---- a tile ------------------------------------------------------------------------------------------------------------------- */

template <typename G>
static __device__ __forceinline__ void run_tile(const arguments &a, shared_memory &s, T *keep, T *gradient, int set, size tile, bool first_tile) {
    typedef layout<G> L;
    constexpr int N = L::N_TILES;
    const bool active = L::active();
    const member &m = a.set[set];
    const size first = (tile - (set ? a.set[set - 1].end : 0)) * L::POINTS;
    const int valid = (int)(m.points - first < (size)L::POINTS ? m.points - first : (size)L::POINTS);
    int column[N];
    typename L::tile z;
    for (int n = 0; n < N; n++) /* tiles beyond the last repeat it and are not stored */
        column[n] = L::first_column() + 8 * n < padded(WIDTH) ? L::first_column() + 8 * n : padded(WIDTH) - 8;

    for (int i = threadIdx.x; i < L::POINTS * (int)m.columns; i += THREADS) {
        const int k = i / L::POINTS, p = i % L::POINTS;
        s.coordinate[k * POINTS_MOST + p] = a.point[m.point + k * m.points + first + (p < valid ? p : valid - 1)];
    }
    __syncthreads();
    if (active) first_forward<G>(s, s.a);
    __syncthreads();
#pragma unroll 1
    for (int stage = 1; stage <= HIDDEN; stage++) {
        const T *from = (stage % 2 ? s.a : s.b) + L::first_row() * STRIDE;
        if (active) {
            if (stage == 1)
                product_forward<L::M_TILES, N, FIRST_STEPS>(from, weights_of(s, 1), column, z);
            else
                product_forward<L::M_TILES, N, WIDTH_STEPS>(from, weights_of(s, stage), column, z);
        }
        if (stage == HIDDEN) break;
        if (active) {
            keep_tile<G>(keep, stage, z);
            hidden_forward<G>(s, stage, z);
            store_tile<G>(z, stage % 2 ? s.b : s.a);
        }
        if (!WEIGHTS_ALL) {
            __syncthreads();
            load_weights(a, stage + 1, s.weight);
        }
        __syncthreads();
    }

    if (active) {
        typename L::tile out;
        copy_tile(z, out);
        hidden_forward<G>(s, HIDDEN, out);
        store_raw<G>(s, out);
    }
    __syncthreads();
    G::turn(set, s, valid);
    __syncthreads();
    if (active) turn_back<G>(s, z);

#pragma unroll 1
    for (int stage = HIDDEN; stage >= 1; stage--) {
        typename L::tile below;
        if (active) {
            store_tile<G>(z, s.b);
            if (stage > 1) {
                kept_tile<G>(keep, stage - 1, below);
                hidden_forward<G>(s, stage - 1, below);
                store_tile<G>(below, s.a);
            } else
                first_forward<G>(s, s.a);
        }
        if (!WEIGHTS_ALL && stage < HIDDEN) load_weights(a, stage, s.weight);
        __syncthreads();
        if (stage == 1)
            add_weights<FIRST>(s, G::UNITS * L::UNIT_ROWS, gradient, first_tile);
        else
            add_weights<WIDTH>(s, G::UNITS * L::UNIT_ROWS, gradient + GRADIENT_FIRST + (stage - 2) * WIDTH * WIDTH, first_tile);
        if (active && (stage > 1 || FIRST_TRAINED))
            product_backward<L::M_TILES, N, WIDTH_STEPS>(s.b + L::first_row() * STRIDE, weights_of(s, stage), column, z);
        __syncthreads(); /* with WEIGHTS_ALL 0 the next tile finds the first weights in place */
        if (active && stage > 1) {
            kept_tile<G>(keep, stage - 1, below);
            hidden_backward<G>(s, stage - 1, below, z);
        }
        if (active && stage == 1) first_backward<G>(s, z);
    }
    __syncthreads();
}

/* The block's vectors, biases and losses. */
static __device__ void end_block(shared_memory &s, T *gradient, double *loss) {
    for (int i = threadIdx.x; i < SUM_VECTORS * WIDTH; i += THREADS) {
        const int k = i / WIDTH, j = i % WIDTH, f = k - FIRST_SUM - HIDDEN * VECTORS;
        T sum = 0;
        for (int u = 0; u < UNITS_MOST; u++) sum += s.sum[(u * SUM_VECTORS + k) * VECTOR + j];
        gradient[GRADIENT_VECTORS + (f < 0 ? k * WIDTH + j : (FIRST_SUM + HIDDEN * VECTORS) * WIDTH + j * FIELDS + f)] = sum;
    }
    for (int i = threadIdx.x; i < FIELDS; i += THREADS) {
        T sum = 0;
        for (int w = 0; w < WARPS; w++) sum += s.bias_sum[w * FIELDS + i];
        gradient[GRADIENT_VECTORS + SUM_VECTORS * WIDTH + i] = sum;
    }
    for (int i = threadIdx.x; i < TERMS; i += THREADS) {
        double sum = 0;
        for (int w = 0; w < WARPS; w++) sum += s.loss_sum[w * TERMS + i];
        loss[i] = sum;
    }
}
