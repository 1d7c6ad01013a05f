/* The whole network pass of a tile of points in one thread block: forward through all layers with the jets, residual and adjoint, backward,
 * gradient. Compiled by NVRTC only, after the text that src/network/tile_source.c puts together: the constants; one structure a group of point
 * sets with equal channels (its lane functions); products in T (tile_products.cuh) or in halves (tile_halves.cuh); tile_layout.cuh;
 * tile_stages.cuh. After this text come the residuals of the point sets and the kernel.
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
