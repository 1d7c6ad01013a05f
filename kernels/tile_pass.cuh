/* The whole network pass of a tile of points in one thread block: forward through all layers with the jets, residual and adjoint, backward,
 * gradient. Compiled by NVRTC only, after the text that src/network/tile_source.c puts together: the constants; one structure a group of point
 * sets with equal channels (its lane functions); products in T (tile_products.cuh) or in halves (tile_halves.cuh); tile_layout.cuh;
 * lane_stages.cuh; tile_stages.cuh. After this text come the residuals of the point sets and the kernel.
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
 * Memory. Shared: A_ARRAYS times A, and dZ, ROWS rows each, weights, vectors, small sums. Of the hidden layers what pn_kept (description.h) tells
 * is kept for the way back, each lane's own, in shared or in device memory; the last layer's never leaves the registers. What a layer multiplied
 * by its weights is still in its array on the way back, or is computed from what was kept, without elementary functions.
 *
 * Sums. A block adds its tiles, a fixed set in fixed order, into its own row of gradient partials; each element belongs to one thread.
 * Vectors (biases, first weights, output weights) are summed over the lanes of a unit, then over the units in their order. */

/* ---- weight gradients --------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ void add_pair(float *at, float x0, float x1) {
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(at), "f"(x0), "f"(x1) : "memory");
#else
    atomicAdd(at, x0);
    atomicAdd(at + 1, x1);
#endif
}
static __device__ __forceinline__ void add_pair(double *at, double x0, double x1) {
    atomicAdd(at, x0);
    atomicAdd(at + 1, x1);
}

/* A warp's tiles of dW into the block's row of partials: stored, or added to what is there. The additions run in the second-level cache, so that
 * nobody waits for them; each element is one thread's, so that their order is the tiles'. */
template <int COLUMNS, bool ADD>
static __device__ __forceinline__ void put_weights(const T (&dw)[GRADIENT_M][GRADIENT_N][4], T *gradient, int first_in, int first_out) {
    constexpr bool WHOLE = COLUMNS % (16 * GRADIENT_M) == 0 && WIDTH % (8 * GRADIENT_N) == 0; /* no tile reaches beyond dW */
    const int lane_in = first_in + lane_row(), lane_out = first_out + lane_column();
    T *const lane = gradient + lane_in * WIDTH + lane_out;
#pragma unroll
    for (int m = 0; m < GRADIENT_M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < GRADIENT_N; n++) {
                const int in = 16 * m + 8 * h, out = 8 * n;
                T *const at = lane + in * WIDTH + out;
                const T x0 = dw[m][n][2 * h], x1 = dw[m][n][2 * h + 1];
                if (!WHOLE && (lane_in + in >= COLUMNS || lane_out + out >= WIDTH)) continue;
                if constexpr (WIDTH % 2 == 0) {
                    if (ADD)
                        add_pair(at, x0, x1);
                    else
                        *(pair *)at = pair{x0, x1};
                } else
                    for (int e = 0; e < 2 && lane_out + out + e < WIDTH; e++) {
                        if (ADD)
                            atomicAdd(at + e, e ? x1 : x0);
                        else
                            at[e] = e ? x1 : x0;
                    }
            }
}

