/* What a training says about itself: result, JSON, plan, final fields. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "train/training.h"

void pinn_training_result(const pinn_training *t, pinn_result *out) {
    pinn_graph_stats stats;
    pn_pass_cost cost;
    pinn_graph_get_stats(t->chunk_graph, &stats);
    pn_pass_get_cost(t->machinery.pass, &cost);
    bool known = t->row[0] > 0;
    *out = (pinn_result){.stop_reason = t->stop_reason,
                         .steps = t->step,
                         .seconds = t->seconds_before + t->seconds,
                         .steps_per_second = t->seconds > 0 ? (double)(t->step - t->first_step) / t->seconds : 0,
                         .loss = known ? t->row[PN_ROW_LOSS + 1] : NAN,
                         .best_loss = t->best_step ? t->best_loss : NAN,
                         .best_step = t->best_step,
                         .terms = t->problem->terms,
                         .fields = t->problem->fields,
                         .term = t->term_name,
                         .losses = t->row + PN_ROW_TERMS + 1,
                         .field = t->problem->field_name,
                         .relative_l2 = t->relative_l2,
                         .device = pinn_context_device_name(t->context),
                         .executor = pinn_executor_name(pinn_context_executor(t->context)),
                         .precision = t->config->precision.text,
                         .lowering = pn_pass_lowering_name(t->machinery.pass),
                         .directory = t->directory,
                         .graph_builds = stats.builds,
                         .graph_launches = stats.enqueued,
                         .product_operations = cost.product_operations,
                         .pointwise_operations = cost.pointwise_operations,
                         .bytes = cost.bytes,
                         .parameters = t->network->parameters,
                         .rows = cost.rows,
                         .tiles = pn_pass_tiles(t->machinery.pass),
                         .start_seconds = t->start_seconds,
                         .start_context = t->start_context,
                         .start_kernels = t->start_kernels,
                         .start_compiled = t->start_compiled};
}

static void json_number(pn_text *json, double value) {
    if (isfinite(value))
        pn_text_number(json, value);
    else
        pn_text_string(json, "null"); /* JSON has no NaN */
}

static void json_string(pn_text *json, const char *key, const char *value) {
    pn_text_printf(json, "\"%s\": ", key);
    if (value)
        pn_text_quoted(json, value);
    else
        pn_text_string(json, "null");
    pn_text_string(json, ", ");
}

static void json_value(pn_text *json, const char *key, double value) {
    pn_text_printf(json, "\"%s\": ", key);
    json_number(json, value);
    pn_text_string(json, ", ");
}

static void json_table(pn_text *json, const char *key, const char *const *name, const double *value, size_t count) {
    pn_text_printf(json, "\"%s\": {", key);
    for (size_t i = 0; i < count; i++) {
        pn_text_string(json, i ? ", " : "");
        pn_text_quoted(json, name[i]);
        pn_text_string(json, ": ");
        json_number(json, value[i]);
    }
    pn_text_string(json, "}, ");
}

pinn_status pinn_training_json(const pinn_training *training, pinn_status status, char **out) {
    pn_text json = {0};
    pn_text_string(&json, "{");
    json_string(&json, "status", status == PINN_OK ? "finished" : status == PINN_INTERRUPTED ? "interrupted" : "failed");
    if (status != PINN_OK && status != PINN_INTERRUPTED) json_string(&json, "error", pinn_error_message());
    if (training) {
        pinn_result r;
        pinn_training_result(training, &r);
        json_string(&json, "stop_reason", r.stop_reason);
        pn_text_printf(&json, "\"steps\": %llu, ", (unsigned long long)r.steps);
        json_value(&json, "seconds", r.seconds);
        json_value(&json, "steps_per_second", r.steps_per_second);
        json_value(&json, "loss", r.loss);
        json_value(&json, "best_loss", r.best_loss);
        pn_text_printf(&json, "\"best_step\": %llu, ", (unsigned long long)r.best_step);
        json_table(&json, "losses", r.term, r.losses, r.terms);
        json_table(&json, "relative_l2", r.field, r.relative_l2, r.fields);
        json_table(&json, "unknowns", NULL, NULL, 0);
        json_string(&json, "device", r.device);
        json_string(&json, "executor", r.executor);
        json_string(&json, "precision", r.precision);
        json_string(&json, "lowering", r.lowering);
        json_string(&json, "tiles", *r.tiles ? r.tiles : NULL);
        pn_text_string(&json, "\"start\": {");
        json_value(&json, "seconds", r.start_seconds);
        json_value(&json, "context", r.start_context);
        json_value(&json, "kernels", r.start_kernels);
        pn_text_printf(&json, "\"compiled\": %zu}, ", r.start_compiled);
        pn_text_printf(&json, "\"graph\": {\"builds\": %llu, \"launches\": %llu}, ", (unsigned long long)r.graph_builds,
                       (unsigned long long)r.graph_launches);
        json_string(&json, "run_directory", r.directory);
    }
    if (json.length >= 2) json.length -= 2; /* the last ", " */
    pn_text_string(&json, "}");
    status = pn_text_check(&json);
    if (status != PINN_OK) {
        pn_text_free(&json);
        return status;
    }
    *out = json.data;
    return PINN_OK;
}

