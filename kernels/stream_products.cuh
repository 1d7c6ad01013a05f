/* Matrix products of the streamed network pass, on tensor cores in fp16. Compiled by NVRTC only, after the constants that
 * src/network/stream_source.c prints and stream_instructions.cuh.
 *
 * Accuracy. An array is scaled by a power of two such that its largest element lies in [2^14, 2^15), and each element written as
 *   x = hi + lo,   hi = x rounded to fp16 (11 bits),   lo = x - hi rounded to fp16
 *   x y = lo hi' + hi lo' + hi hi'                 (lo lo' is below 2^-22 of x y)
 * so what is within 2^-17 of the largest keeps 22 bits, and nothing loses more than 2^-39 of it. Scales belong to pieces of arrays: a tile
 * of points, some rows of a weight matrix. Tensor cores cut off what they add instead of rounding it; so after a window of k the sum
 * leaves them, is multiplied by the scales' inverse and added in float32. With PARTS = 1 hi alone is kept: what tf32 keeps. What is not
 * finite stays so, but an infinity may become NaN. After Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores
 * while surpassing the FP32 theoretical peak performance", IJHPCA 36 (2022).
 *
 * Weights come in the order of their use as one stream of chunks, CHUNK_K values of k for all columns: [PARTS][PADDED columns][CHUNK_K].
 * A tile's activations stay in shared memory: [PARTS][ROWS][PITCH]. Banks: of a row of 16-byte pieces, piece c of column n of weights lies at
 * c ^ (n/2)%4, piece c of row r of activations at c ^ r%8; then the eight rows of a matrix that ldmatrix reads touch each bank once. */

constexpr int THREADS = 32 * WARPS;
constexpr int CHUNK_WORDS = PARTS * PADDED * CHUNK_K / 2;

static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
static __device__ __forceinline__ int lane_row() { return threadIdx.x % 32 / 4; }
static __device__ __forceinline__ int lane_column() { return threadIdx.x % 4 * 2; }

/* ---- scales ------------------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

struct scale_pair {
    float up, down; /* powers of two, one the other's inverse */
};
/* Of an array whose largest magnitude has these bits. */
static __device__ __forceinline__ scale_pair scale_of(unsigned most) {
    unsigned exponent = most >> 23;
    exponent = exponent < 15 ? 15 : exponent > 254 ? 254 : exponent;
    return {__uint_as_float((268 - exponent) << 23), __uint_as_float((exponent - 14) << 23)};
}

/* Largest over the block; all threads call it, and all warps have done with what they did before. `most`: [WARPS] in shared memory. */
template <int COUNT> static __device__ __forceinline__ unsigned block_most(unsigned mine, unsigned *most) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) mine = most_lanes(mine, step);
    if (lane() == 0) most[warp()] = mine;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < COUNT; w++) mine = most[w] > mine ? most[w] : mine;
    return mine;
}

/* Two neighbours as hi and lo. */
static __device__ __forceinline__ void split_pair(float first, float second, word (&part)[PARTS]) {
    part[0] = round_pair(first, second);
    if (PARTS == 2) part[PARTS - 1] = round_pair(first - lower(part[0]), second - upper(part[0]));
}

/* ---- fragments ---------------------------------------------------------------------------------------------------------------- */

template <int M, int N> static __device__ __forceinline__ void clear(float (&c)[M][N][4]) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) c[m][n][i] = 0;
}

/* c[FIRST_M + m][n] += a[m] b[n] for m < M; the three parts of a product as far apart as they can be. */
template <int FIRST_M, int M, int ALL, int N>
static __device__ __forceinline__ void multiply(const word (&a)[PARTS][M][4], const word (&b)[PARTS][N][2], float (&c)[ALL][N][4]) {
#pragma unroll
    for (int part = PARTS == 2 ? 0 : 2; part < 3; part++)
#pragma unroll
        for (int m = 0; m < M; m++)
            if (FIRST_M + m < ALL)
#pragma unroll
                for (int n = 0; n < N; n++) mma(c[FIRST_M + m][n], a[part == 0 ? PARTS - 1 : 0][m], b[part == 1 ? PARTS - 1 : 0][n]);
}

