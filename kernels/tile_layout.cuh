/* A block of the tiled network pass: what the kernel is given, what lies in shared memory, who owns which rows and columns, how weights and
 * coordinates come, how lanes and units sum. Compiled by NVRTC only; kernels/tile_pass.cuh tells how it all works. */

struct member { size points, end, point, columns; }; /* end: the first tile after its own; column k of its points from point + k*points */
struct arguments {
    const T *parameter, *fixed, *point, *scale;
    T *gradient; /* [blocks][GRADIENT_ROW] */
    double *loss; /* [blocks][TERMS] */
    T *keep;     /* [blocks][KEEP_BLOCK] when kept in device memory */
    size weight[HIDDEN], vector[VECTOR_ROWS], output, bias; /* where they start among the parameters (untrained: in `fixed`) */
    member set[MEMBERS];
};
static_assert(sizeof(arguments) == 8 * ARGUMENT_WORDS, "the plan counts as this text does");

__host__ __device__ constexpr int padded(int columns) { return (columns + 7) / 8 * 8; }
__host__ __device__ constexpr int most(int a, int b) { return a > b ? a : b; }
constexpr int THREADS = 32 * WARPS;
constexpr int WIDTH_STEPS = (WIDTH + K_STEP - 1) / K_STEP, FIRST_STEPS = (FIRST + K_STEP - 1) / K_STEP; /* of a product's k */
constexpr int WEIGHT_FIRST = FIRST_STEPS * K_STEP * WEIGHT_STRIDE, WEIGHT_NEXT = WIDTH_STEPS * K_STEP * WEIGHT_STRIDE;
constexpr int WEIGHTS = WEIGHTS_ALL ? WEIGHT_FIRST + (HIDDEN - 1) * WEIGHT_NEXT : most(WEIGHT_FIRST, HIDDEN > 1 ? WEIGHT_NEXT : 0);
constexpr int VECTOR = most(padded(FIRST_LANES), padded(WIDTH)); /* of vectors in shared memory; rows: first stage, hidden stages, output */
constexpr int SUM_VECTORS = FIRST_TRAINED * FIRST_VECTORS + HIDDEN * VECTORS + FIELDS;
constexpr int FIRST_SUM = FIRST_TRAINED * FIRST_VECTORS;
/* A unit's sums of a stage's vectors wait for the block's next barrier: those of the stages in two places in turn, where those of the first
 * stage's vectors come with stage 1, those of the turn in a third. */
constexpr int EVEN_PART = most(VECTORS, FIRST_SUM), TURN_PART = EVEN_PART + VECTORS, PART_VECTORS = TURN_PART + VECTORS + FIELDS;
__host__ __device__ constexpr int stage_part(int stage) { return stage % 2 ? 0 : EVEN_PART; }
constexpr int ROWS_PART = ROWS * STRIDE;

struct shared_memory {
    alignas(ARRAY_ALIGNMENT) element a[A_ARRAYS * PARTS * ROWS * STRIDE], b[PARTS * ROWS * STRIDE]; /* A, dZ */
    alignas(16) T keep[KEEP_SHARED && KEEP_BLOCK ? KEEP_BLOCK : 4];
    alignas(ARRAY_ALIGNMENT) element weight[WEIGHT_SLOTS * PARTS * WEIGHTS];
    T vector[(VECTOR_ROWS + FIELDS) * VECTOR];
    T part[UNITS_MOST * PART_VECTORS * VECTOR], sum[SUM_VECTORS * VECTOR];
    T raw[RAW_MOST * FIELDS], adjoint[ROWS * FIELDS], bias[FIELDS], scale[TERMS];
    T coordinate[2][COLUMNS_MOST * POINTS_MOST]; /* of this tile and of the next */
    T bias_sum[WARPS * FIELDS];
    double loss_sum[WARPS * TERMS];
    T a_up[HIDDEN * UNITS_MOST], down[UNITS_MOST], weight_up[HIDDEN]; /* scales of A, of A^T dZ back to what it is, of weights */
    T largest[UNITS_MOST * SPLITS_MOST + WARPS * HIDDEN];
};

/* What stage `stage` multiplies by W. The first stages have arrays of their own, the others the last one in turn. */
static __device__ __forceinline__ element *operand(shared_memory &s, int stage) {
    return s.a + (stage < A_ARRAYS ? stage - 1 : A_ARRAYS - 1) * (PARTS * ROWS * STRIDE);
}

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
    typedef T columns[M_TILES][1][4]; /* two columns */
    static __device__ __forceinline__ int unit() { return threadIdx.x / 32 / G::SPLITS; }
    static __device__ __forceinline__ int split() { return threadIdx.x / 32 % G::SPLITS; }
    static __device__ __forceinline__ int first_column() { return split() * N_TILES * 8; }
    static __device__ __forceinline__ int column(int n, int e) { return first_column() + 8 * n + lane_column() + e; }
    static __device__ __forceinline__ bool active() { return unit() < G::UNITS; }
    static __device__ __forceinline__ int first_row() { return unit() * UNIT_ROWS; }
    static __device__ __forceinline__ int row(int channel, int point) { return first_row() + (EVEN ? 8 : 16) * channel + 8 * point + lane_row(); }
    static __device__ __forceinline__ int point(int point) { return unit() * UNIT_POINTS + 8 * point + lane_row(); }
    /* channel c of the lane's point p in column e of tile n */
    template <int N> static __device__ __forceinline__ T &at(T (&z)[M_TILES][N][4], int c, int p, int n, int e) {
        return EVEN ? z[c / 2][n][c % 2 * 2 + e] : z[c][n][p * 2 + e];
    }
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

