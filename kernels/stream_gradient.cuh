/* What stands before and after the streamed network pass: weights made ready as the pass reads them, and the weight gradients. Compiled by NVRTC
 * only, after stream_pass.cuh.
 *
 * dW_s = A_{s-1}^T dZ_s is a product over the rows of all point sets. The tiles of rows are cut into SPLITS ranges, each of which gives a
 * partial dW; a block has one range and SIDE x SIDE elements of one dW. The images of A and dZ are copied SLAB_ROWS rows at a time. */

/* ---- weights ------------------------------------------------------------------------------------------------------------------ */

/* Largest magnitude of what a window multiplies by: rows of W going forward, columns of it going back. Read as W lies, AT_ONCE neighbours at a
 * time. */
template <bool BACK, int AT_ONCE> static __device__ __forceinline__ unsigned window_most(const float *w, int rows, int first, int count) {
    constexpr int COLUMNS = (BACK ? (WINDOW_CHUNKS < NEXT_CHUNKS ? WINDOW_CHUNKS : NEXT_CHUNKS) * CHUNK_K : WIDTH) / AT_ONCE;
    struct alignas(AT_ONCE * sizeof(float)) group { float x[AT_ONCE]; };
    const int end = first + count < rows ? first + count : rows, from = BACK ? 0 : first, all = (BACK ? rows : end - first) * COLUMNS;
    unsigned most = 0;
#pragma unroll 8
    for (int i = threadIdx.x; i < all; i += PREPARE_THREADS) {
        const int in = from + i / COLUMNS, out = (BACK ? first : 0) + i % COLUMNS * AT_ONCE;
        group g = {};
        if (!BACK || out < WIDTH) g = *(const group *)&w[in * WIDTH + out];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) most = magnitude(g.x[k]) > most ? magnitude(g.x[k]) : most;
    }
    return most;
}
template <bool BACK> static __device__ __forceinline__ unsigned window_most(const float *w, int rows, int first, int count) {
    constexpr int AT_ONCE = WIDTH % 4 == 0 ? 4 : 1;
    if (((size)w & 15) == 0) return window_most<BACK, AT_ONCE>(w, rows, first, count);
    return window_most<BACK, 1>(w, rows, first, count);
}

/* Eight values of k of one column, from `k` on, of the matrix that the part of the stream multiplies by. Forward: W itself; going back W^T. */
static __device__ __forceinline__ void weight_piece(const float *w, int rows, bool back, int column, int k, float (&x)[8]) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int in = back ? column : k + i, out = back ? k + i : column;
        x[i] = in < rows && out < WIDTH ? w[in * WIDTH + out] : 0.0f;
    }
}

/* A block makes a chunk. Each finds the scale of the chunk's window by itself: to read it all again takes less time than to wait for another. */
static __device__ __forceinline__ void prepare_weights(const arguments &a) {
    constexpr int PIECES = CHUNK_K / 8;
    __shared__ unsigned most_shared[PREPARE_THREADS / 32];
    const int chunk = blockIdx.x, part = chunk < FIRST_CHUNKS ? 0 : 1 + (chunk - FIRST_CHUNKS) / NEXT_CHUNKS; /* of the stream */
    const int within = part == 0 ? chunk : (chunk - FIRST_CHUNKS) % NEXT_CHUNKS;
    const bool back = part >= HIDDEN;
    const int stage = back ? 2 * HIDDEN - part : part + 1, rows = stage == 1 ? FIRST : WIDTH;
    const int first = within / WINDOW_CHUNKS * WINDOW_CHUNKS * CHUNK_K, count = WINDOW_CHUNKS * CHUNK_K;
    const float *w = a.parameter + a.weight[stage - 1];
    const unsigned most = back ? window_most<true>(w, rows, first, count) : window_most<false>(w, rows, first, count);
    const scale_pair scale = scale_of(block_most<PREPARE_THREADS / 32>(most, most_shared));
    word *to = (word *)(a.work + a.weights) + (size)chunk * CHUNK_WORDS;
    for (int i = threadIdx.x; i < PIECES * PADDED; i += PREPARE_THREADS) {
        const int column = i / PIECES, piece = i % PIECES; /* whole sectors are read, whole lines are written */
        float x[8];
        word pair[4][PARTS];
        weight_piece(w, rows, back, column, within * CHUNK_K + piece * 8, x);
#pragma unroll
        for (int k = 0; k < 4; k++) split_pair(x[2 * k] * scale.up, x[2 * k + 1] * scale.up, pair[k]);
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            *(uint4 *)(to + (p * PADDED + column) * (CHUNK_K / 2) + (piece ^ column / 2 % 4) * 4) =
                make_uint4(pair[0][p], pair[1][p], pair[2][p], pair[3][p]);
    }
    if (threadIdx.x == 0) ((float *)(a.work + a.weight_scale))[chunk] = scale.down;
}

