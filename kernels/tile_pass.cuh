/* The whole network pass of a tile of points in one thread block: forward through all layers with the jets, residual and adjoint, backward,
 * gradient. Compiled by NVRTC only, after the constants, tile_halves.cuh or tile_products.cuh, and what src/network/tile_source.c prints:
 * one structure a group of point sets with equal channels (its lane functions); after it come the residuals of the point sets and the kernel.
 *
 * Stages. Stage 0 turns coordinates into the jets of FIRST columns; stage s = 1..HIDDEN is Z = A W_s, then the activation's jets of WIDTH
 * columns; at the end FIELDS columns, FMA and sums over lanes.
 *
 * Rows. UNITS units of points stand below each other, each of M_TILES*16 rows. An even number of channels: a unit is 8 points, channel c of
 * point p its row 8c + p; odd: 16 points, row 16c + p. So a lane of the products' accumulators holds every channel of one point (two points
 * when odd) in two neighbouring columns, and the jets need no exchange. The SPLITS warps of a unit share the columns; a warp that has a unit
 * to itself carries its rows from layer to layer in registers (CHAINED), others through shared memory. Units wait for each other only
 * where weight gradients sum over all rows.
 *
 * Memory. Shared: A and dZ, ROWS rows each, weights, vectors, small sums. Of the hidden layers what pn_kept (description.h) tells is kept for
 * the way back, each lane's own, in shared or in device memory; A is computed from it again, without elementary functions. The last layer's
 * never leaves the registers.
 *
 * Sums. A block adds its tiles, a fixed set in fixed order, into its own row of gradient partials; each element belongs to one thread.
 * Vectors (biases, first weights, output weights) are summed over the lanes of a unit, then over the units in their order. */

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
constexpr int WIDTH_STEPS = (WIDTH + K_STEP - 1) / K_STEP, FIRST_STEPS = (FIRST + K_STEP - 1) / K_STEP; /* of a product's k */
constexpr int WEIGHT_FIRST = FIRST_STEPS * K_STEP * WEIGHT_STRIDE, WEIGHT_NEXT = WIDTH_STEPS * K_STEP * WEIGHT_STRIDE;
constexpr int WEIGHTS = WEIGHTS_ALL ? WEIGHT_FIRST + (HIDDEN - 1) * WEIGHT_NEXT : most(WEIGHT_FIRST, HIDDEN > 1 ? WEIGHT_NEXT : 0);
constexpr int VECTOR = most(padded(FIRST_LANES), padded(WIDTH)); /* of vectors in shared memory; rows: first stage, hidden stages, output */
constexpr int SUM_VECTORS = FIRST_TRAINED * FIRST_VECTORS + HIDDEN * VECTORS + FIELDS;
constexpr int FIRST_SUM = FIRST_TRAINED * FIRST_VECTORS;
/* Of a unit, summed at a time: those of a hidden or of the first stage, and, in places of their own, those of the turn. */
constexpr int TURN_PART = VECTORS, PART_VECTORS = most(FIRST_SUM, 2 * VECTORS + FIELDS);
constexpr int ROWS_PART = ROWS * STRIDE;

struct shared_memory {
    alignas(16) element a[PARTS * ROWS * STRIDE], b[PARTS * ROWS * STRIDE]; /* A, dZ */
    alignas(16) T keep[KEEP_SHARED && KEEP_BLOCK ? KEEP_BLOCK : 4];
    alignas(16) element weight[PARTS * WEIGHTS];
    T vector[(VECTOR_ROWS + FIELDS) * VECTOR];
    T part[UNITS_MOST * PART_VECTORS * VECTOR], sum[SUM_VECTORS * VECTOR];
    T raw[RAW_MOST * FIELDS], adjoint[ROWS * FIELDS], bias[FIELDS], scale[TERMS];
    T coordinate[2][COLUMNS_MOST * POINTS_MOST]; /* of this tile and of the next */
    T bias_sum[WARPS * FIELDS];
    double loss_sum[WARPS * TERMS];
    T a_up[HIDDEN * UNITS_MOST], down[UNITS_MOST], weight_up[HIDDEN]; /* scales of A, of A^T dZ back to what it is, of weights */
    T largest[UNITS_MOST * SPLITS_MOST + WARPS * HIDDEN];
};

static __device__ __forceinline__ int lane_row() { return threadIdx.x % 32 / 4; }
static __device__ __forceinline__ int lane_column() { return threadIdx.x % 4 * 2; }

