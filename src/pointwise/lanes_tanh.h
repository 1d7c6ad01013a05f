/* tanh of a vector, included by lanes_template.h for each precision. SLEEF's takes several times as long, and tanh is what most networks
 * spend their elementary functions on.
 *
 *     tanh x = sign(x) E/(E + 2),   E = e^y - 1, y = 2|x|,
 *     E = 2^n (e^r - 1) + (2^n - 1),   n = round(y/log 2), r = y - n log 2,   e^r - 1 = r + r^2 P(r)
 *
 * Nothing cancels: y >= 0, so n >= 0 and |2^n (e^r - 1)| is well below 2^n - 1, or n = 0. P is the minimax polynomial on |r| <= 0.3468
 * (Remez' algorithm; e^r - 1 off by 6e-10 in float32, 6e-19 in float64, relatively). log 2 in two parts as in Moshier's Cephes library: n
 * times the first is exact without fma. The error stays under 3 ulp (tests/pointwise/test_program.c). */
#define SINGLE (sizeof(REAL) == 4)

/* Horner's rule; c[0] is the leading coefficient. */
static inline VECTOR NAME(polynomial)(VECTOR x, const double *c, int degree) {
    VECTOR sum = ALL((REAL)c[0]);
    for (int k = 1; k <= degree; k++) sum = FMA(sum, x, ALL((REAL)c[k]));
    return sum;
}

static inline VECTOR NAME(tanh)(VECTOR x) {
    static const double p32[] = {1.9907591218964832851e-4, 1.3933687638989238282e-3, 8.3332860011916212376e-3,
                                 4.1666464582061777589e-2, 1.6666666756508980025e-1, 5.0000000135016091531e-1};
    static const double p64[] = {2.0921607246672026792e-9, 2.5105259922540732418e-8, 2.7557252867151624807e-7, 2.7557255297132511704e-6,
                                 2.4801587347378413420e-5, 1.9841269874901793636e-4, 1.3888888888874385436e-3, 8.3333333333261119761e-3,
                                 4.1666666666666683806e-2, 1.6666666666666671008e-1, 4.9999999999999999997e-1};
    const VECTOR shift = ALL(SINGLE ? (REAL)12582912 : (REAL)6755399441055744); /* 1.5 2^23, 1.5 2^52: rounds to an integer */
    const VECTOR size = MAGNITUDE(x), y = EITHER((BITS)(size > ALL(20)), ALL(40), size + size); /* tanh 20 = 1 in either precision */
    const VECTOR shifted = FMA(y, ALL((REAL)1.44269504088896340736), shift), n = shifted - shift;
    const VECTOR r = FMA(-n, ALL(SINGLE ? (REAL)-2.12194440e-4 : (REAL)1.42860682030941723212e-6),
                         FMA(-n, ALL(SINGLE ? (REAL)0.693359375 : (REAL)6.93145751953125e-1), y));
    const VECTOR part = FMA(r * r, SINGLE ? NAME(polynomial)(r, p32, 5) : NAME(polynomial)(r, p64, 10), r);
    const VECTOR power = (VECTOR)((((BITS)shifted - (BITS)shift) << (SINGLE ? 23 : 52)) + (BITS)ALL(1)); /* 2^n */
    const VECTOR e = FMA(part, power, power - ALL(1));
    const VECTOR value = e / (e + ALL(2)); /* NaN stays NaN all the way */
    return (VECTOR)((BITS)value | ((BITS)x & (BITS)ALL(-(REAL)0)));
}
#undef SINGLE
