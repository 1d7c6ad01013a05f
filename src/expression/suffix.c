/* Derivatives written as a suffix: u_xxt.
 *
 * A name reads as a derivative when it is a field, "_", and a sequence of coordinate names; coordinates may have several letters,
 * so the sequence is found by counting: ways[p] = ways to read name[p..] = sum over coordinates c that begin there of ways[p +
 * |c|]. More than one way is the user's to resolve by d(u, ...).
 */
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "expression/internal.h"

enum { MANY = 3 /* ways are counted up to this */ };

static bool begins_with(const pn_name *coordinate, const char *text, size_t length) {
    return coordinate->length <= length && coordinate->length > 0 && memcmp(coordinate->text, text, coordinate->length) == 0;
}

/* ways[p], p = 0..length, saturated at MANY. Owned by the caller; NULL without memory. */
static uint8_t *count_ways(const pn_scope *scope, const char *name, size_t length) {
    uint8_t *ways = pn_allocate(length + 1, 1);
    if (!ways) return NULL;
    ways[length] = 1;
    for (size_t p = length; p-- > 0;)
        for (size_t c = 0; c < scope->coordinates && ways[p] < MANY; c++) {
            const pn_name *coordinate = &scope->name[c];
            if (!begins_with(coordinate, name + p, length - p)) continue;
            unsigned sum = ways[p] + ways[p + coordinate->length];
            ways[p] = (uint8_t)(sum < MANY ? sum : MANY);
        }
    return ways;
}

/* Way number `skip` to read name[begin..]. */
static pn_reading read_way(const pn_scope *scope, const char *name, size_t begin, size_t length, const uint8_t *ways,
                           unsigned skip) {
    pn_reading reading = {0};
    for (size_t p = begin; p < length;) {
        for (size_t c = 0; c < scope->coordinates; c++) {
            const pn_name *next = &scope->name[c];
            if (!begins_with(next, name + p, length - p)) continue;
            unsigned below = ways[p + next->length];
            if (skip >= below) {
                skip -= below;
                continue;
            }
            if (reading.order < PN_MAX_ORDER) reading.coordinate[reading.order] = (unsigned)c;
            reading.order++;
            p += next->length;
            break;
        }
    }
    return reading;
}

pinn_status pn_suffix_split(const pn_scope *scope, const char *name, size_t length, pn_suffix *out) {
    pn_suffix suffix = {0};
    if (!memchr(name, '_', length)) {
        *out = suffix;
        return PINN_OK;
    }
    uint8_t *ways = count_ways(scope, name, length);
    if (!ways) return PN_NO_MEMORY("a derivative's name");
    for (size_t p = 1; p + 1 < length; p++) {
        if (name[p] != '_' || ways[p + 1] == 0) continue;
        const pn_name *field = pn_scope_field(scope, name, p);
        if (!field) continue;
        for (unsigned way = 0; way < ways[p + 1] && suffix.ways + way < 2; way++) {
            pn_reading *reading = &suffix.reading[suffix.ways + way];
            *reading = read_way(scope, name, p + 1, length, ways, way);
            reading->field = field;
        }
        suffix.ways += ways[p + 1];
    }
    pn_free(ways);
    *out = suffix;
    return PINN_OK;
}

/* ---- Reports ----------------------------------------------------------------------------------------------------------- */

/* "d(u, x, x)" */
static void print_form(const pn_scope *scope, const pn_reading *reading, char *buffer, size_t size) {
    size_t at = (size_t)snprintf(buffer, size, "d(%s", reading->field->text);
    for (unsigned i = 0; i < reading->order && i < PN_MAX_ORDER && at < size; i++)
        at += (size_t)snprintf(buffer + at, size - at, ", %s", scope->name[reading->coordinate[i]].text);
    if (at < size) snprintf(buffer + at, size - at, ")");
}

void pn_suffix_report_ambiguous(const pn_scope *scope, pn_source *source, size_t begin, size_t length, const pn_suffix *suffix) {
    char form[2][100], hint[256];
    for (unsigned way = 0; way < 2; way++) print_form(scope, &suffix->reading[way], form[way], sizeof form[way]);
    snprintf(hint, sizeof hint, "write %s or %s", form[0], form[1]);
    pn_source_report(source, begin, hint, "\"%s\" can be read in more than one way",
                     pn_source_excerpt(source, begin, begin + length).text);
}

