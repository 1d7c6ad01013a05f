/* Layouts of jets: which partial derivatives a point set carries, closed downward, in one fixed order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "pointwise/jet.h"

/* By order, then lexicographically; the Laplacian after all. */
static int compare(const pn_channel *a, const pn_channel *b) {
    if (a->laplacian != b->laplacian) return a->laplacian ? 1 : -1;
    if (a->laplacian) return 0;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    return memcmp(a->coordinate, b->coordinate, a->order);
}

static int compare_void(const void *a, const void *b) { return compare(a, b); }

pn_channel pn_channel_derivative(const pn_channel *channel, unsigned i) {
    pn_channel result = *channel;
    unsigned at = result.order++;
    for (; at > 0 && result.coordinate[at - 1] > i; at--) result.coordinate[at] = result.coordinate[at - 1];
    result.coordinate[at] = (uint8_t)i;
    return result;
}

/* The channel of the coordinates picked by the bits of `mask`, ascending. */
static pn_channel subset(const pn_channel *channel, unsigned mask) {
    pn_channel part = {0};
    for (unsigned k = 0; k < channel->order; k++)
        if (mask >> k & 1) part = pn_channel_derivative(&part, channel->coordinate[k]);
    return part;
}

static pinn_status check_wanted(size_t coordinates, const pn_channel *want, size_t count, const double *laplacian,
                                bool *any_laplacian) {
    *any_laplacian = false;
    if (coordinates > PN_MAX_COORDINATES)
        return pn_fail(PINN_BAD_ARGUMENT, "%zu coordinates; at most %d are supported", coordinates, PN_MAX_COORDINATES);
    for (size_t c = 0; c < count; c++) {
        if (want[c].laplacian) {
            *any_laplacian = true;
            continue;
        }
        if (want[c].order > PN_MAX_ORDER)
            return pn_fail(PINN_BAD_ARGUMENT, "a derivative of order %d; at most %d is supported", (int)want[c].order,
                           PN_MAX_ORDER);
        for (unsigned k = 0; k < want[c].order; k++)
            if (want[c].coordinate[k] >= coordinates)
                return pn_fail(PINN_BAD_ARGUMENT, "a derivative by coordinate %d of %zu", (int)want[c].coordinate[k], coordinates);
    }
    if (!*any_laplacian) return PINN_OK;
    bool zero = true;
    for (size_t i = 0; laplacian && i < coordinates; i++) {
        if (!isfinite(laplacian[i])) return pn_fail(PINN_BAD_ARGUMENT, "coefficient %zu of the Laplacian is not finite", i);
        zero &= laplacian[i] == 0;
    }
    return zero ? pn_fail(PINN_BAD_ARGUMENT, "a Laplacian channel without coefficients") : PINN_OK;
}

pinn_status pn_layout_create(size_t coordinates, const pn_channel *want, size_t count, const double *laplacian, pn_layout *out) {
    pinn_status status = PINN_OK;
    bool any_laplacian;
    PN_TRY(check_wanted(coordinates, want, count, laplacian, &any_laplacian));

    size_t capacity = 1 + (any_laplacian ? coordinates + 1 : 0);
    for (size_t c = 0; c < count; c++)
        if (!want[c].laplacian) capacity += (size_t)1 << want[c].order;
    pn_layout layout = {.coordinates = coordinates, .channel = pn_allocate(capacity, sizeof(pn_channel))};
    if (!layout.channel) return PN_NO_MEMORY("a jet layout");

    size_t filled = 1; /* the value: all zeros, as allocated */
    for (size_t c = 0; c < count; c++)
        for (unsigned mask = 1; !want[c].laplacian && mask >> want[c].order == 0; mask++)
            layout.channel[filled++] = subset(&want[c], mask);
    if (any_laplacian) {
        const pn_channel value = {0};
        for (size_t i = 0; i < coordinates; i++) {
            layout.laplacian[i] = laplacian[i];
            if (laplacian[i] != 0) layout.channel[filled++] = pn_channel_derivative(&value, (unsigned)i);
        }
        layout.channel[filled++] = (pn_channel){.order = 2, .laplacian = true};
    }
    qsort(layout.channel, filled, sizeof *layout.channel, compare_void);
    for (size_t i = 0; i < filled; i++)
        if (layout.count == 0 || compare(&layout.channel[layout.count - 1], &layout.channel[i]) != 0)
            layout.channel[layout.count++] = layout.channel[i];
    *out = layout;
fail:
    return status;
}

