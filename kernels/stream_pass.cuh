/* The network pass of a tile of points in one thread block while weights stream through shared memory: forward through all layers with the
 * jets, residual and adjoint, backward. Compiled by NVRTC only, after one structure a group of point sets with equal channels (its
 * lane functions), stream_layout.cuh and lane_stages.cuh; after it come the residuals of the point sets and the kernels.
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

/* ---- hidden stages -------------------------------------------------------------------------------------------------------------- */

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
        remember_columns<G>(hidden_vectors(s, stage), z, n, put);
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
        adjoint_columns<G>(hidden_vectors(s, stage), z, da, n, sum);
    }
#pragma unroll
    for (int k = 0; k < VECTORS; k++) add_columns<G>(s, sum[k], FIRST_SUM + (stage - 1) * VECTORS + k);
}

/* ---- stage 0 ------------------------------------------------------------------------------------------------------------------- */

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
                coordinates_at(s.coordinate, layout<G>::point(p), x);
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
        first_adjoint<G>(s.vector, s.coordinate, da, sum);
#pragma unroll
        for (int k = 0; k < FIRST_VECTORS; k++) add_columns<G>(s, sum[k], k);
    }
}

/* ---- the turn: fields, residuals, their adjoint ------------------------------------------------------------------------------- */

/* One thread a point. `valid`: points of the tile; the others repeat the last one and count for nothing. */
template <typename G, int SET> static __device__ __forceinline__ void residuals(shared_memory &s, int valid) {
    typedef layout<G> L;
    static_assert(L::POINTS <= THREADS, "a thread a point");
    const int i = threadIdx.x;
    if (i / 32 * 32 >= L::POINTS) return;
    const int point = i < L::POINTS ? i : L::POINTS - 1, row = point / L::UNIT_POINTS * L::UNIT_ROWS + point % L::UNIT_POINTS;
    point_residuals<G, SET, L::COLUMN_WARPS, 32>(s, s.coordinate, point, row, L::TILE_ROWS, i < L::POINTS, i < valid);
}

/* dZ of the last stage from the fields' adjoints, over what is kept of Z; adds the sums of output weights and vectors. */
template <typename G> static __device__ __forceinline__ void turn_back(shared_memory &s, typename layout<G>::tile &z) {
    typedef layout<G> L;
    float sum[VECTORS][L::N][2], output[FIELDS][L::N][2];
    turn_adjoint<G>(s, z, sum, output);
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
            last_forward<G>(s, z, L::column_warp() * L::TILE_ROWS);
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