/* ||u - reference|| / ||reference|| over n points. */
static double error_norm(const double *u, const double *reference, size_t n) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        difference += (u[i] - reference[i]) * (u[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    return sqrt(difference / norm);
}

pinn_status pn_finish_solution(pinn_training *training) {
    const pn_problem *problem = training->problem;
    pn_real real = training->config->real;
    size_t points = problem->evaluation_points, count = problem->fields * points;
    pinn_status status;
    void *raw = pn_allocate(count, pn_real_bytes(real));
    double *field = pn_allocate(count, sizeof *field);
    if (!raw || !field) {
        status = PN_NO_MEMORY("the solution");
        goto fail;
    }
    PN_TRY(pinn_graph_launch(training->prediction_graph, 1));
    PN_TRY(pinn_plane_read(pn_pass_fields(training->evaluation), 0, raw, count * pn_real_bytes(real)));
    for (size_t i = 0; i < count; i++) field[i] = pn_real_get(real, raw, i);
    for (size_t f = 0; f < problem->fields; f++)
        if (problem->has_reference[f]) training->relative_l2[f] = error_norm(field + f * points, problem->reference + f * points, points);
    training->evaluated = training->step;
    const pn_solution solution = {.coordinates = problem->coordinates,
                                  .fields = problem->fields,
                                  .points = points,
                                  .coordinate_name = problem->coordinate_name,
                                  .field_name = problem->field_name,
                                  .grid = problem->evaluation_grid,
                                  .coordinate = problem->evaluation_coordinate,
                                  .field = field,
                                  .reference = training->has_evaluation ? problem->reference : NULL,
                                  .title = training->config->title.text,
                                  .step = training->step,
                                  .seed = training->seed};
    if (training->run) PN_TRY(training->idle ? pn_run_complete(training->run, &solution) : pn_run_solution(training->run, &solution));
fail:
    pn_free(field);
    pn_free(raw);
    return status;
}

enum { PLAN_LIST = 24 }; /* entries of a list that are printed, at most */

/* Where the set's points lie, and how many on each face when there are several. */
static pinn_status plan_faces(const pn_problem *problem, const pn_set *set, pn_text *plan) {
    if (set->face[0].axis < 0) {
        pn_text_string(plan, "    inside the domain\n");
        return PINN_OK;
    }
    size_t *count = pn_allocate(set->face_count, sizeof *count);
    if (!count) return PN_NO_MEMORY("the plan");
    pn_face_divide(set->face, set->face_count, problem->coordinates, problem->lower, problem->upper, set->points, count);
    for (size_t i = 0; i < set->face_count && i < PLAN_LIST; i++) {
        pn_text_string(plan, i ? ", " : "    on ");
        pn_face_print(problem, &set->face[i], plan);
        if (set->face_count > 1) pn_text_printf(plan, " (%zu point%s)", count[i], count[i] == 1 ? "" : "s");
    }
    if (set->face_count > PLAN_LIST) pn_text_printf(plan, " ... (%zu in all)", set->face_count);
    pn_text_string(plan, "\n");
    pn_free(count);
    return PINN_OK;
}

static pinn_status plan_sets(const pinn_training *training, pn_text *plan) {
    const pn_problem *problem = training->problem;
    pinn_status status = PINN_OK;
    pn_text_string(plan, "\npoint sets\n");
    for (size_t s = 0; s < problem->sets; s++) {
        const pn_set *set = &problem->set[s];
        pn_text_printf(plan, "  %-16s %9zu point%s, %s; channels of %s:", set->name, set->points, set->points == 1 ? "" : "s",
                       set->fixed ? "fixed" : "new at every step", problem->fields == 1 ? "the field" : "every field f");
        for (size_t c = 0; c < set->layout.count && c < PLAN_LIST; c++) {
            pn_text_string(plan, c ? ", " : " ");
            pn_channel_print(&set->layout.channel[c], problem->fields == 1 ? problem->field_name[0] : "f", problem->coordinate_name, plan);
        }
        if (set->layout.count > PLAN_LIST) pn_text_printf(plan, " ... (%zu in all)", set->layout.count);
        pn_text_string(plan, "\n");
        PN_TRY(plan_faces(problem, set, plan));
        for (size_t k = 0; k < set->term_count; k++) {
            const pn_term *term = &problem->term[set->first_term + k];
            pn_text_printf(plan, "    term %-16s weight ", term->name);
            pn_text_number(plan, term->weight);
            pn_text_string(plan, "\n");
        }
    }
fail:
    return status;
}

/* What memory goes to, and what makes that large. */
typedef struct plan_part {
    const char *what;
    size_t bytes;
    bool points, width; /* by the points of the sets, by the network's size */
    const char *key;    /* or this */
} plan_part;

/* The points, their reference and the fields there, on the device and on the host, and what the pass over them needs. */
static size_t evaluation_bytes(const pinn_training *training) {
    const pn_problem *problem = training->problem;
    pn_pass_cost cost;
    pn_pass_get_cost(training->evaluation, &cost);
    return pinn_plane_bytes(training->evaluation_points) + pinn_plane_bytes(training->reference) +
           pinn_plane_bytes(pn_pass_fields(training->evaluation)) + cost.workspace_bytes +
           (problem->coordinates + problem->fields) * problem->evaluation_points * sizeof(double);
}

/* On a GPU what lies there; on a CPU also what a run has beside its planes: the passes' own, the evaluation set as it was read, and the
 * writer's slot of a snapshot. */
static size_t needed_bytes(const pinn_training *training) {
    const pn_problem *problem = training->problem;
    pn_pass_cost pass, evaluation;
    size_t bytes = pn_context_bytes(training->context);
    if (pinn_context_executor(training->context) != PINN_EXECUTOR_CPU) return bytes;
    pn_pass_get_cost(training->machinery.pass, &pass);
    pn_pass_get_cost(training->evaluation, &evaluation);
    bytes += pass.beside_bytes + evaluation.beside_bytes;
    bytes += (problem->coordinates + problem->fields) * problem->evaluation_points * sizeof(double);
    return bytes + 3 * training->network->parameters * pn_real_bytes(training->config->real);
}

/* The set with the most rows. */
static const char *largest_set(const pn_problem *problem) {
    size_t largest = 0;
    for (size_t s = 1; s < problem->sets; s++)
        if (problem->set[s].points * problem->set[s].layout.count > problem->set[largest].points * problem->set[largest].layout.count) largest = s;
    return problem->set[largest].name;
}

static void plan_fit(const pinn_training *training, const plan_part *part, size_t parts, pn_text *plan) {
    const size_t needed = needed_bytes(training), memory = pn_context_memory(training->context);
    const plan_part *largest = part;
    pn_text_printf(plan, "  in all                                 %zu bytes", needed);
    if (memory) pn_text_printf(plan, " of the %zu there are", memory);
    pn_text_string(plan, "\n");
    if (!memory || needed <= memory) return;
    for (size_t i = 1; i < parts; i++)
        if (part[i].bytes > largest->bytes) largest = &part[i];
    pn_text_printf(plan, "  does not fit                           the most is the %s, by ", largest->what);
    if (largest->points) pn_text_printf(plan, "the points of \"%s\"%s", largest_set(training->problem), largest->width ? ", " : "");
    pn_text_printf(plan, "%s\n", largest->width ? "network.width and network.depth" : largest->key ? largest->key : "");
}

static void plan_memory(const pinn_training *training, const pn_pass_cost *cost, pn_text *plan) {
    const bool layered = !cost->tile_points; /* then every row has its place in the workspace */
    const plan_part part[] = {
        {"state (parameters, moments, words)", training->state_bytes, .width = true},
        {"points", pinn_plane_bytes(training->machinery.points), .points = true},
        {"workspace of the network pass", cost->workspace_bytes, .points = layered, .width = true},
        {"partial gradients and losses", cost->partial_bytes, .width = true},
        {"evaluation set", evaluation_bytes(training), .key = "output.evaluate"},
    };
    enum { PARTS = sizeof part / sizeof part[0] };
    pn_text_string(plan, "\nmemory\n");
    for (size_t i = 0; i < PARTS; i++) {
        pn_text_printf(plan, "  %-38s %zu bytes", part[i].what, part[i].bytes);
        if (part[i].key) pn_text_printf(plan, " (%zu points)", training->problem->evaluation_points);
        pn_text_string(plan, "\n");
    }
    plan_fit(training, part, PARTS, plan);
    if (cost->tile_points)
        pn_text_printf(plan, "  tiles                                  %zu points, %zu partial gradients\n", cost->tile_points, cost->tile_groups);
}

static void plan_cost(const pinn_training *training, pn_text *plan) {
    pn_pass_cost cost;
    pn_pass_get_cost(training->machinery.pass, &cost);
    pn_text_printf(plan, "\na step\n");
    pn_text_printf(plan, "  rows of the stacked activation matrix  %zu\n", cost.rows);
    pn_text_printf(plan, "  operations in matrix products          %.4g\n", cost.product_operations);
    pn_text_printf(plan, "  operations in pointwise programs       %.4g\n", cost.pointwise_operations);
    pn_text_printf(plan, "  bytes moved if nothing stays in cache  %.4g\n", cost.bytes);
    plan_memory(training, &cost, plan);
}

/* The chunk graph with one step in place of several equal ones. */
static pinn_status plan_schedule(const pinn_training *training, pn_text *plan) {
    char *schedule = NULL;
    pinn_graph *graph = NULL;
    pinn_status status;
    PN_TRY(pinn_graph_create(training->context, "chunk", &graph));
    PN_TRY(pinn_graph_begin(graph));
    PN_TRY(pn_chunk_record(training, graph, 1));
    PN_TRY(pinn_graph_explain(graph, &schedule));
    pn_text_printf(plan, "\nrecorded step, in the graph of a chunk of steps\n%s", schedule);
    if (training->unroll > 1)
        pn_text_printf(plan, "  Before that loop stands one whose body holds %u such steps: it takes as many as fill whole bodies.\n",
                       (unsigned)training->unroll);
fail:
    free(schedule);
    pinn_graph_destroy(graph);
    return status;
}

pinn_status pinn_training_plan(const pinn_training *training, char **out) {
    const pn_network *network = training->network;
    pn_text plan = {0};
    pinn_status status;
    pn_text_printf(&plan, "%s\n", training->config->title.text ? training->config->title.text : training->config->stem);
    pn_text_printf(&plan, "  device    %s, executor %s, %s pass, %s\n", pinn_context_device_name(training->context),
                   pinn_executor_name(pinn_context_executor(training->context)), pn_pass_lowering_name(training->machinery.pass),
                   training->config->precision.text);
    if (*pn_pass_tiles(training->machinery.pass)) pn_text_printf(&plan, "  tiles     %s\n", pn_pass_tiles(training->machinery.pass));
    if (*pn_pass_note(training->machinery.pass)) pn_text_printf(&plan, "  layered   because: %s\n", pn_pass_note(training->machinery.pass));
    pn_text_printf(&plan, "  network   %zu parameters in %zu layers\n", network->parameters, network->layers);
    for (size_t i = 0; i < network->parameter_blocks; i++) {
        const pn_parameter *block = &network->parameter[i];
        pn_text_printf(&plan, "    %-20s [%zu%s", block->name, block->rows, block->columns ? "" : "]\n");
        if (block->columns) pn_text_printf(&plan, ", %zu]\n", block->columns);
    }
    pn_text_printf(&plan, "  steps     %llu\n", (unsigned long long)training->last_step);
    PN_TRY(plan_sets(training, &plan));
    plan_cost(training, &plan);
    PN_TRY(plan_schedule(training, &plan));
    PN_TRY(pn_text_check(&plan));
    *out = plan.data;
    plan.data = NULL;
fail:
    pn_free(plan.data);
    return status;
}

pinn_status pinn_training_parameters(pinn_training *training, double *out, size_t *count) {
    size_t n = training->network->parameters;
    pn_real real = training->config->real;
    pinn_status status = PINN_OK;
    if (out) {
        if (*count != n) return pn_fail(PINN_BAD_ARGUMENT, "the network has %zu parameters, not %zu", n, *count);
        void *raw = pn_allocate(n, pn_real_bytes(real));
        if (!raw) return PN_NO_MEMORY("the parameters");
        status = pinn_plane_read(training->parameter, 0, raw, n * pn_real_bytes(real));
        for (size_t i = 0; status == PINN_OK && i < n; i++) out[i] = pn_real_get(real, raw, i);
        pn_free(raw);
    }
    if (status == PINN_OK) *count = n;
    return status;
}
