/* "--set train.0.steps=500": changes the TOML tree before it is checked, and shows errors of such values under their assignment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "problem/config_internal.h"

typedef struct assignment {
    pn_position at; /* stands for this assignment, see config_internal.h */
    const char *value;
    pn_diagnostics *list;
} assignment;

static void place(pn_toml *node, pn_position at) {
    node->at = node->key_at = at;
    for (size_t i = 0; i < node->count; i++) place(&node->child[i], at);
}

/* `value` as TOML; when it is none, as a string, if the key takes strings. CONFIG: reported. */
static pinn_status parse_value(const assignment *a, const pn_key *key, pn_toml *out) {
    pn_text document = {0}, types = {0};
    pn_toml_error error;
    pn_toml *root = NULL;
    pinn_status status;
    const char *control = a->value; /* the first character that no TOML string holds unescaped, or the end */
    while (((unsigned char)*control >= ' ' && *control != 0x7f) || *control == '\t') control++;
    pn_text_printf(&document, "v = %s\n", a->value);
    PN_TRY(pn_text_check(&document));
    status = pn_toml_parse(pn_text_get(&document), document.length, &error, &root);
    if (status == PINN_NO_MEMORY) goto fail;
    bool single = status == PINN_OK && root->count == 1 && root->child[0].kind <= PN_TOML_DATE && strcmp(root->child[0].key, "v") == 0;
    if (single) {
        *out = root->child[0];
        pn_free(out->key);
        out->key = NULL;
        root->count = 0;
        status = PINN_OK;
    } else if (key->accepts & PN_ACCEPT_STRING && *control) {
        status = pn_diagnose(a->list, a->at, "write the value in quotes, with \\n, \\t or \\u001b for such characters",
                             "the value holds the control character U+%04X", (unsigned char)*control);
    } else if (key->accepts & PN_ACCEPT_STRING) {
        char *string = pn_duplicate(a->value, strlen(a->value));
        status = string ? PINN_OK : PN_NO_MEMORY("a --set value");
        if (string) *out = (pn_toml){.kind = PN_TOML_STRING, .string = string};
    } else {
        pn_schema_types(key, &types);
        if (key->accepts == PN_ACCEPT_INTEGER) {
            pn_text_string(&types, " ");
            pn_schema_range(key, &types);
        }
        status = error.too_large ? pn_diagnose(a->list, a->at, NULL, "the number is too large for 64 bits; the value must be %s", pn_text_get(&types))
                                 : pn_diagnose(a->list, a->at, "strings inside arrays and tables need quotes",
                                               "the value is no TOML value; it must be %s", pn_text_get(&types));
    }
    if (status == PINN_OK) place(out, a->at);
fail:
    pn_text_free(&document);
    pn_text_free(&types);
    pn_toml_destroy(root);
    return status;
}

/* The child `name` of a table, made (as an empty table) when missing. NULL without memory. */
static pn_toml *child_of_table(pn_toml *table, const char *name, pn_position at) {
    pn_toml *found = pn_toml_find(table, name);
    if (found) return found;
    char *key = pn_duplicate(name, strlen(name));
    pn_toml *grown = key ? pn_reallocate(table->child, table->count, table->count + 1, sizeof *grown) : NULL;
    if (!grown) {
        pn_free(key);
        return NULL;
    }
    table->child = grown;
    grown[table->count] = (pn_toml){.kind = PN_TOML_TABLE, .key = key, .key_at = at, .at = at};
    return &grown[table->count++];
}

/* Element `name` (a number) of an array; NULL: reported. */
static pn_toml *element_of_array(const assignment *a, pn_toml *array, const char *name, const char *array_name) {
    char *end;
    errno = 0;
    unsigned long long index = strtoull(name, &end, 10);
    if (*name < '0' || *name > '9' || *end || errno)
        pn_diagnose(a->list, a->at, "elements are counted from 0", "\"%s\" is an array: \"%s\" must be the number of an element", array_name,
                    name);
    else if (index >= array->count)
        pn_diagnose(a->list, a->at, "elements are counted from 0", "\"%s\" has %zu element%s; there is no element %llu", array_name,
                    array->count, array->count == 1 ? "" : "s", index);
    else
        return &array->child[index];
    return NULL;
}

static pinn_status report_unknown(const assignment *a, const pn_key *section, const char *name) {
    pn_text where = {0}, hint = {0};
    pn_schema_section(section, &where);
    pn_schema_hint(section, name, &hint);
    pinn_status status = pn_diagnose(a->list, a->at, pn_text_get(&hint), "unknown key \"%s\" in %s", name, pn_text_get(&where));
    pn_text_free(&where);
    pn_text_free(&hint);
    return status;
}

