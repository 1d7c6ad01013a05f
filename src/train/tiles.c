/* Who chooses the tiles of a GPU's network pass, and what is done when they do not fit. A run's bits depend on them, so they stay what they
 * are from its first step on: later phases keep them, and so does a resumed run. */
#include "core/tiles.h"

#include <stdlib.h>
#include <string.h>

#include "train/training.h"

/* Sets training->tiles: NULL for "auto". */
static pinn_status keep(pinn_training *training, const char *tiles) {
    char text[PN_TILE_CHOICE_BYTES];
    pinn_status status = pn_tiles_read(tiles, text);
    if (status != PINN_OK) return status;
    pn_free(training->tiles);
    training->tiles = NULL;
    if (pn_tiles_auto(text)) return PINN_OK;
    training->tiles = pn_duplicate(text, strlen(text));
    return training->tiles ? PINN_OK : PN_NO_MEMORY("the choice of tiles");
}

/* The option, else the environment, else the file; their name into tiles_from. */
static const char *find_given(pinn_training *training, const pinn_options *options) {
    const char *environment = getenv("PINN_TILES");
    const pn_string *file = &training->config->tiles;
    const bool in_file = !file->at.line || file->at.line <= training->config->source.length; /* lines behind the file's are those of --set */
    pn_text *from = &training->tiles_from;
    const char *given = options->tiles ? options->tiles : environment && *environment ? environment : NULL;
    if (options->tiles)
        pn_text_string(from, "the option \"tiles\"");
    else if (given)
        pn_text_string(from, "PINN_TILES");
    else if (in_file)
        pn_text_printf(from, "%s:%u:%u: tiles", training->config->path, file->at.line, file->at.column);
    else
        pn_text_string(from, "--set tiles");
    training->tiles_anew = (given || !in_file) && pn_tiles_auto(given ? given : file->text);
    return given ? given : file->text;
}

/* A pass with tiles was asked for by its name. */
static bool with_tiles(const pinn_training *training) {
    return training->lowering != PN_LOWERING_AUTO && training->lowering != PN_LOWERING_LAYERED;
}

/* Who chooses the pass says the same in other words: the two must not contradict each other. */
static pinn_status reconcile_lowering(pinn_training *training) {
    const bool layered = pn_tiles_layered(training->tiles);
    if (with_tiles(training) && layered)
        return pn_fail(PINN_CONFIG, "%s: \"layered\" contradicts the pass that %s asks for: remove one of the two", pn_text_get(&training->tiles_from),
                       training->lowering_from);
    if (training->lowering != PN_LOWERING_LAYERED || layered) return PINN_OK;
    if (training->tiles)
        pn_note(training, "the layered pass was asked for (%s): %s: \"%s\" is not used", training->lowering_from, pn_text_get(&training->tiles_from), training->tiles);
    pn_text_free(&training->tiles_from);
    pn_text_string(&training->tiles_from, training->lowering_from);
    return keep(training, "layered");
}

pinn_status pn_tiles_choose(pinn_training *training, const pinn_options *options, bool cpu) {
    const char *given = find_given(training, options);
    pinn_status status = keep(training, given);
    if (status == PINN_CONFIG) return pn_fail(status, "%s: %s; " PN_TILES_REMEDY, pn_text_get(&training->tiles_from), pinn_error_message());
    if (status != PINN_OK) return status;
    if (cpu) {
        if (training->lowering == PN_LOWERING_STREAMED)
            return pn_fail(PINN_CONFIG, "%s is \"streamed\": that pass runs on a GPU, and this is a CPU: \"auto\", \"tiled\" or \"layered\"",
                           training->lowering_from);
        if (training->tiles) pn_note(training, "%s: \"%s\" is for a GPU and not used on this CPU", pn_text_get(&training->tiles_from), training->tiles);
    } else
        status = reconcile_lowering(training);
    if (!training->tiles && !training->tiles_anew) pn_text_free(&training->tiles_from);
    return status == PINN_OK ? pn_text_check(&training->tiles_from) : status;
}

pinn_status pn_tiles_resume(pinn_training *training, const char *stored) {
    pinn_status status;
    char *tiles = NULL, text[PN_TILE_CHOICE_BYTES];
    PN_TRY(pn_config_find_string(stored, "tiles", &tiles));
    status = pn_tiles_read(tiles, text);
    if (status != PINN_OK) PN_TRY(pn_fail_within(status, "the tiles of the checkpoint"));
    const bool cpu = pinn_context_executor(training->context) == PINN_EXECUTOR_CPU;
    if (pn_tiles_auto(text)) goto fail;
    const bool others = !cpu && with_tiles(training) && pn_tiles_layered(text); /* a CPU's pass has none, whoever asks for which */
    if (!training->tiles && !training->tiles_anew && !others)
        status = keep(training, text);
    else if (!cpu) {
        training->tiles_before = pn_duplicate(text, strlen(text));
        if (!training->tiles_before) status = PN_NO_MEMORY("the choice of tiles");
    }
fail:
    pn_free(tiles);
    return status;
}

