/* Lane functions for AVX2 with FMA3. */
#include <immintrin.h>
#include <sleef.h>

#include "pointwise/lanes.h"

#define REAL float
#define VECTOR __m256
#define INTEGER int32_t
#define LANES 8
#define NAME(x) x##_f32
#define SLEEF(f) Sleef_##f##f8_u10avx2
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define SQRT(a) _mm256_sqrt_ps(a)
#define FLOOR(a) _mm256_floor_ps(a)
#include "pointwise/lanes_template.h"

#define REAL double
#define VECTOR __m256d
#define INTEGER int64_t
#define LANES 4
#define NAME(x) x##_f64
#define SLEEF(f) Sleef_##f##d4_u10avx2
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define SQRT(a) _mm256_sqrt_pd(a)
#define FLOOR(a) _mm256_floor_pd(a)
#include "pointwise/lanes_template.h"

#define PN_LANES_ISA avx2
#include "pointwise/lanes_table.h"
