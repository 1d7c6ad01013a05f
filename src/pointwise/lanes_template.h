/* The lane functions of one instruction set and one precision; lanes_<isa>.c includes it twice. Before it, that file defines
 *   REAL VECTOR INTEGER LANES   element type, native vector, integer of REAL's size, elements a vector
 *   NAME(x)                     a name of its own for every function
 *   SLEEF(f)                    SLEEF's vector function f with error under 1 ulp (Shibata & Petrogalli 2020)
 *   FMA(a, b, c) SQRT(a) FLOOR(a)
 * Vectors are GCC's vector extension: operators act elementwise, a comparison gives all-ones or zero. */
typedef INTEGER NAME(bits) __attribute__((vector_size(sizeof(VECTOR))));
typedef REAL NAME(unaligned) __attribute__((vector_size(sizeof(VECTOR)), aligned(sizeof(REAL)), may_alias));
typedef double NAME(doubles) __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));
#define BITS NAME(bits)

static inline VECTOR NAME(load)(const REAL *at) { return (VECTOR) * (const NAME(unaligned) *)at; }
static inline void NAME(store)(REAL *at, VECTOR value) { *(NAME(unaligned) *)at = (NAME(unaligned))value; }
static inline VECTOR NAME(all)(REAL value) { return value - (VECTOR){0}; }
static inline VECTOR NAME(either)(BITS mask, VECTOR a, VECTOR b) { return (VECTOR)((mask & (BITS)a) | (~mask & (BITS)b)); }
static inline VECTOR NAME(one_where)(BITS mask) { return (VECTOR)(mask & (BITS)NAME(all)(1)); }
static inline VECTOR NAME(magnitude)(VECTOR a) { return (VECTOR)((BITS)a & ~(BITS)NAME(all)(-(REAL)0)); }
#define ALL NAME(all)
#define EITHER NAME(either)
#define ONE_WHERE(comparison) NAME(one_where)((BITS)(comparison))
#define MAGNITUDE NAME(magnitude)

#include "pointwise/lanes_tanh.h"

/* Loops over vectors. Operands of step 1 share one index; a constant loop body stays short, as blocks are. */
#define EACH(lane, value)                                 \
    for (size_t k = 0; k < lanes; k += LANES) {           \
        lane;                                             \
        NAME(store)(d + k, value);                        \
    }
#define MOVING(x) const VECTOR x = NAME(load)(p##x + k)
#define FIXED(x) const VECTOR x = NAME(load)(p##x)

#define UNARY(op, value)                                                                                             \
    static void NAME(op)(const pn_instruction *i, void *const *slot, const uint32_t *step, size_t lanes) {           \
        REAL *d = slot[i->d];                                                                                        \
        const REAL *pa = slot[i->a];                                                                                 \
        const size_t sa = step[i->a] * (size_t)LANES;                                                                \
        for (size_t k = 0; k < lanes; k += LANES, pa += sa) {                                                        \
            const VECTOR a = NAME(load)(pa);                                                                         \
            NAME(store)(d + k, value);                                                                               \
        }                                                                                                            \
    }
#define BINARY(op, value)                                                                                            \
    static void NAME(op)(const pn_instruction *i, void *const *slot, const uint32_t *step, size_t lanes) {           \
        REAL *d = slot[i->d];                                                                                        \
        const REAL *pa = slot[i->a], *pb = slot[i->b];                                                               \
        switch (step[i->a] << 1 | step[i->b]) {                                                                      \
        case 0: { FIXED(a); FIXED(b); EACH(, value) break; }                                                            \
        case 1: { FIXED(a); EACH(MOVING(b), value) break; }                                                           \
        case 2: { FIXED(b); EACH(MOVING(a), value) break; }                                                           \
        default: EACH(MOVING(a); MOVING(b), value)                                                                   \
        }                                                                                                            \
    }
#define TERNARY(op, value)                                                                                           \
    static void NAME(op)(const pn_instruction *i, void *const *slot, const uint32_t *step, size_t lanes) {           \
        REAL *d = slot[i->d];                                                                                        \
        const REAL *pa = slot[i->a], *pb = slot[i->b], *pc = slot[i->c];                                             \
        switch (step[i->a] << 2 | step[i->b] << 1 | step[i->c]) {                                                    \
        case 0: { FIXED(a); FIXED(b); FIXED(c); EACH(, value) break; }                                                  \
        case 1: { FIXED(a); FIXED(b); EACH(MOVING(c), value) break; }                                                 \
        case 2: { FIXED(a); FIXED(c); EACH(MOVING(b), value) break; }                                                 \
        case 3: { FIXED(a); EACH(MOVING(b); MOVING(c), value) break; }                                                \
        case 4: { FIXED(b); FIXED(c); EACH(MOVING(a), value) break; }                                                 \
        case 5: { FIXED(b); EACH(MOVING(a); MOVING(c), value) break; }                                                \
        case 6: { FIXED(c); EACH(MOVING(a); MOVING(b), value) break; }                                                \
        default: EACH(MOVING(a); MOVING(b); MOVING(c), value)                                                        \
        }                                                                                                            \
    }