/* What depends on a group's channels. G: C, UNITS, SPLITS and the lane functions. */
template <typename G> struct layout {
    static constexpr bool EVEN = G::C % 2 == 0;
    static constexpr int M_TILES = EVEN ? G::C / 2 : G::C, UNIT_ROWS = 16 * M_TILES, UNIT_POINTS = EVEN ? 8 : 16;
    static constexpr int LANE_POINTS = EVEN ? 1 : 2, POINTS = G::UNITS * UNIT_POINTS;
    static constexpr int N_TILES = padded(WIDTH) / 8 / G::SPLITS;
    static constexpr bool CHAINED = CHAINS && G::SPLITS == 1;                           /* A and dZ go through registers */
    static constexpr bool FIRST_IN_TILE = FIRST_BLOCKS == 1 && FIRST == WIDTH;          /* the first columns are spread as all others */
    static_assert(N_TILES * 8 * G::SPLITS == padded(WIDTH), "warps of a unit share its columns evenly");
    static constexpr int REGISTERS = M_TILES * N_TILES * 4;
    typedef T tile[M_TILES][N_TILES][4];
    typedef T columns[M_TILES][4]; /* two columns */
    static __device__ __forceinline__ int unit() { return threadIdx.x / 32 / G::SPLITS; }
    static __device__ __forceinline__ int split() { return threadIdx.x / 32 % G::SPLITS; }
    static __device__ __forceinline__ int first_column() { return split() * N_TILES * 8; }
    static __device__ __forceinline__ int column(int n, int e) { return first_column() + 8 * n + lane_column() + e; }
    static __device__ __forceinline__ bool active() { return unit() < G::UNITS; }
    static __device__ __forceinline__ int first_row() { return unit() * UNIT_ROWS; }
    static __device__ __forceinline__ int row(int channel, int point) { return first_row() + (EVEN ? 8 : 16) * channel + 8 * point + lane_row(); }
    static __device__ __forceinline__ int point(int point) { return unit() * UNIT_POINTS + 8 * point + lane_row(); }
    /* channel c of the lane's point p in column e of tile n */
    static __device__ __forceinline__ T &at(tile &z, int c, int p, int n, int e) {
        return EVEN ? z[c / 2][n][c % 2 * 2 + e] : z[c][n][p * 2 + e];
    }
    static __device__ __forceinline__ T &at(columns &z, int c, int p, int e) { return EVEN ? z[c / 2][c % 2 * 2 + e] : z[c][p * 2 + e]; }
};

/* The warps of a unit wait for each other. */
template <typename G> static __device__ __forceinline__ void unit_barrier() {
    if constexpr (G::SPLITS == 1)
        __syncwarp();
    else
        asm volatile("bar.sync %0, %1;" ::"r"(1 + layout<G>::unit()), "n"(32 * G::SPLITS) : "memory");
}

/* The scale of what the unit's warps hold, from each lane's largest magnitude. Waits for the unit: whatever it read before may be overwritten. */
template <typename G> static __device__ __forceinline__ T unit_scale(shared_memory &s, T largest) {
    typedef layout<G> L;
    largest = largest_of_warp(largest);
    if constexpr (SCALED && G::SPLITS > 1) {
        if (threadIdx.x % 32 == 0) s.largest[L::unit() * SPLITS_MOST + L::split()] = largest;
        unit_barrier<G>();
#pragma unroll
        for (int i = 0; i < G::SPLITS; i++) largest = larger_magnitude(largest, s.largest[L::unit() * SPLITS_MOST + i]);
    } else
        unit_barrier<G>();
    return scale_up(largest);
}

template <int M, int N> static __device__ __forceinline__ T largest_of(const T (&z)[M][N][4]) {
    T largest = 0;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) largest = larger_magnitude(largest, z[m][n][i]);
    return largest;
}

/* ---- loading ------------------------------------------------------------------------------------------------------------------ */

/* Copies one value to shared memory without a wait. */
static __device__ __forceinline__ void fetch(const T *from, T *to) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "n"(sizeof(T)) : "memory");
}
static __device__ __forceinline__ void await_fetched() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* Stage's weights as they are in memory, on their way to `to` without a wait. */
static __device__ __forceinline__ void fetch_weights(const arguments &a, int stage, T *to) {
    const T *from = a.parameter + a.weight[stage - 1];
    const int count = (stage == 1 ? FIRST : WIDTH) * WIDTH;
    const unsigned target = (unsigned)__cvta_generic_to_shared(to);
    if (((size)from & 15) == 0 && count * sizeof(T) % 16 == 0)
#pragma unroll 1
        for (int i = threadIdx.x; i < count * (int)sizeof(T) / 16; i += THREADS)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target + 16 * i), "l"((const char *)from + 16 * i) : "memory");
    else
#pragma unroll 1
        for (int i = threadIdx.x; i < count; i += THREADS) fetch(from + i, to + i);
}

/* Zeros where rows and columns are padded. `up`: of this layer. */
static __device__ __forceinline__ void place_weights(const T *from, int stage, element *to, T up) {
    const int rows = stage == 1 ? FIRST : WIDTH, padded_rows = (stage == 1 ? FIRST_STEPS : WIDTH_STEPS) * K_STEP;
    if constexpr (WIDTH % 2 == 0) {
#pragma unroll(WEIGHTS_ALL ? 2 : 8) /* from shared memory, or from far away */
        for (int i = threadIdx.x; i < padded_rows * (WIDTH / 2); i += THREADS) {
            const int k = i / (WIDTH / 2), n = i % (WIDTH / 2) * 2;
            const bool inside = k < rows;
            store_pair<WEIGHT_STRIDE, WEIGHTS>(to, k, n, inside ? from[2 * i] : T(0), inside ? from[2 * i + 1] : T(0), up);
        }
    } else
#pragma unroll 1
        for (int i = threadIdx.x; i < padded_rows * WIDTH; i += THREADS)
            store_one<WEIGHT_STRIDE, WEIGHTS>(to, i / WIDTH, i % WIDTH, i / WIDTH < rows ? from[i] : T(0), up);
}

