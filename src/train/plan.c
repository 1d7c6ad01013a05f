/* The plan of a training: sizes, memory, operations and the recorded step, of the phase that is made. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "train/training.h"

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

/* One phase needs more than another where their points differ. */
static bool phases_differ(const pinn_training *training) {
    for (size_t p = 1; p < training->config->phase_count; p++)
        if (training->phase_size[p].changed) return true;
    return false;
}

static void plan_phase(const pinn_training *training, size_t phase, pn_text *plan) {
    const pn_problem *problem = training->problem;
    const pn_phase_size *size = &training->phase_size[phase];
    pn_text_printf(plan, "  [[train]] %-6zu %9llu steps", phase + 1, (unsigned long long)training->config->phase[phase].steps);
    if (!size->reached)
        pn_text_string(plan, ", not reached: stop.step comes before");
    else if (phase > 0 && !size->changed)
        pn_text_string(plan, ", points as before");
    else {
        pn_text_string(plan, ", in all ");
        pn_text_bytes(plan, pn_phase_bytes(training, phase));
        pn_text_printf(plan, ", %.4g operations a step\n   ", size->operations);
        for (size_t s = 0; s < problem->sets && s < PLAN_LIST; s++)
            pn_text_printf(plan, "%s %s %zu", s ? "," : "", problem->set[s].name, size->points[s]);
        if (problem->sets > PLAN_LIST) pn_text_printf(plan, " ... (%zu sets in all)", problem->sets);
    }
    pn_text_string(plan, "\n");
}

/* Of several phases: how they differ, and which one all the rest is of. */
static void plan_phases(const pinn_training *training, pn_text *plan) {
    const size_t phases = training->config->phase_count;
    if (phases < 2) return;
    pn_text_string(plan, "\nphases\n");
    for (size_t p = 0; p < phases && p < PLAN_LIST; p++) plan_phase(training, p, plan);
    if (phases > PLAN_LIST) pn_text_printf(plan, "  ... (%zu in all)\n", phases);
    if (phases_differ(training))
        pn_text_printf(plan, "  What follows is of [[train]] %zu, which needs the most memory.\n", training->phase + 1);
    else
        pn_text_string(plan, "  What follows holds for each of them.\n");
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
            pn_channel_print(&set->layout, &set->layout.channel[c], problem->fields == 1 ? problem->field_name[0] : "f", problem->coordinate_name,
                             problem->time, plan);
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
           pn_evaluation_bytes(problem);
}

/* The set with the most rows. */
static const char *largest_set(const pn_problem *problem) {
    size_t largest = 0;
    for (size_t s = 1; s < problem->sets; s++)
        if (problem->set[s].points * problem->set[s].layout.count > problem->set[largest].points * problem->set[largest].layout.count) largest = s;
    return problem->set[largest].name;
}

static void plan_fit(const pinn_training *training, const plan_part *part, size_t parts, pn_text *plan) {
    const size_t needed = pn_phase_bytes(training, training->phase), memory = pn_context_memory(training->context);
    const plan_part *largest = part;
    pn_text_string(plan, "  in all                                 ");
    pn_text_bytes(plan, needed);
    if (phases_differ(training)) pn_text_printf(plan, " in [[train]] %zu", training->phase + 1);
    if (memory) {
        pn_text_string(plan, " of the ");
        pn_text_bytes(plan, memory);
        pn_text_string(plan, " there are");
    }
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
        pn_text_printf(plan, "  %-38s ", part[i].what);
        pn_text_bytes(plan, part[i].bytes);
        if (part[i].key) pn_text_printf(plan, ", %zu points", training->problem->evaluation_points);
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

static void plan_network(const pinn_training *training, pn_text *plan) {
    const pn_network *network = training->network;
    const size_t depth = training->config->network.depth;
    pn_text_printf(plan, "  network   %zu parameters: %zu hidden layer%s and the last one\n", network->parameters, depth, depth == 1 ? "" : "s");
    for (size_t i = 0; i < network->parameter_blocks; i++) {
        const pn_parameter *block = &network->parameter[i];
        pn_text_printf(plan, "    %-20s [%zu%s", block->name, block->rows, block->columns ? "" : "]\n");
        if (block->columns) pn_text_printf(plan, ", %zu]\n", block->columns);
    }
}

pinn_status pinn_training_plan(const pinn_training *training, char **out) {
    const pn_pass *pass = training->machinery.pass;
    pn_text plan = {0};
    pinn_status status;
    if (!pass || !training->phase_size) return pn_fail(PINN_BAD_ARGUMENT, "there is no plan of a training that failed, nor with compile_for");
    pn_text_printf(&plan, "%s\n", training->config->title.text ? training->config->title.text : training->config->stem);
    pn_text_printf(&plan, "  device    %s, executor %s, %s pass, %s\n", pinn_context_device_name(training->context),
                   pinn_executor_name(pinn_context_executor(training->context)), pn_pass_lowering_name(pass), training->config->precision.text);
    if (*pn_pass_tiles(pass)) pn_text_printf(&plan, "  tiles     %s\n", pn_pass_tiles(pass));
    if (*pn_pass_note(pass)) pn_text_printf(&plan, "  layered   because: %s\n", pn_pass_note(pass));
    plan_network(training, &plan);
    pn_text_printf(&plan, "  steps     %llu", (unsigned long long)training->last_step);
    if (training->config->phase_count > 1) pn_text_printf(&plan, " in %zu phases", training->config->phase_count);
    pn_text_string(&plan, "\n");
    plan_phases(training, &plan);
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
