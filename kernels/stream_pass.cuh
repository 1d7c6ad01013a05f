/* The network pass of a tile of points in one thread block while weights stream through shared memory: forward through all layers with the
 * jets, residual and adjoint, backward. Compiled by NVRTC only, after stream_products.cuh and one structure a group of point sets with
 * equal channels (its lane functions); after it come the residuals of the point sets and the kernels.
 *
 * Stages. Stage 0 turns coordinates into the jets of FIRST columns; stage s = 1..HIDDEN is Z = A W_s, then the activation's jets of WIDTH
 * columns; at the end FIELDS columns, by multiply-adds and sums over lanes.
 *
 * Rows. UNITS units of points stand below each other, each of M_TILES*16 rows. An even number of channels: a unit is 8 points, channel c of
 * point p its row 8c + p; odd: 16 points, row 16c + p. So a lane of the products' accumulators holds every channel of a point (of two
 * points when odd) in two neighbouring columns, and the jets need no exchange. A warp has UNITS units and N*8 columns; ROW_WARPS times as many
 * rows make a tile.
 *
 * Memory. What stage s - 1 puts out (going back: dZ of stage s) is the tile in shared memory; each also goes to device memory, split as it is
 * multiplied, for the weight gradients, a product over all rows (stream_gradient.cuh). Of the hidden layers what pn_kept (description.h) tells
 * is kept in device memory, each lane's own; of the last one it never leaves the registers.
 *
 * Sums. A block adds its tiles, a fixed set in fixed order, into its own row of partials: biases, first weights, output weights are summed over
 * the rows of a tile and kept in shared memory until the end; each column belongs to one of the warps that share a row. */

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

template <int COUNT, int N> static __device__ __forceinline__ void clear_sums(float (&sum)[COUNT][N][2]) {
#pragma unroll
    for (int k = 0; k < COUNT; k++)
#pragma unroll
        for (int n = 0; n < N; n++) sum[k][n][0] = sum[k][n][1] = 0;
}

/* ---- hidden stages -------------------------------------------------------------------------------------------------------------- */

template <int COUNT> static __device__ __forceinline__ void vectors_at(const float *vector, int column, float (&v)[COUNT]) {
#pragma unroll
    for (int k = 0; k < COUNT; k++) v[k] = vector[k * VECTOR + column];
}
static __device__ __forceinline__ const float *hidden_vectors(const shared_memory &s, int stage) {
    return s.vector + (FIRST_VECTORS + (stage - 1) * VECTORS) * VECTOR;
}

template <typename G, int N> static __device__ __forceinline__ void gather(float (&z)[layout<G>::M][N][4], int p, int n, int e, float (&out)[G::C]) {
#pragma unroll
    for (int c = 0; c < G::C; c++) out[c] = layout<G>::at(z, c, p, n, e);
}
template <typename G, int N>
static __device__ __forceinline__ void scatter(const float (&in)[G::C], int p, int n, int e, float (&z)[layout<G>::M][N][4]) {
#pragma unroll
    for (int c = 0; c < G::C; c++) layout<G>::at(z, c, p, n, e) = in[c];
}

/* Each lane's own values, sixteen bytes at a time, threads side by side. */
static __device__ __forceinline__ float4 *keep_place(float4 *keep, int stage, int i) {
    return keep + ((stage - 1) * KEEP_TILES + i) * THREADS + threadIdx.x;
}

/* A from Z, in place; what is needed going back is kept. */
template <typename G>
static __device__ __forceinline__ void hidden_forward(const shared_memory &s, int stage, float4 *keep, typename layout<G>::tile &z) {
    typedef layout<G> L;
#pragma unroll
    for (int n = 0; n < L::N; n++) {
        float put[L::M][1][4];
#pragma unroll
        for (int m = 0; m < L::M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) put[m][0][i] = z[m][n][i];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float v[VECTORS];
            vectors_at(hidden_vectors(s, stage), L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                float in[G::C], out[G::C], value[1];
                gather<G>(z, p, n, e, in);
                G::remember(in, v, out, value);
                L::at(put, 0, p, 0, e) = value[0];
                scatter<G>(out, p, n, e, z);
            }
        }
#pragma unroll
        for (int m = 0; m < L::M; m++)
            *keep_place(keep, stage, n * L::M + m) = make_float4(put[m][0][0], put[m][0][1], put[m][0][2], put[m][0][3]);
    }
}

