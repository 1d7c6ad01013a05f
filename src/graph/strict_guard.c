/* What stands around each node in strict mode.
 *
 * The bytes of a span fall into segments by what the node declares of them: nothing, read, written, or both. Before the node runs
 *
 *     nothing   kept aside, poisoned; afterwards still poison, then put back
 *     read      kept aside where they cannot be write-protected; afterwards unchanged
 *     written   poisoned: what the node leaves out shows
 *     both      left alone
 *
 * A region of which nothing is declared stays closed; wrapped memory of which nothing is declared is kept aside and afterwards
 * unchanged, but is not poisoned: it may share its pages with anything.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/strict.h"

enum { READ = 1, WRITTEN = 2 };

/* ---- spans ----------------------------------------------------------------------------------------------------------------- */

static bool overlaps(const pn_span *span, const unsigned char *address, size_t bytes) {
    return address < span->address + span->bytes && span->address < address + bytes;
}

static pinn_status add_span(pn_strict *strict, pn_span new) {
    for (size_t i = 0; i < strict->spans; i++) {
        pn_span *old = &strict->span[i];
        if (!overlaps(old, new.address, new.bytes)) continue;
        if (old->region) return PINN_OK; /* wrapped once more */
        unsigned char *end = new.address + new.bytes, *old_end = old->address + old->bytes;
        new.address = new.address < old->address ? new.address : old->address;
        new.bytes = (size_t)((end > old_end ? end : old_end) - new.address);
        *old = strict->span[--strict->spans];
        i = (size_t)-1; /* the larger one may overlap others */
    }
    if (strict->spans == strict->span_capacity) {
        size_t capacity = strict->span_capacity ? 2 * strict->span_capacity : 16;
        pn_span *grown = pn_reallocate(strict->span, strict->span_capacity, capacity, sizeof *grown);
        if (!grown) return PN_NO_MEMORY("the strict mode's spans");
        strict->span = grown;
        strict->span_capacity = capacity;
    }
    strict->span[strict->spans++] = new;
    return PINN_OK;
}

void pn_guard_end(pn_strict *strict) {
    for (size_t i = 0; i < strict->spans; i++) {
        pn_span *span = &strict->span[i];
        if (span->region) pn_region_set(span->region, span->region->rest);
        pn_free(span->saved);
    }
    strict->spans = 0;
}

pinn_status pn_guard_begin(pn_strict *strict) {
    for (const pinn_plane *plane = strict->context->first_plane; plane; plane = plane->next) {
        pn_region *region = pn_region_find(plane->address);
        pn_span span = {.address = plane->address, .bytes = plane->bytes};
        if (region) span = (pn_span){.address = region->address, .bytes = region->bytes, .region = region};
        pinn_status status = add_span(strict, span);
        if (status != PINN_OK) {
            pn_guard_end(strict);
            return status;
        }
    }
    for (size_t i = 0; i < strict->spans; i++)
        if (strict->span[i].region) pn_region_set(strict->span[i].region, PN_ACCESS_NONE);
    return PINN_OK;
}

/* ---- segments -------------------------------------------------------------------------------------------------------------- */

typedef struct segment {
    unsigned char *address;
    size_t bytes;
    unsigned declared;
} segment;

static void add_plane(segment *s, const pinn_plane *plane, unsigned declared) {
    unsigned char *first = plane->address, *last = first + plane->bytes, *stop = s->address + s->bytes;
    if (first <= s->address && s->address < last) {
        s->declared |= declared;
        if (last < stop) s->bytes = (size_t)(last - s->address);
    } else if (first > s->address && first < stop)
        s->bytes = (size_t)(first - s->address);
}

/* The longest stretch of the span from `from` on of which the node declares the same. */
static segment segment_from(const pn_span *span, unsigned char *from, const pn_graph_node *node) {
    segment s = {.address = from, .bytes = (size_t)(span->address + span->bytes - from)};
    for (size_t i = 0; i < node->reads; i++) add_plane(&s, node->read[i], READ);
    for (size_t i = 0; i < node->writes; i++) add_plane(&s, node->write[i], WRITTEN);
    return s;
}

static void set_declared(pn_span *span, const pn_graph_node *node) {
    unsigned declared = 0;
    for (size_t i = 0; i < node->reads; i++)
        if (overlaps(span, node->read[i]->address, node->read[i]->bytes)) declared |= READ;
    for (size_t i = 0; i < node->writes; i++)
        if (overlaps(span, node->write[i]->address, node->write[i]->bytes)) declared |= WRITTEN;
    span->declared = declared;
    span->only_read = span->region && declared == READ && segment_from(span, span->address, node).bytes >= span->region->used;
}

/* Must the bytes be the same afterwards, and is there no write protection to see to it? */
static bool is_kept(const pn_span *span, const segment *s) {
    return s->declared == 0 || (s->declared == READ && (!span->region || span->declared & WRITTEN));
}

static void veil_segments(pn_span *span, const pn_graph_node *node) {
    segment s;
    for (unsigned char *at = span->address; at < span->address + span->bytes; at += s.bytes) {
        s = segment_from(span, at, node);
        if (is_kept(span, &s)) memcpy(span->saved + (at - span->address), at, s.bytes);
        if (!(s.declared & READ)) memset(at, PN_POISON, s.bytes);
    }
}

