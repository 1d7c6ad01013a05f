/* Names and input slots of expressions.
 *
 * Slot i < coordinates is coordinate i, slot coordinates + i its normal component; field channels follow as they are met, found
 * again through a small hash table (a 100-coordinate biharmonic has thousands of them).
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "expression/internal.h"

/* Room for one element more in an array of the scope; false without memory. */
static bool reserve(void *array, size_t count, size_t *capacity, size_t size) {
    void **block = array;
    if (count < *capacity) return true;
    size_t grown = *capacity ? 2 * *capacity : 16;
    void *moved = *block ? pn_reallocate(*block, count, grown, size) : pn_allocate(grown, size);
    if (!moved) return false;
    *block = moved;
    *capacity = grown;
    return true;
}

static pinn_status add_name(pn_scope *scope, const char *text, pn_name_kind kind, size_t index, double value) {
    if (!reserve(&scope->name, scope->names, &scope->name_capacity, sizeof *scope->name)) return PN_NO_MEMORY("names");
    size_t length = strlen(text);
    char *copy = pn_duplicate(text, length);
    if (!copy) return PN_NO_MEMORY("names");
    scope->name[scope->names++] = (pn_name){copy, length, kind, (unsigned)index, value};
    return PINN_OK;
}

static pinn_status add_slot(pn_scope *scope, pn_slot slot) {
    if (!reserve(&scope->slot, scope->slots, &scope->slot_capacity, sizeof *scope->slot)) return PN_NO_MEMORY("input slots");
    scope->slot[scope->slots++] = slot;
    return PINN_OK;
}

pinn_status pn_scope_create(pn_ir *ir, const char *const *coordinates, size_t coordinate_count, int time, const char *const *fields,
                            size_t field_count, pn_scope **out) {
    if (coordinate_count > PN_MAX_COORDINATES)
        return pn_fail(PINN_BAD_ARGUMENT, "%zu coordinates: at most %d are supported", coordinate_count, PN_MAX_COORDINATES);
    if (time < -1 || time >= (int)coordinate_count)
        return pn_fail(PINN_BAD_ARGUMENT, "time is coordinate %d of %zu", time, coordinate_count);
    pinn_status status = PINN_OK;
    pn_scope *scope = pn_allocate(1, sizeof *scope);
    if (!scope) return PN_NO_MEMORY("a scope");
    scope->ir = ir;
    scope->coordinates = coordinate_count;
    scope->fields = field_count;
    scope->time = time;
    for (size_t i = 0; i < coordinate_count; i++) PN_TRY(add_name(scope, coordinates[i], PN_NAME_COORDINATE, i, 0));
    for (size_t i = 0; i < field_count; i++) PN_TRY(add_name(scope, fields[i], PN_NAME_FIELD, i, 0));
    for (unsigned i = 0; i < coordinate_count; i++) PN_TRY(add_slot(scope, (pn_slot){.kind = PN_SLOT_COORDINATE, .index = i}));
    for (unsigned i = 0; i < coordinate_count; i++) PN_TRY(add_slot(scope, (pn_slot){.kind = PN_SLOT_NORMAL, .index = i}));
    *out = scope;
    return PINN_OK;
fail:
    pn_scope_destroy(scope);
    return status;
}

void pn_scope_destroy(pn_scope *scope) {
    if (!scope) return;
    for (size_t i = 0; i < scope->names; i++) pn_free(scope->name[i].text);
    for (size_t i = 0; i < scope->definitions; i++) pn_free(scope->definition[i].text);
    pn_free(scope->name);
    pn_free(scope->definition);
    pn_free(scope->slot);
    pn_free(scope->bucket);
    pn_free(scope);
}

pinn_status pn_scope_constant(pn_scope *scope, const char *name, double value) {
    if (!isfinite(value)) return pn_fail(PINN_BAD_ARGUMENT, "constant \"%s\" is not a finite number", name);
    return add_name(scope, name, PN_NAME_CONSTANT, 0, value);
}

