/* The plain C part of the TOML tree: look-up and freeing. */
#include <string.h>

#include "core/memory.h"
#include "problem/toml_adapter.h"

void pn_toml_clear(pn_toml *node) {
    for (size_t i = 0; i < node->count; i++) {
        pn_free(node->child[i].key);
        pn_toml_clear(&node->child[i]);
    }
    pn_free(node->child);
    pn_free(node->string);
    node->child = NULL;
    node->string = NULL;
    node->count = 0;
}

void pn_toml_destroy(pn_toml *root) {
    if (!root) return;
    pn_toml_clear(root);
    pn_free(root->key);
    pn_free(root);
}

pn_toml *pn_toml_find(const pn_toml *table, const char *key) {
    if (!table || table->kind != PN_TOML_TABLE) return NULL;
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->child[i].key, key) == 0) return &table->child[i];
    return NULL;
}

const char *pn_toml_kind_name(pn_toml_kind kind) {
    static const char *const name[] = {
        [PN_TOML_TABLE] = "a table",   [PN_TOML_ARRAY] = "an array",     [PN_TOML_STRING] = "a string",
        [PN_TOML_INTEGER] = "an integer", [PN_TOML_FLOAT] = "a decimal number", [PN_TOML_BOOLEAN] = "a boolean",
        [PN_TOML_DATE] = "a date",
    };
    return name[kind];
}
