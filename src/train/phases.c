/* What each phase takes, known before the first step: a phase that can never begin would cost the steps before it. Only point counts make phases
 * differ in size. The machinery of those to come is laid out without memory (graph/plan.h) and thrown away. */
#include "core/memory.h"
#include "graph/plan.h"
#include "train/training.h"

static void note_points(const pn_problem *problem, size_t *points) {
    for (size_t s = 0; s < problem->sets; s++) points[s] = problem->set[s].points;
}

static void restore_points(pn_problem *problem, const size_t *points) {
    for (size_t s = 0; s < problem->sets; s++) problem->set[s].points = points[s];
}

/* Of the machinery there is. */
static void measure(const pinn_training *training, pn_phase_size *out) {
    pn_pass_cost cost;
    pn_pass_get_cost(training->machinery.pass, &cost);
    out->planes = training->machinery.bytes;
    out->beside = cost.beside_bytes;
    out->operations = cost.product_operations + cost.pointwise_operations;
}

static pinn_status measure_planned(pinn_training *training, pn_phase_size *out) {
    const pn_machinery present = training->machinery;
    const bool plans = pn_context_plans(training->context);
    training->machinery = (pn_machinery){0};
    pn_context_plan(training->context, true);
    const pinn_status status = pn_machinery_create(training);
    if (status == PINN_OK) measure(training, out);
    pn_machinery_destroy(&training->machinery);
    pn_context_plan(training->context, plans);
    training->machinery = present;
    return status;
}

/* Every phase from the present one on. */
static pinn_status measure_all(pinn_training *training) {
    const pn_config *config = training->config;
    const size_t first = training->phase;
    pn_phase_size *size = training->phase_size;
    pinn_status status = PINN_OK;
    measure(training, &size[first]);
    note_points(training->problem, size[first].points);
    for (size_t p = first + 1; p < config->phase_count; p++) {
        PN_TRY(pn_problem_set_points(training->problem, &config->phase[p], &size[p].changed));
        size[p].planes = size[p - 1].planes;
        size[p].beside = size[p - 1].beside;
        size[p].operations = size[p - 1].operations;
        note_points(training->problem, size[p].points);
        if (size[p].changed && size[p].reached) status = measure_planned(training, &size[p]);
        if (status != PINN_OK) {
            pn_fail_within(status, "[[train]] %zu of %zu", p + 1, config->phase_count);
            goto fail;
        }
    }
fail:
    restore_points(training->problem, size[first].points);
    return status;
}

static pinn_status make_sizes(pinn_training *training) {
    const size_t phases = training->config->phase_count, sets = training->problem->sets;
    uint64_t steps = 0;
    training->phase_size = pn_allocate(phases, sizeof *training->phase_size);
    training->phase_points = pn_allocate(phases * sets, sizeof *training->phase_points);
    if (!training->phase_size || !training->phase_points) return PN_NO_MEMORY("the phases");
    for (size_t p = 0; p < phases; p++) {
        training->phase_size[p] = (pn_phase_size){.points = training->phase_points + p * sets, .reached = steps < training->last_step};
        steps += training->config->phase[p].steps;
    }
    return PINN_OK;
}

size_t pn_phase_bytes(const pinn_training *training, size_t phase) {
    const pn_problem *problem = training->problem;
    const pn_phase_size *size = &training->phase_size[phase];
    pn_pass_cost evaluation;
    size_t bytes = pn_context_bytes(training->context) - training->machinery.bytes + size->planes;
    if (pinn_context_executor(training->context) != PINN_EXECUTOR_CPU) return bytes;
    pn_pass_get_cost(training->evaluation, &evaluation);
    bytes += size->beside + evaluation.beside_bytes;
    bytes += pn_evaluation_bytes(problem);
    return bytes + 3 * training->network->parameters * pn_real_bytes(training->config->real);
}

static size_t largest_phase(const pinn_training *training) {
    size_t largest = training->phase;
    for (size_t p = largest + 1; p < training->config->phase_count; p++)
        if (training->phase_size[p].reached && pn_phase_bytes(training, p) > pn_phase_bytes(training, largest)) largest = p;
    return largest;
}

/* Whether so much more can be had, whoever else uses the memory. What is not touched costs nothing. */
static pinn_status try_memory(const pinn_training *training, size_t more) {
    pinn_plane *trial = NULL;
    if (!more) return PINN_OK;
    const pinn_status status = pinn_plane_create(training->context, "trial", PINN_DEVICE, more, &trial);
    pinn_plane_destroy(trial);
    return status;
}

/* The present phase has its memory; what the largest one needs beyond it is tried. */
static pinn_status check_fit(const pinn_training *training) {
    const size_t largest = largest_phase(training), needed = pn_phase_bytes(training, largest), memory = pn_context_memory(training->context);
    const size_t planes = training->phase_size[largest].planes, present = training->machinery.bytes;
    const bool beyond = memory && needed > memory;
    pn_text text = {0};
    if (largest == training->phase) return PINN_OK;
    pinn_status status = beyond ? PINN_NO_MEMORY : try_memory(training, planes > present ? planes - present : 0);
    if (status != PINN_NO_MEMORY) return status;
    pn_text_bytes(&text, needed);
    pn_text_string(&text, beyond ? " of the " : ", more than can be had");
    if (beyond) pn_text_bytes(&text, memory);
    pn_fail(status, "[[train]] %zu of %zu cannot fit, and no step was done: with its points the run needs %s%s", largest + 1,
            training->config->phase_count, pn_text_get(&text), beyond ? " there are" : "");
    pn_text_free(&text);
    return status;
}

pinn_status pn_phases_check(pinn_training *training) {
    pinn_status status;
    if (training->compile_for) return PINN_OK;
    PN_TRY(make_sizes(training));
    PN_TRY(measure_all(training));
    if (!training->check_only) return check_fit(training);
    const size_t largest = largest_phase(training);
    if (largest != training->phase) PN_TRY(pn_phase_begin(training, largest));
fail:
    return status;
}
