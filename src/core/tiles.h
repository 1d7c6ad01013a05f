/* The tiles of the GPU's network pass as text: what the key `tiles` of a problem file, the environment variable PINN_TILES, plans and
 * checkpoints hold. "auto", "layered", "rows 128" or "rows 64, warps 16, blocks 1" (of the streamed pass), or a choice (of the tiled one),
 * "units 5, splits 2, keep shared, weights all". Blanks (spaces, tabs) separate words and numbers and may stand around commas and at the ends. */
#ifndef PN_CORE_TILES_H
#define PN_CORE_TILES_H

#include <stdbool.h>

#include "core/status.h"

/* What may be chosen freely; network/tile.h makes sizes of it. */
typedef struct pn_tile_choice {
    unsigned units, splits; /* of the group with the most channels: units of points a tile, warps that share a unit's columns */
    bool keep_shared;       /* what is kept of the hidden layers in shared memory, or in device memory */
    bool weights_all;       /* all weights in shared memory, or one layer's at a time */
} pn_tile_choice;

/* A choice as text and back. Errors: CONFIG. */
#define PN_TILE_CHOICE_BYTES 96
void pn_tile_choice_print(const pn_tile_choice *choice, char text[PN_TILE_CHOICE_BYTES]);
pinn_status pn_tile_choice_parse(const char *text, pn_tile_choice *out);

bool pn_tiles_auto(const char *text);    /* NULL, "" and "auto" */
bool pn_tiles_layered(const char *text); /* "layered" */

/* Tiles of the streamed pass. */
typedef struct pn_tile_rows {
    unsigned rows, warps, blocks; /* of a tile; of a thread block; thread blocks a multiprocessor. warps = blocks = 0: as fits best */
} pn_tile_rows;
bool pn_tiles_rows(const char *text, pn_tile_rows *out); /* whether they are such */
void pn_tile_rows_print(const pn_tile_rows *rows, char text[PN_TILE_CHOICE_BYTES]);
/* "auto", "layered", rows or a choice, as they are printed. Errors: CONFIG for anything else, quoted, with what is missing or wrong in it; the
 * caller adds where it stands and the remedy. */
#define PN_TILES_REMEDY                                                                                                                     \
    "write \"auto\", \"layered\", or a choice as --plan and --tune print it: \"units 5, splits 2, keep shared, weights all\", or, for wide " \
    "networks, \"rows 128\""
pinn_status pn_tiles_read(const char *text, char out[PN_TILE_CHOICE_BYTES]);

#endif