pinn_status pn_guard_open(pn_strict *strict, const pn_graph_node *node) {
    for (size_t i = 0; i < strict->spans; i++) {
        pn_span *span = &strict->span[i];
        set_declared(span, node);
        if ((span->declared || !span->region) && !span->only_read && !span->saved && !(span->saved = pn_allocate(span->bytes, 1)))
            return PN_NO_MEMORY("the strict mode's copies");
    }
    for (size_t i = 0; i < strict->spans; i++) {
        pn_span *span = &strict->span[i];
        if (!span->declared) {
            if (!span->region) memcpy(span->saved, span->address, span->bytes);
            continue;
        }
        if (!span->only_read) {
            if (span->region) pn_region_set(span->region, PN_ACCESS_WRITE);
            veil_segments(span, node);
        }
        if (span->region) pn_region_set(span->region, span->declared & WRITTEN ? PN_ACCESS_WRITE : PN_ACCESS_READ);
    }
    return PINN_OK;
}

/* ---- findings -------------------------------------------------------------------------------------------------------------- */

pinn_status pn_strict_break(pn_strict *strict, const char *format, ...) {
    if (!strict->broken) {
        va_list list;
        va_start(list, format);
        vsnprintf(strict->why, sizeof strict->why, format, list);
        va_end(list);
        strict->broken = true;
    }
    return pn_strict_check(strict);
}

pinn_status pn_strict_check(const pn_strict *strict) { return strict->broken ? pn_fail(PINN_REFUSED, "%s", strict->why) : PINN_OK; }

/* The plane of the context that holds `address`: rather the one that was created than one wrapped around its memory; behind the
 * last byte of all, any of the span. */
static const pinn_plane *plane_at(const pn_strict *strict, const pn_span *span, const unsigned char *address) {
    const pinn_plane *best = NULL;
    for (const pinn_plane *plane = strict->context->first_plane; plane; plane = plane->next) {
        const unsigned char *first = plane->address;
        if (!overlaps(span, first, plane->bytes)) continue;
        if (!best || plane->block || (address >= first && address < first + plane->bytes)) best = plane;
        if (best->block) break;
    }
    return best;
}

static pinn_status report_write(pn_strict *strict, const pn_graph_node *node, const pn_span *span, const unsigned char *address) {
    const pinn_plane *plane = plane_at(strict, span, address);
    const size_t byte = (size_t)(address - (const unsigned char *)plane->address);
    if (byte >= plane->bytes)
        return pn_strict_break(strict, "graph '%s', node %zu '%s' writes beyond the end of plane '%s' of %zu bytes, at byte %zu",
                               node->graph->name, node->number, node->name, plane->name, plane->bytes, byte);
    return pn_strict_break(strict,
                           "graph '%s', node %zu '%s' writes plane '%s', at byte %zu, which it does not declare as written: add it "
                           "to the node's writes",
                           node->graph->name, node->number, node->name, plane->name, byte);
}

static pinn_status report_trespass(pn_strict *strict, const pn_graph_node *node, const pn_span *span, pn_access access) {
    const bool written = access == PN_ACCESS_WRITE;
    const pinn_plane *plane = plane_at(strict, span, span->address);
    if (pn_graph_node_on_host(node) == (plane->place == PINN_DEVICE))
        return pn_strict_break(
            strict,
            "graph '%s', node %zu '%s' %s plane '%s', which is %s memory, on the %s: declare a plane of the node's own "
            "side, and pinn_graph_copy between the two",
            node->graph->name, node->number, node->name, written ? "writes" : "reads", plane->name, pinn_place_name(plane->place),
            pn_graph_node_on_host(node) ? "host" : "device");
    return pn_strict_break(strict,
                           "graph '%s', node %zu '%s' %s plane '%s', which it does not declare as %s: add it to the node's %s",
                           node->graph->name, node->number, node->name, written ? "writes" : "reads", plane->name,
                           written ? "written" : "read", written ? "writes" : "reads");
}

static bool is_poison(const unsigned char *memory, size_t bytes) {
    return memory[0] == PN_POISON && memcmp(memory, memory + 1, bytes - 1) == 0; /* each byte is as the one before */
}

/* The first byte where `memory` differs from `expected`, or from poison when that is NULL; `bytes` when there is none. */
static size_t difference(const unsigned char *memory, const unsigned char *expected, size_t bytes) {
    if (expected ? memcmp(memory, expected, bytes) == 0 : is_poison(memory, bytes)) return bytes;
    size_t i = 0;
    while (memory[i] == (expected ? expected[i] : PN_POISON)) i++;
    return i;
}

static void unveil_segments(pn_strict *strict, const pn_span *span, const pn_graph_node *node) {
    segment s;
    for (unsigned char *at = span->address; at < span->address + span->bytes; at += s.bytes) {
        s = segment_from(span, at, node);
        if (!is_kept(span, &s)) continue;
        const unsigned char *saved = span->saved + (at - span->address);
        size_t first = difference(at, s.declared ? saved : NULL, s.bytes);
        if (first < s.bytes) report_write(strict, node, span, at + first);
        if (!s.declared) memcpy(at, saved, s.bytes);
    }
}

pinn_status pn_guard_close(pn_strict *strict, const pn_graph_node *node) {
    for (size_t i = 0; i < strict->spans; i++) {
        pn_span *span = &strict->span[i];
        pn_access taken = span->region ? pn_region_take_trespass(span->region) : PN_ACCESS_NONE;
        if (taken != PN_ACCESS_NONE) report_trespass(strict, node, span, taken);
        if (span->region && !span->declared) continue;
        if (!span->declared) {
            size_t first = difference(span->address, span->saved, span->bytes);
            if (first < span->bytes) report_write(strict, node, span, span->address + first);
            continue;
        }
        if (!span->only_read) {
            if (span->region) pn_region_set(span->region, PN_ACCESS_WRITE);
            unveil_segments(strict, span, node);
        }
        if (span->region) pn_region_set(span->region, PN_ACCESS_NONE);
    }
    return pn_strict_check(strict);
}
