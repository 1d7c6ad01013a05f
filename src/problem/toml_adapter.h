/* TOML as a plain C tree with positions. toml_adapter.cpp is the only file that knows toml++.
 *
 * Children of a table stand in file order (toml++ sorts them by name; their source positions bring the order back).
 * Positions are 1-based and count bytes, as everywhere in the diagnostics.
 */
#ifndef PN_PROBLEM_TOML_ADAPTER_H
#define PN_PROBLEM_TOML_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/diagnostics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pn_toml_kind {
    PN_TOML_TABLE,
    PN_TOML_ARRAY,
    PN_TOML_STRING,
    PN_TOML_INTEGER,
    PN_TOML_FLOAT,
    PN_TOML_BOOLEAN,
    PN_TOML_DATE /* a date, a time or both; no key of a problem takes one */
} pn_toml_kind;

typedef struct pn_toml pn_toml;
struct pn_toml {
    pn_toml_kind kind;
    char *key; /* owned; NULL for array elements and the root */
    pn_position key_at;
    pn_position at;  /* of the value; strings: the first byte inside the quotes */
    char *string;    /* owned; STRING */
    int64_t integer; /* INTEGER */
    double number;   /* INTEGER and FLOAT */
    bool boolean;    /* BOOLEAN */
    pn_toml *child;  /* owned, [count]; TABLE and ARRAY */
    size_t count;
    bool bad;        /* set by the schema check: an error about this node was reported, readers skip it */
};

typedef struct pn_toml_error { /* a syntax error */
    pn_position at;
    bool too_large; /* a number does not fit in 64 bits */
    char message[256];
    char hint[256]; /* how to repair; empty: nothing is known */
    char table[64]; /* the one whose header stands a second time; empty: it is another error */
} pn_toml_error;

/* Parses a whole document; the root is a table. A syntax error gives PINN_CONFIG and fills `error` (the thread's message is left
 * alone); else NO_MEMORY. Nesting is limited (32 values, 16 dotted keys), so that no document can exhaust the stack. */
pinn_status pn_toml_parse(const char *text, size_t length, pn_toml_error *error, pn_toml **out);
void pn_toml_destroy(pn_toml *root);
/* Frees what a node holds, not the node. */
void pn_toml_clear(pn_toml *node);
/* The child of a table by its key, or NULL. */
pn_toml *pn_toml_find(const pn_toml *table, const char *key);
/* "a table", "an integer" ... */
const char *pn_toml_kind_name(pn_toml_kind kind);

#ifdef __cplusplus
}
#endif
#endif
