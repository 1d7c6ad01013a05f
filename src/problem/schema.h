/* The schema of a problem file: one table of keys. It drives reading, unknown-key errors, the typing of --set, the resolved config
 * and the reference manual.
 *
 * A key's pattern is its dotted path; "#" stands for an array element, "*" for a name of the user's.
 */
#ifndef PN_PROBLEM_SCHEMA_H
#define PN_PROBLEM_SCHEMA_H

#include "problem/config.h"
#include "problem/toml_adapter.h"

typedef enum pn_accept { /* what a value may be; a bit set */
    PN_ACCEPT_STRING = 1,
    PN_ACCEPT_INTEGER = 2,
    PN_ACCEPT_NUMBER = 4, /* an integer or a decimal number */
    PN_ACCEPT_TABLE = 8,
    PN_ACCEPT_ARRAY = 16
} pn_accept;

typedef enum pn_store { /* how a plain value lies in its struct */
    PN_STORE_NONE,      /* not plain: config_read.c and config_write.c treat it by hand */
    PN_STORE_STRING,    /* pn_string */
    PN_STORE_DOUBLE,
    PN_STORE_U64,
    PN_STORE_SIZE,
    PN_STORE_CHOICE     /* an enum: the index into `choices` */
} pn_store;

typedef struct pn_key {
    const char *pattern;
    unsigned accepts;     /* pn_accept bits */
    const char *fallback; /* default; strings without quotes; NULL: none */
    bool required;
    double low, high;     /* numbers: the range allowed */
    bool open_low, open_high;
    const char *const *choices; /* strings: the values allowed, NULL-terminated; NULL: any */
    pn_store store;
    size_t offset; /* into pn_config, pn_config_set (equation.#, condition.#) or pn_config_phase (train.#) */
    const char *help;
    bool rounded; /* numbers: the training computes with them in the configured precision */
} pn_key;

extern const pn_key pn_schema[];
extern const size_t pn_schema_count;

/* The key whose whole pattern is `pattern`; "" is the file itself. NULL when there is none. */
const pn_key *pn_schema_find(const char *pattern);
/* The key `name` of a table, "*" when the user names it, or "#" for an array's elements; NULL when there is none. */
const pn_key *pn_schema_child(const pn_key *parent, const char *name);
/* The last segment of a pattern. */
const char *pn_schema_name(const pn_key *key);
/* "[network]", "[[train]]", "learning_rate", "the top level": a table's name in messages. */
void pn_schema_section(const pn_key *key, pn_text *out);
/* "an integer", "a number or a string" ... */
void pn_schema_types(const pn_key *key, pn_text *out);
/* "from 1 to 100", "> 0" ...; nothing when every finite number will do. */
void pn_schema_range(const pn_key *key, pn_text *out);
/* Repair for an unknown key: what it is called here, the nearest one, the table it is a key of, or else the keys there are. */
void pn_schema_hint(const pn_key *section, const char *unknown, pn_text *out);

/* Checks a node and all below it: kinds, ranges, choices, unknown keys. Marks what is wrong as bad. */
void pn_schema_check(pn_toml *node, const pn_key *key, pn_diagnostics *list);

/* Entries of a NULL-terminated list. */
size_t pn_list_length(const char *const *list);

#endif