void pn_layout_free(pn_layout *layout) {
    if (!layout) return;
    pn_free(layout->channel);
    *layout = (pn_layout){0};
}

int pn_layout_find(const pn_layout *layout, const pn_channel *channel) {
    size_t low = 0, high = layout->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(channel, &layout->channel[middle]);
        if (order == 0) return (int)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

bool pn_layout_equal(const pn_layout *a, const pn_layout *b) {
    if (a->count != b->count || a->coordinates != b->coordinates) return false;
    for (size_t c = 0; c < a->count; c++)
        if (compare(&a->channel[c], &b->channel[c]) != 0) return false;
    for (size_t i = 0; i < a->coordinates; i++)
        if (a->laplacian[i] != b->laplacian[i]) return false;
    return true;
}

double pn_power_of_two(double size) {
    if (size < 1) return 1 / pn_power_of_two(1 / size);
    return size < 4 || !isfinite(size) ? 1 : ldexp(1, ilogb(size));
}

/* Of the Laplacian channel: so that the largest a_i/(unit_i^2 factor) is about 1. */
static double laplacian_factor(const pn_layout *layout, const double *unit) {
    double largest = 0;
    for (size_t i = 0; i < layout->coordinates; i++) largest = fmax(largest, fabs(layout->laplacian[i]) / (unit[i] * unit[i]));
    return pn_power_of_two(largest);
}

double pn_channel_factor(const pn_layout *layout, const pn_channel *channel, const double *unit) {
    if (channel->laplacian) return laplacian_factor(layout, unit);
    double factor = 1;
    for (unsigned k = 0; k < channel->order; k++) factor /= unit[channel->coordinate[k]];
    return factor;
}

pn_layout pn_layout_carried(const pn_layout *layout, const double *unit) {
    pn_layout carried = *layout;
    const double factor = laplacian_factor(layout, unit);
    for (size_t i = 0; i < layout->coordinates; i++) carried.laplacian[i] /= unit[i] * unit[i] * factor;
    return carried;
}

/* Every coordinate but time with the coefficient 1: what `lap` means in an expression. */
static bool is_laplacian(const pn_layout *layout, int time) {
    for (size_t i = 0; i < layout->coordinates; i++)
        if (layout->laplacian[i] != ((int)i == time ? 0 : 1)) return false;
    return true;
}

/* "u_tt - 4*u_xx": what is added before what is subtracted, time before the other coordinates. */
static void print_sum(const pn_layout *layout, const char *field, const char *const *names, int time, pn_text *out) {
    enum { MOST_TERMS = 8 };
    const size_t each = layout->coordinates + 1;
    size_t terms = 0;
    for (size_t k = 0; k < 2 * each; k++) {
        const bool minus = k >= each, first = k % each == 0;
        const size_t i = first ? (size_t)time : k % each - 1;
        if (first ? time < 0 : (int)i == time) continue;
        const double factor = minus ? -layout->laplacian[i] : layout->laplacian[i];
        if (factor <= 0) continue;
        pn_text_string(out, terms == 0 ? (minus ? "-" : "") : minus ? " - " : " + ");
        if (terms++ == MOST_TERMS) {
            pn_text_string(out, "...");
            return;
        }
        if (factor != 1) pn_text_printf(out, "%.6g*", factor);
        pn_text_printf(out, "%s_%s%s", field, names[i], names[i]);
    }
}

void pn_channel_print(const pn_layout *layout, const pn_channel *channel, const char *field, const char *const *names, int time, pn_text *out) {
    if (channel->laplacian && is_laplacian(layout, time)) {
        pn_text_printf(out, "lap(%s)", field);
        return;
    }
    if (channel->laplacian) {
        print_sum(layout, field, names, time, out);
        return;
    }
    pn_text_string(out, field);
    if (channel->order) pn_text_string(out, "_");
    for (unsigned k = 0; k < channel->order; k++) pn_text_string(out, names[channel->coordinate[k]]);
}
