/* Adam's step as recorded nodes; see adam.h. */
#include "optimize/adam.h"

#include "core/memory.h"
#include "core/status.h"
#include "graph/plan.h"
#include "kernels/adam.h"

struct pn_adam {
    pn_adam_spec spec;           /* the partial lists are not used after creation */
    pinn_plane *tiles, *columns; /* owned tables: pn_reduce_tile [tile_count], pn_reduce_column [terms] */
    pinn_plane *gradient;        /* owned: [parameters] in `real` */
    pinn_plane *squares;         /* owned: float64 [pn_reduce_squares(tile_count)] */
    pinn_plane *losses;          /* owned: float64 [2][terms] */
    pinn_plane *rates;           /* owned: pn_finish_rates */
    size_t tile_count;
};

static pinn_status check(const pn_adam_spec *spec) {
    const size_t parameters = spec->gradient.entries, terms = spec->loss.entries, bytes = pn_real_bytes(spec->real);
    if (terms == 0 || terms > PN_FINISH_TERMS)
        return pn_fail(PINN_BAD_ARGUMENT, "a step takes 1 to %d terms, not %zu", PN_FINISH_TERMS, terms);
    const struct {
        const pinn_plane *plane;
        size_t bytes;
    } need[] = {{spec->parameter, parameters * bytes},
                {spec->moments, 2 * parameters * bytes},
                {spec->words, sizeof(pn_words)},
                {spec->hyper, sizeof(pn_hyper)},
                {spec->loop, sizeof(pn_loop)},
                {spec->weight, 2 * terms * sizeof(double)},
                {spec->ring, spec->ring_rows * (PN_ROW_TERMS + terms + spec->fields) * sizeof(double)}};
    for (size_t i = 0; i < sizeof need / sizeof need[0]; i++)
        if (pinn_plane_bytes(need[i].plane) < need[i].bytes)
            return pn_fail(PINN_BAD_ARGUMENT, "plane \"%s\" has %zu bytes, the optimizer needs %zu", pinn_plane_name(need[i].plane),
                           pinn_plane_bytes(need[i].plane), need[i].bytes);
    return PINN_OK;
}

/* NULL `table`: the size alone. */
static pinn_status create_table(pinn_context *context, const char *name, const void *table, size_t bytes, pinn_plane **out) {
    pinn_plane *plane;
    pinn_status status = pinn_plane_create(context, name, PINN_DEVICE, bytes, &plane);
    if (status != PINN_OK) return status;
    if (table) status = pinn_plane_write(plane, 0, table, bytes);
    if (status == PINN_OK)
        *out = plane;
    else
        pinn_plane_destroy(plane);
    return status;
}

pinn_status pn_adam_create(const pn_adam_spec *spec, pn_adam **out) {
    pinn_status status = PINN_OK;
    pn_reduce_tile *tile = NULL;
    pn_reduce_column *column = NULL;
    pn_adam *adam = pn_allocate(1, sizeof *adam);
    if (!adam) return PN_NO_MEMORY("an optimizer");
    adam->spec = *spec;
    PN_TRY(check(spec));
    PN_TRY(pn_reduction_tiles(&spec->gradient, pn_real_bytes(spec->real), pn_context_plans(spec->context) ? NULL : &tile, &adam->tile_count));
    PN_TRY(pn_reduction_columns(&spec->loss, &column));
    PN_TRY(create_table(spec->context, "gradient tiles", tile, adam->tile_count * sizeof *tile, &adam->tiles));
    PN_TRY(create_table(spec->context, "loss columns", column, spec->loss.entries * sizeof *column, &adam->columns));
    PN_TRY(pinn_plane_create(spec->context, "gradient", PINN_DEVICE, spec->gradient.entries * pn_real_bytes(spec->real),
                             &adam->gradient));
    PN_TRY(pinn_plane_create(spec->context, "gradient squares", PINN_DEVICE, pn_reduce_squares(adam->tile_count) * sizeof(double),
                             &adam->squares));
    PN_TRY(pinn_plane_create(spec->context, "losses", PINN_DEVICE, 2 * spec->loss.entries * sizeof(double), &adam->losses));
    PN_TRY(pinn_plane_create(spec->context, "rates", PINN_DEVICE, sizeof(pn_finish_rates), &adam->rates));
    *out = adam;
    adam = NULL;
fail:
    pn_adam_destroy(adam);
    pn_free(column);
    pn_free(tile);
    return status;
}

void pn_adam_destroy(pn_adam *adam) {
    if (!adam) return;
    pinn_plane_destroy(adam->rates);
    pinn_plane_destroy(adam->losses);
    pinn_plane_destroy(adam->squares);
    pinn_plane_destroy(adam->gradient);
    pinn_plane_destroy(adam->columns);
    pinn_plane_destroy(adam->tiles);
    pn_free(adam);
}

pinn_status pn_adam_record(pn_adam *adam, pinn_graph *graph) {
    const pn_adam_spec *s = &adam->spec;
    const pn_reduce_arguments reduce = {.tiles = adam->tile_count, .terms = s->loss.entries, .real = s->real};
    const pn_adam_arguments update = {.parameters = s->gradient.entries,
                                      .real = s->real,
                                      .squares = pn_reduce_squares(adam->tile_count),
                                      .terms = s->loss.entries,
                                      .fields = s->fields,
                                      .ring_rows = s->ring_rows};
    pinn_status status = pinn_graph_operation(
        graph, &pn_reduce_operation, &reduce, sizeof reduce,
        PINN_PLANES(s->gradient.plane, adam->tiles, s->loss.plane, adam->columns, s->weight, s->hyper, s->words, s->loop),
        PINN_PLANES(adam->gradient, adam->squares, adam->losses, adam->rates));
    if (status != PINN_OK) return status;
    return pinn_graph_operation(graph, &pn_adam_operation, &update, sizeof update,
                                PINN_PLANES(adam->gradient, adam->squares, adam->losses, adam->rates, s->hyper, s->words, s->ring,
                                            s->loop, s->parameter, s->moments),
                                PINN_PLANES(s->parameter, s->moments, s->words, s->ring, s->loop));
}

pinn_plane *pn_adam_gradient(const pn_adam *adam) { return adam->gradient; }