template <int M, int N> static __device__ __forceinline__ void rescale(float (&c)[M][N][4], float factor) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) c[m][n][i] *= factor;
}

/* sum[m][first_n + n] += factor part[m][n] */
template <int M, int N, int ALL>
static __device__ __forceinline__ void fold(const float (&part)[M][N][4], float factor, int first_n, float (&sum)[M][ALL][4]) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) sum[m][first_n + n][i] = fmaf(part[m][n][i], factor, sum[m][first_n + n][i]);
}

/* ---- the stream of weights ------------------------------------------------------------------------------------------------------ */

struct shared_memory;
struct stream {
    const word *source; /* [CHUNKS][CHUNK_WORDS], over and over */
    int next;           /* chunk to be copied next */
    int at;             /* chunk to be multiplied next */
    int stage;          /* of the ring, where it lies */
};

static __device__ __forceinline__ void stream_fetch(stream &w, word *ring, int stage) {
    const word *from = w.source + (size)w.next * CHUNK_WORDS + threadIdx.x * 4;
    const unsigned to = shared_address(ring + stage * CHUNK_WORDS + threadIdx.x * 4);
    constexpr int PIECES = CHUNK_WORDS / 4;
#pragma unroll
    for (int i = 0; i < (PIECES + THREADS - 1) / THREADS; i++)
        if ((i + 1) * THREADS <= PIECES || i * THREADS + (int)threadIdx.x < PIECES) copy_chunk(to + i * THREADS * 16, from + i * THREADS * 4);
    copy_commit();
    w.next = w.next + 1 == CHUNKS ? 0 : w.next + 1;
}

static __device__ __forceinline__ void stream_begin(stream &w, const word *source, word *ring) {
    w.source = source;
    w.next = w.at = w.stage = 0;
    for (int stage = 0; stage < STAGES - 1; stage++) stream_fetch(w, ring, stage);
}

/* Waits for the next chunk and lets the one after those on their way follow. All threads; a barrier. */
static __device__ __forceinline__ const word *stream_advance(stream &w, word *ring) {
    copy_wait<STAGES - 2>();
    __syncthreads(); /* all have copied it, and have done with the one before, which is overwritten */
    stream_fetch(w, ring, w.stage == 0 ? STAGES - 1 : w.stage - 1);
    const word *chunk = ring + w.stage * CHUNK_WORDS;
    w.stage = w.stage + 1 == STAGES ? 0 : w.stage + 1;
    w.at = w.at + 1 == CHUNKS ? 0 : w.at + 1;
    return chunk;
}

/* b[part][n]: columns first + 8n.., step k16 of the chunk. */
template <int N> static __device__ __forceinline__ void load_weights(const word *chunk, int first, int step, word (&b)[PARTS][N][2]) {
    const int column = lane() % 8 + (N > 1 ? lane() / 16 * 8 : 0), piece = (2 * step + lane() / 8 % 2) ^ (column / 2 % 4);
    const unsigned address = shared_address(chunk) + ((first + column) * CHUNK_K + piece * 8) * 2;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            word x[4];
            const int last = N % 2 && n + 1 == N && N > 1 ? 8 : 0; /* an odd last tile: its upper half repeats the one before */
            load_matrices(x, address + (part * PADDED + 8 * n - last) * CHUNK_K * 2);
            b[part][n][0] = x[last ? 2 : 0];
            b[part][n][1] = x[last ? 3 : 1];
            if (n + 1 < N) {
                b[part][n + 1][0] = x[2];
                b[part][n + 1][1] = x[3];
            }
        }
}

