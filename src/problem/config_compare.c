/* Which keys of two resolved configs differ, in a way that --resume must refuse or one that shows: both texts flattened to dotted keys, compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "problem/config.h"
#include "problem/toml_adapter.h"

typedef struct entry {
    char *key, *value; /* owned */
    uint64_t integer;  /* INTEGER values */
} entry;

typedef struct flat { /* a document as dotted keys with values, in file order */
    entry *item;
    size_t count, capacity;
    size_t phases; /* [[train]] tables */
    bool failed;
} flat;

static void flat_free(flat *f) {
    for (size_t i = 0; i < f->count; i++) {
        pn_free(f->item[i].key);
        pn_free(f->item[i].value);
    }
    pn_free(f->item);
}

static void flat_add(flat *f, const char *key, const char *value, uint64_t integer) {
    if (f->count == f->capacity) {
        size_t capacity = f->capacity ? 2 * f->capacity : 64;
        entry *item = pn_reallocate(f->item, f->count, capacity, sizeof *item);
        if (!item) {
            f->failed = true;
            return;
        }
        f->item = item;
        f->capacity = capacity;
    }
    entry *new = &f->item[f->count++];
    *new = (entry){pn_duplicate(key, strlen(key)), pn_duplicate(value, strlen(value)), integer};
    f->failed |= !new->key || !new->value;
}

/* The order of coordinates and of fields is the order of the network's columns: it counts as a value. */
static void flatten_order(const pn_toml *table, const char *path, flat *f) {
    pn_text value = {0}, key = {0};
    for (size_t i = 0; i < table->count; i++) pn_text_printf(&value, "%s%s", i ? ", " : "", table->child[i].key);
    pn_text_printf(&key, "%s (order)", path);
    f->failed |= value.failed || key.failed;
    flat_add(f, pn_text_get(&key), pn_text_get(&value), 0);
    pn_text_free(&value);
    pn_text_free(&key);
}

static void flatten(const pn_toml *node, const char *path, flat *f) {
    pn_text text = {0};
    switch (node->kind) {
        case PN_TOML_TABLE:
        case PN_TOML_ARRAY:
            if (strcmp(path, "domain") == 0 || strcmp(path, "fields") == 0) flatten_order(node, path, f);
            for (size_t i = 0; i < node->count; i++) {
                const pn_toml *child = &node->child[i];
                pn_text_free(&text);
                pn_text_printf(&text, "%s%s", path, *path ? "." : "");
                if (child->key)
                    pn_text_string(&text, child->key);
                else
                    pn_text_printf(&text, "%zu", i);
                f->failed |= text.failed;
                flatten(child, pn_text_get(&text), f);
            }
            break;
        case PN_TOML_STRING: pn_text_quoted(&text, node->string); break;
        case PN_TOML_INTEGER: pn_text_printf(&text, "%lld", (long long)node->integer); break;
        case PN_TOML_FLOAT: pn_text_number(&text, node->number); break;
        case PN_TOML_BOOLEAN: pn_text_string(&text, node->boolean ? "true" : "false"); break;
        case PN_TOML_DATE: pn_text_string(&text, "(date)"); break;
    }
    f->failed |= text.failed;
    if (node->kind != PN_TOML_TABLE && node->kind != PN_TOML_ARRAY)
        flat_add(f, path, pn_text_get(&text), node->kind == PN_TOML_INTEGER ? (uint64_t)node->integer : 0);
    pn_text_free(&text);
}

static pinn_status flatten_text(const char *text, flat *out) {
    pn_toml *root = NULL;
    pn_toml_error error;
    pinn_status status = pn_toml_parse(text, strlen(text), &error, &root);
    if (status == PINN_CONFIG) return pn_fail(PINN_CONFIG, "a resolved config: line %u: %s", error.at.line, error.message);
    if (status != PINN_OK) return status;
    flatten(root, "", out);
    const pn_toml *train = pn_toml_find(root, "train");
    out->phases = train ? train->count : 0;
    pn_toml_destroy(root);
    return out->failed ? PN_NO_MEMORY("comparing configs") : PINN_OK;
}

