/* What the tiled and the streamed network pass do alike with what a lane holds: jets and adjoints of two columns of a hidden stage, fields, residuals
 * and their adjoint. Compiled by NVRTC only, after the pass's constants, shared_memory and layout<G>, which tells what of a group's channels a
 * lane holds: all channels C of LANE_POINTS points, in columns (n, e) of N tiles. */

template <int COUNT> static __device__ __forceinline__ void vectors_at(const T *vector, int column, T (&v)[COUNT]) {
#pragma unroll
    for (int k = 0; k < COUNT; k++) v[k] = vector[k * VECTOR + column];
}
static __device__ __forceinline__ const T *hidden_vectors(const shared_memory &s, int stage) {
    return s.vector + (FIRST_VECTORS + (stage - 1) * VECTORS) * VECTOR;
}
static __device__ __forceinline__ const T *output_weights(const shared_memory &s) { return s.vector + VECTOR_ROWS * VECTOR; }

static __device__ __forceinline__ void coordinates_at(const T *coordinate, int point, T (&x)[COORDINATES]) {
#pragma unroll
    for (int i = 0; i < COORDINATES; i++) x[i] = coordinate[i * POINTS_MOST + point];
}

template <typename G, int M, int N> static __device__ __forceinline__ void gather(T (&z)[M][N][4], int p, int n, int e, T (&out)[G::C]) {
#pragma unroll
    for (int c = 0; c < G::C; c++) out[c] = layout<G>::at(z, c, p, n, e);
}
template <typename G, int M, int N> static __device__ __forceinline__ void scatter(const T (&in)[G::C], int p, int n, int e, T (&z)[M][N][4]) {
#pragma unroll
    for (int c = 0; c < G::C; c++) layout<G>::at(z, c, p, n, e) = in[c];
}

/* ---- hidden stages, a tile's two columns ---------------------------------------------------------------------------------------- */

/* A from Z in tile n, over it, and in `put` what is kept of it. vector: the stage's. */
template <typename G, int M, int N>
static __device__ __forceinline__ void remember_columns(const T *vector, T (&z)[M][N][4], int n, T (&put)[M][1][4]) {
    typedef layout<G> L;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int i = 0; i < 4; i++) put[m][0][i] = z[m][n][i];
#pragma unroll
    for (int e = 0; e < 2; e++) {
        T v[VECTORS];
        vectors_at(vector, L::column(n, e), v);
#pragma unroll
        for (int p = 0; p < L::LANE_POINTS; p++) {
            T in[G::C], out[G::C], value[1];
            gather<G>(put, p, 0, e, in);
            G::remember(in, v, out, value);
            L::at(put, 0, p, 0, e) = value[0];
            scatter<G>(out, p, n, e, z);
        }
    }
}

/* dZ over dA in tile n, from what was kept of Z there; the lane's summands of the vectors' sums. */
template <typename G, int M, int N>
static __device__ __forceinline__ void adjoint_columns(const T *vector, T (&kept)[M][1][4], T (&da)[M][N][4], int n, T (&sum)[VECTORS][N][2]) {
    typedef layout<G> L;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        T v[VECTORS];
        vectors_at(vector, L::column(n, e), v);
#pragma unroll
        for (int p = 0; p < L::LANE_POINTS; p++) {
            T in[G::C], seed[G::C], out[G::C], part[VECTORS];
            gather<G>(kept, p, 0, e, in);
            gather<G>(da, p, n, e, seed);
            G::adjoint(in, v, seed, out, part);
            scatter<G>(out, p, n, e, da);
#pragma unroll
            for (int k = 0; k < VECTORS; k++) sum[k][n][e] = p == 0 ? part[k] : sum[k][n][e] + part[k];
        }
    }
}

/* The lane's summands of the sums of the first stage's vectors, from dA. */
template <typename G, int M, int N>
static __device__ __forceinline__ void first_adjoint(const T *vector, const T *coordinate, T (&da)[M][N][4], T (&sum)[FIRST_VECTORS][N][2]) {
    typedef layout<G> L;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[FIRST_VECTORS];
            vectors_at(vector, L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T x[COORDINATES], seed[G::C], part[FIRST_VECTORS];
                coordinates_at(coordinate, L::point(p), x);
                gather<G>(da, p, n, e, seed);
                G::first_adjoint(x, v, seed, part);
#pragma unroll
                for (int k = 0; k < FIRST_VECTORS; k++) sum[k][n][e] = p == 0 ? part[k] : sum[k][n][e] + part[k];
            }
        }
}

/* ---- the turn: fields, residuals, their adjoint ------------------------------------------------------------------------------- */

/* The last stage: raw fields from Z, each lane's part summed over the four lanes of a row, into the rows of s.raw from `first` on. Z becomes what
 * is kept of it. */
