/* Products C = op(A) op(B) + C or without the + C, for one instruction set and one precision; product_<isa>.c includes it twice.
 * Before it, that file defines
 *   REAL VECTOR LANES   element type, native vector, elements a vector
 *   VECTORS SUMS        most vectors in a row of the block of C that is kept in registers, most vectors in the block
 *   NAME(x)             a name of its own for every function
 *   FMA(a, b, c)
 *   LOAD(at, count) STORE(at, v, count)   the first `count` elements, 1 to LANES, touching no others; LOAD sets them to 0
 *   SUM(v)              of a vector's elements
 *
 * The block of C, (SUMS/vectors) x (vectors*LANES), stays in registers while k runs: each step loads `vectors` vectors of a row of B and
 * one number a row of A (a sum of outer products; Goto & van de Geijn 2008). op(A) is reached by strides, so A and its transpose cost the
 * same and nothing of A is copied. B is read in place where its row fills whole vectors and rows do not compete for cache sets, else a
 * padded panel of it is copied to the stack. k is cut so that a panel of B stays in the first-level cache. Every element of C is summed in
 * the order of k, except for narrow C: there as dot products, LANES partial sums an element. */
#define PANEL (VECTORS * LANES) /* columns */
#define NARROW 4 /* columns summed as dot products */

typedef REAL NAME(unaligned) __attribute__((vector_size(sizeof(VECTOR)), aligned(sizeof(REAL)), may_alias));

typedef struct NAME(place) { /* C [rows, columns] from k outer products */
    const REAL *a, *b;
    size_t a_row, a_column, b_row, c_row; /* strides, elements */
    size_t k, columns;
    bool add;
    REAL *c;
} NAME(place);

static inline VECTOR NAME(load)(const REAL *at) { return (VECTOR) * (const NAME(unaligned) *)at; }

/* `rows` and `vectors` are constants where this is called, so the block becomes registers. */
static inline __attribute__((always_inline)) void NAME(block)(size_t rows, size_t vectors, const NAME(place) * w) {
    VECTOR sum[SUMS][VECTORS];
    PN_UNROLLED
    for (size_t i = 0; i < rows; i++)
        PN_UNROLLED
        for (size_t j = 0; j < vectors; j++) sum[i][j] = (VECTOR){0};
    const REAL *a = w->a, *b = w->b;
    for (size_t p = 0; p < w->k; p++, a += w->a_column, b += w->b_row) {
        VECTOR row[VECTORS];
        PN_UNROLLED
        for (size_t j = 0; j < vectors; j++) row[j] = NAME(load)(b + j * LANES);
        PN_UNROLLED
        for (size_t i = 0; i < rows; i++) {
            const VECTOR factor = a[i * w->a_row] - (VECTOR){0};
            PN_UNROLLED
            for (size_t j = 0; j < vectors; j++) sum[i][j] = FMA(factor, row[j], sum[i][j]);
        }
    }
    const size_t last = w->columns - (vectors - 1) * LANES;
    PN_UNROLLED
    for (size_t i = 0; i < rows; i++)
        PN_UNROLLED
        for (size_t j = 0; j < vectors; j++) {
            REAL *c = w->c + i * w->c_row + j * LANES;
            if (j + 1 < vectors || last == LANES) {
                if (w->add) sum[i][j] += NAME(load)(c);
                *(NAME(unaligned) *)c = (NAME(unaligned))sum[i][j];
            } else {
                if (w->add) sum[i][j] += LOAD(c, last);
                STORE(c, sum[i][j], last);
            }
        }
}

#define BLOCKS(rows, vectors)                  \
    for (; m >= (rows); m -= (rows)) {         \
        NAME(block)((rows), (vectors), &w);    \
        w.a += (rows) * w.a_row;               \
        w.c += (rows) * w.c_row;               \
    }
#define BY_VECTORS(vectors)                    \
    case vectors:                              \
        BLOCKS(SUMS / (vectors), vectors)      \
        BLOCKS(SUMS / (vectors) / 2, vectors)  \
        BLOCKS(SUMS / (vectors) / 4, vectors)  \
        BLOCKS(1, vectors)                     \
        break;

