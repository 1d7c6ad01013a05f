/* What a step is made of: the point sets' planes, sampler, network pass and step nodes, and their recording. */
#include "core/tiles.h"
#include "graph/plan.h"
#include "pointwise/program.h"
#include "train/training.h"

/* Columns start at multiples of this many elements, so that every set is aligned for vector loads. */
#define COLUMN_ALIGNMENT 64u

static size_t point_columns(const pn_problem *problem, const pn_set *set) {
    return problem->coordinates * (set->uses_normal ? 2 : 1);
}

size_t pn_points_place(const pn_problem *problem, size_t *offset) {
    size_t elements = 0;
    for (size_t s = 0; s < problem->sets; s++) {
        offset[s] = elements;
        elements += problem->set[s].points * point_columns(problem, &problem->set[s]);
        elements = (elements + COLUMN_ALIGNMENT - 1) / COLUMN_ALIGNMENT * COLUMN_ALIGNMENT;
    }
    return elements;
}

static pinn_status create_points(pinn_training *training, size_t *offset) {
    const size_t elements = pn_points_place(training->problem, offset);
    return pinn_plane_create(training->context, "points", PINN_DEVICE, elements * pn_real_bytes(training->config->real),
                             &training->machinery.points);
}

/* weight: [weights][point counts]; scale: 2*weight/points, the factor of the residual in its own adjoint. */
static pinn_status create_weights(pinn_training *training) {
    const pn_problem *problem = training->problem;
    pn_machinery *m = &training->machinery;
    pn_real real = training->config->real;
    pinn_status status;
    double *weight = pn_allocate(2 * problem->terms, sizeof *weight);
    void *scale = pn_allocate(problem->terms, pn_real_bytes(real));
    if (!weight || !scale) {
        status = PN_NO_MEMORY("loss weights");
        goto fail;
    }
    for (size_t s = 0; s < problem->sets; s++)
        for (size_t k = 0; k < problem->set[s].term_count; k++) {
            size_t term = problem->set[s].first_term + k;
            weight[term] = problem->term[term].weight;
            weight[problem->terms + term] = (double)problem->set[s].points;
            pn_real_set(real, scale, term, 2 * weight[term] / (double)problem->set[s].points);
        }
    PN_TRY(pinn_plane_create(training->context, "loss weights", PINN_DEVICE, 2 * problem->terms * sizeof *weight, &m->weight));
    PN_TRY(pinn_plane_create(training->context, "residual scale", PINN_DEVICE, problem->terms * pn_real_bytes(real), &m->scale));
    PN_TRY(pinn_plane_write(m->weight, 0, weight, 2 * problem->terms * sizeof *weight));
    PN_TRY(pinn_plane_write(m->scale, 0, scale, problem->terms * pn_real_bytes(real)));
fail:
    pn_free(scale);
    pn_free(weight);
    return status;
}

static pinn_status create_sampler(pinn_training *training, const size_t *offset) {
    const pn_problem *problem = training->problem;
    pn_sample_set *set = pn_allocate(problem->sets, sizeof *set);
    if (!set) return PN_NO_MEMORY("the sampler");
    for (size_t s = 0; s < problem->sets; s++)
        set[s] = (pn_sample_set){.face = problem->set[s].face,
                                 .faces = problem->set[s].face_count,
                                 .points = problem->set[s].points,
                                 .fixed = problem->set[s].fixed,
                                 .normals = problem->set[s].uses_normal,
                                 .stream = (uint32_t)s,
                                 .offset = offset[s]};
    pinn_status status = pn_sampler_create(training->context, training->config->real, problem->coordinates, problem->lower,
                                           problem->upper, set, problem->sets, training->seed_plane, training->words,
                                           training->machinery.points, &training->machinery.sampler);
    pn_free(set);
    return status;
}

/* What every pass of a training has in common. */
static pn_pass_spec pass_over(const pinn_training *training, const pn_pass_set *set, size_t sets, pinn_plane *points) {
    return (pn_pass_spec){.context = training->context,
                          .real = training->config->real,
                          .tf32 = training->config->tf32,
                          .lowering = training->lowering,
                          .products_fma = training->products_fma,
                          .tiles = training->tiles,
                          .compile_for = training->compile_for,
                          .network = training->network,
                          .scope = training->problem->scope,
                          .ir = training->problem->ir,
                          .set = set,
                          .sets = sets,
                          .parameters = training->parameter,
                          .points = points};
}

