/* Products C = op(A) op(B) + C or without the + C, for one instruction set and one precision; product_<isa>.c includes it twice.
 * Before it, that file defines
 *   REAL VECTOR LANES   element type, native vector, elements a vector
 *   VECTORS             1 to 4: vectors in a row of the block of C that is kept in registers; it has up to 6 rows
 *   NAME(x)             a name of its own for every function
 *   FMA(a, b, c)
 *
 * The block of C, 6 x (VECTORS*LANES), stays in registers while k runs: each step loads VECTORS vectors of a row of B and one number a
 * row of A (a sum of outer products; Goto & van de Geijn 2008). op(A) is reached by strides, so A and its transpose cost the same and
 * nothing of A is copied. B is read in place where its row fills whole vectors, else a padded panel is copied to the stack. k is cut so
 * that a panel of B stays in the first-level cache. Every element of C is summed in the order of k. */
#define PANEL (VECTORS * LANES) /* columns */

typedef REAL NAME(unaligned) __attribute__((vector_size(sizeof(VECTOR)), aligned(sizeof(REAL)), may_alias));

typedef struct NAME(place) { /* one block: C [rows, columns] from k outer products */
    const REAL *a, *b;
    size_t a_row, a_column, b_row, c_row; /* strides, elements */
    size_t k, columns;
    bool add;
    REAL *c;
} NAME(place);

/* The last vector of a row may stick out of C: only `count` elements of it are touched. */
static inline VECTOR NAME(load_part)(const REAL *at, size_t count) {
    VECTOR v = {0};
    if (count >= LANES) return (VECTOR) * (const NAME(unaligned) *)at;
    for (size_t i = 0; i < count && i < LANES; i++) v[i] = at[i];
    return v;
}

static inline void NAME(store_part)(REAL *at, VECTOR v, size_t count) {
    if (count >= LANES)
        *(NAME(unaligned) *)at = (NAME(unaligned))v;
    else
        for (size_t i = 0; i < count && i < LANES; i++) at[i] = v[i];
}

/* `rows` and `vectors` are constants where this is called, so the block becomes registers. */
static inline __attribute__((always_inline)) void NAME(block)(size_t rows, size_t vectors, const NAME(place) * w) {
    VECTOR sum[6][VECTORS];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < vectors; j++) sum[i][j] = (VECTOR){0};
    const REAL *a = w->a, *b = w->b;
    for (size_t p = 0; p < w->k; p++, a += w->a_column, b += w->b_row) {
        VECTOR row[VECTORS];
        for (size_t j = 0; j < vectors; j++) row[j] = (VECTOR) * (const NAME(unaligned) *)(b + j * LANES);
        for (size_t i = 0; i < rows; i++) {
            const VECTOR factor = a[i * w->a_row] - (VECTOR){0};
            for (size_t j = 0; j < vectors; j++) sum[i][j] = FMA(factor, row[j], sum[i][j]);
        }
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < vectors; j++) {
            REAL *c = w->c + i * w->c_row + j * LANES;
            const size_t count = w->columns - j * LANES;
            if (w->add) sum[i][j] += NAME(load_part)(c, count);
            NAME(store_part)(c, sum[i][j], count);
        }
}

#define BY_VECTORS(rows)                                                                          \
    case rows:                                                                                    \
        if (vectors == 1) NAME(block)(rows, 1, w);                                                \
        if (VECTORS >= 2 && vectors == 2) NAME(block)(rows, VECTORS < 2 ? VECTORS : 2, w);        \
        if (VECTORS >= 3 && vectors == 3) NAME(block)(rows, VECTORS < 3 ? VECTORS : 3, w);        \
        if (VECTORS >= 4 && vectors == 4) NAME(block)(rows, VECTORS < 4 ? VECTORS : 4, w);        \
        break;

static void NAME(any_block)(size_t rows, size_t vectors, const NAME(place) * w) {
    switch (rows) {
        BY_VECTORS(1)
        BY_VECTORS(2)
        BY_VECTORS(3)
        BY_VECTORS(4)
        BY_VECTORS(5)
        BY_VECTORS(6)
    }
}

/* Rows first_k.. of op(B), columns first_n.., zero-padded to whole vectors: [k][width]. */
static void NAME(pack)(const pn_product *p, const REAL *b, size_t first_k, size_t k, size_t first_n, size_t columns, size_t width, REAL *panel) {
    const size_t row = p->transpose_b ? 1 : p->n, column = p->transpose_b ? p->k : 1;
    memset(panel, 0, k * width * sizeof *panel);
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < k; i++) panel[i * width + j] = b[(first_k + i) * row + (first_n + j) * column];
}

static void NAME(product)(const pn_product *p, const void *a, const void *b, bool add, void *c) {
    REAL panel[PN_PRODUCT_DEPTH * PANEL] __attribute__((aligned(64)));
    const size_t a_row = p->transpose_a ? 1 : p->k, a_column = p->transpose_a ? p->m : 1;
    for (size_t n = 0; n < p->n; n += PANEL) {
        const size_t columns = p->n - n < PANEL ? p->n - n : PANEL, vectors = (columns + LANES - 1) / LANES;
        const bool in_place = !p->transpose_b && columns == vectors * LANES;
        for (size_t k = 0; k < p->k; k += PN_PRODUCT_DEPTH) {
            const size_t depth = p->k - k < PN_PRODUCT_DEPTH ? p->k - k : PN_PRODUCT_DEPTH;
            if (!in_place) NAME(pack)(p, b, k, depth, n, columns, vectors * LANES, panel);
            NAME(place) w = {.b = in_place ? (const REAL *)b + k * p->n + n : panel, .b_row = in_place ? p->n : vectors * LANES,
                             .a_row = a_row, .a_column = a_column, .c_row = p->n, .k = depth, .columns = columns, .add = add || k > 0};
            for (size_t m = 0; m < p->m; m += 6) {
                w.a = (const REAL *)a + m * a_row + k * a_column;
                w.c = (REAL *)c + m * p->n + n;
                NAME(any_block)(p->m - m < 6 ? p->m - m : 6, vectors, &w);
            }
        }
    }
}

#undef BY_VECTORS
#undef PANEL
#undef REAL
#undef VECTOR
#undef LANES
#undef VECTORS
#undef NAME
#undef FMA