static __device__ __forceinline__ element *weights_of(shared_memory &s, int stage) {
    return s.weight + (!WEIGHTS_ALL || stage == 1 ? 0 : WEIGHT_FIRST + (stage - 2) * WEIGHT_NEXT);
}

static __device__ __forceinline__ T weight_up(const shared_memory &s, int stage) { return SCALED ? s.weight_up[stage - 1] : T(1); }

/* Weights of a stage wait where A and dZ will be. */
constexpr int RAW_WEIGHTS = most(FIRST, WIDTH) * WIDTH, RAW_AT_ONCE = (int)(PARTS * 2 * ROWS * STRIDE * sizeof(element) / sizeof(T)) / RAW_WEIGHTS;

/* All layers' scales, and the weights themselves (the first layer's if the others come later), as many layers at a time as there is room. */
static __device__ void load_network(const arguments &a, shared_memory &s) {
    constexpr int AT_ONCE = RAW_AT_ONCE < HIDDEN ? RAW_AT_ONCE : HIDDEN;
    static_assert(AT_ONCE > 0, "room for a layer");
    T *const raw = (T *)s.a; /* and s.b behind it */
#pragma unroll 1
    for (int first = 1; first <= HIDDEN; first += AT_ONCE) {
        const int end = first + AT_ONCE <= HIDDEN ? first + AT_ONCE : HIDDEN + 1;
#pragma unroll 1
        for (int stage = first; stage < end; stage++) fetch_weights(a, stage, raw + (stage - first) * RAW_WEIGHTS);
        await_fetched();
        __syncthreads();
        if constexpr (SCALED) {
#pragma unroll 1
            for (int stage = first; stage < end; stage++) {
                T largest = 0;
#pragma unroll 4
                for (int i = threadIdx.x; i < (stage == 1 ? FIRST : WIDTH) * WIDTH; i += THREADS)
                    largest = larger_magnitude(largest, raw[(stage - first) * RAW_WEIGHTS + i]);
                largest = largest_of_warp(largest);
                if (threadIdx.x % 32 == 0) s.largest[(stage - 1) * WARPS + threadIdx.x / 32] = largest;
            }
            __syncthreads();
#pragma unroll 1
            for (int stage = first + (int)threadIdx.x; stage < end; stage += THREADS) {
                T largest = 0;
#pragma unroll 1
                for (int w = 0; w < WARPS; w++) largest = larger_magnitude(largest, s.largest[(stage - 1) * WARPS + w]);
                s.weight_up[stage - 1] = scale_up(largest);
            }
            __syncthreads();
        }
#pragma unroll 1
        for (int stage = first; stage < end && (WEIGHTS_ALL || stage == 1); stage++)
            place_weights(raw + (stage - first) * RAW_WEIGHTS, stage, weights_of(s, stage), weight_up(s, stage));
        __syncthreads();
    }
}

/* Begins to copy the coordinates of a tile's points, if there is such a tile; printed after this text, as it knows the groups. */
static __device__ void fetch_tile(const arguments &a, size tile, T *coordinate);

static __device__ void begin_block(const arguments &a, shared_memory &s) {
    int4 *const from = (int4 *)s.weight, *const end = (int4 *)((char *)&s + SHARED_BYTES / 16 * 16);
#pragma unroll 1
    for (int4 *at = from + threadIdx.x; at < end; at += THREADS) *at = int4{0, 0, 0, 0};
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < VECTOR_ROWS * VECTOR; i += THREADS) {
        const int k = i / VECTOR, j = i % VECTOR;
        const T *vector = k < FIRST_VECTORS && !FIRST_TRAINED ? a.fixed : a.parameter;
        if (j < (k < FIRST_VECTORS ? FIRST_LANES : WIDTH)) fetch(vector + a.vector[k] + j, &s.vector[i]);
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < FIELDS * WIDTH; i += THREADS)
        fetch(a.parameter + a.output + i, &s.vector[(VECTOR_ROWS + i % FIELDS) * VECTOR + i / FIELDS]);
#pragma unroll 1
    for (int i = threadIdx.x; i < FIELDS; i += THREADS) fetch(a.parameter + a.bias + i, &s.bias[i]);
#pragma unroll 1
    for (int i = threadIdx.x; i < TERMS; i += THREADS) fetch(a.scale + i, &s.scale[i]);
    fetch_tile(a, blockIdx.x, s.coordinate[0]);
    load_network(a, s);
    if (PADDED_ROWS) { /* what pads rows of A and dZ must be finite */
#pragma unroll 1
        for (int4 *at = (int4 *)s.a + threadIdx.x; at < (int4 *)s.keep; at += THREADS) *at = int4{0, 0, 0, 0};
        __syncthreads();
    }
}

