/* Matrix products for SSE2, which every x86-64 has. */
#include <immintrin.h>

#include "network/product_kernels.h"

static inline __m128 load32(const float *at, size_t count) {
    float part[4] = {0};
    memcpy(part, at, count * sizeof *at);
    return _mm_loadu_ps(part);
}

static inline void store32(float *at, __m128 v, size_t count) { memcpy(at, &v, count * sizeof *at); }

static inline __m128d load64(const double *at, size_t count) { return count == 1 ? _mm_load_sd(at) : _mm_loadu_pd(at); }

static inline void store64(double *at, __m128d v, size_t count) { memcpy(at, &v, count * sizeof *at); }

#define REAL float
#define VECTOR __m128
#define LANES 4
#define VECTORS 2
#define SUMS 12
#define NAME(x) x##_f32
#define FMA(a, b, c) ((a) * (b) + (c))
#define LOAD(at, count) load32(at, count)
#define STORE(at, v, count) store32(at, v, count)
#define SUM(v) (((v)[0] + (v)[1]) + ((v)[2] + (v)[3]))
#include "network/product_template.h"

#define REAL double
#define VECTOR __m128d
#define LANES 2
#define VECTORS 2
#define SUMS 12
#define NAME(x) x##_f64
#define FMA(a, b, c) ((a) * (b) + (c))
#define LOAD(at, count) load64(at, count)
#define STORE(at, v, count) store64(at, v, count)
#define SUM(v) ((v)[0] + (v)[1])
#include "network/product_template.h"

const pn_product_kernels pn_product_sse2 = {"sse2", {product_f32, product_f64}};