pinn_status pn_scope_define(pn_scope *scope, const char *name, const char *text, pn_position at) {
    if (!reserve(&scope->definition, scope->definitions, &scope->definition_capacity, sizeof *scope->definition))
        return PN_NO_MEMORY("definitions");
    char *copy = pn_duplicate(text, strlen(text));
    if (!copy) return PN_NO_MEMORY("definitions");
    pinn_status status = add_name(scope, name, PN_NAME_DEFINITION, scope->definitions, 0);
    if (status != PINN_OK) {
        pn_free(copy);
        return status;
    }
    scope->definition[scope->definitions++] = (pn_definition){.text = copy, .at = at, .value = PN_NONE};
    return PINN_OK;
}

/* ---- Finding names ----------------------------------------------------------------------------------------------------- */

const pn_name *pn_scope_find(const pn_scope *scope, const char *name, size_t length, size_t visible) {
    for (size_t i = 0; i < scope->names; i++) {
        const pn_name *known = &scope->name[i];
        if (known->length == length && memcmp(known->text, name, length) == 0 &&
            (known->kind != PN_NAME_DEFINITION || known->index < visible))
            return known;
    }
    return NULL;
}

static const pn_name *find_among(const pn_name *name, size_t count, const char *text, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (name[i].length == length && memcmp(name[i].text, text, length) == 0) return &name[i];
    return NULL;
}

const pn_name *pn_scope_coordinate(const pn_scope *scope, const char *name, size_t length) {
    return find_among(scope->name, scope->coordinates, name, length);
}

const pn_name *pn_scope_field(const pn_scope *scope, const char *name, size_t length) {
    return find_among(scope->name + scope->coordinates, scope->fields, name, length);
}

const pn_name *pn_scope_normal(const pn_scope *scope, const char *name, size_t length) {
    if (length < 2 || name[0] != 'n') return NULL;
    const pn_name *coordinate = pn_scope_coordinate(scope, name + 1, length - 1);
    return coordinate && (int)coordinate->index != scope->time ? coordinate : NULL;
}

void pn_scope_list(const pn_scope *scope, pn_name_kind kind, char *buffer, size_t size) {
    size_t length = 0, shown = 0;
    buffer[0] = 0;
    for (size_t i = 0; i < scope->names; i++) {
        if (scope->name[i].kind != kind) continue;
        if (shown == 8 || length + scope->name[i].length + 8 > size) {
            snprintf(buffer + length, size - length, ", ...");
            return;
        }
        length += (size_t)snprintf(buffer + length, size - length, "%s%s", shown ? ", " : "", scope->name[i].text);
        shown++;
    }
}

const char *pn_scope_nearest(const pn_scope *scope, const char *name, size_t length, unsigned mask, size_t visible) {
    char word[64];
    const char *best = NULL;
    if (length >= sizeof word) return NULL;
    memcpy(word, name, length);
    word[length] = 0;
    if (strcasecmp(word, "pi") == 0 && mask & 1u << PN_NAME_CONSTANT) return "pi";
    for (size_t i = 0; i < scope->names; i++) {
        const pn_name *known = &scope->name[i];
        if (!(mask & 1u << known->kind) || (known->kind == PN_NAME_DEFINITION && known->index >= visible)) continue;
        if (strcasecmp(known->text, word) == 0) return known->text;
        /* Two at a time: the best so far against the next, the earlier one first so that ties keep it. */
        const char *pair[2] = {best ? best : known->text, known->text};
        best = pn_nearest(word, pair, 2);
    }
    return best;
}

/* ---- Rules for names --------------------------------------------------------------------------------------------------- */

static bool is_identifier(const char *name) {
    if (!isascii(*name) || !isalpha(*name)) return false;
    for (; *name; name++)
        if (!isascii(*name) || (!isalnum(*name) && *name != '_')) return false;
    return true;
}

