/* Matrix products for AVX-512. */
#include <immintrin.h>

#include "network/product_kernels.h"

#define REAL float
#define VECTOR __m512
#define LANES 16
#define VECTORS 4
#define SUMS 24
#define NAME(x) x##_f32
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define LOAD(at, count) _mm512_maskz_loadu_ps((__mmask16)((1u << (count)) - 1), at)
#define STORE(at, v, count) _mm512_mask_storeu_ps(at, (__mmask16)((1u << (count)) - 1), v)
#define SUM(v) _mm512_reduce_add_ps(v)
#include "network/product_template.h"

#define REAL double
#define VECTOR __m512d
#define LANES 8
#define VECTORS 4
#define SUMS 24
#define NAME(x) x##_f64
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define LOAD(at, count) _mm512_maskz_loadu_pd((__mmask8)((1u << (count)) - 1), at)
#define STORE(at, v, count) _mm512_mask_storeu_pd(at, (__mmask8)((1u << (count)) - 1), v)
#define SUM(v) _mm512_reduce_add_pd(v)
#include "network/product_template.h"

const pn_product_kernels pn_product_avx512 = {"avx512", {product_f32, product_f64}};
