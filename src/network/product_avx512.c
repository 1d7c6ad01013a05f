/* Matrix products for AVX-512. */
#include <immintrin.h>

#include "network/product_kernels.h"

#define REAL float
#define VECTOR __m512
#define LANES 16
#define VECTORS 4
#define NAME(x) x##_f32
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#include "network/product_template.h"

#define REAL double
#define VECTOR __m512d
#define LANES 8
#define VECTORS 4
#define NAME(x) x##_f64
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "network/product_template.h"

const pn_product_kernels pn_product_avx512 = {"avx512", {product_f32, product_f64}};
