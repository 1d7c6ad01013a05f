/* Tiles as text. See tiles.h. */
#include "core/tiles.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"

/* ---- the reader --------------------------------------------------------------------------------------------------------------- */

enum { NUMBER_DIGITS = 3, QUOTED_BYTES = 80 };

typedef struct word {
    const char *start;
    size_t length;
} word;

/* A name and its value: a number, or one of two words. */
typedef struct part {
    const char *name;
    unsigned *number;    /* NULL: `chosen` */
    bool *chosen;        /* whether it is `yes`, not `no` */
    const char *yes, *no;
} part;

static const char *skip_blanks(const char *at) { return at + strspn(at, " \t"); }

/* Up to a blank, a comma or the end; there it is empty. */
static word next_word(const char **at) {
    const char *start = skip_blanks(*at);
    const size_t length = strcspn(start, " \t,");
    *at = start + length;
    return (word){start, length};
}

static bool is(word w, const char *text) { return strlen(text) == w.length && memcmp(w.start, text, w.length) == 0; }

/* Only this word and blanks. */
static bool is_alone(const char *text, const char *name) { return is(next_word(&text), name) && !*skip_blanks(text); }

/* Between quotes and in one line; what is long is cut. */
static void quote(pn_text *out, word w) {
    char bytes[QUOTED_BYTES + 1];
    const size_t length = w.length < QUOTED_BYTES ? w.length : QUOTED_BYTES;
    memcpy(bytes, w.start, length);
    bytes[length] = '\0';
    pn_text_quoted(out, bytes);
}

static bool read_value(const part *p, word w) {
    if (!p->number) {
        *p->chosen = is(w, p->yes);
        return *p->chosen || is(w, p->no);
    }
    if (w.length == 0 || w.length > NUMBER_DIGITS || *w.start == '0') return false;
    for (*p->number = 0; w.length > 0; w.length--, w.start++) {
        if (*w.start < '0' || *w.start > '9') return false;
        *p->number = 10 * *p->number + (unsigned)(*w.start - '0');
    }
    return true;
}

static bool refuse_value(const part *p, word w, pn_text *fault) {
    if (p->number)
        pn_text_printf(fault, "\"%s\" takes a number from 1 to 999, without leading zeros", p->name);
    else
        pn_text_printf(fault, "\"%s\" takes \"%s\" or \"%s\"", p->name, p->yes, p->no);
    pn_text_string(fault, ", not ");
    if (w.length)
        quote(fault, w);
    else
        pn_text_string(fault, "nothing");
    return false;
}

static bool refuse_word(word w, const char *why, pn_text *fault) {
    quote(fault, w);
    pn_text_string(fault, why);
    return false;
}

/* All `count` parts in their order, or the first `least`, and nothing else. False: `fault` says why. */
static bool read_parts(const char *at, const part *list, size_t count, size_t least, pn_text *fault) {
    for (size_t i = 0; i < count; i++) {
        const word name = next_word(&at);
        if (!is(name, list[i].name)) {
            pn_text_printf(fault, "\"%s\" is missing%s", list[i].name, name.length ? ": in its place stands " : "");
            if (name.length) quote(fault, name);
            return false;
        }
        const word value = next_word(&at);
        if (!read_value(&list[i], value)) return refuse_value(&list[i], value, fault);
        at = skip_blanks(at);
        if (i + 1 == count || (i + 1 == least && !*at)) break;
        if (*at && *at != ',') return refuse_word(next_word(&at), " must come after a comma", fault);
        if (*at) at++;
    }
    return *at ? refuse_word((word){at, strlen(at)}, " is too much", fault) : true;
}

static bool read_choice(const char *text, pn_tile_choice *out, pn_text *fault) {
    pn_tile_choice choice = {0};
    const part list[] = {{"units", &choice.units, NULL, NULL, NULL},
                         {"splits", &choice.splits, NULL, NULL, NULL},
                         {"keep", NULL, &choice.keep_shared, "shared", "device"},
                         {"weights", NULL, &choice.weights_all, "all", "one"}};
    if (!read_parts(text, list, 4, 4, fault)) return false;
    *out = choice;
    return true;
}

static bool read_rows(const char *text, pn_tile_rows *out, pn_text *fault) {
    pn_tile_rows rows = {0};
    const part list[] = {{"rows", &rows.rows, NULL, NULL, NULL}, {"warps", &rows.warps, NULL, NULL, NULL}, {"blocks", &rows.blocks, NULL, NULL, NULL}};
    if (!read_parts(text, list, 3, 1, fault)) return false;
    *out = rows;
    return true;
}

static bool begins(const char *text, const char *name) { return strncmp(skip_blanks(text), name, strlen(name)) == 0; }

/* As an error; frees `fault`. */
static pinn_status refuse(const char *text, pn_text *fault) {
    pn_text quoted = {0};
    quote(&quoted, (word){text, strlen(text)});
    const pinn_status status = pn_fail(PINN_CONFIG, "%s is no choice of tiles%s%s", pn_text_get(&quoted), fault->length ? ": " : "", pn_text_get(fault));
    pn_text_free(&quoted);
    pn_text_free(fault);
    return status;
}

/* ---- the kinds of tiles ------------------------------------------------------------------------------------------------------- */

void pn_tile_choice_print(const pn_tile_choice *choice, char text[PN_TILE_CHOICE_BYTES]) {
    snprintf(text, PN_TILE_CHOICE_BYTES, "units %u, splits %u, keep %s, weights %s", choice->units, choice->splits,
             choice->keep_shared ? "shared" : "device", choice->weights_all ? "all" : "one");
}

pinn_status pn_tile_choice_parse(const char *text, pn_tile_choice *out) {
    pn_text fault = {0};
    return read_choice(text, out, &fault) ? PINN_OK : refuse(text, &fault);
}

bool pn_tiles_auto(const char *text) { return !text || !*text || is_alone(text, "auto"); }
bool pn_tiles_layered(const char *text) { return text && is_alone(text, "layered"); }

bool pn_tiles_rows(const char *text, pn_tile_rows *out) {
    pn_text fault = {0};
    const bool good = text && read_rows(text, out, &fault);
    pn_text_free(&fault);
    return good;
}

void pn_tile_rows_print(const pn_tile_rows *rows, char text[PN_TILE_CHOICE_BYTES]) {
    const int length = snprintf(text, PN_TILE_CHOICE_BYTES, "rows %u", rows->rows);
    if (rows->warps) snprintf(text + length, PN_TILE_CHOICE_BYTES - (size_t)length, ", warps %u, blocks %u", rows->warps, rows->blocks);
}

pinn_status pn_tiles_read(const char *text, char out[PN_TILE_CHOICE_BYTES]) {
    pn_tile_choice choice;
    pn_tile_rows rows;
    pn_text fault = {0};
    if (pn_tiles_auto(text) || pn_tiles_layered(text))
        snprintf(out, PN_TILE_CHOICE_BYTES, "%s", pn_tiles_layered(text) ? "layered" : "auto");
    else if (begins(text, "rows")) {
        if (!read_rows(text, &rows, &fault)) return refuse(text, &fault);
        pn_tile_rows_print(&rows, out);
    } else if (begins(text, "units")) {
        if (!read_choice(text, &choice, &fault)) return refuse(text, &fault);
        pn_tile_choice_print(&choice, out);
    } else
        return refuse(text, &fault);
    return PINN_OK;
}
