/* Lane functions for every x86-64 processor; it has no fma instruction, so a multiply-add rounds twice here. */
#include <immintrin.h>
#include <sleef.h>

#include "pointwise/lanes.h"

#define REAL float
#define VECTOR __m128
#define INTEGER int32_t
#define LANES 4
#define NAME(x) x##_f32
#define SLEEF(f) Sleef_##f##f4_u10sse2
#define FMA(a, b, c) ((a) * (b) + (c))
#define SQRT(a) _mm_sqrt_ps(a)
#define FLOOR(a) Sleef_floorf4_sse2(a)
#include "pointwise/lanes_template.h"

#define REAL double
#define VECTOR __m128d
#define INTEGER int64_t
#define LANES 2
#define NAME(x) x##_f64
#define SLEEF(f) Sleef_##f##d2_u10sse2
#define FMA(a, b, c) ((a) * (b) + (c))
#define SQRT(a) _mm_sqrt_pd(a)
#define FLOOR(a) Sleef_floord2_sse2(a)
#include "pointwise/lanes_template.h"

#define PN_LANES_ISA sse2
#include "pointwise/lanes_table.h"
