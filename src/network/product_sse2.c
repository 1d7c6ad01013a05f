/* Matrix products for SSE2, which every x86-64 has. */
#include <immintrin.h>

#include "network/product_kernels.h"

#define REAL float
#define VECTOR __m128
#define LANES 4
#define VECTORS 2
#define NAME(x) x##_f32
#define FMA(a, b, c) ((a) * (b) + (c))
#include "network/product_template.h"

#define REAL double
#define VECTOR __m128d
#define LANES 2
#define VECTORS 2
#define NAME(x) x##_f64
#define FMA(a, b, c) ((a) * (b) + (c))
#include "network/product_template.h"

const pn_product_kernels pn_product_sse2 = {"sse2", {product_f32, product_f64}};
