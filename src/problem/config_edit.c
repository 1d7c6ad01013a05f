/* Changes one key of a problem file in its text, so that comments, order and layout stay as their author wrote them. What comes out is
 * read again: it must be the same problem but for that key. */
#include <string.h>

#include "core/memory.h"
#include "problem/config_internal.h"

/* The first byte of a line, counted from 1; the text's end for a line behind the last. */
static size_t line_start(const pn_text *text, unsigned line) {
    size_t at = 0;
    for (; line > 1 && at < text->length; at++)
        if (text->data[at] == '\n') line--;
    return at;
}

/* As the first line ends. */
static const char *line_end(const pn_text *text) {
    const char *first = memchr(text->data, '\n', text->length);
    return first && first > text->data && first[-1] == '\r' ? "\r\n" : "\n";
}

/* Where a new key of the top level goes: behind the last plain one, or before whatever comes first. */
static unsigned line_for_new_key(const pn_config *config, const pn_toml *root) {
    unsigned last = 0, first = 1;
    for (size_t i = 0; i < root->count; i++) {
        const pn_toml *node = &root->child[i];
        if (i == 0) first = node->key_at.line;
        if (node->kind == PN_TOML_TABLE || node->kind == PN_TOML_ARRAY) break;
        const char *value = config->source.data + line_start(&config->source, node->at.line) + node->at.column - 1;
        if (node->at.line != node->key_at.line || strncmp(value, "\"\"", 2) == 0 || strncmp(value, "''", 2) == 0) break; /* may span lines */
        last = node->key_at.line;
    }
    return last ? last + 1 : first;
}

static void insert_line(const pn_config *config, const pn_toml *root, const char *tiles, pn_text *out) {
    const pn_text *source = &config->source;
    const size_t at = line_start(source, line_for_new_key(config, root));
    const char *end = line_end(source);
    pn_text_append(out, source->data, at);
    if (at > 0 && source->data[at - 1] != '\n') pn_text_string(out, end);
    pn_text_printf(out, "tiles = \"%s\"%s", tiles, end);
    pn_text_append(out, source->data + at, source->length - at);
}

/* False when the old value is not written plainly between its quotes. */
static bool replace_value(const pn_config *config, const pn_toml *old, const char *tiles, pn_text *out) {
    const pn_text *source = &config->source;
    const size_t at = line_start(source, old->at.line) + old->at.column - 1, length = strlen(old->string);
    if (at == 0 || length > source->length - at || strncmp(source->data + at, old->string, length) != 0 || source->data[at - 1] != source->data[at + length])
        return false;
    pn_text_append(out, source->data, at);
    pn_text_string(out, tiles);
    pn_text_append(out, source->data + at + length, source->length - at - length);
    return true;
}

/* Whether `text` is the config's problem but for the tiles. */
static pinn_status check_edited(const pn_config *config, const char *tiles, const pn_text *text, bool *same) {
    pn_config *before = NULL, *after = NULL;
    pn_text old = {0}, new = {0};
    pinn_status status;
    PN_TRY(pn_text_check(text));
    PN_TRY(pn_config_parse(config->path, config->source.data, config->source.length, NULL, 0, &before));
    status = pn_config_parse(config->path, text->data, text->length, NULL, 0, &after);
    if (status == PINN_CONFIG) status = PINN_OK; /* not even a problem: not the same */
    if (status != PINN_OK || !after) goto fail;
    char *value = pn_duplicate(tiles, strlen(tiles));
    if (!value) PN_TRY(PN_NO_MEMORY("a configuration"));
    pn_free(before->tiles.text);
    before->tiles.text = value;
    PN_TRY(pn_config_write(before, &old));
    PN_TRY(pn_config_write(after, &new));
    *same = strcmp(pn_text_get(&old), pn_text_get(&new)) == 0;
fail:
    pn_text_free(&old);
    pn_text_free(&new);
    pn_config_destroy(before);
    pn_config_destroy(after);
    return status;
}

pinn_status pn_config_edit_tiles(const pn_config *config, const char *tiles, pn_text *out) {
    pn_toml *root = NULL;
    pn_toml_error error;
    pn_text text = {0};
    pinn_status status;
    bool same = false;
    PN_TRY(pn_toml_parse(config->source.data, config->source.length, &error, &root));
    const pn_toml *old = pn_toml_find(root, "tiles");
    if (!old)
        insert_line(config, root, tiles, &text);
    else if (old->kind != PN_TOML_STRING || !replace_value(config, old, tiles, &text)) {
        status = pn_fail(PINN_UNSUPPORTED, "%s: the value of \"tiles\" is not a plain string: write tiles = \"%s\" by hand", config->path, tiles);
        goto fail;
    }
    PN_TRY(check_edited(config, tiles, &text, &same));
    if (!same) {
        status = pn_fail(PINN_UNSUPPORTED, "%s: no safe place for the key \"tiles\" was found: write tiles = \"%s\" above the first table by hand", config->path, tiles);
        goto fail;
    }
    pn_text_append(out, text.data, text.length);
    status = pn_text_check(out);
fail:
    pn_text_free(&text);
    pn_toml_destroy(root);
    return status;
}