/* ---- weight gradients ------------------------------------------------------------------------------------------------------------- */

constexpr int FOLD_ROWS = 64;
constexpr int SLAB_WORDS = PARTS * SLAB_ROWS * SIDE / 2; /* of one operand */
static_assert(SLABS * 2 * SLAB_WORDS * 4 <= GRADIENT_SHARED_BYTES, "the plan counts as this text does");
constexpr int FIRST_SIDES = (FIRST_PADDED + SIDE - 1) / SIDE, SIDES = (PADDED + SIDE - 1) / SIDE;

/* Runs through the slabs of a range of tiles; a tile's last slab may have 16 rows. */
struct walk {
    size tile, end, row; /* row: the slab's first */
    int set, at, left;   /* of the tile: its set, rows before the slab, rows from the slab on */
};
static __device__ __forceinline__ walk walk_from(const arguments &a, size tile, size end) {
    walk w = {tile, end, 0, 0, 0, 0};
    if (tile >= end) return w;
    while (tile >= a.set[w.set].end) w.set++;
    w.left = (int)a.set[w.set].rows;
    w.row = a.set[w.set].row + (tile - (w.set ? a.set[w.set - 1].end : 0)) * w.left;
    return w;
}
static __device__ __forceinline__ void walk_on(const arguments &a, walk &w) {
    const int step = w.left < SLAB_ROWS ? w.left : SLAB_ROWS;
    w.row += step;
    w.at += step;
    w.left -= step;
    if (w.left > 0) return;
    w.at = 0;
    w.tile++;
    if (w.tile == w.end) return;
    if (w.tile == a.set[w.set].end) w.set++;
    w.left = (int)a.set[w.set].rows;
}

/* One thread's part in copying columns first .. first + SIDE of an array's slabs: a piece of a row. */
struct loader {
    const unsigned char *source;
    size part_bytes;
    bool inside; /* columns beyond the array's become zeros */
};
constexpr int ROW_BYTES = PITCH * 2, SIDE_BYTES = SIDE * 2, PIECES = SIDE / 8;
static_assert(GRADIENT_THREADS / PIECES == SLAB_ROWS, "a thread a piece");

static __device__ __forceinline__ loader load_from(const arguments &a, int which, int first) {
    const int piece = threadIdx.x % PIECES, row = threadIdx.x / PIECES;
    const bool inside = first + 8 * piece < PITCH;
    const unsigned char *array = a.work + a.images + (size)which * PARTS * a.rows * ROW_BYTES;
    return {array + row * ROW_BYTES + (inside ? first + 8 * piece : 0) * 2, a.rows * ROW_BYTES, inside};
}
static __device__ __forceinline__ void copy_slab(const loader &l, const walk &w, word *slab) {
    const unsigned to = shared_address(slab) + threadIdx.x * 16;
    const unsigned char *from = l.source + w.row * ROW_BYTES;
    if ((int)threadIdx.x / PIECES >= w.left) return;
#pragma unroll
    for (int part = 0; part < PARTS; part++) copy_chunk_if(l.inside, to + part * SLAB_ROWS * SIDE_BYTES, from + part * l.part_bytes);
}

/* What a lane reads of a slab, bytes from its start: of the first 16 rows, 32 columns of A from `first` on, or of dZ. */
static __device__ __forceinline__ unsigned lane_a(int first, int m) {
    return (lane() / 16 * 8 + lane() % 8) * SIDE_BYTES + ((first / 8 + 2 * m + lane() / 8 % 2) ^ lane() % 8) * 16;
}
static __device__ __forceinline__ unsigned lane_dz(int first, int n) {
    return (lane() / 8 % 2 * 8 + lane() % 8) * SIDE_BYTES + ((first / 8 + 2 * n + lane() / 16) ^ lane() % 8) * 16;
}

