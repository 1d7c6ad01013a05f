/* A block of the streamed network pass: what the kernel is given, what lies in shared memory, who owns which rows and columns, how a tile is
 * stored, how lanes sum. Compiled by NVRTC only, after stream_products.cuh; kernels/stream_pass.cuh tells how it all works. */

struct member { size points, end, point, columns, row, rows; }; /* end: the first tile after its own; column k of its points from point +
                                                                   k*points; row: the first of its first tile; rows: of a tile */
struct arguments {
    const float *parameter, *fixed, *point, *scale;
    float *gradient; /* [blocks][GRADIENT_ROW], then the weight gradients' partials */
    double *loss;    /* [blocks][TERMS] */
    unsigned char *work;
    size weights, weight_scale, images, image_scale, keep; /* where they start in `work`, bytes */
    size rows, tiles; /* of all point sets */
    size weight[HIDDEN], vector[VECTOR_ROWS], output, bias; /* where they start among the parameters (untrained: in `fixed`) */
    size partial[HIDDEN]; /* in `gradient`: [SPLITS][in][WIDTH] of a stage's weights */
    size split[SPLITS + 1]; /* tiles of a weight gradient's partials */
    member set[MEMBERS];
};
static_assert(sizeof(arguments) == 8 * ARGUMENT_WORDS, "the plan counts as this text does");

constexpr int SUM_VECTORS = FIRST_TRAINED * FIRST_VECTORS + HIDDEN * VECTORS + FIELDS, FIRST_SUM = FIRST_TRAINED * FIRST_VECTORS;
constexpr int LANES_PADDED = (FIRST_LANES + COLUMNS_STEP - 1) / COLUMNS_STEP * COLUMNS_STEP;
constexpr bool FIRST_LIKE_HIDDEN = FIRST_BLOCKS == 1 && LANES_PADDED == PADDED;
constexpr int VECTOR = PADDED > LANES_PADDED ? PADDED : LANES_PADDED;
constexpr int TILE_WORDS = PARTS * ROWS * PITCH / 2;

struct shared_memory {
    alignas(128) word ring[STAGES * CHUNK_WORDS];
    alignas(128) word tile[TILE_WORDS];
    double loss_sum[WARPS * TERMS];
    float chunk_scale[CHUNKS];
    float vector[(VECTOR_ROWS + FIELDS) * VECTOR];
    float sum[ROW_WARPS_MOST * SUM_VECTORS * VECTOR];
    float raw[RAW_MOST * FIELDS], adjoint[ROWS * FIELDS], bias[FIELDS], scale[TERMS];
    float coordinate[POINTS_MOST * COLUMNS_MOST];
    float bias_sum[WARPS * FIELDS];
    unsigned most[WARPS];
};

/* What depends on a group's channels. G: C, UNITS, ROW_WARPS and the lane functions. */
template <typename G> struct layout {
    static constexpr bool EVEN = G::C % 2 == 0;
    static constexpr int M_TILES = EVEN ? G::C / 2 : G::C, UNIT_ROWS = 16 * M_TILES, UNIT_POINTS = EVEN ? 8 : 16;
    static constexpr int COLUMN_WARPS = WARPS / G::ROW_WARPS;
    static constexpr int M = G::UNITS * M_TILES, N = PADDED / 8 / COLUMN_WARPS, LANE_N = LANES_PADDED / 8 / COLUMN_WARPS; /* of a warp */
    static constexpr int LANE_POINTS = (EVEN ? 1 : 2) * G::UNITS;
    static constexpr int TILE_ROWS = G::ROW_WARPS * 16 * M, POINTS = G::ROW_WARPS * G::UNITS * UNIT_POINTS;
    typedef float tile[M][N][4];
    static __device__ __forceinline__ int row_warp() { return warp() / COLUMN_WARPS; }
    static __device__ __forceinline__ int column_warp() { return warp() % COLUMN_WARPS; }
    static __device__ __forceinline__ int first_row() { return row_warp() * 16 * M; }
    /* channel c of the lane's point p in column e of tile n */
    template <int ALL> static __device__ __forceinline__ float &at(float (&z)[M][ALL][4], int c, int p, int n, int e) {
        return EVEN ? z[p * M_TILES + c / 2][n][c % 2 * 2 + e] : z[p / 2 * M_TILES + c][n][p % 2 * 2 + e];
    }
    static __device__ __forceinline__ int row(int c, int p) {
        return first_row() + (EVEN ? p * UNIT_ROWS + 8 * c : p / 2 * UNIT_ROWS + 16 * c + p % 2 * 8) + lane_row();
    }
    static __device__ __forceinline__ int point(int p) { return row_warp() * G::UNITS * UNIT_POINTS + 8 * p + lane_row(); }
    /* column e of tile n when a warp has ALL tiles */
    template <int ALL = N> static __device__ __forceinline__ int column(int n, int e) { return (column_warp() * ALL + n) * 8 + lane_column() + e; }
};