/* The pass that trains, or the one that stores its residuals. */
static pinn_status create_pass(pinn_training *training, const size_t *offset, bool residuals, pn_pass **out) {
    const pn_problem *problem = training->problem;
    const pn_machinery *m = &training->machinery;
    pinn_status status;
    pn_pass_set *set = pn_allocate(problem->sets, sizeof *set);
    pn_value *residual = pn_allocate(problem->terms, sizeof *residual);
    if (!set || !residual) {
        status = PN_NO_MEMORY("the network pass");
        goto fail;
    }
    for (size_t k = 0; k < problem->terms; k++) residual[k] = problem->term[k].residual;
    for (size_t s = 0; s < problem->sets; s++)
        set[s] = (pn_pass_set){.layout = &problem->set[s].layout,
                               .points = problem->set[s].points,
                               .point_columns = point_columns(problem, &problem->set[s]),
                               .point_offset = offset[s],
                               .residual = residual + problem->set[s].first_term,
                               .residuals = problem->set[s].term_count,
                               .first_term = problem->set[s].first_term};
    pn_pass_spec spec = pass_over(training, set, problem->sets, m->points);
    spec.terms = problem->terms;
    spec.scale = m->scale;
    spec.evaluate = spec.residuals = residuals;
    status = pn_pass_create(&spec, out);
fail:
    pn_free(residual);
    pn_free(set);
    return status;
}

static pinn_status create_another(pinn_training *training, bool residuals, pn_pass **out) {
    size_t *offset = pn_allocate(training->problem->sets, sizeof *offset);
    if (!offset) return PN_NO_MEMORY("the point sets");
    pn_points_place(training->problem, offset);
    pinn_status status = create_pass(training, offset, residuals, out);
    pn_free(offset);
    return status;
}

pinn_status pn_residuals_create(pinn_training *training, pn_pass **out) { return create_another(training, true, out); }
pinn_status pn_candidate_create(pinn_training *training, pn_pass **out) { return create_another(training, false, out); }

pinn_status pn_machinery_create(pinn_training *training) {
    pn_machinery *m = &training->machinery;
    const pn_problem *problem = training->problem;
    const size_t before = pn_context_bytes(training->context);
    size_t *offset = pn_allocate(problem->sets, sizeof *offset);
    pinn_status status;
    if (!offset) return PN_NO_MEMORY("the point sets");
    training->machinery_new = true;
    PN_TRY(create_points(training, offset));
    PN_TRY(create_weights(training));
    PN_TRY(create_sampler(training, offset));
    status = create_pass(training, offset, false, &m->pass);
    if (status == PINN_UNSUPPORTED && training->tiles && !pn_tiles_layered(training->tiles)) {
        PN_TRY(pn_tiles_refused(training));
        status = create_pass(training, offset, false, &m->pass);
    }
    if (status == PINN_UNSUPPORTED) status = pn_lowering_refused(training);
    if (status != PINN_OK) goto fail;
    const pn_step_spec spec = {.context = training->context,
                               .real = training->config->real,
                               .parameters = training->network->parameters,
                               .terms = problem->terms,
                               .fields = problem->fields,
                               .pass = m->pass,
                               .parameter = training->parameter,
                               .moments = training->moments,
                               .words = training->words,
                               .hyper = training->hyper,
                               .loop = training->loop,
                               .weight = m->weight,
                               .ring = training->ring};
    PN_TRY(pn_step_create(&spec, &m->step));
    m->bytes = pn_context_bytes(training->context) - before;
fail:
    pn_free(offset);
    if (status != PINN_OK) pn_machinery_destroy(m);
    return status;
}

void pn_machinery_destroy(pn_machinery *machinery) {
    pn_step_destroy(machinery->step);
    pn_pass_destroy(machinery->pass);
    pn_sampler_destroy(machinery->sampler);
    pinn_plane_destroy(machinery->scale);
    pinn_plane_destroy(machinery->weight);
    pinn_plane_destroy(machinery->points);
    *machinery = (pn_machinery){0};
}

static bool any_fixed(const pn_problem *problem) {
    for (size_t s = 0; s < problem->sets; s++)
        if (problem->set[s].fixed) return true;
    return false;
}

static pinn_status record_steps(const pinn_training *training, pinn_graph *graph, const char *name, pinn_plane *flag,
                                uint32_t steps) {
    const pn_machinery *m = &training->machinery;
    pinn_status status;
    PN_TRY(pinn_graph_while(graph, name, flag, PN_LONGEST_CHUNK, NULL));
    for (uint32_t i = 0; i < steps; i++) {
        PN_TRY(pn_sampler_record(m->sampler, graph, false));
        PN_TRY(pn_pass_record(m->pass, graph));
        PN_TRY(pn_step_record(m->step, graph));
    }
    PN_TRY(pinn_graph_end(graph));
fail:
    return status;
}

