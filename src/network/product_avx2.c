/* Matrix products for AVX2 with FMA3. */
#include <immintrin.h>

#include "network/product_kernels.h"

/* All ones below `count`. */
static inline __m256i mask32(size_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline __m256i mask64(size_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)count), _mm256_setr_epi64x(0, 1, 2, 3));
}

static inline float sum32(__m256 v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline double sum64(__m256d v) {
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

#define REAL float
#define VECTOR __m256
#define LANES 8
#define VECTORS 2
#define SUMS 12
#define NAME(x) x##_f32
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define LOAD(at, count) _mm256_maskload_ps(at, mask32(count))
#define STORE(at, v, count) _mm256_maskstore_ps(at, mask32(count), v)
#define SUM(v) sum32(v)
#include "network/product_template.h"

#define REAL double
#define VECTOR __m256d
#define LANES 4
#define VECTORS 2
#define SUMS 12
#define NAME(x) x##_f64
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define LOAD(at, count) _mm256_maskload_pd(at, mask64(count))
#define STORE(at, v, count) _mm256_maskstore_pd(at, mask64(count), v)
#define SUM(v) sum64(v)
#include "network/product_template.h"

const pn_product_kernels pn_product_avx2 = {"avx2", {product_f32, product_f64}};
