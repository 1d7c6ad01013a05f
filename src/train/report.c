/* What a training says about itself: result, JSON, final fields. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/training.h"

void pinn_training_result(const pinn_training *t, pinn_result *out) {
    pinn_graph_stats stats;
    const pn_pass *pass = t->machinery.pass; /* none once a phase could not begin */
    pn_pass_cost cost = {0};
    pinn_graph_get_stats(t->chunk_graph, &stats);
    if (pass) pn_pass_get_cost(pass, &cost);
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
                         .lowering = pass ? pn_pass_lowering_name(pass) : "",
                         .directory = t->directory,
                         .graph_builds = stats.builds,
                         .graph_launches = stats.enqueued,
                         .product_operations = cost.product_operations,
                         .pointwise_operations = cost.pointwise_operations,
                         .bytes = cost.bytes,
                         .parameters = t->network->parameters,
                         .rows = cost.rows,
                         .tiles = pass ? pn_pass_tiles(pass) : "",
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
