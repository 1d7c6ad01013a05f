/* Matrix products for AVX2 with FMA3. */
#include <immintrin.h>

#include "network/product_kernels.h"

#define REAL float
#define VECTOR __m256
#define LANES 8
#define VECTORS 2
#define NAME(x) x##_f32
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#include "network/product_template.h"

#define REAL double
#define VECTOR __m256d
#define LANES 4
#define VECTORS 2
#define NAME(x) x##_f64
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#include "network/product_template.h"

const pn_product_kernels pn_product_avx2 = {"avx2", {product_f32, product_f64}};