/* ---- sums --------------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ T *part_row(shared_memory &s, int unit, int vector) { return s.part + (unit * PART_VECTORS + vector) * VECTOR; }

/* One step of add_columns: lanes that differ in bit `step` share the columns' values; afterwards each has the sum of half of them. */
template <int COUNT> static __device__ __forceinline__ void halve(T *value, int step) {
    const bool upper = threadIdx.x & step;
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) {
        const T mine = upper ? value[i + COUNT / 2] : value[i], other = upper ? value[i] : value[i + COUNT / 2];
        value[i] = mine + __shfl_xor_sync(~0u, other, step);
    }
}

/* Stores the sum of value[n][e], a lane's summand for its columns, over the unit's points. */
template <int N> static __device__ __forceinline__ void add_columns(T (&value)[N][2], T *sum, int first_column) {
    T *const v = &value[0][0];
    if constexpr (N % 4 == 0) {
        halve<2 * N>(v, 16);
        halve<N>(v, 8);
        halve<N / 2>(v, 4);
        const int lane = threadIdx.x % 32, first = (lane >> 4 & 1) * (N / 2) + (lane >> 3 & 1) * (N / 4) + 0; /* tile of v[0] */
        constexpr int LEFT = N / 4; /* values left, 2*LEFT to a half of what bit 4 shared */
        const int at = (lane >> 2 & 1) * LEFT;
#pragma unroll
        for (int i = 0; i < LEFT; i++) sum[first_column + 8 * (first + (at + i) / 2) + lane_column() + (at + i) % 2] = v[i];
    } else {
#pragma unroll
        for (int i = 0; i < 2 * N; i++)
#pragma unroll
            for (int step = 4; step < 32; step *= 2) v[i] += __shfl_xor_sync(~0u, v[i], step);
        if (lane_row() == 0)
#pragma unroll
            for (int i = 0; i < 2 * N; i++) sum[first_column + 8 * (i / 2) + lane_column() + i % 2] = v[i];
    }
}

/* Adds the units' parts of `count` vectors, from part `from` on, to the block's sums, vector `first` on. Between two barriers of the block. */
static __device__ __forceinline__ void add_parts(shared_memory &s, int units, int from, int first, int count) {
#pragma unroll 1
    for (int i = threadIdx.x; i < count * VECTOR; i += THREADS) {
        T sum = s.sum[first * VECTOR + i];
#pragma unroll 1
        for (int unit = 0; unit < units; unit++) sum += s.part[(unit * PART_VECTORS + from) * VECTOR + i];
        s.sum[first * VECTOR + i] = sum;
    }
}

/* ---- pointwise ---------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ void vectors_at(const shared_memory &s, int stage, int column, T (&v)[VECTORS]) {
#pragma unroll
    for (int k = 0; k < VECTORS; k++) v[k] = s.vector[(FIRST_VECTORS + (stage - 1) * VECTORS + k) * VECTOR + column];
}

/* Each lane's own values, two columns at a time; sixteen bytes a thread, threads side by side. */
struct alignas(16) quad { T value[16 / sizeof(T)]; };
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
            for (int k = 0; k < AT_ONCE; k++) q.value[k] = (&z[0][0])[i * AT_ONCE + k];
            *at(keep, stage, n, i) = q;
        }
    }
    static __device__ __forceinline__ void get(T *keep, int stage, int n, typename layout<G>::columns &z) {
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            const quad q = *at(keep, stage, n, i);
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) (&z[0][0])[i * AT_ONCE + k] = q.value[k];
        }
    }
};

/* Columns of tile n. */
template <typename G> static __device__ __forceinline__ void take(const typename layout<G>::tile &z, int n, typename layout<G>::columns &out) {
#pragma unroll
    for (int m = 0; m < layout<G>::M_TILES; m++)
#pragma unroll
        for (int i = 0; i < 4; i++) out[m][i] = z[m][n][i];
}

/* A from Z, in place; what is needed going back is kept. */
template <typename G> static __device__ __forceinline__ void hidden_forward(const shared_memory &s, int stage, typename layout<G>::tile &z, T *keep) {
    typedef layout<G> L;
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++) {
        typename L::columns put;
        take<G>(z, n, put);
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[VECTORS];
            vectors_at(s, stage, L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T in[G::C], out[G::C], value[1];
#pragma unroll
                for (int c = 0; c < G::C; c++) in[c] = L::at(put, c, p, e);
                G::remember(in, v, out, value);
                L::at(put, 0, p, e) = value[0];
#pragma unroll
                for (int c = 0; c < G::C; c++) L::at(z, c, p, n, e) = out[c];
            }
        }
        kept<G>::put(keep, stage, n, put);
    }
}

/* A of a stage from what was kept of it, stored. */
template <typename G> static __device__ __forceinline__ void recall(const shared_memory &s, int stage, T *keep, T up, element *to) {
    typedef layout<G> L;
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++) {
        typename L::columns z, a;
        kept<G>::get(keep, stage, n, z);
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[VECTORS];
            vectors_at(s, stage, L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T in[G::C], out[G::C];
#pragma unroll
                for (int c = 0; c < G::C; c++) in[c] = L::at(z, c, p, e);
                G::recall(in, v, out);
#pragma unroll
                for (int c = 0; c < G::C; c++) L::at(a, c, p, e) = out[c];
            }
        }