/* m rows of C, at most a panel wide. */
static void NAME(rows)(size_t m, NAME(place) w) {
    switch ((w.columns + LANES - 1) / LANES) {
        BY_VECTORS(1)
        BY_VECTORS(2)
#if VECTORS > 2
        BY_VECTORS(3)
        BY_VECTORS(4)
#endif
    }
}

/* Rows first_k.. of op(B), columns first_n.., zero-padded to whole vectors: [k][width]. */
static void NAME(pack)(const pn_product *p, const REAL *b, size_t first_k, size_t k, size_t first_n, size_t columns, size_t width,
                       REAL *panel) {
    if (p->transpose_b) {
        memset(panel, 0, k * width * sizeof *panel);
        for (size_t j = 0; j < columns; j++)
            for (size_t i = 0; i < k; i++) panel[i * width + j] = b[(first_n + j) * p->k + first_k + i];
        return;
    }
    b += first_k * p->n + first_n;
    for (size_t i = 0; i < k; i++, b += p->n, panel += width) {
        size_t j = 0;
        for (; j + LANES <= columns; j += LANES) *(NAME(unaligned) *)(panel + j) = *(const NAME(unaligned) *)(b + j);
        if (j < columns) *(NAME(unaligned) *)(panel + j) = (NAME(unaligned))LOAD(b + j, columns - j);
    }
}

/* Columns of the panel that starts at `first` of n: panels of nearly equal numbers of vectors. */
static size_t NAME(panel_columns)(size_t first, size_t n) {
    const size_t vectors = (n - first + LANES - 1) / LANES, panels = (vectors + VECTORS - 1) / VECTORS;
    const size_t columns = (vectors + panels - 1) / panels * LANES;
    return n - first < columns ? n - first : columns;
}

static void NAME(wide)(const pn_product *p, const REAL *a, const REAL *b, bool add, REAL *c) {
    REAL panel[PN_PRODUCT_DEPTH * PANEL] __attribute__((aligned(64)));
    const size_t a_row = p->transpose_a ? 1 : p->k, a_column = p->transpose_a ? p->m : 1;
    for (size_t n = 0, columns; n < p->n; n += columns) {
        columns = NAME(panel_columns)(n, p->n);
        const size_t width = (columns + LANES - 1) / LANES * LANES;
        const bool in_place = !p->transpose_b && columns == width && p->n * sizeof(REAL) < PN_PRODUCT_STRIDE;
        for (size_t k = 0; k < p->k; k += PN_PRODUCT_DEPTH) {
            const size_t depth = p->k - k < PN_PRODUCT_DEPTH ? p->k - k : PN_PRODUCT_DEPTH;
            if (!in_place) NAME(pack)(p, b, k, depth, n, columns, width, panel);
            NAME(rows)(p->m, (NAME(place)){.a = a + k * a_column, .a_row = a_row, .a_column = a_column,
                                           .b = in_place ? b + k * p->n + n : panel, .b_row = in_place ? p->n : width,
                                           .c = c + n, .c_row = p->n, .k = depth, .columns = columns, .add = add || k > 0});
        }
    }
}