UNARY(NEG, -a)
UNARY(ABS, MAGNITUDE(a))
UNARY(SIGN, EITHER((BITS)(a == a), ONE_WHERE(a > ALL(0)) - ONE_WHERE(a < ALL(0)), a))
UNARY(FLOOR, FLOOR(a))
UNARY(SQRT, SQRT(a))
UNARY(EXP, SLEEF(exp)(a))
UNARY(EXPM1, SLEEF(expm1)(a))
UNARY(LOG, SLEEF(log)(a))
UNARY(LOG1P, SLEEF(log1p)(a))
UNARY(SIN, SLEEF(sin)(a))
UNARY(COS, SLEEF(cos)(a))
UNARY(TAN, SLEEF(tan)(a))
UNARY(ASIN, SLEEF(asin)(a))
UNARY(ACOS, SLEEF(acos)(a))
UNARY(ATAN, SLEEF(atan)(a))
UNARY(SINH, SLEEF(sinh)(a))
UNARY(COSH, SLEEF(cosh)(a))
UNARY(TANH, NAME(tanh)(a))
UNARY(ERF, SLEEF(erf)(a))
UNARY(SOFTPLUS, EITHER((BITS)(a > ALL(0)), a, ALL(0)) + SLEEF(log1p)(SLEEF(exp)(-MAGNITUDE(a))))
BINARY(ADD, a + b)
BINARY(SUB, a - b)
BINARY(MUL, a *b)
BINARY(DIV, a / b)
BINARY(POW, SLEEF(pow)(a, b))
BINARY(ATAN2, SLEEF(atan2)(a, b))
BINARY(MIN, EITHER((BITS)(a < b), a, b))
BINARY(MAX, EITHER((BITS)(a > b), a, b))
BINARY(LT, ONE_WHERE(a < b))
BINARY(LE, ONE_WHERE(a <= b))
BINARY(EQ, ONE_WHERE(a == b))
TERNARY(SELECT, EITHER((BITS)(a != ALL(0)), b, c))
TERNARY(FMA, FMA(a, b, c))
TERNARY(FMS, FMA(a, b, -c))
TERNARY(FNMA, FMA(-a, b, c))
UNARY(COPY, a)

static void NAME(SUM)(const pn_instruction *i, void *const *slot, const uint32_t *step, size_t lanes) {
    REAL *d = slot[i->d];
    const REAL *pa = slot[i->a];
    const size_t sa = step[i->a] * (size_t)LANES;
    for (size_t k = 0; k < lanes; k += LANES, pa += sa) NAME(store)(d + k, NAME(load)(d + k) + NAME(load)(pa));
}

static void NAME(SUM_F64)(const pn_instruction *i, void *const *slot, const uint32_t *step, size_t lanes) {
    double *d = slot[i->d];
    const REAL *pa = slot[i->a];
    const size_t sa = step[i->a] * (size_t)LANES;
    for (size_t k = 0; k < lanes; k += LANES, pa += sa) {
        NAME(doubles) *sum = (NAME(doubles) *)(d + k);
        *sum += __builtin_convertvector(*(const NAME(unaligned) *)pa, NAME(doubles));
    }
}

static void NAME(spread)(void *to, const void *from, size_t stride, size_t rows, size_t columns) {
    REAL *row = to;
    const REAL *value = from;
    for (size_t r = 0; r < rows; r++, row += columns, value += stride) {
        const VECTOR all = ALL(*value);
        for (size_t j = 0; j < columns; j += LANES) NAME(store)(row + j, all);
    }
}

#undef EACH
#undef MOVING
#undef FIXED
#undef UNARY
#undef BINARY
#undef TERNARY
#undef BITS
#undef ALL
#undef EITHER
#undef ONE_WHERE
#undef MAGNITUDE
#undef REAL
#undef VECTOR
#undef INTEGER
#undef LANES
#undef NAME
#undef SLEEF
#undef FMA
#undef SQRT
#undef FLOOR
