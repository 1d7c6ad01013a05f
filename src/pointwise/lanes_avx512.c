/* Lane functions for AVX-512 (F, DQ, VL). */
#include <immintrin.h>
#include <sleef.h>

#include "pointwise/lanes.h"

#define REAL float
#define VECTOR __m512
#define INTEGER int32_t
#define LANES 16
#define NAME(x) x##_f32
#define SLEEF(f) Sleef_##f##f16_u10avx512f
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define SQRT(a) _mm512_sqrt_ps(a)
#define FLOOR(a) _mm512_floor_ps(a)
#include "pointwise/lanes_template.h"

#define REAL double
#define VECTOR __m512d
#define INTEGER int64_t
#define LANES 8
#define NAME(x) x##_f64
#define SLEEF(f) Sleef_##f##d8_u10avx512f
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define SQRT(a) _mm512_sqrt_pd(a)
#define FLOOR(a) _mm512_floor_pd(a)
#include "pointwise/lanes_template.h"

#define PN_LANES_ISA avx512
#include "pointwise/lanes_table.h"