/* C^T = op(B)^T op(A)^T where A is stored as op(A)^T. */
static void NAME(swapped)(const pn_product *p, const REAL *a, const REAL *b, bool add, REAL *c) {
    REAL block[SUMS * PANEL] __attribute__((aligned(64))), panel[PN_PRODUCT_DEPTH * PANEL] __attribute__((aligned(64)));
    const pn_product q = {.m = p->n, .n = p->m, .k = p->k};
    const size_t b_row = p->transpose_b ? p->k : 1, b_column = p->transpose_b ? 1 : p->n;
    for (size_t m = 0, columns; m < p->m; m += columns) {
        columns = NAME(panel_columns)(m, p->m);
        const size_t width = (columns + LANES - 1) / LANES * LANES;
        for (size_t k = 0; k < p->k; k += PN_PRODUCT_DEPTH) {
            const size_t depth = p->k - k < PN_PRODUCT_DEPTH ? p->k - k : PN_PRODUCT_DEPTH;
            if (columns < width) NAME(pack)(&q, a, k, depth, m, columns, width, panel);
            for (size_t n = 0, rows; n < p->n; n += rows) {
                rows = p->n - n < SUMS ? p->n - n : SUMS;
                NAME(rows)(rows, (NAME(place)){.a = b + n * b_row + k * b_column, .a_row = b_row, .a_column = b_column,
                                               .b = columns < width ? panel : a + k * p->m + m, .b_row = columns < width ? width : p->m,
                                               .c = block, .c_row = PANEL, .k = depth, .columns = width});
                for (size_t i = 0; i < rows; i++)
                    for (size_t j = 0; j < columns; j++) {
                        REAL *to = &c[(m + j) * p->n + n + i];
                        *to = block[i * PANEL + j] + (add || k > 0 ? *to : 0);
                    }
            }
        }
    }
}

/* Few columns, A as it is: dot products, by rows of A. `columns` is a constant where this is called. */
static inline __attribute__((always_inline)) void NAME(dot_columns)(size_t columns, const pn_product *p, const REAL *a, const REAL *b,
                                                                    bool add, REAL *c) {
    REAL column[NARROW][PN_PRODUCT_DEPTH] __attribute__((aligned(64)));
    const size_t b_row = p->transpose_b ? 1 : p->n, b_column = p->transpose_b ? p->k : 1;
    for (size_t k = 0; k < p->k; k += PN_PRODUCT_DEPTH) {
        const size_t depth = p->k - k < PN_PRODUCT_DEPTH ? p->k - k : PN_PRODUCT_DEPTH, whole = depth / LANES * LANES;
        for (size_t j = 0; j < columns; j++)
            for (size_t i = 0; i < depth; i++) column[j][i] = b[(k + i) * b_row + j * b_column];
        for (size_t m = 0; m < p->m; m++) {
            const REAL *row = a + m * p->k + k;
            VECTOR sum[NARROW];
            for (size_t j = 0; j < columns; j++) sum[j] = (VECTOR){0};
            for (size_t i = 0; i < whole; i += LANES)
                for (size_t j = 0; j < columns; j++) sum[j] = FMA(NAME(load)(row + i), NAME(load)(column[j] + i), sum[j]);
            for (size_t j = 0; whole < depth && j < columns; j++)
                sum[j] = FMA(LOAD(row + whole, depth - whole), LOAD(column[j] + whole, depth - whole), sum[j]);
            for (size_t j = 0; j < columns; j++) c[m * columns + j] = SUM(sum[j]) + (add || k > 0 ? c[m * columns + j] : 0);
        }
    }
}

static void NAME(dots)(const pn_product *p, const REAL *a, const REAL *b, bool add, REAL *c) {
    switch (p->n) {
    case 1: NAME(dot_columns)(1, p, a, b, add, c); break;
    case 2: NAME(dot_columns)(2, p, a, b, add, c); break;
    case 3: NAME(dot_columns)(3, p, a, b, add, c); break;
    default: NAME(dot_columns)(4, p, a, b, add, c);
    }
}

static void NAME(product)(const pn_product *p, const void *a, const void *b, bool add, void *c) {
    const size_t m = (p->m + LANES - 1) / LANES, n = (p->n + LANES - 1) / LANES; /* vectors */
    if (p->transpose_a && p->n * m < p->m * n)
        NAME(swapped)(p, a, b, add, c);
    else if (!p->transpose_a && p->n <= NARROW && p->k >= LANES)
        NAME(dots)(p, a, b, add, c);
    else
        NAME(wide)(p, a, b, add, c);
}

#undef BLOCKS
#undef BY_VECTORS
#undef PANEL
#undef NARROW
#undef REAL
#undef VECTOR
#undef LANES
#undef VECTORS
#undef SUMS
#undef NAME
#undef FMA
#undef LOAD
#undef STORE
#undef SUM