/* Copies 4, 8 or 16 bytes to shared memory without a wait. */
template <typename V> static __device__ __forceinline__ void fetch(const V *from, V *to) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "n"(sizeof(V)) : "memory");
}
/* All threads: COUNT values, value i to place(i). */
template <int COUNT, typename PLACE> static __device__ __forceinline__ void fetch_all(const T *from, PLACE place) {
#pragma unroll
    for (int i = 0; i < (COUNT + THREADS - 1) / THREADS; i++) {
        const int j = i * THREADS + threadIdx.x;
        if (j < COUNT) fetch(from + j, place(j));
    }
}
static __device__ __forceinline__ void await_fetched() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* Neighbouring weights of a row, TOGETHER of them; every row and every layer begins at a multiple of their size. */
struct alignas(TOGETHER * sizeof(T)) together { T value[TOGETHER]; };

/* A thread's part of a layer's weights: number i*THREADS + threadIdx.x in the order of memory; zeros where rows are padded. */
constexpr int ROW_LOADS = WIDTH / TOGETHER, LOADS = (most(FIRST_STEPS, WIDTH_STEPS) * K_STEP * ROW_LOADS + THREADS - 1) / THREADS;
typedef together layer_part[LOADS];

static __device__ __forceinline__ void load_layer(const arguments &a, int stage, layer_part &w) {
    const together *from = (const together *)(a.parameter + a.weight[stage - 1]) + threadIdx.x;
    const int left = (stage == 1 ? FIRST : WIDTH) * ROW_LOADS - threadIdx.x;
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        w[i] = {};
        if (i * THREADS < left) w[i] = from[i * THREADS];
    }
}

/* The same from memory to its place without a wait, where there is no scale. */
static __device__ __forceinline__ void fetch_layer(const arguments &a, int stage, element *to) {
    const together *from = (const together *)(a.parameter + a.weight[stage - 1]);
    const int rows = stage == 1 ? FIRST : WIDTH, padded_rows = (stage == 1 ? FIRST_STEPS : WIDTH_STEPS) * K_STEP;
    for (int i = threadIdx.x; i < padded_rows * ROW_LOADS; i += THREADS) {
        const int k = i / ROW_LOADS, n = i % ROW_LOADS * TOGETHER;
        if (k < rows)
            fetch(from + i, (together *)&to[place<WEIGHT_STRIDE>(k, n)]);
        else
            store_run<WEIGHT_STRIDE, WEIGHTS>(to, k, n, together{}.value, 1);
    }
}

/* `up`: of this layer. */
static __device__ __forceinline__ void place_layer(const layer_part &w, int stage, element *to, T up) {
    const int count = (stage == 1 ? FIRST_STEPS : WIDTH_STEPS) * K_STEP * ROW_LOADS;
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        const int at = i * THREADS + threadIdx.x, k = at / ROW_LOADS, n = at % ROW_LOADS * TOGETHER;
        if (at >= count) break;
        store_run<WEIGHT_STRIDE, WEIGHTS>(to, k, n, w[i].value, up);
    }
}

static __device__ __forceinline__ T largest_of_layer(const layer_part &w) {
    T largest = 0;
#pragma unroll
    for (int i = 0; i < LOADS; i++)
#pragma unroll
        for (int e = 0; e < TOGETHER; e++) largest = larger_magnitude(largest, w[i].value[e]);
    return largest_of_warp(largest);
}

static __device__ __forceinline__ element *weights_of(shared_memory &s, int stage) {
    if (!WEIGHTS_ALL) return s.weight + (WEIGHT_SLOTS == 2 && stage % 2 == 0 ? PARTS * WEIGHTS : 0);
    return s.weight + (stage == 1 ? 0 : WEIGHT_FIRST + (stage - 2) * WEIGHT_NEXT);
}

static __device__ __forceinline__ T weight_up(const shared_memory &s, int stage) { return SCALED ? s.weight_up[stage - 1] : T(1); }

/* As many layers at a time as a thread has registers for. */
constexpr int LAYER_REGISTERS = LOADS * TOGETHER * (int)sizeof(T) / 4, REGISTER_LAYERS = LAYER_REGISTERS > 48 ? 1 : 96 / LAYER_REGISTERS;
constexpr int LAYERS = REGISTER_LAYERS < HIDDEN ? REGISTER_LAYERS : HIDDEN;
typedef layer_part layer_parts[LAYERS];

static __device__ __forceinline__ void load_layers(const arguments &a, int first, layer_parts &w) {
#pragma unroll
    for (int l = 0; l < LAYERS; l++)
        if (first + l <= HIDDEN) load_layer(a, first + l, w[l]);
}