/* The part of a suffix behind the longest run of coordinates it begins with. */
static size_t unreadable(const pn_scope *scope, const char *name, size_t begin, size_t length, uint8_t *reached) {
    size_t farthest = begin;
    memset(reached, 0, length + 1);
    reached[begin] = 1;
    for (size_t p = begin; p < length; p++)
        for (size_t c = 0; c < scope->coordinates && reached[p]; c++) {
            if (!begins_with(&scope->name[c], name + p, length - p)) continue;
            size_t end = p + scope->name[c].length;
            reached[end] = 1;
            if (end > farthest) farthest = end;
        }
    return farthest;
}

/* "u_z": a field with a suffix that is not made of coordinates. */
static void report_coordinate(const pn_scope *scope, pn_source *source, size_t begin, size_t length, size_t underscore,
                              uint8_t *reached) {
    const char *name = source->text + begin;
    char list[160], hint[256];
    pn_scope_list(scope, PN_NAME_COORDINATE, list, sizeof list);
    snprintf(hint, sizeof hint, scope->coordinates ? "the coordinates are %s" : "there are no coordinates%s", list);
    size_t bad = unreadable(scope, name, underscore + 1, length, reached);
    pn_excerpt whole = pn_source_excerpt(source, begin, begin + length);
    if (bad == length)
        pn_source_report(source, begin, hint, "\"%s\" ends without a coordinate", whole.text);
    else
        pn_source_report(source, begin + bad, hint, "\"%s\" in \"%s\" is no coordinate",
                         pn_source_excerpt(source, begin + bad, begin + length).text, whole.text);
}

/* "alpha_x", "k_x", "w_x": coordinates behind something that is no field. */
static void report_field(const pn_scope *scope, pn_source *source, size_t begin, size_t length, size_t underscore,
                         const pn_name *known) {
    static const char *const kinds[] = {"", "a coordinate", "a field", "a constant", "a definition"};
    pn_excerpt whole = pn_source_excerpt(source, begin, begin + length),
               base = pn_source_excerpt(source, begin, begin + underscore);
    char list[160], hint[256];
    if (known && known->kind == PN_NAME_DEFINITION) {
        snprintf(hint, sizeof hint, "write d(%s, ...)", base.text);
    } else if (known) {
        snprintf(hint, sizeof hint, "%s",
                 known->kind == PN_NAME_CONSTANT ? "the derivative of a constant is 0" : "coordinates don't depend on each other");
    } else {
        const char *nearest = pn_scope_nearest(scope, source->text + begin, underscore, 1u << PN_NAME_FIELD, 0);
        pn_scope_list(scope, PN_NAME_FIELD, list, sizeof list);
        if (nearest)
            snprintf(hint, sizeof hint, "did you mean \"%s%s\"?", nearest,
                     pn_source_excerpt(source, begin + underscore, begin + length).text);
        else
            snprintf(hint, sizeof hint, scope->fields ? "the fields are %s" : "there are no fields%s", list);
    }
    if (known)
        pn_source_report(source, begin, hint, "\"%s\" in \"%s\" is %s, not a field", base.text, whole.text, kinds[known->kind]);
    else
        pn_source_report(source, begin, hint, "unknown field \"%s\" in \"%s\"", base.text, whole.text);
}

bool pn_suffix_report(const pn_scope *scope, pn_source *source, size_t begin, size_t length, size_t visible) {
    const char *name = source->text + begin;
    bool reported = false;
    uint8_t *ways = memchr(name, '_', length) ? count_ways(scope, name, length) : NULL;
    if (!ways) return false; /* without memory a plain "unknown name" is said */
    for (size_t p = 1; p < length && !reported; p++) {
        if (name[p] != '_') continue;
        const pn_name *known = pn_scope_find(scope, name, p, visible);
        if (known && known->kind == PN_NAME_FIELD) {
            report_coordinate(scope, source, begin, length, p, ways);
            reported = true;
        } else if (ways[p + 1] && p + 1 < length) {
            report_field(scope, source, begin, length, p, known);
            reported = true;
        }
    }
    pn_free(ways);
    return reported;
}