template <typename G, int M, int N> static __device__ __forceinline__ void last_forward(shared_memory &s, T (&z)[M][N][4], int first) {
    typedef layout<G> L;
    T raw[L::LANE_POINTS][G::C][FIELDS];
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            T v[VECTORS];
            vectors_at(hidden_vectors(s, HIDDEN), L::column(n, e), v);
#pragma unroll
            for (int p = 0; p < L::LANE_POINTS; p++) {
                T in[G::C], out[G::C], value[1];
                gather<G>(z, p, n, e, in);
                G::remember(in, v, out, value);
                L::at(z, 0, p, n, e) = value[0];
#pragma unroll
                for (int f = 0; f < FIELDS; f++) {
                    const T weight = output_weights(s)[f * VECTOR + L::column(n, e)];
#pragma unroll
                    for (int c = 0; c < G::C; c++) raw[p][c][f] = n + e == 0 ? out[c] * weight : fma(out[c], weight, raw[p][c][f]);
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
                if (threadIdx.x % 4 == 0) s.raw[(first + L::row(c, p)) * FIELDS + f] = sum;
            }
}

template <int SET> struct set_of; /* GEOMETRIC, RESIDUALS, TERM and residual() of a point set */

/* The sum over LANES neighbouring lanes. */
template <int LANES, typename V> static __device__ __forceinline__ V sum_of_lanes(V sum) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    return sum;
}

/* Residuals of a point, a lane each, and the fields' adjoint; LANES lanes sum losses and biases. `row`: of the point's first channel, in SHARES
 * parts of s.raw of `rows` rows each; `stores`: the point is the lane's own; `counts`: it is one of the set's. */
template <typename G, int SET, int SHARES, int LANES>
static __device__ __forceinline__ void point_residuals(shared_memory &s, const T *coordinate, int point, int row, int rows, bool stores, bool counts) {
    typedef layout<G> L;
    typedef set_of<SET> S;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T x[S::GEOMETRIC], raw[G::C * FIELDS], scale[S::RESIDUALS], square[S::RESIDUALS], adjoint[G::C * FIELDS], bias[FIELDS];
#pragma unroll
    for (int k = 0; k < S::GEOMETRIC; k++) x[k] = coordinate[k * POINTS_MOST + point];
#pragma unroll
    for (int c = 0; c < G::C; c++)
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            T sum = 0;
#pragma unroll
            for (int share = 0; share < SHARES; share++) sum += s.raw[(share * rows + row + c * L::UNIT_POINTS) * FIELDS + f];
            raw[c * FIELDS + f] = sum;
        }
#pragma unroll
    for (int k = 0; k < S::RESIDUALS; k++) scale[k] = s.scale[S::TERM + k];
    S::residual(x, raw, s.bias, scale, square, adjoint, bias);
    if (stores)
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) s.adjoint[(row + c * L::UNIT_POINTS) * FIELDS + f] = counts ? adjoint[c * FIELDS + f] : T(0);
#pragma unroll
    for (int k = 0; k < S::RESIDUALS; k++) {
        const double sum = sum_of_lanes<LANES>(counts ? (double)square[k] : 0.0);
        if (lane == 0) s.loss_sum[warp * TERMS + S::TERM + k] += sum;
    }
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
        const T sum = sum_of_lanes<LANES>(counts ? bias[f] : T(0));
        if (lane == 0) s.bias_sum[warp * FIELDS + f] += sum;
    }
}

/* dZ of the last stage from the fields' adjoints, over what was kept of Z; the lane's summands of the sums of vectors and output weights. */
template <typename G, int M, int N>
static __device__ __forceinline__ void turn_adjoint(const shared_memory &s, T (&z)[M][N][4], T (&vector_sum)[VECTORS][N][2], T (&sum)[FIELDS][N][2]) {
    typedef layout<G> L;
#pragma unroll
    for (int p = 0; p < L::LANE_POINTS; p++) {
        T adjoint[G::C][FIELDS];
#pragma unroll
        for (int c = 0; c < G::C; c++)
#pragma unroll
            for (int f = 0; f < FIELDS; f++) adjoint[c][f] = s.adjoint[L::row(c, p) * FIELDS + f];
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                T v[VECTORS], in[G::C], a[G::C], da[G::C], out[G::C], part[VECTORS];
                vectors_at(hidden_vectors(s, HIDDEN), L::column(n, e), v);
                gather<G>(z, p, n, e, in);
                G::recall(in, v, a);
#pragma unroll
                for (int f = 0; f < FIELDS; f++) {
                    const T weight = output_weights(s)[f * VECTOR + L::column(n, e)];
                    T total = p == 0 ? T(0) : sum[f][n][e];
#pragma unroll
                    for (int c = 0; c < G::C; c++) {
                        total = fma(a[c], adjoint[c][f], total);
                        da[c] = f == 0 ? adjoint[c][f] * weight : fma(adjoint[c][f], weight, da[c]);
                    }
                    sum[f][n][e] = total;
                }
                G::adjoint(in, v, da, out, part);
                scatter<G>(out, p, n, e, z);
#pragma unroll
                for (int k = 0; k < VECTORS; k++) vector_sum[k][n][e] = p == 0 ? part[k] : vector_sum[k][n][e] + part[k];
            }
    }
}