#pragma unroll
        for (int m = 0; m < L::M_TILES; m++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                store_pair<STRIDE, ROWS_PART>(to, L::first_row() + 16 * m + 8 * h + lane_row(), L::column(n, 0), a[m][2 * h], a[m][2 * h + 1], up);
    }
}

/* dZ from what was kept and dA, over dA; stores the unit's part of the vectors' sums. */
template <typename G> static __device__ __forceinline__ void hidden_backward(shared_memory &s, int stage, T *keep, typename layout<G>::tile &da) {
    typedef layout<G> L;
    T sum[VECTORS][L::N_TILES][2];
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++) {
        typename L::columns z;
        kept<G>::get(keep, stage, n, z);
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[VECTORS];
            vectors_at(s, stage, L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T in[G::C], seed[G::C], out[G::C], part[VECTORS];
#pragma unroll
                for (int c = 0; c < G::C; c++) {
                    in[c] = L::at(z, c, p, e);
                    seed[c] = L::at(da, c, p, n, e);
                }
                G::adjoint(in, v, seed, out, part);
#pragma unroll
                for (int c = 0; c < G::C; c++) L::at(da, c, p, n, e) = out[c];
#pragma unroll
                for (int k = 0; k < VECTORS; k++) sum[k][n][e] = p == 0 ? part[k] : sum[k][n][e] + part[k];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; k++) add_columns(sum[k], part_row(s, L::unit(), k), L::first_column());
}

/* ---- stage 0 ------------------------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ void coordinates_at(const T *coordinate, int point, T (&x)[COORDINATES]) {
#pragma unroll
    for (int i = 0; i < COORDINATES; i++) x[i] = coordinate[i * POINTS_MOST + point];
}
static __device__ __forceinline__ void first_vectors_at(const shared_memory &s, int column, T (&v)[FIRST_VECTORS]) {
#pragma unroll
    for (int k = 0; k < FIRST_VECTORS; k++) v[k] = s.vector[k * VECTOR + column];
}

/* Jets of the first columns, each pair of a lane given to put(row, column, x0, x1); lane j gives column j of each of FIRST_BLOCKS blocks. */
template <typename G, typename PUT> static __device__ __forceinline__ void first_columns(const shared_memory &s, const T *coordinate, PUT put) {
    typedef layout<G> L;
    for (int tile = L::split(); tile < padded(FIRST_LANES) / 8; tile += G::SPLITS) {
        const int j = 8 * tile + lane_column();
        T v[2][FIRST_VECTORS]; /* zeros beyond FIRST_LANES */
        first_vectors_at(s, j, v[0]);
        first_vectors_at(s, j + 1, v[1]);
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
            first_vectors_at(s, L::column(n, e), v);
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

/* The unit's part of the sums of the first stage's vectors from dA (FIRST_IN_TILE). */
template <typename G> static __device__ __forceinline__ void first_backward(shared_memory &s, const T *coordinate, typename layout<G>::tile &da) {
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
                for (int p = 0; p < L::LANE_POINTS; p++) {
                    T x[COORDINATES], seed[G::C], part[FIRST_VECTORS];
                    coordinates_at(coordinate, L::point(p), x);
#pragma unroll
                    for (int c = 0; c < G::C; c++) seed[c] = L::at(da, c, p, n, e);
                    G::first_adjoint(x, v, seed, part);
#pragma unroll
                    for (int k = 0; k < FIRST_VECTORS; k++) sum[k][n][e] = p == 0 ? part[k] : sum[k][n][e] + part[k];
                }
            }
#pragma unroll
        for (int k = 0; k < FIRST_VECTORS; k++) add_columns(sum[k], part_row(s, L::unit(), k), L::first_column());
    }
}

/* ---- the turn: fields, residuals, their adjoint ------------------------------------------------------------------------------- */

/* The last stage: raw fields from Z, each lane's part summed over the four lanes of a row. Z becomes what is kept of it. */
template <typename G> static __device__ __forceinline__ void last_forward(shared_memory &s, typename layout<G>::tile &z) {
    typedef layout<G> L;
    T raw[L::LANE_POINTS][G::C][FIELDS];
#pragma unroll
    for (int n = 0; n < L::N_TILES; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[VECTORS];
            vectors_at(s, HIDDEN, L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T in[G::C], out[G::C], value[1];
#pragma unroll
                for (int c = 0; c < G::C; c++) in[c] = L::at(z, c, p, n, e);
                G::remember(in, v, out, value);
                L::at(z, 0, p, n, e) = value[0];
#pragma unroll
                for (int f = 0; f < FIELDS; f++) {
                    const T w = s.vector[(VECTOR_ROWS + f) * VECTOR + L::column(n, e)];
#pragma unroll
                    for (int c = 0; c < G::C; c++) raw[p][c][f] = n + e == 0 ? out[c] * w : fma(out[c], w, raw[p][c][f]);
                }
            }
        }
#pragma unroll
    for (int p = 0; p < L::LANE_POINTS; p++)
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) {
                T sum = raw[p][c][f];
                sum += __shfl_xor_sync(~0u, sum, 1);
                sum += __shfl_xor_sync(~0u, sum, 2);
                if (threadIdx.x % 4 == 0) s.raw[(L::split() * ROWS + L::row(c, p)) * FIELDS + f] = sum;
            }
}

