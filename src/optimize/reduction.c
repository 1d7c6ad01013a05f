/* Tables of partial sums; see reduction.h. */
#include "optimize/reduction.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/status.h"

static int by_first(const void *a, const void *b) {
    const size_t x = ((const pn_partial *)a)->first, y = ((const pn_partial *)b)->first;
    return (x > y) - (x < y);
}

/* Elements from the first to past the last that the partial names, or SIZE_MAX when that overflows. */
static size_t extent(const pn_partial *p) {
    size_t last, end;
    if (p->rows == 0 || p->count == 0) return 0;
    if (__builtin_mul_overflow(p->rows - 1, p->stride, &last) || __builtin_add_overflow(last, p->offset, &end) ||
        __builtin_add_overflow(end, p->count, &end))
        return SIZE_MAX;
    return end;
}

/* The partials sorted by their first entry, checked; owned by the caller (pn_free). */
static pinn_status sort_partials(const pn_sums *sums, size_t element_bytes, pn_partial **out) {
    const size_t elements = pinn_plane_bytes(sums->plane) / element_bytes;
    size_t covered = 0;
    pn_partial *sorted = pn_allocate(sums->partials, sizeof *sorted);
    if (!sorted) return PN_NO_MEMORY("a table of partial sums");
    for (size_t i = 0; i < sums->partials; i++) sorted[i] = sums->partial[i];
    qsort(sorted, sums->partials, sizeof *sorted, by_first);
    for (size_t i = 0; i < sums->partials; i++) {
        const pn_partial *p = &sorted[i];
        pinn_status status = PINN_OK;
        if (p->first > sums->entries || p->count > sums->entries - p->first || extent(p) > elements || p->rows > INT32_MAX)
            status =
                pn_fail(PINN_BAD_ARGUMENT, "partial sum of entries %zu to %zu: outside the %zu entries, or outside plane \"%s\"",
                        p->first, p->first + p->count, sums->entries, pinn_plane_name(sums->plane));
        else if (p->first < covered)
            status = pn_fail(PINN_BAD_ARGUMENT, "partial sums overlap at entry %zu", p->first);
        if (status != PINN_OK) {
            pn_free(sorted);
            return status;
        }
        covered = p->first + p->count;
    }
    *out = sorted;
    return PINN_OK;
}

/* Cuts [first, first+count) into tiles at tile[*tiles]; a NULL `tile` only counts them. */
static void cut(const pn_partial *p, size_t first, size_t count, pn_reduce_tile *tile, size_t *tiles) {
    for (size_t i = 0; i < count; i += PN_SUM_LANES, ++*tiles) {
        if (!tile) continue;
        tile[*tiles] = (pn_reduce_tile){.offset = p ? p->offset + i : 0,
                                        .stride = p ? p->stride : 0,
                                        .first = (uint32_t)(first + i),
                                        .count = (uint32_t)(count - i < PN_SUM_LANES ? count - i : PN_SUM_LANES),
                                        .rows = p ? (uint32_t)p->rows : 0};
    }
}

static size_t cut_all(const pn_sums *sums, const pn_partial *sorted, pn_reduce_tile *tile) {
    size_t tiles = 0, covered = 0;
    for (size_t i = 0; i < sums->partials; i++) {
        cut(NULL, covered, sorted[i].first - covered, tile, &tiles);
        cut(&sorted[i], sorted[i].first, sorted[i].count, tile, &tiles);
        covered = sorted[i].first + sorted[i].count;
    }
    cut(NULL, covered, sums->entries - covered, tile, &tiles);
    return tiles;
}

pinn_status pn_reduction_tiles(const pn_sums *sums, size_t element_bytes, pn_reduce_tile **tile, size_t *tiles) {
    pinn_status status = PINN_OK;
    pn_partial *sorted = NULL;
    pn_reduce_tile *made = NULL;
    if (sums->entries == 0 || sums->entries > INT32_MAX)
        return pn_fail(PINN_BAD_ARGUMENT, "a gradient has 1 to 2^31-1 entries, not %zu", sums->entries);
    PN_TRY(sort_partials(sums, element_bytes, &sorted));
    *tiles = cut_all(sums, sorted, NULL);
    if (!tile) goto fail;
    made = pn_allocate(*tiles, sizeof *made);
    if (!made) {
        status = PN_NO_MEMORY("a table of partial sums");
        goto fail;
    }
    cut_all(sums, sorted, made);
    *tile = made;
fail:
    pn_free(sorted);
    return status;
}

pinn_status pn_reduction_columns(const pn_sums *sums, pn_reduce_column **column) {
    pinn_status status = PINN_OK;
    pn_partial *sorted = NULL;
    pn_reduce_column *made = NULL;
    PN_TRY(sort_partials(sums, sizeof(double), &sorted));
    made = pn_allocate(sums->entries, sizeof *made);
    if (!made) {
        status = PN_NO_MEMORY("a table of loss sums");
        goto fail;
    }
    for (size_t i = 0; i < sums->partials; i++)
        for (size_t k = 0; k < sorted[i].count; k++)
            made[sorted[i].first + k] = (pn_reduce_column){sorted[i].offset + k, sorted[i].stride, sorted[i].rows};
    *column = made;
fail:
    pn_free(sorted);
    return status;
}