const char *pn_scope_name_error(pn_scope *scope, const char *name) {
    static const char *const kinds[] = {"", "a coordinate", "a field", "a constant", "a definition"};
    char *message = scope->message;
    size_t size = sizeof scope->message, length = strlen(name);
    const pn_name *taken = pn_scope_find(scope, name, length, scope->definitions);
    const pn_name *normal = pn_scope_normal(scope, name, length);
    pn_suffix suffix = {0};
    if (length > 60)
        snprintf(message, size, "\"%.40s...\" is longer than 60 characters", name);
    else if (!is_identifier(name))
        snprintf(message, size, "\"%s\" is no name: names are ASCII letters, digits and \"_\", a letter first", name);
    else if (strcmp(name, "pi") == 0)
        snprintf(message, size, "\"pi\" is reserved for the number 3.14159...");
    else if (pn_function_find(name, length))
        snprintf(message, size, "\"%s\" is reserved for the function %s", name, pn_function_find(name, length)->usage);
    else if (taken)
        snprintf(message, size, "\"%s\" is already %s", name, kinds[taken->kind]);
    else if (normal)
        snprintf(message, size, "\"%s\" is reserved for the normal's component along %s", name, normal->text);
    else if (pn_suffix_split(scope, name, length, &suffix) != PINN_OK)
        snprintf(message, size, "\"%s\" could not be checked: out of memory", name);
    else if (suffix.ways)
        snprintf(message, size, "\"%s\" would read as a derivative of the field \"%s\"", name, suffix.reading[0].field->text);
    else
        return NULL;
    return message;
}

/* ---- Slots ------------------------------------------------------------------------------------------------------------- */

size_t pn_scope_slots(const pn_scope *scope) { return scope->slots; }

pn_slot pn_scope_slot(const pn_scope *scope, uint32_t slot) { return scope->slot[slot]; }

static bool same_channel(const pn_channel *a, const pn_channel *b) {
    return a->order == b->order && a->laplacian == b->laplacian &&
           (a->laplacian || memcmp(a->coordinate, b->coordinate, a->order) == 0);
}

static size_t hash(unsigned field, const pn_channel *channel) { /* FNV-1a */
    uint64_t h = (14695981039346656037u ^ field) * 1099511628211u;
    h = (h ^ channel->order ^ (channel->laplacian ? 0x80u : 0u)) * 1099511628211u;
    for (size_t i = 0; i < channel->order && !channel->laplacian; i++) h = (h ^ channel->coordinate[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* The bucket that holds the slot, or the empty one where it belongs. */
static uint32_t *find_bucket(const pn_scope *scope, unsigned field, const pn_channel *channel) {
    for (size_t i = hash(field, channel);; i++) {
        uint32_t *bucket = &scope->bucket[i & (scope->buckets - 1)];
        if (*bucket == PN_NONE) return bucket;
        const pn_slot *slot = &scope->slot[*bucket];
        if (slot->index == field && same_channel(&slot->channel, channel)) return bucket;
    }
}

static bool grow_buckets(pn_scope *scope) {
    if (2 * (scope->slots + 1) <= scope->buckets) return true;
    size_t count = scope->buckets ? 2 * scope->buckets : 64;
    while (count < 2 * (scope->slots + 1)) count *= 2;
    uint32_t *bucket = pn_allocate(count, sizeof *bucket);
    if (!bucket) return false;
    memset(bucket, 0xff, count * sizeof *bucket); /* PN_NONE */
    pn_free(scope->bucket);
    scope->bucket = bucket;
    scope->buckets = count;
    for (size_t i = 2 * scope->coordinates; i < scope->slots; i++)
        *find_bucket(scope, scope->slot[i].index, &scope->slot[i].channel) = (uint32_t)i;
    return true;
}

uint32_t pn_scope_field_slot(pn_scope *scope, unsigned field, const pn_channel *channel) {
    if (scope->buckets && *find_bucket(scope, field, channel) != PN_NONE) return *find_bucket(scope, field, channel);
    if (!grow_buckets(scope)) return PN_NONE;
    uint32_t *bucket = find_bucket(scope, field, channel);
    if (add_slot(scope, (pn_slot){.kind = PN_SLOT_FIELD, .index = field, .channel = *channel}) != PINN_OK) return PN_NONE;
    return *bucket = (uint32_t)(scope->slots - 1);
}