template <int SET> struct set_of; /* GEOMETRIC, RESIDUALS, TERM and residual() of a point set */

/* One lane a point of the unit, in the unit's first warp. `valid`: points of the unit; the others repeat the last one and count for nothing. */
template <typename G, int SET> static __device__ __forceinline__ void residuals(shared_memory &s, const T *coordinate, int valid) {
    typedef layout<G> L;
    typedef set_of<SET> S;
    const int lane = threadIdx.x % 32, local = lane % L::UNIT_POINTS, warp = threadIdx.x / 32;
    const bool counts = lane < valid && lane < L::UNIT_POINTS;
    const int point = L::unit() * L::UNIT_POINTS + local, first = L::first_row() + local;
    T x[S::GEOMETRIC], raw[G::C * FIELDS], scale[S::RESIDUALS], square[S::RESIDUALS], adjoint[G::C * FIELDS], bias[FIELDS];
#pragma unroll
    for (int k = 0; k < S::GEOMETRIC; k++) x[k] = coordinate[k * POINTS_MOST + point];
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
    if (lane < L::UNIT_POINTS)
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) s.adjoint[(first + c * L::UNIT_POINTS) * FIELDS + f] = counts ? adjoint[c * FIELDS + f] : T(0);
#pragma unroll
    for (int k = 0; k < S::RESIDUALS; k++) {
        double sum = counts ? (double)square[k] : 0.0;
#pragma unroll
        for (int step = L::UNIT_POINTS / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0) s.loss_sum[warp * TERMS + S::TERM + k] += sum;
    }
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
        T sum = counts ? bias[f] : T(0);
#pragma unroll
        for (int step = L::UNIT_POINTS / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0) s.bias_sum[warp * FIELDS + f] += sum;
    }
}

/* dZ of the last stage from the fields' adjoints, over what was kept of it; stores the unit's part of the sums of vectors and output weights. */
template <typename G> static __device__ __forceinline__ void turn_back(shared_memory &s, typename layout<G>::tile &z) {
    typedef layout<G> L;
    T sum[FIELDS][L::N_TILES][2], vector_sum[VECTORS][L::N_TILES][2];
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
                T v[VECTORS], in[G::C], a[G::C], da[G::C], out[G::C], part[VECTORS];
                vectors_at(s, HIDDEN, L::column(n, e), v);
#pragma unroll
                for (int c = 0; c < G::C; c++) {
                    in[c] = L::at(z, c, p, n, e);
                    da[c] = 0;
                }
                G::recall(in, v, a);
#pragma unroll
                for (int f = 0; f < FIELDS; f++) {
                    const T w = s.vector[(VECTOR_ROWS + f) * VECTOR + L::column(n, e)];
                    T total = p == 0 ? T(0) : sum[f][n][e];
#pragma unroll
                    for (int c = 0; c < G::C; c++) {
                        total = fma(a[c], adjoint[c][f], total);
                        da[c] = f == 0 ? adjoint[c][f] * w : fma(adjoint[c][f], w, da[c]);
                    }
                    sum[f][n][e] = total;
                }
                G::adjoint(in, v, da, out, part);
#pragma unroll
                for (int c = 0; c < G::C; c++) L::at(z, c, p, n, e) = out[c];
#pragma unroll
                for (int k = 0; k < VECTORS; k++) vector_sum[k][n][e] = p == 0 ? part[k] : vector_sum[k][n][e] + part[k];
            }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; k++) add_columns(vector_sum[k], part_row(s, L::unit(), TURN_PART + k), L::first_column());
#pragma unroll
    for (int f = 0; f < FIELDS; f++) add_columns(sum[f], part_row(s, L::unit(), TURN_PART + VECTORS + f), L::first_column());
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

template <typename G, int COLUMNS> static __device__ __forceinline__ void add_weights(const shared_memory &s, T *gradient, bool first_tile) {
    constexpr int M = GRADIENT_M, N = GRADIENT_N;
    constexpr int tiles_in = (padded(COLUMNS) + 16 * M - 1) / (16 * M), tiles_out = (padded(WIDTH) + 8 * N - 1) / (8 * N);
    for (int item = threadIdx.x / 32; item < tiles_in * tiles_out; item += WARPS) {
        const int first_in = item % tiles_in * 16 * M, first_out = item / tiles_in * 8 * N;
        T dw[M][N][4];
        clear(dw);
        if (!first_tile) exchange_weights<COLUMNS, false>(dw, gradient, first_in, first_out);
        product_weights<M, N, layout<G>::UNIT_ROWS, STRIDE, ROWS_PART>(s.a, s.b, G::UNITS, s.down, first_in, first_out, dw);
        exchange_weights<COLUMNS, true>(dw, gradient, first_in, first_out);
    }
}

/* ---- a tile ------------------------------------------------------------------------------------------------------------------- */