pinn_status pn_chunk_record(const pinn_training *training, pinn_graph *graph, uint32_t unroll) {
    const pn_begin_arguments begin = {.unroll = unroll};
    pinn_status status;
    PN_TRY(pinn_graph_operation(graph, &pn_begin_operation, &begin, sizeof begin, PINN_PLANES(training->words, training->hyper),
                                PINN_PLANES(training->loop)));
    if (unroll > 1) PN_TRY(record_steps(training, graph, "unrolled steps", training->unrolled, unroll));
    PN_TRY(record_steps(training, graph, "single steps", training->single, 1));
fail:
    return status;
}

/* Seconds for which the beginning of a phase says nothing while kernels are compiled: large ones take minutes. */
#define PATIENCE 2.0

static void tell_compiling(void *user, size_t kernels) {
    pinn_training *training = user;
    if (pn_compiled_kernels() == training->phase_compiled) return; /* a slow cache */
    training->told_compiling = true;
    const char *const kept = !pn_cache_can_keep() ? "" : kernels == 1 ? "; the next start finds it in the cache" : "; the next start finds them in the cache";
    pn_note(training, "waiting for %zu GPU kernel%s to be compiled%s", kernels, kernels == 1 ? "" : "s", kept);
}

static pinn_status finish_kernels(pinn_training *training, pn_pass *pass) {
    const double start = pn_clock();
    const pn_patience patience = {training->phase_began + PATIENCE, tell_compiling, training};
    pn_compilation_patience(training->told_compiling ? NULL : &patience);
    const pinn_status status = pn_pass_finish(pass);
    pn_compilation_patience(NULL);
    training->start_kernels += pn_clock() - start;
    return status;
}

pinn_status pn_machinery_record(pinn_training *training) {
    pinn_status status;
    PN_TRY(finish_kernels(training, training->machinery.pass));
    if (any_fixed(training->problem)) {
        PN_TRY(pinn_graph_begin(training->sample_graph));
        PN_TRY(pn_sampler_record(training->machinery.sampler, training->sample_graph, true));
        if (!training->check_only) PN_TRY(pinn_graph_launch(training->sample_graph, 1));
    }
    PN_TRY(pinn_graph_begin(training->chunk_graph));
    PN_TRY(pn_chunk_record(training, training->chunk_graph, training->unroll));
    PN_TRY(pinn_graph_build(training->chunk_graph));
    training->machinery_new = false;
fail:
    return status;
}

static pinn_status write_evaluation_points(pinn_training *training, size_t count) {
    const pn_real real = training->config->real;
    if (training->check_only) return PINN_OK;
    void *coordinate = pn_allocate(count, pn_real_bytes(real));
    if (!coordinate) return PN_NO_MEMORY("the evaluation set");
    for (size_t i = 0; i < count; i++) pn_real_set(real, coordinate, i, training->problem->evaluation_coordinate[i]);
    const pinn_status status = pinn_plane_write(training->evaluation_points, 0, coordinate, count * pn_real_bytes(real));
    pn_free(coordinate);
    return status;
}

/* Coordinates in the run's precision, references in float64: the error norms are float64 sums. */
static pinn_status create_evaluation_planes(pinn_training *training) {
    const pn_problem *problem = training->problem;
    const size_t count = problem->coordinates * problem->evaluation_points;
    const size_t reference_bytes = problem->fields * problem->evaluation_points * sizeof(double);
    pinn_status status;
    PN_TRY(pinn_plane_create(training->context, "evaluation points", PINN_DEVICE, count * pn_real_bytes(training->config->real),
                             &training->evaluation_points));
    PN_TRY(write_evaluation_points(training, count));
    PN_TRY(pinn_plane_create(training->context, "reference", PINN_DEVICE, reference_bytes, &training->reference));
    PN_TRY(pinn_plane_write(training->reference, 0, problem->reference, reference_bytes));
fail:
    return status;
}

pinn_status pn_training_create_evaluation(pinn_training *training) {
    const pn_problem *problem = training->problem;
    pinn_status status;
    PN_TRY(pn_layout_create(problem->coordinates, NULL, 0, NULL, &training->value_layout));
    PN_TRY(create_evaluation_planes(training));
    const pn_pass_set set = {
        .layout = &training->value_layout, .points = problem->evaluation_points, .point_columns = problem->coordinates};
    pn_pass_spec spec = pass_over(training, &set, 1, training->evaluation_points);
    spec.evaluate = true;
    PN_TRY(pn_pass_create(&spec, &training->evaluation));
fail:
    return status;
}