/* dZ from dA, over it, and what was kept; adds the vectors' sums. */
template <typename G>
static __device__ __forceinline__ void hidden_backward(shared_memory &s, int stage, float4 *keep, typename layout<G>::tile &da) {
    typedef layout<G> L;
    float sum[VECTORS][L::N][2];
    clear_sums(sum);
#pragma unroll
    for (int n = 0; n < L::N; n++) {
        float z[L::M][1][4];
#pragma unroll
        for (int m = 0; m < L::M; m++) {
            const float4 four = *keep_place(keep, stage, n * L::M + m);
            z[m][0][0] = four.x;
            z[m][0][1] = four.y;
            z[m][0][2] = four.z;
            z[m][0][3] = four.w;
        }
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float v[VECTORS];
            vectors_at(hidden_vectors(s, stage), L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                float in[G::C], seed[G::C], out[G::C], part[VECTORS];
                gather<G>(z, p, 0, e, in);
                gather<G>(da, p, n, e, seed);
                G::adjoint(in, v, seed, out, part);
                scatter<G>(out, p, n, e, da);
#pragma unroll
                for (int k = 0; k < VECTORS; k++) sum[k][n][e] += part[k];
            }
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; k++) add_columns<G>(s, sum[k], FIRST_SUM + (stage - 1) * VECTORS + k);
}

/* ---- stage 0 ------------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ void coordinates_at(const shared_memory &s, int point, float (&x)[COORDINATES]) {
#pragma unroll
    for (int i = 0; i < COORDINATES; i++) x[i] = s.coordinate[i * POINTS_MOST + point];
}

template <typename G> using first_tiles = float[FIRST_BLOCKS][layout<G>::M][layout<G>::LANE_N][4];

/* Jets of the first columns: lane j gives column j of each of FIRST_BLOCKS blocks. */
template <typename G>
static __device__ __forceinline__ void first_forward(const shared_memory &s, first_tiles<G> &a) {
#pragma unroll
    for (int n = 0; n < layout<G>::LANE_N; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float v[FIRST_VECTORS];
            vectors_at(s.vector, layout<G>::template column<layout<G>::LANE_N>(n, e), v);
#pragma unroll
            for (int p = 0; p < layout<G>::LANE_POINTS; p++) {
                float x[COORDINATES], out[FIRST_BLOCKS * G::C];
                coordinates_at(s, layout<G>::point(p), x);
                G::first(x, v, out);
#pragma unroll
                for (int b = 0; b < FIRST_BLOCKS; b++)
#pragma unroll
                    for (int c = 0; c < G::C; c++) layout<G>::at(a[b], c, p, n, e) = out[b * G::C + c];
            }
        }
}

static __device__ __forceinline__ void store_element(word *tile, int part, int row, int column, word value) {
    ((unsigned short *)tile)[tile_word(part, row, column) * 2 + column % 2] = (unsigned short)value;
}

/* Column blocks side by side, and zeros up to FIRST_PADDED. */
template <typename G> static __device__ __forceinline__ void store_blocks(first_tiles<G> &a, float up, word *tile) {
    typedef layout<G> L;
#pragma unroll
    for (int b = 0; b < FIRST_BLOCKS; b++)
#pragma unroll
        for (int n = 0; n < L::LANE_N; n++)
#pragma unroll
            for (int m = 0; m < L::M; m++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int row = L::first_row() + 16 * m + 8 * h + lane_row();
                    word part[PARTS];
                    split_pair(a[b][m][n][2 * h] * up, a[b][m][n][2 * h + 1] * up, part);
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const int j = L::template column<L::LANE_N>(n, e);
                        if (j < FIRST_LANES)
#pragma unroll
                            for (int i = 0; i < PARTS; i++) store_element(tile, i, row, b * FIRST_LANES + j, part[i] >> 16 * e);
                    }
                }
    constexpr int LEFT = FIRST_PADDED - FIRST;
    if constexpr (LEFT > 0)
        for (int i = threadIdx.x; i < L::TILE_ROWS * LEFT; i += THREADS)