/* A warp's place in a tile. */
struct place_in_tile {
    T *keep, *gradient;
    const T *coordinate; /* [columns][POINTS_MOST] */
    int set, valid;      /* points of the unit that count */
    bool first_tile;
};

/* First of the unit's points in the tile, and how many there are. */
template <typename G> static __device__ __forceinline__ int unit_points(const arguments &a, int set, size tile, size &first) {
    typedef layout<G> L;
    const member &m = a.set[set];
    first = (tile - (set ? a.set[set - 1].end : 0)) * L::POINTS + L::unit() * L::UNIT_POINTS;
    return first >= m.points ? 0 : m.points - first < (size)L::UNIT_POINTS ? (int)(m.points - first) : L::UNIT_POINTS;
}

/* Begins to copy the unit's coordinates; where points are missing, the last one's. */
template <typename G> static __device__ __forceinline__ void fetch_points(const arguments &a, int set, size tile, T *coordinate) {
    typedef layout<G> L;
    if (!L::active()) return;
    const member &m = a.set[set];
    size first;
    const int valid = unit_points<G>(a, set, tile, first);
    for (int i = threadIdx.x % (32 * G::SPLITS); i < L::UNIT_POINTS * (int)m.columns; i += 32 * G::SPLITS) {
        const int k = i / L::UNIT_POINTS, p = i % L::UNIT_POINTS;
        fetch(a.point + m.point + k * m.points + (p < valid ? first + p : m.points - 1), coordinate + k * POINTS_MOST + L::unit() * L::UNIT_POINTS + p);
    }
}
/* z = A W of a stage; A in registers or stored, of scale `up`. */
template <typename G, int STEPS>
static __device__ __forceinline__ void stored_product(shared_memory &s, int stage, T up, typename layout<G>::tile &z) {
    typedef layout<G> L;
    unit_barrier<G>();
    product<L::M_TILES, L::N_TILES, STEPS, false, WEIGHT_STRIDE, WEIGHTS>(from_shared<L::M_TILES, STRIDE, ROWS_PART>(s.a, L::first_row()),
                                                                          weights_of(s, stage), L::first_column(), scale_down(up) * scale_down(weight_up(s, stage)), z);
}
template <typename G> static __device__ __forceinline__ void tile_product(shared_memory &s, int stage, typename layout<G>::tile &z) {
    typedef layout<G> L;
    constexpr int M = L::M_TILES, N = L::N_TILES;
    const T up = unit_scale<G>(s, largest_of(z));
    if (SCALED && threadIdx.x % (32 * G::SPLITS) == 0) s.a_up[(stage - 1) * UNITS_MOST + L::unit()] = up;
    packed<M, N> p;
    pack(z, up, p);
    if constexpr (L::CHAINED)
        product<M, N, WIDTH_STEPS, false, WEIGHT_STRIDE, WEIGHTS>(from_packed<M, N>{p}, weights_of(s, stage), 0, scale_down(up) * scale_down(weight_up(s, stage)), z);
    else {
        store_packed<STRIDE, ROWS_PART>(p, s.a, L::first_row(), L::first_column());
        stored_product<G, WIDTH_STEPS>(s, stage, up, z);
    }
}
template <typename G> static __device__ __forceinline__ void first_product(shared_memory &s, const T *coordinate, typename layout<G>::tile &z) {
    const T up = first_scale<G>(s, coordinate);
    if (SCALED && threadIdx.x % (32 * G::SPLITS) == 0) s.a_up[layout<G>::unit()] = up;
    first_stored<G>(s, coordinate, up, s.a);
    stored_product<G, FIRST_STEPS>(s, 1, up, z);
}

/* The next layer's weights in the last one's place. All threads. */
static __device__ __forceinline__ void exchange_layer(const arguments &a, shared_memory &s, int stage) {
    if (WEIGHTS_ALL) return;
    __syncthreads();
    place_weights(a.parameter + a.weight[stage - 1], stage, s.weight, weight_up(s, stage));
    __syncthreads();
}

/* Going back, before the block's barrier: dZ of `stage` (in z) and A of the stage below are stored. */
template <typename G>
static __device__ __forceinline__ T store_operands(shared_memory &s, const place_in_tile &at, int stage, const typename layout<G>::tile &z,
                                                   packed<layout<G>::M_TILES, layout<G>::N_TILES> &p) {
    typedef layout<G> L;
    const T up = unit_scale<G>(s, largest_of(z)), a_up = SCALED ? s.a_up[(stage - 1) * UNITS_MOST + L::unit()] : T(1);
    if (SCALED && threadIdx.x % (32 * G::SPLITS) == 0) s.down[L::unit()] = scale_down(up) * scale_down(a_up);
    pack(z, up, p);
    store_packed<STRIDE, ROWS_PART>(p, s.b, L::first_row(), L::first_column());
    if (stage > 1)
        recall<G>(s, stage - 1, at.keep, a_up, s.a);
    else
        first_stored<G>(s, at.coordinate, a_up, s.a);
    return up;
}

