/* tanh of a vector, included by lanes_template.h for each precision. SLEEF's takes three times as long, and tanh is what most networks
 * spend their elementary functions on.
 *
 *     |x| < 5/8:  x + x z P(z) in float32, x + x z P(z)/Q(z) in float64, z = x^2
 *     else        sign(x) (1 - 2/(e^{2|x|} + 1)),   e^y = 2^n e^r, n = round(y/log 2), Taylor's series in |r| <= log(2)/2
 *
 * Polynomials of Moshier's Cephes library (tanhf.c, tanh.c), as are the two parts of log 2: n times the first is exact without fma. The
 * error stays under 2 ulp (tests/pointwise/test_program.c). */
#define SINGLE (sizeof(REAL) == 4)

/* Horner's rule; c[0] is the leading coefficient. */
static inline VECTOR NAME(polynomial)(VECTOR x, const double *c, int degree) {
    VECTOR sum = ALL((REAL)c[0]);
    for (int k = 1; k <= degree; k++) sum = FMA(sum, x, ALL((REAL)c[k]));
    return sum;
}

/* e^y for 0 <= y <= 40. */
static inline VECTOR NAME(exp_positive)(VECTOR y) {
    static const double series[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                                    1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,
                                    1,                1};
    const VECTOR shift = ALL(SINGLE ? (REAL)12582912 : (REAL)6755399441055744); /* 1.5 2^23, 1.5 2^52: rounds to an integer */
    const VECTOR shifted = y * ALL((REAL)1.44269504088896340736) + shift;
    const VECTOR n = shifted - shift;
    const VECTOR r = FMA(-n, ALL(SINGLE ? (REAL)-2.12194440e-4 : (REAL)1.42860682030941723212e-6),
                         FMA(-n, ALL(SINGLE ? (REAL)0.693359375 : (REAL)6.93145751953125e-1), y));
    const VECTOR power = SINGLE ? NAME(polynomial)(r, series + 6, 7) : NAME(polynomial)(r, series, 13);
    return (VECTOR)((BITS)power + (((BITS)shifted - (BITS)shift) << (SINGLE ? 23 : 52)));
}

static inline VECTOR NAME(tanh)(VECTOR x) {
    static const double p32[] = {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1};
    static const double p64[] = {-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3};
    static const double q64[] = {1, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3};
    const VECTOR size = MAGNITUDE(x), z = x * x;
    const BITS small = (BITS)(size < ALL((REAL)0.625));
    const VECTOR limited = EITHER((BITS)(size < ALL(20)), size, ALL(20)); /* tanh 20 = 1 in either precision */
    const VECTOR above = NAME(exp_positive)(limited + limited) + ALL(1);
    VECTOR near, far;
    if (SINGLE) {
        near = NAME(polynomial)(z, p32, 4);
        far = ALL(-2) / above;
    } else { /* one division serves both */
        near = far = EITHER(small, NAME(polynomial)(z, p64, 2), ALL(-2)) / EITHER(small, NAME(polynomial)(z, q64, 3), above);
    }
    const VECTOR value = EITHER(small, FMA(size * z, near, size), far + ALL(1));
    const VECTOR with_sign = (VECTOR)((BITS)value | ((BITS)x & (BITS)ALL(-(REAL)0)));
    return EITHER((BITS)(x == x), with_sign, x);
}
#undef SINGLE
