/* The reference manual of a problem file, from the schema's table. */
#include <string.h>

#include "problem/schema.h"

/* "`[[train]]`" or "`learning_rate` of `[[train]]`": the heading of a table of keys. */
static void heading(const pn_key *section, pn_text *out) {
    const char *dot = strchr(section->pattern, '.');
    if (!*section->pattern) {
        pn_text_string(out, "## File\n\n");
        return;
    }
    pn_text_string(out, "\n## `");
    pn_schema_section(section, out);
    if (dot && strcmp(dot, ".#") != 0) {
        bool list = strncmp(dot, ".#", 2) == 0;
        pn_text_printf(out, "` of `%s%.*s%s", list ? "[[" : "[", (int)(dot - section->pattern), section->pattern, list ? "]]" : "]");
    }
    pn_text_string(out, "`\n\n");
}

static void column(const char *text, pn_text *out) { /* "|" would end a column */
    for (; *text; text++) pn_text_printf(out, *text == '|' ? "\\|" : "%c", *text);
}

static void row(const pn_key *key, pn_text *out) {
    const char *name = pn_schema_name(key);
    pn_text type = {0};
    pn_schema_types(key, &type);
    pn_text_printf(out, "| %s%s%s | %s", strcmp(name, "*") == 0 ? "*name" : "`", strcmp(name, "*") == 0 ? "" : name,
                   strcmp(name, "*") == 0 ? "*" : "`", pn_text_get(&type));
    pn_text_free(&type);
    if (key->choices) {
        pn_text_string(out, ":");
        for (size_t i = 0; key->choices[i]; i++) pn_text_printf(out, "%s `\"%s\"`", i ? "," : "", key->choices[i]);
    } else {
        pn_text range = {0};
        pn_schema_range(key, &range);
        if (range.length) pn_text_printf(out, ", %s", range.data);
        pn_text_free(&range);
    }
    pn_text_string(out, " | ");
    if (key->required)
        pn_text_string(out, "required");
    else if (key->fallback)
        pn_text_printf(out, key->accepts & PN_ACCEPT_STRING ? "`\"%s\"`" : "`%s`", key->fallback);
    pn_text_string(out, " | ");
    column(key->help ? key->help : "", out);
    pn_text_string(out, " |\n");
}

static void describe_section(const pn_key *section, pn_text *out) {
    bool any = false;
    for (size_t i = 0; i < pn_schema_count; i++) {
        const pn_key *key = &pn_schema[i];
        if (pn_schema_child(section, pn_schema_name(key)) != key || !key->help) continue;
        if (!any) {
            heading(section, out);
            const char *dot = strrchr(section->pattern, '.');
            pn_text list = {0}; /* an array's own help stands one level above its elements */
            if (dot) pn_text_append(&list, section->pattern, (size_t)(dot - section->pattern));
            const pn_key *named = dot && strcmp(dot, ".#") == 0 ? pn_schema_find(pn_text_get(&list)) : section;
            if (named && named->help) pn_text_printf(out, "%s.\n\n", named->help);
            pn_text_free(&list);
            pn_text_string(out, "| key | value | default | meaning |\n|---|---|---|---|\n");
        }
        any = true;
        row(key, out);
    }
}

void pn_config_describe(pn_text *out) {
    describe_section(pn_schema_find(""), out);
    for (size_t i = 0; i < pn_schema_count; i++)
        if (pn_schema[i].accepts & PN_ACCEPT_TABLE) describe_section(&pn_schema[i], out);
}