/* Walks `path` (dotted, cut up in place) and puts the value where it ends. */
static pinn_status assign(const assignment *a, pn_toml *root, char *path) {
    pn_toml *node = root;
    const pn_key *key = pn_schema_find("");
    const char *node_name = "the file";
    for (char *name = path; name;) {
        char *dot = strchr(name, '.'), *next = dot ? dot + 1 : NULL;
        if (dot) *dot = 0;
        bool array = node->kind == PN_TOML_ARRAY;
        if (!array && node->kind != PN_TOML_TABLE)
            return pn_diagnose(a->list, a->at, NULL, "\"%s\" is %s in the file; it has no \"%s\"", node_name, pn_toml_kind_name(node->kind),
                               name);
        const pn_key *child = pn_schema_child(key, array ? "#" : name);
        if (!child) return report_unknown(a, key, name);
        if (next && !array && !(child->accepts & PN_ACCEPT_TABLE) && !pn_toml_find(node, name))
            return pn_diagnose(a->list, a->at, NULL, "there is no \"%s\" in the file", name);
        node = array ? element_of_array(a, node, name, node_name) : child_of_table(node, name, a->at);
        if (!node) return array ? PINN_CONFIG : PN_NO_MEMORY("a --set value");
        key = child;
        node_name = name;
        name = next;
    }
    pn_toml value;
    pinn_status status = parse_value(a, key, &value);
    if (status != PINN_OK) {
        node->bad = true;
        return status;
    }
    pn_toml_clear(node);
    value.key = node->key;
    *node = value;
    return PINN_OK;
}

pinn_status pn_assignments_apply(const pn_config *config, pn_toml *root, pn_diagnostics *list) {
    for (size_t i = 0; i < config->assignment_count; i++) {
        const char *text = config->assignment[i], *equals = strchr(text, '=');
        assignment a = {.at = {PN_ASSIGNMENT_LINE + (unsigned)i * PN_ASSIGNMENT_LINES, 1}, .list = list};
        if (!equals || equals == text) {
            pn_diagnose(list, a.at, NULL, "an assignment is written KEY=VALUE, as train.0.steps=500");
            continue;
        }
        if (!pn_text_is_utf8(text)) {
            pn_diagnose(list, a.at, NULL, "the assignment is not UTF-8 text");
            continue;
        }
        size_t length = (size_t)(equals - text);
        while (length && text[length - 1] == ' ') length--;
        a.value = equals + 1;
        while (*a.value == ' ') a.value++;
        char *path = pn_duplicate(text, length);
        if (!path) return PN_NO_MEMORY("a --set value");
        pinn_status status = assign(&a, root, path);
        pn_free(path);
        if (status == PINN_NO_MEMORY) return status;
    }
    return PINN_OK;
}

void pn_config_diagnostics(const pn_config *config, pn_diagnostics *list) {
    pn_diagnostics_init(list, config->path, pn_text_get(&config->source));
}

static bool same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* Prints the items that stand in lines [first, last), without repetitions. */
static void print_part(const pn_diagnostics *list, unsigned first, unsigned last, const char *file, const char *source, pn_text *out) {
    pn_diagnostics part = {.file = file, .source = source};
    part.item = pn_allocate(list->count, sizeof *part.item);
    if (!part.item) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        pn_diagnostic item = list->item[i];
        if (item.at.line < first || item.at.line >= last) continue;
        if (!source) item.at = (pn_position){0, 0};
        bool repeated = false;
        for (size_t k = 0; k < part.count; k++)
            repeated |= item.at.line == part.item[k].at.line && item.at.column == part.item[k].at.column &&
                        same(item.message, part.item[k].message) && same(item.hint, part.item[k].hint);
        if (!repeated) part.item[part.count++] = item;
    }
    pn_diagnostics_print(&part, out);
    pn_free(part.item); /* the texts belong to `list` */
}

/* A long assignment is shown by its beginning, cut between characters. */
static void print_name(const char *text, pn_text *name) {
    enum { SHOWN = 200 }; /* bytes */
    size_t length = strlen(text);
    const bool whole = length <= SHOWN;
    if (!whole)
        for (length = SHOWN; length > SHOWN - 3 && ((unsigned char)text[length] & 0xc0) == 0x80;) length--;
    pn_text_printf(name, "--set %.*s%s", (int)length, text, whole ? "" : "...");
}

pinn_status pn_config_check(const pn_config *config, pn_diagnostics *list) {
    if (!list->count && !list->dropped) return PINN_OK;
    pn_text text = {0}, name = {0};
    print_part(list, 0, PN_ASSIGNMENT_LINE, list->file, list->source, &text);
    for (size_t i = 0; i < config->assignment_count; i++) {
        unsigned first = PN_ASSIGNMENT_LINE + (unsigned)i * PN_ASSIGNMENT_LINES;
        pn_text_free(&name);
        print_name(config->assignment[i], &name);
        print_part(list, first, first + PN_ASSIGNMENT_LINES, pn_text_get(&name), NULL, &text);
    }
    if (list->dropped) pn_text_printf(&text, "%s: and %zu more errors\n", list->file, list->dropped);
    if (text.length && text.data[text.length - 1] == '\n') text.data[--text.length] = 0;
    pn_fail(PINN_CONFIG, "%s", pn_text_get(&text));
    pn_text_free(&text);
    pn_text_free(&name);
    return PINN_CONFIG;
}
