/* Tiles as text. See tiles.h. */
#include "core/tiles.h"

#include <stdio.h>
#include <string.h>

void pn_tile_choice_print(const pn_tile_choice *choice, char text[PN_TILE_CHOICE_BYTES]) {
    snprintf(text, PN_TILE_CHOICE_BYTES, "units %u, splits %u, keep %s, weights %s", choice->units, choice->splits,
             choice->keep_shared ? "shared" : "device", choice->weights_all ? "all" : "one");
}

/* Digits only and few of them: a sign would read back as another number. */
static bool plain_numbers(const char *text) {
    unsigned digits = 0;
    for (; *text; text++) {
        digits = *text >= '0' && *text <= '9' ? digits + 1 : 0;
        if (*text == '-' || *text == '+' || digits > 3) return false;
    }
    return true;
}

pinn_status pn_tile_choice_parse(const char *text, pn_tile_choice *out) {
    pn_tile_choice choice;
    char keep[8], weights[8];
    int length = -1;
    if (!plain_numbers(text) ||
        sscanf(text, "units %u, splits %u, keep %7[a-z], weights %7[a-z]%n", &choice.units, &choice.splits, keep, weights, &length) != 4 ||
        length < 0 || text[length] || (strcmp(keep, "shared") != 0 && strcmp(keep, "device") != 0) ||
        (strcmp(weights, "all") != 0 && strcmp(weights, "one") != 0) || choice.units == 0 || choice.splits == 0)
        return pn_fail(PINN_CONFIG, "\"%s\" is no choice of tiles: write \"auto\", \"layered\" or, as --plan and --tune print it, "
                                    "\"units 5, splits 2, keep shared, weights all\" or, for wide networks, \"rows 128\"", text);
    choice.keep_shared = strcmp(keep, "shared") == 0;
    choice.weights_all = strcmp(weights, "all") == 0;
    *out = choice;
    return PINN_OK;
}

bool pn_tiles_auto(const char *text) { return !text || !*text || strcmp(text, "auto") == 0; }
bool pn_tiles_layered(const char *text) { return text && strcmp(text, "layered") == 0; }

bool pn_tiles_rows(const char *text, pn_tile_rows *out) {
    pn_tile_rows rows = {0};
    int length = -1, all = -1;
    if (!text || !plain_numbers(text)) return false;
    sscanf(text, "rows %u%n, warps %u, blocks %u%n", &rows.rows, &length, &rows.warps, &rows.blocks, &all);
    if (rows.rows == 0 || length < 0 || (text[length] && (all < 0 || text[all] || rows.warps == 0 || rows.blocks == 0))) return false;
    *out = rows;
    return true;
}

void pn_tile_rows_print(const pn_tile_rows *rows, char text[PN_TILE_CHOICE_BYTES]) {
    const int length = snprintf(text, PN_TILE_CHOICE_BYTES, "rows %u", rows->rows);
    if (rows->warps) snprintf(text + length, PN_TILE_CHOICE_BYTES - (size_t)length, ", warps %u, blocks %u", rows->warps, rows->blocks);
}

pinn_status pn_tiles_read(const char *text, char out[PN_TILE_CHOICE_BYTES]) {
    pn_tile_choice choice;
    pinn_status status = PINN_OK;
    pn_tile_rows rows;
    if (pn_tiles_auto(text) || pn_tiles_layered(text))
        snprintf(out, PN_TILE_CHOICE_BYTES, "%s", pn_tiles_layered(text) ? "layered" : "auto");
    else if (pn_tiles_rows(text, &rows))
        pn_tile_rows_print(&rows, out);
    else {
        status = pn_tile_choice_parse(text, &choice);
        if (status == PINN_OK) pn_tile_choice_print(&choice, out);
    }
    return status;
}