pinn_status pn_config_find_string(const char *resolved, const char *key, char **out) {
    pn_toml *root = NULL;
    pn_toml_error error;
    pinn_status status = pn_toml_parse(resolved, strlen(resolved), &error, &root);
    if (status == PINN_CONFIG) return pn_fail(PINN_CONFIG, "a resolved config: line %u: %s", error.at.line, error.message);
    if (status != PINN_OK) return status;
    const pn_toml *node = pn_toml_find(root, key);
    char *found = NULL;
    if (node && node->kind == PN_TOML_STRING) {
        found = pn_duplicate(node->string, strlen(node->string));
        if (!found) status = PN_NO_MEMORY("a configuration");
    }
    pn_toml_destroy(root);
    if (status == PINN_OK) *out = found;
    return status;
}

static const entry *find(const flat *f, const char *key) {
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->item[i].key, key) == 0) return &f->item[i];
    return NULL;
}

/* "train.2.points.heat" of a phase after this one. */
static bool is_later_points(const char *key, uint64_t phase) {
    unsigned long long of = 0;
    int length = 0;
    return sscanf(key, "train.%llu.points.%n", &of, &length) == 1 && length && of > phase;
}

/* What a resumed run may change. */
static bool free_to_change(const entry *old, const entry *new, const flat *f, const flat *g, uint64_t phase) {
    const char *key = old ? old->key : new->key;
    if (strncmp(key, "stop.", 5) == 0 || strncmp(key, "output.", 7) == 0 || strncmp(key, "reference.", 10) == 0 || strcmp(key, "title") == 0 ||
        strcmp(key, "tiles") == 0)
        return true;
    if (is_later_points(key, phase)) return true;
    char steps[48];
    snprintf(steps, sizeof steps, "train.%zu.steps", f->phases - 1);
    return old && new && f->phases == g->phases && strcmp(key, steps) == 0 && new->integer >= old->integer;
}

static void report(const entry *old, const entry *new, pn_text *out) {
    pn_text_printf(out, "%s: %s -> %s\n", old ? old->key : new->key, old ? old->value : "(absent)", new ? new->value : "(absent)");
}

pinn_status pn_config_compare(const char *resolved_old, const char *resolved_new, uint64_t phase, pn_text *out) {
    flat old = {0}, new = {0};
    pinn_status status;
    PN_TRY(flatten_text(resolved_old, &old));
    PN_TRY(flatten_text(resolved_new, &new));
    for (size_t i = 0; i < old.count; i++) {
        const entry *a = &old.item[i], *b = find(&new, a->key);
        if ((!b || strcmp(a->value, b->value) != 0) && !free_to_change(a, b, &old, &new, phase)) report(a, b, out);
    }
    for (size_t i = 0; i < new.count; i++)
        if (!find(&old, new.item[i].key) && !free_to_change(NULL, &new.item[i], &old, &new, phase)) report(NULL, &new.item[i], out);
    status = pn_text_check(out);
fail:
    flat_free(&old);
    flat_free(&new);
    return status;
}

static bool is_shown(const char *key) {
    return strcmp(key, "title") == 0 || strncmp(key, "reference.", 10) == 0 || strncmp(key, "output.evaluate.points", 22) == 0;
}

/* Whether all that `old` has of it is in `new`. */
static bool is_kept(const flat *old, const flat *new) {
    for (size_t i = 0; i < old->count; i++) {
        const entry *a = &old->item[i], *b = is_shown(a->key) ? find(new, a->key) : a;
        if (!b || strcmp(a->value, b->value) != 0) return false;
    }
    return true;
}

pinn_status pn_config_same_solution(const char *resolved_old, const char *resolved_new, bool *same) {
    flat old = {0}, new = {0};
    pinn_status status;
    PN_TRY(flatten_text(resolved_old, &old));
    PN_TRY(flatten_text(resolved_new, &new));
    *same = is_kept(&old, &new) && is_kept(&new, &old);
fail:
    flat_free(&old);
    flat_free(&new);
    return status;
}