/* a[part][m]: tiles of 16 rows from tile FIRST_M on, k from 16*step on. */
template <int FIRST_M, int M, int ALL>
static __device__ __forceinline__ void load_rows(const word *tile, int step, word (&a)[PARTS][M][4]) {
    const int row = lane() % 16, piece = (2 * step + lane() / 16) ^ (row % 8);
    const unsigned address = shared_address(tile) + (row * PITCH + piece * 8) * 2;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int m = 0; m < M; m++)
            if (FIRST_M + m < ALL) load_matrices(a[part][m], address + (part * ROWS + 16 * (FIRST_M + m)) * PITCH * 2);
}

/* How a warp's M x N tiles of 16 x 8 are multiplied: PART_N columns of tiles at a time, GROUP_M rows of tiles; folded every FOLD chunks. With
 * one part all is added up in the tensor cores, at once: what they cut off is far below the rounding of the factors. */
template <int M, int N> struct product_shape {
    static constexpr int MOST = THREADS * RESIDENTS > 256 ? 8 : 16; /* tiles of a part that registers hold beside the sum */
    static constexpr int PART_N = PARTS == 1 || M * N <= MOST ? N : N % 4 == 0 && M <= MOST / 4 ? 4 : N % 2 == 0 && M <= MOST / 2 ? 2 : 1;
    static constexpr int GROUP_M = M * N <= MOST && M <= 4 ? M : M <= 2 ? M : M <= 4 ? 2 : (M + 1) / 2 <= 4 ? (M + 1) / 2 : 4;
    static constexpr int FOLD = PART_N < N ? 1 : WINDOW_CHUNKS;
};

/* `tile`: the warp's first row; `columns`: its first column. */
template <int M, int N, int PART_N>
static __device__ __forceinline__ void multiply_chunk(const word *tile, const word *chunk, int first_step, int columns, float (&part)[M][PART_N][4]) {
    constexpr int GROUP = product_shape<M, N>::GROUP_M;
#pragma unroll
    for (int step = 0; step < CHUNK_K / 16; step++) {
        word a[PARTS][GROUP][4], b[PARTS][PART_N][2];
        load_weights<PART_N>(chunk, columns, step, b);
        load_rows<0, GROUP, M>(tile, first_step + step, a);
        multiply<0, GROUP, M, PART_N>(a, b, part);
        if constexpr (GROUP < M) {
            load_rows<GROUP, GROUP, M>(tile, first_step + step, a);
            multiply<GROUP, GROUP, M, PART_N>(a, b, part);
        }
    }
}

/* sum = tile * (the next `chunks` chunks of the stream): M tiles of 16 rows, N tiles of 8 columns from `columns` on. `down`: the inverse of the
 * tile's scale, `scale` those of the chunks. */
template <int M, int N>
static __device__ __forceinline__ void product(const word *tile, int columns, stream &w, word *ring, const float *scale, float down, int chunks,
                                               float (&sum)[M][N][4]) {
    typedef product_shape<M, N> shape;
    clear(sum);
    if constexpr (PARTS == 1) {
        const float factor = down * scale[w.at];
#pragma unroll 1
        for (int c = 0; c < chunks; c++) multiply_chunk<M, N, N>(tile, stream_advance(w, ring), c * (CHUNK_K / 16), columns, sum);
        rescale(sum, factor);
    } else
#pragma unroll 1
        for (int c = 0; c < chunks; c += shape::FOLD) { /* FOLD divides the chunks of any product */
            const float factor = down * scale[w.at];
            if constexpr (shape::PART_N < N) {
                const word *chunk = stream_advance(w, ring);
#pragma unroll
                for (int first = 0; first < N; first += shape::PART_N) {
                    float part[M][shape::PART_N][4];
                    clear(part);
                    multiply_chunk<M, N, shape::PART_N>(tile, chunk, c * (CHUNK_K / 16), columns + 8 * first, part);
                    fold(part, factor, first, sum);
                }
            } else {
                float part[M][N][4];
                clear(part);
#pragma unroll
                for (int i = 0; i < shape::FOLD; i++) multiply_chunk<M, N, N>(tile, stream_advance(w, ring), (c + i) * (CHUNK_K / 16), columns, part);
                fold(part, factor, 0, sum);
            }
        }
}