/* z: dZ of the stage below, or the first vectors' sums. */
template <typename G>
static __device__ __forceinline__ void descend(shared_memory &s, const place_in_tile &at, int stage, T up,
                                               const packed<layout<G>::M_TILES, layout<G>::N_TILES> &p, typename layout<G>::tile &z) {
    typedef layout<G> L;
    constexpr int M = L::M_TILES, N = L::N_TILES;
    const T down = scale_down(up) * scale_down(weight_up(s, stage));
    if constexpr (L::CHAINED)
        product<M, N, WIDTH_STEPS, true, WEIGHT_STRIDE, WEIGHTS>(from_packed<M, N>{p}, weights_of(s, stage), 0, down, z);
    else
        product<M, N, WIDTH_STEPS, true, WEIGHT_STRIDE, WEIGHTS>(from_shared<M, STRIDE, ROWS_PART>(s.b, L::first_row()), weights_of(s, stage),
                                                                 L::first_column(), down, z);
    if (stage > 1)
        hidden_backward<G>(s, stage - 1, at.keep, z);
    else
        first_backward<G>(s, at.coordinate, z);
}

template <typename G> static __device__ __forceinline__ void add_stage_weights(const shared_memory &s, const place_in_tile &at, int stage) {
    if (stage == 1)
        add_weights<G, FIRST>(s, at.gradient, at.first_tile);
    else
        add_weights<G, WIDTH>(s, at.gradient + GRADIENT_FIRST + (stage - 2) * WIDTH * WIDTH, at.first_tile);
}

template <typename G> static __device__ __forceinline__ void run_tile(const arguments &a, shared_memory &s, place_in_tile at, size tile) {
    typedef layout<G> L;
    const bool active = L::active();
    typename L::tile z;
    size first;
    at.valid = unit_points<G>(a, at.set, tile, first);
    await_fetched();
    if (active) unit_barrier<G>();
    fetch_tile(a, tile + gridDim.x, s.coordinate[at.coordinate == s.coordinate[0]]);
    if (active) {
        if constexpr (!L::FIRST_IN_TILE) first_product<G>(s, at.coordinate, z);
    }
#pragma unroll 1
    for (int stage = L::FIRST_IN_TILE ? 0 : 1; stage < HIDDEN; stage++) { /* z: Z of the stage; at 0 nothing yet */
        if (stage > 0) exchange_layer(a, s, stage + 1);
        if (!active) continue;
        if constexpr (L::FIRST_IN_TILE)
            if (stage == 0) first_forward<G>(s, at.coordinate, z);
        if (stage > 0) hidden_forward<G>(s, stage, z, at.keep);
        tile_product<G>(s, stage + 1, z);
    }
    if (active) {
        last_forward<G>(s, z);
        unit_barrier<G>();
        if (L::split() == 0) G::turn(at.set, s, at.coordinate, at.valid);
        unit_barrier<G>();
        turn_back<G>(s, z);
    }
#pragma unroll 1
    for (int stage = HIDDEN; stage >= 1; stage--) {
        packed<L::M_TILES, L::N_TILES> p;
        T up = 1;
        if (active) up = store_operands<G>(s, at, stage, z, p);
        if (stage < HIDDEN) exchange_layer(a, s, stage);
        __syncthreads(); /* A and dZ of all units are there */
        if (stage == HIDDEN) add_parts(s, G::UNITS, TURN_PART, FIRST_SUM + (HIDDEN - 1) * VECTORS, VECTORS + FIELDS);
        add_stage_weights<G>(s, at, stage);
        if (active && (stage > 1 || FIRST_TRAINED)) descend<G>(s, at, stage, up, p, z);
        __syncthreads(); /* before they are overwritten */
        if (stage > 1)
            add_parts(s, G::UNITS, 0, FIRST_SUM + (stage - 2) * VECTORS, VECTORS);
        else
            add_parts(s, G::UNITS, 0, 0, FIRST_SUM);
    }
    if (WEIGHTS_ALL)
        __syncthreads(); /* before the next tile's parts */
    else
        exchange_layer(a, s, 1);
}

/* The block's vectors, biases and losses. */
static __device__ void end_block(shared_memory &s, T *gradient, double *loss) {
#pragma unroll 1
    for (int i = threadIdx.x; i < SUM_VECTORS * WIDTH; i += THREADS) {
        const int k = i / WIDTH, j = i % WIDTH, f = k - FIRST_SUM - HIDDEN * VECTORS;
        const T sum = s.sum[k * VECTOR + j];
        gradient[GRADIENT_VECTORS + (f < 0 ? k * WIDTH + j : (FIRST_SUM + HIDDEN * VECTORS) * WIDTH + j * FIELDS + f)] = sum;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < FIELDS; i += THREADS) {
        T sum = 0;
#pragma unroll 1
        for (int w = 0; w < WARPS; w++) sum += s.bias_sum[w * FIELDS + i];
        gradient[GRADIENT_VECTORS + SUM_VECTORS * WIDTH + i] = sum;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < TERMS; i += THREADS) {
        double sum = 0;
#pragma unroll 1
        for (int w = 0; w < WARPS; w++) sum += s.loss_sum[w * TERMS + i];
        loss[i] = sum;
    }
}