/* ---- the tile ------------------------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ int tile_word(int part, int row, int column) {
    return (part * ROWS + row) * (PITCH / 2) + ((column / 8) ^ (row % 8)) * 4 + column % 8 / 2;
}

template <int M, int N> static __device__ __forceinline__ unsigned most_of(const float (&z)[M][N][4], unsigned most) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) most = magnitude(z[m][n][i]) > most ? magnitude(z[m][n][i]) : most;
    return most;
}

template <typename G, int N> static __device__ __forceinline__ void store_tile(const float (&z)[layout<G>::M][N][4], float up, word *tile) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int m = 0; m < layout<G>::M; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                word part[PARTS];
                split_pair(z[m][n][2 * h] * up, z[m][n][2 * h + 1] * up, part);
#pragma unroll
                for (int i = 0; i < PARTS; i++)
                    tile[tile_word(i, layout<G>::first_row() + 16 * m + 8 * h + lane_row(), layout<G>::template column<N>(n, 0))] = part[i];
            }
}

/* The tile to its place among the images of array `which`: A of stages 0..HIDDEN-1, then dZ of stages 1..HIDDEN. */
template <int R, int COLUMNS>
static __device__ __forceinline__ void store_image(const arguments &a, const word *tile, int which, size number, size row, float down) {
    constexpr int PIECES = COLUMNS / 8;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        uint4 *to = (uint4 *)(a.work + a.images) + ((which * PARTS + part) * a.rows + row) * (PITCH / 8);
        const uint4 *from = (const uint4 *)tile + part * ROWS * (PITCH / 8);
#pragma unroll 8
        for (int i = threadIdx.x; i < R * PIECES; i += THREADS) {
            const int at = i / PIECES * (PITCH / 8) + i % PIECES;
            to[at] = from[at];
        }
    }
    if (threadIdx.x == 0) ((float *)(a.work + a.image_scale))[which * a.tiles + number] = down;
}

/* Values of a whole stage into the tile and its image; returns the inverse of its scale. Two barriers. */
template <typename G, int N>
static __device__ __forceinline__ float put_tile(const arguments &a, shared_memory &s, const float (&z)[layout<G>::M][N][4], int which, size number,
                                                 size row) {
    const scale_pair scale = scale_of(block_most<WARPS>(most_of(z, 0), s.most));
    store_tile<G>(z, scale.up, s.tile);
    __syncthreads();
    store_image<layout<G>::TILE_ROWS, 8 * layout<G>::COLUMN_WARPS * N>(a, s.tile, which, number, row, scale.down);
    return scale.down;
}

/* ---- sums --------------------------------------------------------------------------------------------------------------------- */

/* Adds COUNT values of a lane, of its columns' values those from `first` on, over the warp's rows; sum: at the lane's first column. Lanes that
 * differ in bit STEP share the values and go on with half of them each; an odd number is summed by both and stored by one. */
template <int COUNT, int STEP> static __device__ __forceinline__ void add_rows(float *value, float *sum, int first, bool stores) {
    if constexpr (STEP < 4) {
        if (stores)
#pragma unroll
            for (int i = 0; i < COUNT; i++) sum[(first + i) / 2 * 8 + (first + i) % 2] += value[i];
    } else if constexpr (COUNT % 2 == 0) {
        const bool upper = lane() & STEP;
#pragma unroll
        for (int i = 0; i < COUNT / 2; i++) {
            const float mine = upper ? value[i + COUNT / 2] : value[i], other = upper ? value[i] : value[i + COUNT / 2];
            value[i] = mine + from_lane(other, STEP);
        }
        add_rows<COUNT / 2, STEP / 2>(value, sum, upper ? first + COUNT / 2 : first, stores);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) value[i] = sum_lanes(value[i], STEP);
        add_rows<COUNT, STEP / 2>(value, sum, first, stores && !(lane() & STEP));
    }
}

/* Adds value[n][e], a lane's summand for its columns, over the warp's rows to vector k of the sums. */
template <typename G> static __device__ __forceinline__ void add_columns(shared_memory &s, float (&value)[layout<G>::N][2], int k) {
    typedef layout<G> L;
    add_rows<2 * L::N, 16>(&value[0][0], s.sum + (L::row_warp() * SUM_VECTORS + k) * VECTOR + L::column(0, 0), 0, true);
}