#pragma unroll
            for (int part = 0; part < PARTS; part++) store_element(tile, part, i / LEFT, FIRST + i % LEFT, 0);
}

/* As put_tile, when the first stage has several blocks of columns or other columns than the hidden ones. */
template <typename G> static __device__ __forceinline__ float put_first(const arguments &a, shared_memory &s, size number, size row) {
    first_tiles<G> value;
    first_forward<G>(s, value);
    unsigned most = 0;
#pragma unroll
    for (int b = 0; b < FIRST_BLOCKS; b++) most = most_of(value[b], most);
    const scale_pair scale = scale_of(block_most<WARPS>(most, s.most));
    store_blocks<G>(value, scale.up, s.tile);
    __syncthreads();
    store_image<layout<G>::TILE_ROWS, FIRST_PADDED>(a, s.tile, 0, number, row, scale.down);
    return scale.down;
}

/* Sums of the first stage's vectors from dA (FIRST_BLOCKS = 1, FIRST = WIDTH). */
template <typename G> static __device__ __forceinline__ void first_backward(shared_memory &s, typename layout<G>::tile &da) {
    typedef layout<G> L;
    if constexpr (FIRST_TRAINED) {
        float sum[FIRST_VECTORS][L::N][2];
        clear_sums(sum);
#pragma unroll
        for (int n = 0; n < L::N; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float v[FIRST_VECTORS];
                vectors_at(s.vector, L::column(n, e), v);
#pragma unroll
                for (int p = 0; p < L::LANE_POINTS; p++) {
                    float x[COORDINATES], seed[G::C], part[FIRST_VECTORS];
                    coordinates_at(s, L::point(p), x);
                    gather<G>(da, p, n, e, seed);
                    G::first_adjoint(x, v, seed, part);
#pragma unroll
                    for (int k = 0; k < FIRST_VECTORS; k++) sum[k][n][e] += part[k];
                }
            }
#pragma unroll
        for (int k = 0; k < FIRST_VECTORS; k++) add_columns<G>(s, sum[k], k);
    }
}

/* ---- the turn: fields, residuals, their adjoint ------------------------------------------------------------------------------- */

static __device__ __forceinline__ const float *output_weights(const shared_memory &s) { return s.vector + VECTOR_ROWS * VECTOR; }

/* The warp's part of the raw fields, from the last Z, which becomes what is kept of it. */
template <typename G> static __device__ __forceinline__ void last_forward(shared_memory &s, typename layout<G>::tile &z) {
    typedef layout<G> L;
    float raw[L::LANE_POINTS][G::C][FIELDS];
#pragma unroll
    for (int p = 0; p < L::LANE_POINTS; p++)
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) raw[p][c][f] = 0;
#pragma unroll
    for (int n = 0; n < L::N; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float v[VECTORS], weight[FIELDS];
            vectors_at(hidden_vectors(s, HIDDEN), L::column(n, e), v);
            vectors_at(output_weights(s), L::column(n, e), weight);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                float in[G::C], out[G::C], value[1];
                gather<G>(z, p, n, e, in);
                G::remember(in, v, out, value);
                L::at(z, 0, p, n, e) = value[0];
#pragma unroll
                for (int c = 0; c < G::C; c++)
#pragma unroll
                    for (int f = 0; f < FIELDS; f++) raw[p][c][f] = fmaf(out[c], weight[f], raw[p][c][f]);
            }
        }
#pragma unroll
    for (int p = 0; p < L::LANE_POINTS; p++)
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) {
                const float sum = sum_lanes(sum_lanes(raw[p][c][f], 1), 2);
                if (lane() % 4 == 0) s.raw[(L::column_warp() * L::TILE_ROWS + L::row(c, p)) * FIELDS + f] = sum;
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
    float x[S::GEOMETRIC], raw[G::C * FIELDS], scale[S::RESIDUALS], square[S::RESIDUALS], adjoint[G::C * FIELDS], bias[FIELDS];
#pragma unroll
    for (int k = 0; k < S::GEOMETRIC; k++) x[k] = s.coordinate[k * POINTS_MOST + point];
#pragma unroll
    for (int c = 0; c < G::C; c++)
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            float sum = 0;
#pragma unroll
            for (int w = 0; w < L::COLUMN_WARPS; w++) sum += s.raw[(w * L::TILE_ROWS + first + c * L::UNIT_POINTS) * FIELDS + f];
            raw[c * FIELDS + f] = sum;
        }