/* Tiles of another pass than the one that is asked for by its name, or NULL: which. */
static const char *other_pass(const pinn_training *training) {
    const bool rows = pn_tiles_rows(training->tiles, &(pn_tile_rows){0});
    if (training->lowering == PN_LOWERING_TILED && rows) return "streamed";
    return training->lowering == PN_LOWERING_STREAMED && !rows ? "tiled" : NULL;
}

pinn_status pn_tiles_refused(pinn_training *training) {
    pn_text reason = {0};
    pinn_status status = PINN_OK;
    const char *other = other_pass(training);
    if (other)
        pn_text_printf(&reason, "\"%s\" are tiles of the %s pass, and %s asks for the %s one", training->tiles, other, training->lowering_from,
                       training->lowering == PN_LOWERING_TILED ? "tiled" : "streamed");
    else
        pn_text_string(&reason, pinn_error_message());
    if (training->tiles_from.length && other)
        status = pn_fail(PINN_CONFIG, "%s: %s: unset %s to keep these tiles, or write tiles = \"auto\" to keep that pass",
                         pn_text_get(&training->tiles_from), pn_text_get(&reason), training->lowering_from);
    else if (training->tiles_from.length)
        status = pn_fail(PINN_CONFIG, "%s: %s; write tiles = \"auto\", or let pinn-train --tune find tiles for this problem and device",
                         pn_text_get(&training->tiles_from), pn_text_get(&reason));
    else {
        pn_note(training, "the tiles of the run so far cannot be kept: %s; they are chosen anew: the result will not repeat bit for bit",
                pn_text_get(&reason));
        status = keep(training, "auto");
    }
    pn_text_free(&reason);
    return status;
}

pinn_status pn_lowering_refused(const pinn_training *training) {
    if (!with_tiles(training)) return PINN_UNSUPPORTED; /* by nobody's choice: the message is there */
    const char *pass = training->products_fma ? "fma" : training->lowering == PN_LOWERING_TILED ? "tiled" : "streamed";
    return pn_fail(PINN_UNSUPPORTED, "%s is \"%s\": %s: unset it, or make it \"auto\", to have a pass that can be", training->lowering_from, pass,
                   pinn_error_message());
}

/* The run's config: as the file's, with the tiles the run has. */
static pinn_status write_resolved(pinn_training *training) {
    const char *has = training->tiles ? training->tiles : "auto";
    char *tiles = pn_duplicate(has, strlen(has));
    if (!tiles) return PN_NO_MEMORY("the choice of tiles");
    pn_free(training->config->tiles.text);
    training->config->tiles.text = tiles;
    pn_text_free(&training->resolved);
    return pn_config_write(training->config, &training->resolved);
}

/* Of a run resumed with others than it had, once the pass has completed what was asked for. */
static void tell_other_tiles(const pinn_training *training) {
    if (!training->tiles_before || strcmp(training->tiles, training->tiles_before) == 0) return;
    pn_note(training, "resuming with tiles \"%s\" (%s) in place of \"%s\": the result will not repeat bit for bit", training->tiles,
            training->tiles_from.length ? pn_text_get(&training->tiles_from) : training->lowering_from, training->tiles_before);
}

pinn_status pn_tiles_settle(pinn_training *training) {
    const pn_pass *pass = training->machinery.pass;
    pinn_status status;
    if (training->compile_for && !pn_limits_known(training->compile_for))
        pn_note(training, "the sizes of a GPU of %s are not known here: tiles are planned for the smallest", training->compile_for);
    if (*pn_pass_note(pass)) pn_note(training, "the network pass runs layer by layer: %s", pn_pass_note(pass));
    if (pinn_context_executor(training->context) != PINN_EXECUTOR_CPU) {
        PN_TRY(keep(training, *pn_pass_tiles(pass) ? pn_pass_tiles(pass) : "layered"));
        tell_other_tiles(training);
    }
    if (training->tiles_anew) pn_text_free(&training->tiles_from); /* nobody's choice, if a later phase cannot keep them */
    status = write_resolved(training);
fail:
    return status;
}
