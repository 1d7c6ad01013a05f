/* Checks a TOML tree against the schema: kinds, ranges, choices, unknown keys. See schema.h. */
#include <math.h>
#include <string.h>

#include "problem/schema.h"

static bool accepted(const pn_toml *node, const pn_key *key) {
    switch (node->kind) {
        case PN_TOML_TABLE: return key->accepts & PN_ACCEPT_TABLE;
        case PN_TOML_ARRAY: return key->accepts & PN_ACCEPT_ARRAY;
        case PN_TOML_STRING: return key->accepts & PN_ACCEPT_STRING;
        case PN_TOML_INTEGER: return key->accepts & (PN_ACCEPT_INTEGER | PN_ACCEPT_NUMBER);
        case PN_TOML_FLOAT: return key->accepts & PN_ACCEPT_NUMBER;
        default: return false;
    }
}

/* What a node is called in a message: its key, or "each element of on". */
static void label(const pn_toml *node, const pn_key *key, pn_text *out) {
    if (node->key) {
        pn_text_printf(out, "\"%s\"", node->key);
        return;
    }
    pn_text name = {0};
    pn_text_append(&name, key->pattern, strlen(key->pattern) - 2); /* without ".#" */
    const char *dot = strrchr(pn_text_get(&name), '.');
    const char *last = dot ? dot + 1 : pn_text_get(&name);
    if (strcmp(last, "*") == 0)
        pn_text_string(out, "each bound");
    else
        pn_text_printf(out, "each element of \"%s\"", last);
    pn_text_free(&name);
}

/* How to write the table that must stand where something else does; nothing where that depends. */
static void advise_table(const pn_toml *node, const pn_key *key, pn_text *out) {
    if (key->accepts != PN_ACCEPT_TABLE || !node->key) return;
    if (strcmp(key->pattern, "fields.*") == 0)
        pn_text_printf(out, "write %s = {}", node->key);
    else if (!strchr(key->pattern, '.'))
        pn_text_printf(out, "write [%s] and its keys in the lines below", node->key);
}

static void report_kind(pn_toml *node, const pn_key *key, pn_diagnostics *list) {
    pn_text name = {0}, types = {0}, element = {0};
    label(node, key, &name);
    pn_schema_types(key, &types);
    pn_text_printf(&element, "%s.#", key->pattern);
    const pn_key *below = pn_schema_find(pn_text_get(&element));
    if (node->kind == PN_TOML_TABLE && below && below->accepts == PN_ACCEPT_TABLE) {
        pn_text hint = {0};
        pn_text_printf(&hint, "write [[%s]] with two pairs of brackets", node->key);
        pn_diagnose(list, node->key_at, pn_text_get(&hint), "\"%s\" is a list of tables", node->key);
        pn_text_free(&hint);
    } else if (node->kind == PN_TOML_FLOAT && key->accepts & PN_ACCEPT_INTEGER && node->number == floor(node->number) &&
               fabs(node->number) < 1e15) {
        pn_text hint = {0};
        pn_text_printf(&hint, "write %.0f", node->number);
        pn_diagnose(list, node->at, pn_text_get(&hint), "%s must be %s, not %s", pn_text_get(&name), pn_text_get(&types),
                    pn_toml_kind_name(node->kind));
        pn_text_free(&hint);
    } else {
        pn_text hint = {0};
        advise_table(node, key, &hint);
        pn_diagnose(list, node->kind == PN_TOML_TABLE && node->key ? node->key_at : node->at, hint.length ? pn_text_get(&hint) : NULL,
                    "%s must be %s, not %s", pn_text_get(&name), pn_text_get(&types), pn_toml_kind_name(node->kind));
        pn_text_free(&hint);
    }
    pn_text_free(&name);
    pn_text_free(&types);
    pn_text_free(&element);
}

static bool check_number(const pn_toml *node, const pn_key *key, pn_diagnostics *list) {
    double v = node->number;
    bool low = key->open_low ? v > key->low : v >= key->low, high = key->open_high ? v < key->high : v <= key->high;
    if (isfinite(v) && low && high) return true;
    pn_text name = {0}, range = {0}, shown = {0};
    label(node, key, &name);
    pn_schema_range(key, &range);
    if (node->kind == PN_TOML_INTEGER)
        pn_text_printf(&shown, "%lld", (long long)node->integer);
    else
        pn_text_number(&shown, v);
    if (!isfinite(v))
        pn_diagnose(list, node->at, NULL, "%s must be a finite number, not %s", pn_text_get(&name), pn_text_get(&shown));
    else
        pn_diagnose(list, node->at, NULL, "%s must be %s, not %s", pn_text_get(&name), pn_text_get(&range), pn_text_get(&shown));
    pn_text_free(&name);
    pn_text_free(&range);
    pn_text_free(&shown);
    return false;
}

static bool check_choice(const pn_toml *node, const pn_key *key, pn_diagnostics *list) {
    if (!key->choices) return true;
    size_t count = pn_list_length(key->choices);
    for (size_t i = 0; i < count; i++)
        if (strcmp(node->string, key->choices[i]) == 0) return true;
    pn_text hint = {0};
    const char *nearest = pn_nearest(node->string, key->choices, count);
    if (nearest) pn_text_printf(&hint, "did you mean \"%s\"?%s", nearest, count > 1 ? " " : "");
    if (count > 1 || !nearest) pn_text_string(&hint, count == 1 ? "it can only be " : nearest ? "It is one of " : "one of ");
    for (size_t i = 0; i < count && (count > 1 || !nearest); i++) pn_text_printf(&hint, "%s\"%s\"", i ? ", " : "", key->choices[i]);
    pn_diagnose(list, node->at, pn_text_get(&hint), "unknown %s \"%s\"", pn_schema_name(key), node->string);
    pn_text_free(&hint);
    return false;
}

static void check_unknown(pn_toml *node, const pn_key *section, pn_diagnostics *list) {
    pn_text name = {0}, hint = {0};
    pn_schema_section(section, &name);
    pn_schema_hint(section, node->key, &hint);
    pn_diagnose(list, node->key_at, pn_text_get(&hint), "unknown key \"%s\" in %s", node->key, pn_text_get(&name));
    pn_text_free(&name);
    pn_text_free(&hint);
    node->bad = true;
}

void pn_schema_check(pn_toml *node, const pn_key *key, pn_diagnostics *list) {
    if (node->bad) return; /* reported already */
    if (!accepted(node, key)) {
        report_kind(node, key, list);
        node->bad = true;
        return;
    }
    switch (node->kind) {
        case PN_TOML_INTEGER:
        case PN_TOML_FLOAT: node->bad = !check_number(node, key, list); break;
        case PN_TOML_STRING: node->bad = !check_choice(node, key, list); break;
        case PN_TOML_ARRAY:
            for (size_t i = 0; i < node->count; i++) pn_schema_check(&node->child[i], pn_schema_child(key, "#"), list);
            break;
        default: /* a table */
            for (size_t i = 0; i < node->count; i++) {
                const pn_key *child = pn_schema_child(key, node->child[i].key);
                if (child)
                    pn_schema_check(&node->child[i], child, list);
                else
                    check_unknown(&node->child[i], key, list);
            }
    }
}