#pragma unroll
    for (int k = 0; k < S::RESIDUALS; k++) scale[k] = s.scale[S::TERM + k];
    S::residual(x, raw, s.bias, scale, square, adjoint, bias);
    if (i < L::POINTS)
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) s.adjoint[(first + c * L::UNIT_POINTS) * FIELDS + f] = counts ? adjoint[c * FIELDS + f] : 0.0f;
#pragma unroll
    for (int k = 0; k < S::RESIDUALS; k++) {
        double sum = counts ? (double)square[k] : 0.0;
#pragma unroll
        for (int step = 16; step > 0; step /= 2) sum = sum_lanes(sum, step);
        if (i % 32 == 0) s.loss_sum[i / 32 * TERMS + S::TERM + k] += sum;
    }
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
        float sum = counts ? bias[f] : 0.0f;
#pragma unroll
        for (int step = 16; step > 0; step /= 2) sum = sum_lanes(sum, step);
        if (i % 32 == 0) s.bias_sum[i / 32 * FIELDS + f] += sum;
    }
}

/* dZ of the last stage from the fields' adjoints, over what is kept of Z; adds the sums of output weights and vectors. */
template <typename G> static __device__ __forceinline__ void turn_back(shared_memory &s, typename layout<G>::tile &z) {
    typedef layout<G> L;
    float sum[VECTORS][L::N][2], output[FIELDS][L::N][2];
    clear_sums(sum);
    clear_sums(output);
#pragma unroll
    for (int n = 0; n < L::N; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float v[VECTORS], weight[FIELDS];
            vectors_at(hidden_vectors(s, HIDDEN), L::column(n, e), v);
            vectors_at(output_weights(s), L::column(n, e), weight);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                float in[G::C], a[G::C], seed[G::C], out[G::C], part[VECTORS];
                gather<G>(z, p, n, e, in);
                G::recall(in, v, a);
#pragma unroll
                for (int c = 0; c < G::C; c++) {
                    seed[c] = 0;
#pragma unroll
                    for (int f = 0; f < FIELDS; f++) {
                        const float adjoint = s.adjoint[L::row(c, p) * FIELDS + f];
                        output[f][n][e] = fmaf(a[c], adjoint, output[f][n][e]);
                        seed[c] = fmaf(adjoint, weight[f], seed[c]);
                    }
                }
                G::adjoint(in, v, seed, out, part);
                scatter<G>(out, p, n, e, z);
#pragma unroll
                for (int k = 0; k < VECTORS; k++) sum[k][n][e] += part[k];
            }
        }
#pragma unroll
    for (int k = 0; k < VECTORS; k++) add_columns<G>(s, sum[k], FIRST_SUM + (HIDDEN - 1) * VECTORS + k);
#pragma unroll
    for (int f = 0; f < FIELDS; f++) add_columns<G>(s, output[f], FIRST_SUM + HIDDEN * VECTORS + f);
}

/* ---- a tile ------------------------------------------------------------------------------------------------------------------- */