pinn_status pn_training_record_evaluation(pinn_training *training) {
    const pn_problem *problem = training->problem;
    pinn_status status;
    PN_TRY(finish_kernels(training, training->evaluation));
    PN_TRY(pinn_graph_begin(training->prediction_graph));
    PN_TRY(pn_pass_record(training->evaluation, training->prediction_graph));
    if (!training->has_evaluation) return PINN_OK;
    PN_TRY(pinn_graph_begin(training->evaluation_graph));
    PN_TRY(pn_pass_record(training->evaluation, training->evaluation_graph));
    const pn_evaluation_spec evaluation = {.real = training->config->real,
                                           .fields = problem->fields,
                                           .points = problem->evaluation_points,
                                           .terms = problem->terms,
                                           .field = pn_pass_fields(training->evaluation),
                                           .reference = training->reference,
                                           .hyper = training->hyper,
                                           .words = training->words,
                                           .ring = training->ring};
    PN_TRY(pn_evaluation_record(training->evaluation_graph, &evaluation));
fail:
    return status;
}

static pn_hyper phase_settings(const pinn_training *training, const pn_config_phase *p) {
    const pn_config *config = training->config;
    return (pn_hyper){.decay = (uint64_t)p->learning_rate.decay,
                      .phase_steps = p->steps,
                      .warmup = p->learning_rate.warmup,
                      .every = p->learning_rate.every,
                      .initial = p->learning_rate.initial,
                      .final = p->learning_rate.final,
                      .decay_rate = p->learning_rate.rate,
                      .beta1 = p->beta1,
                      .beta2 = p->beta2,
                      .epsilon = p->epsilon,
                      .clip_norm = p->clip_norm,
                      .event_every = config->output.events,
                      .evaluate_every = training->has_evaluation ? config->output.evaluate_every : 0,
                      .checkpoint_every = config->output.checkpoint,
                      .last_step = training->last_step,
                      .stop_loss = config->stop.loss,
                      .stop_gradient_norm = config->stop.gradient_norm,
                      .stop_relative_l2 = config->stop.relative_l2,
                      .patience = config->stop.patience,
                      .min_delta = config->stop.min_delta,
                      .longest = training->settings.longest ? training->settings.longest : 1};
}

/* What exact resume depends on: device, library versions' executor, and how sums are split, which the point counts decide. */
static pinn_status describe_machine(pinn_training *training) {
    const pn_pass *pass = training->machinery.pass;
    pn_text *machine = &training->machine;
    pn_pass_cost cost;
    pn_pass_get_cost(pass, &cost);
    pn_text_free(machine);
    pn_text_printf(machine, "%s; %s pass", pinn_context_device_name(training->context), pn_pass_lowering_name(pass));
    if (pinn_context_executor(training->context) == PINN_EXECUTOR_CPU) pn_text_printf(machine, ", %s", pn_program_isa());
    if (*pn_pass_tiles(pass)) pn_text_printf(machine, ", tiles of %s", pn_pass_tiles(pass));
    if (cost.tile_points) pn_text_printf(machine, ", %zu points a tile, %zu groups", cost.tile_points, cost.tile_groups);
    return pn_text_check(machine);
}

pinn_status pn_phase_begin(pinn_training *training, size_t phase) {
    const pn_config_phase *p = &training->config->phase[phase];
    bool changed = false;
    pinn_status status;
    training->phase = phase;
    training->phase_began = pn_clock();
    training->phase_compiled = pn_compiled_kernels();
    training->told_compiling = false;
    /* A phase's point counts hold from then on, so those of the phases before count too: a resumed run has not been through them. */
    for (; training->phases_applied <= phase; training->phases_applied++) {
        bool one = false;
        PN_TRY(pn_problem_set_points(training->problem, &training->config->phase[training->phases_applied], &one));
        changed |= one;
    }
    if (changed || !training->machinery.pass) {
        pn_machinery_destroy(&training->machinery);
        PN_TRY(pn_machinery_create(training));
    }
    /* At the start: before the step's kernels are waited for, so that all are compiled at once. */
    if (!training->evaluation) PN_TRY(pn_training_create_evaluation(training));
    training->settings = phase_settings(training, p);
    PN_TRY(pinn_plane_write(training->hyper, 0, &training->settings, sizeof training->settings));
    PN_TRY(pn_machinery_record(training));
    PN_TRY(describe_machine(training));
fail:
    return status;
}

pinn_status pn_chunk_limit(pinn_training *training, uint64_t longest, bool plain) {
    pn_hyper *settings = &training->settings;
    if (longest > training->longest) longest = training->longest;
    if (settings->longest == longest && settings->plain == plain) return PINN_OK;
    settings->longest = longest;
    settings->plain = plain;
    return pinn_plane_write(training->hyper, 0, settings, sizeof *settings);
}