/* All layers' scales, and the weights themselves (of the first layers if the others come later). The first layers are in `w`. */
static __device__ __forceinline__ void load_network(const arguments &a, shared_memory &s, layer_parts &w) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
    for (int first = 1; first <= HIDDEN; first += LAYERS) {
        if (first > 1) load_layers(a, first, w);
        if constexpr (SCALED) {
#pragma unroll
            for (int l = 0; l < LAYERS && first + l <= HIDDEN; l++) {
                const T largest = largest_of_layer(w[l]);
                if (lane == 0) s.largest[(first + l - 1) * WARPS + warp] = largest;
            }
            __syncthreads();
        }
#pragma unroll
        for (int l = 0; l < LAYERS && first + l <= HIDDEN; l++) {
            const int stage = first + l;
            const T up = scale_up(largest_of_warp(SCALED && lane < WARPS ? s.largest[(stage - 1) * WARPS + lane] : T(0)));
            if (threadIdx.x == 0) s.weight_up[stage - 1] = up;
            if (WEIGHTS_ALL || stage <= WEIGHT_SLOTS) place_layer(w[l], stage, weights_of(s, stage), up);
        }
    }
}

/* Begins to copy the coordinates of a tile's points, if there is such a tile; printed after this text, as it knows the groups. */
static __device__ void fetch_tile(const arguments &a, size tile, T *coordinate);

static __device__ void begin_block(const arguments &a, shared_memory &s) {
    int4 *const from = (int4 *)s.weight, *const end = (int4 *)((char *)&s + SHARED_BYTES / 16 * 16);
#pragma unroll 1
    for (int4 *at = from + threadIdx.x; at < end; at += THREADS) *at = int4{0, 0, 0, 0};
    await_last();
    layer_parts w;
    load_layers(a, 1, w); /* on their way while the vectors are asked for */
    __syncthreads();
#pragma unroll
    for (int k = 0; k < FIRST_VECTORS; k++)
        fetch_all<FIRST_LANES>((FIRST_TRAINED ? a.parameter : a.fixed) + a.vector[k], [&](int j) { return &s.vector[k * VECTOR + j]; });
#pragma unroll
    for (int k = FIRST_VECTORS; k < VECTOR_ROWS; k++) fetch_all<WIDTH>(a.parameter + a.vector[k], [&](int j) { return &s.vector[k * VECTOR + j]; });
    fetch_all<FIELDS * WIDTH>(a.parameter + a.output, [&](int i) { return &s.vector[(VECTOR_ROWS + i % FIELDS) * VECTOR + i / FIELDS]; });
    fetch_all<FIELDS>(a.parameter + a.bias, [&](int i) { return &s.bias[i]; });
    fetch_all<TERMS>(a.scale, [&](int i) { return &s.scale[i]; });
    fetch_tile(a, blockIdx.x, s.coordinate[0]);
    load_network(a, s, w);
    await_fetched();
    __syncthreads();
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

/* Stores `scale` times the sum of value[n][e], a lane's summand for its columns, over the unit's points. */
template <int N> static __device__ __forceinline__ void add_columns(T (&value)[N][2], T scale, T *sum, int first_column) {
    T *const v = &value[0][0];
    if constexpr (N % 4 == 0) {
        halve<2 * N>(v, 16);
        halve<N>(v, 8);
        halve<N / 2>(v, 4);
        const int lane = threadIdx.x % 32, first = (lane >> 4 & 1) * (N / 2) + (lane >> 3 & 1) * (N / 4) + 0; /* tile of v[0] */
        constexpr int LEFT = N / 4; /* values left, 2*LEFT to a half of what bit 4 shared */
        const int at = (lane >> 2 & 1) * LEFT;
#pragma unroll
        for (int i = 0; i < LEFT; i++) sum[first_column + 8 * (first + (at + i) / 2) + lane_column() + (at + i) % 2] = v[i] * scale;
    } else {
#pragma unroll
        for (int i = 0; i < 2 * N; i++)
#pragma unroll
            for (int step = 4; step < 32; step *= 2) v[i] += __shfl_xor_sync(~0u, v[i], step);
        if (lane_row() == 0)
#pragma unroll
            for (int i = 0; i < 2 * N; i++) sum[first_column + 8 * (i / 2) + lane_column() + i % 2] = v[i] * scale;
    }
}

/* Adds the units' parts of `count` vectors, from part `from` on, to the block's sums, vector `first` on. Begins with the last threads: their
 * warps have the least of a weight gradient. */
static __device__ __forceinline__ void add_parts(shared_memory &s, int units, int from, int first, int count) {
#pragma unroll 1
    for (int i = THREADS - 1 - threadIdx.x; i < count * VECTOR; i += THREADS) {
        T sum = s.sum[first * VECTOR + i];
#pragma unroll
        for (int unit = 0; unit < units; unit++) sum += s.part[(unit * PART_VECTORS + from) * VECTOR + i];
        s.sum[first * VECTOR + i] = sum;
    }
}