template <typename G>
static __device__ __forceinline__ void run_tile(const arguments &a, shared_memory &s, stream &w, float4 *keep, int set, size number) {
    typedef layout<G> L;
    const member &m = a.set[set];
    const size within = number - (set ? a.set[set - 1].end : 0), first = within * L::POINTS, row = m.row + within * L::TILE_ROWS;
    const int valid = (int)(m.points - first < (size)L::POINTS ? m.points - first : (size)L::POINTS);
    const word *const own = s.tile + L::first_row() * (PITCH / 2);
    const int column = L::column_warp() * 8 * L::N;
    typename L::tile z;
    for (int i = threadIdx.x; i < L::POINTS * (int)m.columns; i += THREADS) {
        const int k = i / L::POINTS, p = i % L::POINTS;
        s.coordinate[k * POINTS_MOST + p] = a.point[m.point + k * m.points + first + (p < valid ? p : valid - 1)];
    }
    __syncthreads();
    float down = 0;
    if constexpr (FIRST_LIKE_HIDDEN)
        first_forward<G>(s, (first_tiles<G> &)z);
    else
        down = put_first<G>(a, s, number, row);
    int stage = 0;     /* z: its A, or, going back, its dZ; one place for all products: the text is long enough */
    bool back = false;
#pragma unroll 1
    for (;;) {
        if (FIRST_LIKE_HIDDEN || stage > 0) down = put_tile<G>(a, s, z, back ? HIDDEN + stage - 1 : stage, number, row);
        if (!FIRST_TRAINED && back && stage == 1) break;
        product(own, column, w, s.ring, s.chunk_scale, down, stage == 0 ? FIRST_CHUNKS : NEXT_CHUNKS, z);
        if (back && stage == 1) {
            first_backward<G>(s, z);
            break;
        }
        stage += back ? -1 : 1;
        if (back) {
            hidden_backward<G>(s, stage, keep, z);
        } else if (stage < HIDDEN) {
            hidden_forward<G>(s, stage, keep, z);
        } else {
            last_forward<G>(s, z);
            __syncthreads();
            G::turn(set, s, valid);
            __syncthreads();
            turn_back<G>(s, z);
            back = true;
        }
    }
    __syncthreads();
}

static __device__ __forceinline__ void begin_block(const arguments &a, shared_memory &s) {
    for (int i = threadIdx.x; i < (int)(sizeof(shared_memory) / sizeof(uint4)); i += THREADS) ((uint4 *)&s)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    for (int i = threadIdx.x; i < CHUNKS; i += THREADS) s.chunk_scale[i] = ((const float *)(a.work + a.weight_scale))[i];
    for (int i = threadIdx.x; i < VECTOR_ROWS * VECTOR; i += THREADS) {
        const int k = i / VECTOR, j = i % VECTOR;
        const float *from = k < FIRST_VECTORS && !FIRST_TRAINED ? a.fixed : a.parameter;
        if (j < (k < FIRST_VECTORS ? FIRST_LANES : WIDTH)) s.vector[i] = from[a.vector[k] + j];
    }
    for (int i = threadIdx.x; i < FIELDS * WIDTH; i += THREADS)
        s.vector[(VECTOR_ROWS + i % FIELDS) * VECTOR + i / FIELDS] = a.parameter[a.output + i];
    for (int i = threadIdx.x; i < FIELDS; i += THREADS) s.bias[i] = a.parameter[a.bias + i];
    for (int i = threadIdx.x; i < TERMS; i += THREADS) s.scale[i] = a.scale[i];
    __syncthreads();
}

/* The block's vectors, biases and losses, of all its warps. */
static __device__ __forceinline__ void end_block(const arguments &a, const shared_memory &s) {
    float *gradient = a.gradient + (size)blockIdx.x * GRADIENT_ROW;
    for (int i = threadIdx.x; i < SUM_VECTORS * WIDTH; i += THREADS) {
        const int k = i / WIDTH, j = i % WIDTH, f = k - FIRST_SUM - HIDDEN * VECTORS;
        float sum = 0;
        for (int r = 0; r < ROW_WARPS_MOST; r++) sum += s.sum[(r * SUM_VECTORS + k) * VECTOR + j];
        gradient[f < 0 ? i : (FIRST_SUM + HIDDEN * VECTORS) * WIDTH + j * FIELDS + f] = sum;
    }
    for (int i = threadIdx.x; i < FIELDS; i += THREADS) {
        float sum = 0;
        for (int w = 0; w < WARPS; w++) sum += s.bias_sum[w * FIELDS + i];
        gradient[SUM_VECTORS * WIDTH + i] = sum;
    }
    for (int i = threadIdx.x; i < TERMS; i += THREADS) {
        double sum = 0;
        for (int w = 0; w < WARPS; w++) sum += s.loss_sum[w * TERMS + i];
        a.loss[(size)blockIdx.x * TERMS + i] = sum;
    }
}