/* part += A^T dZ of 16 rows from row `k` of the slabs on. */
static __device__ __forceinline__ void multiply_rows(unsigned in, unsigned out, const unsigned (&at_in)[2], const unsigned (&at_out)[2], int k,
                                                     float (&part)[2][4][4]) {
    word x[PARTS][2][4], y[PARTS][4][2];
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int n = 0; n < 2; n++) {
            word two[4];
            load_transposed(two, out + at_out[n] + (p * SLAB_ROWS + k) * SIDE_BYTES);
            y[p][2 * n][0] = two[0];
            y[p][2 * n][1] = two[1];
            y[p][2 * n + 1][0] = two[2];
            y[p][2 * n + 1][1] = two[3];
        }
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int m = 0; m < 2; m++) load_transposed(x[p][m], in + at_in[m] + (p * SLAB_ROWS + k) * SIDE_BYTES);
    multiply<0, 2, 2, 4>(x, y, part);
}

static __device__ __forceinline__ void store_gradient(const float (&sum)[2][4][4], float *gradient, int first_in, int first_out, int rows) {
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const int in = first_in + 16 * m + 8 * h + lane_row(), out = first_out + 8 * n + lane_column();
                if (in >= rows || out >= WIDTH) continue;
                float *at = gradient + (size)in * WIDTH + out;
                if constexpr (WIDTH % 2 == 0)
                    *(float2 *)at = make_float2(sum[m][n][2 * h], sum[m][n][2 * h + 1]);
                else
                    for (int e = 0; e < 2 && out + e < WIDTH; e++) at[e] = sum[m][n][2 * h + e];
            }
}

static __device__ __forceinline__ void weight_gradients(const arguments &a, word *slabs) {
    constexpr int first_items = FIRST_SIDES * SIDES, next_items = SIDES * SIDES, items = first_items + (HIDDEN - 1) * next_items;
    const int split = blockIdx.x / items, item = blockIdx.x % items;
    const int stage = item < first_items ? 1 : 2 + (item - first_items) / next_items;
    const int corner = item < first_items ? item : (item - first_items) % next_items;
    const int first_in = corner / SIDES * SIDE, first_out = corner % SIDES * SIDE;
    const int own_in = warp() / 4 * 32, own_out = warp() % 4 * 32; /* 32 x 32 a warp */
    const float *scale_a = (const float *)(a.work + a.image_scale) + (stage - 1) * a.tiles, *scale_dz = scale_a + HIDDEN * a.tiles;
    const loader loader_a = load_from(a, stage - 1, first_in), loader_dz = load_from(a, HIDDEN + stage - 1, first_out);
    unsigned at_in[2], at_out[2];
    for (int m = 0; m < 2; m++) at_in[m] = lane_a(own_in, m);
    for (int n = 0; n < 2; n++) at_out[n] = lane_dz(own_out, n);
    walk ahead = walk_from(a, a.split[split], a.split[split + 1]), now = ahead;
    const auto fetch = [&](int slot) {
        if (ahead.tile < ahead.end) {
            copy_slab(loader_a, ahead, slabs + slot * 2 * SLAB_WORDS);
            copy_slab(loader_dz, ahead, slabs + slot * 2 * SLAB_WORDS + SLAB_WORDS);
            walk_on(a, ahead);
        }
        copy_commit(); /* a group even if empty: the wait counts groups */
    };
    float sum[2][4][4], part[2][4][4], factor = 0, next_factor = now.tile < now.end ? scale_a[now.tile] * scale_dz[now.tile] : 0;
    clear(sum);
    clear(part);
    for (int slot = 0; slot < SLABS - 1; slot++) fetch(slot);
    int slot = 0;
#pragma unroll 1
    while (now.tile < now.end) {
        copy_wait<SLABS - 2>();
        __syncthreads();
        fetch(slot == 0 ? SLABS - 1 : slot - 1);
        const unsigned in = shared_address(slabs + slot * 2 * SLAB_WORDS), out = in + SLAB_WORDS * 4;
        if (now.at == 0) { /* the next tile's is on its way while this one is multiplied */
            factor = next_factor;
            if (now.tile + 1 < now.end) next_factor = scale_a[now.tile + 1] * scale_dz[now.tile + 1];
        }
        multiply_rows(in, out, at_in, at_out, 0, part);
        if (now.left > 16) multiply_rows(in, out, at_in, at_out, 16, part);
        if (now.left <= SLAB_ROWS || (now.at + SLAB_ROWS) % FOLD_ROWS == 0) {
            fold(part, factor, 0, sum);
            clear(part);
        }
        walk_on(a, now);
        slot = slot + 1 == SLABS ? 0 : slot + 1;
    }
    copy_wait<0>();
    const int rows = stage == 1 ? FIRST : WIDTH;
    store_gradient(sum, a.gradient + a.partial[stage - 1] + (size)split * rows * WIDTH, first_in + own_in, first_out + own_out, rows);
}