template <typename G, int COLUMNS>
static __device__ __forceinline__ void add_weights(const shared_memory &s, const element *a, T *gradient, bool first_tile) {
    constexpr int M = GRADIENT_M, N = GRADIENT_N;
    constexpr int tiles_in = (padded(COLUMNS) + 16 * M - 1) / (16 * M), tiles_out = (padded(WIDTH) + 8 * N - 1) / (8 * N);
    for (int item = threadIdx.x / 32; item < tiles_in * tiles_out; item += WARPS) {
        const int first_in = item % tiles_in * 16 * M, first_out = item / tiles_in * 8 * N;
        T dw[M][N][4];
        clear(dw);
        product_weights<M, N, layout<G>::UNIT_ROWS, STRIDE, ROWS_PART>(a, s.b, G::UNITS, s.down, first_in, first_out, dw);
        if (first_tile)
            put_weights<COLUMNS, false>(dw, gradient, first_in, first_out);
        else
            put_weights<COLUMNS, true>(dw, gradient, first_in, first_out);
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
    product<L::M_TILES, L::N_TILES, STEPS, false, WEIGHT_STRIDE, WEIGHTS>(from_shared<L::M_TILES, STRIDE, ROWS_PART>(operand(s, stage), L::first_row()),
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
        store_packed<STRIDE, ROWS_PART>(p, operand(s, stage), L::first_row(), L::first_column());
        stored_product<G, WIDTH_STEPS>(s, stage, up, z);
    }
}
template <typename G> static __device__ __forceinline__ void first_product(shared_memory &s, const T *coordinate, typename layout<G>::tile &z) {
    const T up = first_scale<G>(s, coordinate);
    if (SCALED && threadIdx.x % (32 * G::SPLITS) == 0) s.a_up[layout<G>::unit()] = up;
    first_stored<G>(s, coordinate, up, operand(s, 1));
    stored_product<G, FIRST_STEPS>(s, 1, up, z);
}

/* A barrier, after which the weights of `stage` are there: in the place of those before, or in the other slot, where they came meanwhile, as
 * those of `next` do from now on. With two slots the way back and the next tile find those they begin with. All threads. */
static __device__ __forceinline__ void exchange_layer(const arguments &a, shared_memory &s, int stage, int next) {
    if constexpr (WEIGHTS_ALL) return;
    if constexpr (WEIGHT_SLOTS == 2) {
        await_fetched();
        __syncthreads();
        if (next >= 1 && next <= HIDDEN) fetch_layer(a, next, weights_of(s, next));
    } else {
        __syncthreads();
        layer_part w;
        load_layer(a, stage, w);
        place_layer(w, stage, s.weight, weight_up(s, stage));
        __syncthreads();
    }
}

/* Going back, z holds dZ/back of its unit, `back` a power of two: the adjoint is linear, so that products need not be scaled back, only sums.
 * Before the block's barrier: dZ of `stage` is stored, and A of the stage below unless it still is from the way forward. Returns the scale
 * dZ is stored with. */
template <typename G>
static __device__ __forceinline__ T store_operands(shared_memory &s, const place_in_tile &at, int stage, T back, const typename layout<G>::tile &z,
                                                   packed<layout<G>::M_TILES, layout<G>::N_TILES> &p) {
    typedef layout<G> L;
    const T up = unit_scale<G>(s, largest_of(z)), a_up = SCALED ? s.a_up[(stage - 1) * UNITS_MOST + L::unit()] : T(1);
    if (SCALED && threadIdx.x % (32 * G::SPLITS) == 0) s.down[L::unit()] = back * scale_down(up) * scale_down(a_up);
    pack(z, up, p);
    store_packed<STRIDE, ROWS_PART>(p, s.b, L::first_row(), L::first_column());
    if (!L::CHAINED && (stage < A_ARRAYS || stage == HIDDEN)) return up; /* A is where it was */
    if (stage > 1)
        recall<G>(s, stage - 1, at.keep, a_up, operand(s, stage));
    else
        first_stored<G>(s, at.coordinate, a_up, operand(s, stage));
    return up;
}

/* z: dZ/back of the stage below, or the first vectors' sums. `up`: of the stored dZ. Returns the new `back`. */
template <typename G>
static __device__ __forceinline__ T descend(shared_memory &s, const place_in_tile &at, int stage, T back, T up,
                                            const packed<layout<G>::M_TILES, layout<G>::N_TILES> &p, typename layout<G>::tile &z) {
    typedef layout<G> L;
    constexpr int M = L::M_TILES, N = L::N_TILES;
    back *= scale_down(up) * scale_down(weight_up(s, stage));
    if constexpr (L::CHAINED)
        product<M, N, WIDTH_STEPS, true, WEIGHT_STRIDE, WEIGHTS>(from_packed<M, N>{p}, weights_of(s, stage), 0, 1, z);
    else
        product<M, N, WIDTH_STEPS, true, WEIGHT_STRIDE, WEIGHTS>(from_shared<M, STRIDE, ROWS_PART>(s.b, L::first_row()), weights_of(s, stage),
                                                                 L::first_column(), 1, z);
    if (stage > 1)
        hidden_backward<G>(s, stage - 1, at.keep, back, stage_part(stage), z);
    else
        first_backward<G>(s, at.coordinate, back, stage_part(stage), z);
    return back;
}

template <typename G> static __device__ __forceinline__ void add_stage_weights(shared_memory &s, const place_in_tile &at, int stage) {
    if (FIRST != WIDTH && stage == 1)
        add_weights<G, FIRST>(s, operand(s, stage), at.gradient, at.first_tile);
    else if (FIRST == WIDTH) /* once in the text: instructions are short of cache */
        add_weights<G, WIDTH>(s, operand(s, stage), at.gradient + (stage - 1) * WIDTH * WIDTH, at.first_tile);
    else
        add_weights<G, WIDTH>(s, operand(s, stage), at.gradient + GRADIENT_FIRST + (stage - 2) * WIDTH * WIDTH, at.first_tile);
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
        if (stage > 0) exchange_layer(a, s, stage + 1, stage + 2);
        if (!active) continue;
        if constexpr (L::FIRST_IN_TILE)
            if (stage == 0) first_forward<G>(s, at.coordinate, z);
        if (stage > 0) hidden_forward<G>(s, stage, z, at.keep);
        tile_product<G>(s, stage + 1, z);
    }
    if (active) {
        last_forward<G>(s, z, L::split() * ROWS);
        unit_barrier<G>();
        if (L::split() == 0) G::turn(at.set, s, at.coordinate, at.valid);
        unit_barrier<G>();
        turn_back<G>(s, z);
    }
    T back = 1;
#pragma unroll 1
    for (int stage = HIDDEN; stage >= 1; stage--) {
        packed<L::M_TILES, L::N_TILES> p;
        T up = 1;
        if (active) up = store_operands<G>(s, at, stage, back, z, p);
        if (WEIGHTS_ALL || stage == HIDDEN) /* A and dZ of all units are there, and the vectors' parts of the stage before */
            __syncthreads();
        else
            exchange_layer(a, s, stage, stage - 1);
        if (stage == HIDDEN)
            add_parts(s, G::UNITS, TURN_PART, FIRST_SUM + (HIDDEN - 1) * VECTORS, VECTORS + FIELDS);
        else
            add_parts(s, G::UNITS, stage_part(stage + 1), FIRST_SUM + (stage - 1) * VECTORS, VECTORS);
        add_stage_weights<G>(s, at, stage);
        if (active && (stage > 1 || FIRST_TRAINED)) back = descend<G>(s, at, stage, back, up, p, z);
        __syncthreads(); /* before they are overwritten */
    }
    add_parts(s, G::UNITS, stage_part(1), 0, FIRST_SUM); /* overwritten after the next tile's first barriers */
}

/* The block's vectors, biases and losses. */
static __device__ void end_block(shared_memory &s, T *gradient, double *loss) {
    __syncthreads();
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
