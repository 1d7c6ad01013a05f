/* From a problem file to a training that is ready to run. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/plan.h"
#include "pointwise/program.h"
#include "train/training.h"

void pn_note(const pinn_training *training, const char *format, ...) {
    if (!training->message) return;
    char line[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    pn_progress_pause(training->progress);
    training->message(training->message_user, line);
    pn_progress_resume(training->progress);
}

/* "auto", "cpu", "cuda", "cuda:N" -> an executor and a CUDA ordinal. */
static pinn_status choose_device(const pinn_options *options, pinn_context_options *out) {
    const char *device = options->device ? options->device : "auto";
    const char *mode = options->executor ? options->executor : getenv("PINN_GRAPH");
    pinn_executor on_gpu = PINN_EXECUTOR_GRAPH;
    if (mode && strcmp(mode, "eager") == 0)
        on_gpu = PINN_EXECUTOR_EAGER;
    else if (mode && *mode && strcmp(mode, "graph") != 0)
        return pn_fail(PINN_CONFIG, "%s is \"%s\"; it may be \"graph\" or \"eager\"", options->executor ? "the option \"executor\"" : "PINN_GRAPH", mode);
    long ordinal = 0;
    if (strcmp(device, "cpu") == 0 || (strcmp(device, "auto") == 0 && (options->compile_for || pinn_device_count() == 0))) {
        out->executor = PINN_EXECUTOR_CPU;
        out->cpu_mode = getenv("PINN_CPU_MODE"); /* "strict:SEED": for tests */
        return PINN_OK;
    }
    if (strncmp(device, "cuda:", 5) == 0) {
        char *end;
        errno = 0;
        ordinal = strtol(device + 5, &end, 10);
        if (errno || end == device + 5 || *end || ordinal < 0 || ordinal > 1024)
            return pn_fail(PINN_CONFIG, "--device \"%s\": after \"cuda:\" comes the number of a GPU, such as cuda:0", device);
    } else if (strcmp(device, "cuda") != 0 && strcmp(device, "auto") != 0)
        return pn_fail(PINN_CONFIG, "--device \"%s\" is none of auto, cpu, cuda, cuda:N", device);
    if (ordinal >= pinn_device_count())
        return pn_fail(PINN_CONFIG, "--device %s: %d usable CUDA device%s here; use --device cpu", device, pinn_device_count(),
                       pinn_device_count() == 1 ? "" : "s");
    if (options->compile_for) return pn_fail(PINN_CONFIG, "--device %s: kernels are compiled for an architecture without a device: use \"cpu\"", device);
    out->executor = on_gpu;
    out->device = (int)ordinal;
    return PINN_OK;
}

/* Variables that are looked at deep inside, where a wrong one could not be told from none. */
static pinn_status check_environment(void) {
    static const struct {
        const char *name, *value[3], *values;
    } variable[] = {{"PINN_ISA", {"avx512", "avx2", "sse2"}, "\"avx512\", \"avx2\" or \"sse2\""},
                    {"PINN_NATIVE", {"0", "1"}, "\"0\" or \"1\""},
                    {"PINN_PRODUCTS", {"blas", "split"}, "\"blas\" or \"split\""}};
    for (size_t i = 0; i < sizeof variable / sizeof variable[0]; i++) {
        const char *text = getenv(variable[i].name);
        bool known = !text || !*text;
        for (size_t k = 0; k < 3 && variable[i].value[k] && !known; k++) known = strcmp(text, variable[i].value[k]) == 0;
        if (!known) return pn_fail(PINN_CONFIG, "%s is \"%s\"; it may be %s", variable[i].name, text, variable[i].values);
    }
    return PINN_OK;
}

static pinn_status check_architecture(const char *name) {
    const pinn_status status = pn_architecture_check(name);
    return status == PINN_OK ? status : pn_fail_within(status, "--compile-for");
}

static pinn_status choose_lowering(pinn_training *training, const pinn_options *options) {
    const char *name = options->lowering ? options->lowering : getenv("PINN_PASS");
    training->lowering_from = options->lowering ? "the option \"lowering\"" : "PINN_PASS";
    training->lowering = PN_LOWERING_AUTO;
    if (!name || !*name || strcmp(name, "auto") == 0) return PINN_OK;
    training->products_fma = strcmp(name, "fma") == 0;
    if (training->products_fma || strcmp(name, "tiled") == 0)
        training->lowering = PN_LOWERING_TILED;
    else if (strcmp(name, "streamed") == 0)
        training->lowering = PN_LOWERING_STREAMED;
    else if (strcmp(name, "layered") == 0)
        training->lowering = PN_LOWERING_LAYERED;
    else
        return pn_fail(PINN_CONFIG, "%s is \"%s\"; it may be \"auto\", \"tiled\", \"streamed\", \"layered\" or \"fma\"", training->lowering_from, name);
    return PINN_OK;
}

/* A first build is what every run begins with, building again what other points ask for; only a build that nobody asked for is worth a line, and
 * in a plan it is not. */
static void context_message(void *user, const char *line) {
    static const char built[] = "' built (", first[] = "first build";
    const pinn_training *training = user;
    const size_t length = strlen(line);
    const bool again = length < sizeof first || strcmp(line + length - (sizeof first - 1), first) != 0;
    if (training->check_only) return;
    if (again && !(training->machinery_new && strstr(line, built))) pn_note(training, "%s", line);
}

/* A coordinate that is called as time is, in a file that names none as time: right for few, and trained without any error. */
static void tell_time_as_space(const pinn_training *training) {
    const pn_config *config = training->config;
    for (size_t i = 0; i < config->coordinate_count && !config->time.text; i++) {
        const char *name = config->coordinate[i].name.text;
        if (strcmp(name, "t") != 0 && strcmp(name, "time") != 0) continue;
        pn_note(training, "%s: \"%s\" is treated as space: on = \"boundary\", lap and dn include it. If it is time, write time = \"%s\" above [domain]",
                config->path, name, name);
        return;
    }
}

static pinn_status read_problem(pinn_training *training, const pinn_options *options) {
    pinn_status status;
    PN_TRY(pn_config_read(options->config, options->set, options->set_count, &training->config));
    pn_config *config = training->config;
    if (options->has_seed && options->seed > INT64_MAX) {
        status = pn_fail(PINN_BAD_ARGUMENT, "seed %llu: a seed is a whole number from 0 to 2^63 - 1", (unsigned long long)options->seed);
        goto fail;
    }
    if (options->has_seed) config->seed = options->seed;
    training->seed = config->seed;
    training->config_changed = options->has_seed || options->set_count;
    for (size_t i = 0; i < config->phase_count; i++) training->total_steps += config->phase[i].steps;
    training->last_step = training->total_steps;
    if (config->stop.step && config->stop.step < training->last_step) training->last_step = config->stop.step;
    PN_TRY(pn_config_write(config, &training->resolved));
    PN_TRY(pn_problem_create(config, &training->problem));
    for (size_t f = 0; f < training->problem->fields; f++)
        if (training->problem->has_reference[f]) training->has_evaluation = true;
    tell_time_as_space(training);
fail:
    return status;
}

/* Of all entries a gradient may have, whose tables count in 31 bits. */
static pinn_status check_parameters(const pinn_training *training) {
    if (training->network->parameters <= INT32_MAX) return PINN_OK;
    return pn_fail(PINN_CONFIG, "%s: the network has %zu parameters, at most 2^31 - 1 can be trained: network.width or network.depth must be smaller",
                   training->config->path, training->network->parameters);
}

static pinn_status create_network(pinn_training *training) {
    const pn_config *config = training->config;
    const pn_problem *problem = training->problem;
    const pn_network_spec spec = {.kind = config->network.kind.text,
                                  .activation = config->network.activation.text,
                                  .coordinates = problem->coordinates,
                                  .fields = problem->fields,
                                  .width = config->network.width,
                                  .depth = config->network.depth,
                                  .lower = problem->lower,
                                  .upper = problem->upper,
                                  .fourier_features = config->network.fourier ? config->network.fourier_features : 0,
                                  .fourier_scale = config->network.fourier_scale,
                                  .seed = training->seed};
    pinn_status status = pn_network_create(&spec, &training->network);
    return status == PINN_OK ? check_parameters(training) : status;
}

static size_t aligned(size_t bytes) { return (bytes + PN_STATE_ALIGNMENT - 1) / PN_STATE_ALIGNMENT * PN_STATE_ALIGNMENT; }

static pinn_status create_state(pinn_training *t) {
    size_t parameters = t->network->parameters * pn_real_bytes(t->config->real);
    size_t row = pn_row_length(t->problem->terms, t->problem->fields) * sizeof(double);
    pinn_status status;
    t->state_moments = aligned(parameters);
    t->state_words = t->state_moments + aligned(2 * parameters);
    t->state_bytes = t->state_words + aligned(sizeof(pn_words));
    PN_TRY(pinn_plane_create(t->context, "state", PINN_DEVICE, t->state_bytes, &t->state));
    PN_TRY(pinn_plane_view(t->state, "parameters", 0, parameters, &t->parameter));
    PN_TRY(pinn_plane_view(t->state, "moments", t->state_moments, 2 * parameters, &t->moments));
    PN_TRY(pinn_plane_view(t->state, "words", t->state_words, sizeof(pn_words), &t->words));
    PN_TRY(pinn_plane_create(t->context, "hyper", PINN_DEVICE, sizeof(pn_hyper), &t->hyper));
    PN_TRY(pinn_plane_create(t->context, "loop", PINN_DEVICE, sizeof(pn_loop), &t->loop));
    PN_TRY(pinn_plane_view(t->loop, "unrolled steps left", offsetof(pn_loop, unrolled), sizeof(uint32_t), &t->unrolled));
    PN_TRY(pinn_plane_view(t->loop, "single steps left", offsetof(pn_loop, single), sizeof(uint32_t), &t->single));
    PN_TRY(pinn_plane_create(t->context, "event ring", PINN_DEVICE, PN_RING_ROWS * row, &t->ring));
    PN_TRY(pinn_plane_create(t->context, "seed", PINN_DEVICE, sizeof t->seed, &t->seed_plane));
    PN_TRY(pinn_plane_write(t->seed_plane, 0, &t->seed, sizeof t->seed));
    PN_TRY(pinn_plane_create(t->context, "home words", PINN_PINNED, sizeof(pn_words), &t->home_words));
    PN_TRY(pinn_plane_create(t->context, "home ring", PINN_PINNED, PN_RING_ROWS * row, &t->home_ring));
    PN_TRY(pinn_plane_create(t->context, "home state", PINN_PINNED, t->state_bytes, &t->home_state));
    t->row = pn_allocate(pn_row_length(t->problem->terms, t->problem->fields) + 1, sizeof *t->row);
    t->relative_l2 = pn_allocate(t->problem->fields, sizeof *t->relative_l2);
    t->term_name = pn_allocate(t->problem->terms, sizeof *t->term_name);
    if (!t->row || !t->relative_l2 || !t->term_name) return PN_NO_MEMORY("the results");
    for (size_t f = 0; f < t->problem->fields; f++) t->relative_l2[f] = NAN;
    for (size_t k = 0; k < t->problem->terms; k++) {
        t->term_name[k] = t->problem->term[k].name;
        t->row[PN_ROW_TERMS + 1 + k] = NAN; /* until the first row */
    }
fail:
    return status;
}

static pinn_status initialise_parameters(pinn_training *training) {
    size_t count = training->network->parameters;
    pn_real real = training->config->real;
    double *value = pn_allocate(count, sizeof *value);
    void *rounded = pn_allocate(count, pn_real_bytes(real));
    pinn_status status = PINN_OK;
    if (!value || !rounded)
        status = PN_NO_MEMORY("the parameters");
    else {
        pn_network_initialise(training->network, training->seed, value);
        for (size_t i = 0; i < count; i++) pn_real_set(real, rounded, i, value[i]);
        status = pinn_plane_write(training->parameter, 0, rounded, count * pn_real_bytes(real));
    }
    pn_free(rounded);
    pn_free(value);
    return status;
}

static pinn_status create_graphs(pinn_training *t) {
    const struct {
        const char *name;
        pinn_graph **graph;
    } wanted[] = {{"chunk", &t->chunk_graph},
                  {"sample", &t->sample_graph},
                  {"evaluation", &t->evaluation_graph},
                  {"prediction", &t->prediction_graph},
                  {"events home", &t->drain[0]},
                  {"events and snapshot home", &t->drain[1]}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        pinn_status status = pinn_graph_create(t->context, wanted[i].name, wanted[i].graph);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status create_device_side(pinn_training *training, const pinn_context_options *options) {
    pinn_status status;
    const double start = pn_clock();
    PN_TRY(pinn_context_create(options, &training->context));
    training->start_context = pn_clock() - start;
    if (training->check_only) pn_context_plan(training->context, true);
    training->unroll = options->executor == PINN_EXECUTOR_CPU ? 1 : PN_GPU_UNROLL;
    training->longest = PN_LONGEST_CHUNK;
    PN_TRY(create_state(training));
    PN_TRY(create_graphs(training));
fail:
    return status;
}

/* The folder of `config`, if it is the config.toml beside a checkpoint: a run's own. */
static bool folder_of_run(const char *config, pn_text *out) {
    const char *slash = strrchr(config, '/');
    if (strcmp(slash ? slash + 1 : config, "config.toml") != 0) return false;
    pn_text checkpoint = {0};
    pn_text_printf(&checkpoint, "%.*s/checkpoint.h5", slash > config ? (int)(slash - config) : 1, slash ? config : ".");
    const bool found = pn_text_check(&checkpoint) == PINN_OK && access(pn_text_get(&checkpoint), F_OK) == 0;
    pn_text_free(&checkpoint);
    if (found) pn_text_printf(out, "%.*s", slash > config ? (int)(slash - config) : 1, slash ? config : ".");
    return found;
}

static pinn_status name_directory(pinn_training *training, const pinn_options *options) {
    if (options->no_directory) return PINN_OK;
    pn_text path = {0};
    if (options->directory)
        pn_text_string(&path, options->directory);
    else if (options->resume && folder_of_run(training->config->path, &path))
        ; /* `path` is it */
    else if (!*training->config->stem)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: its name gives the run directory no name: choose one by --out", training->config->path);
    else
        pn_text_printf(&path, "runs/%s", training->config->stem);
    training->directory = path.data;
    return pn_text_check(&path);
}

/* Before the checkpoint is read or anything heavy is made: from here on no other run writes into the directory. */
static pinn_status claim_directory(pinn_training *training, const pinn_options *options) {
    const pn_run_mode mode = options->resume ? PN_RUN_RESUME : options->force ? PN_RUN_FORCE : PN_RUN_NEW;
    char *reference = training->config->reference_file.text ? pn_config_reference_path(training->config) : NULL;
    if (training->config->reference_file.text && !reference) return PN_NO_MEMORY("a path");
    const char *const input[] = {options->config, reference};
    pinn_status status = pn_run_claim(training->directory, mode, input, 2, &training->run);
    pn_free(reference);
    return status;
}

static pinn_status begin_run(pinn_training *training) {
    char **names = NULL;
    size_t count = 0;
    pinn_status status;
    PN_TRY(pn_event_names(training, &names, &count));
    const pn_run_spec spec = {.config = pn_text_get(&training->resolved),
                              .quantity = (const char *const *)names,
                              .quantities = count,
                              .resume_step = (int64_t)training->step,
                              .snapshot_parameters = training->network->parameters,
                              .real = training->config->real};
    PN_TRY(pn_run_start(training->run, &spec));
    if (pn_run_warning(training->run)) pn_note(training, "%s", pn_run_warning(training->run));
fail:
    pn_event_names_free(names, count);
    return status;
}

/* In the phase that is resumed in: another one may split its sums in another way. */
static void tell_other_machine(const pinn_training *training) {
    if (training->stored_machine && strcmp(training->stored_machine, pn_text_get(&training->machine)) != 0)
        pn_note(training, "resuming on another machine (%s) than before (%s): the result will not repeat bit for bit",
                pn_text_get(&training->machine), training->stored_machine);
}

static void tell_cache_trouble(const pinn_training *training) {
    char line[PN_CACHE_TROUBLE_BYTES];
    if (training->message && pn_cache_tell_trouble(line)) pn_note(training, "%s", line);
}

pinn_status pinn_training_create(const pinn_options *options, pinn_training **out) {
    pinn_status status;
    pinn_context_options context = {.message = context_message};
    const double start = pn_clock();
    const size_t compiled = pn_compiled_kernels();
    if (!options || !options->config || !out) return pn_fail(PINN_BAD_ARGUMENT, "pinn_training_create needs a config's path");
    if (options->force && options->resume) return pn_fail(PINN_CONFIG, "--force starts anew, --resume goes on: give one of them");
    pinn_training *training = pn_allocate(1, sizeof *training);
    if (!training) return PN_NO_MEMORY("the training");
    training->progress_stream = options->progress;
    training->message = options->message;
    training->message_user = options->message_user;
    training->stop_reason = "";
    context.message_user = training;
    PN_TRY(choose_device(options, &context));
    PN_TRY(choose_lowering(training, options));
    training->compile_for = options->compile_for;
    training->check_only = options->compile_for || options->plan_only;
    if (options->compile_for) PN_TRY(check_architecture(options->compile_for));
    PN_TRY(check_environment());
    PN_TRY(read_problem(training, options));
    PN_TRY(pn_tiles_choose(training, options, context.executor == PINN_EXECUTOR_CPU && !options->compile_for));
    if (training->config->tf32 && context.executor == PINN_EXECUTOR_CPU && !options->compile_for) {
        status = pn_fail(PINN_CONFIG, "%s: precision = \"tf32\" needs a GPU; use \"float32\" or \"float64\" on a CPU", options->config);
        goto fail;
    }
    if (!training->check_only) PN_TRY(name_directory(training, options));
    if (training->directory) PN_TRY(claim_directory(training, options));
    PN_TRY(create_network(training));
    PN_TRY(create_device_side(training, &context));
    const bool resumes = options->resume && training->directory;
    if (resumes) PN_TRY(pn_training_resume(training));
    PN_TRY(pn_phase_begin(training, training->phase)); /* what cannot fit fails here, before parameters are drawn */
    PN_TRY(pn_tiles_settle(training));
    PN_TRY(pn_phases_check(training));
    if (!resumes && !training->check_only) PN_TRY(initialise_parameters(training));
    if (!training->idle) tell_other_machine(training);
    PN_TRY(pn_training_record_evaluation(training));
    PN_TRY(pn_drain_create(training));
    if (training->directory && !training->idle) PN_TRY(begin_run(training));
    training->compile_for = NULL; /* a later phase need not */
    training->start_seconds = pn_clock() - start;
    training->start_compiled = pn_compiled_kernels() - compiled;
    tell_cache_trouble(training);
    *out = training;
    return PINN_OK;
fail:
    if (status == PINN_NO_MEMORY && !training->check_only)
        pn_fail(status, "%s; pinn-train --plan tells what takes how much", pinn_error_message());
    pinn_training_destroy(training);
    return status;
}

void pinn_training_destroy(pinn_training *t) {
    if (!t) return;
    if (t->context) pinn_context_synchronize(t->context);
    if (pn_run_close(t->run) != PINN_OK) pn_note(t, "%s", pinn_error_message()); /* only what pinn_training_run has not returned */
    pinn_graph *const graph[] = {t->drain[1], t->drain[0], t->prediction_graph, t->evaluation_graph, t->sample_graph, t->chunk_graph};
    for (size_t i = 0; i < sizeof graph / sizeof graph[0]; i++) pinn_graph_destroy(graph[i]);
    pn_pass_destroy(t->evaluation);
    pn_machinery_destroy(&t->machinery);
    /* Views come before the plane they belong to. */
    pinn_plane *const plane[] = {t->reference, t->evaluation_points, t->home_state, t->home_ring, t->home_words,
                                 t->seed_plane, t->ring,             t->single,     t->unrolled,  t->loop,
                                 t->hyper,     t->words,             t->moments,    t->parameter, t->state};
    for (size_t i = 0; i < sizeof plane / sizeof plane[0]; i++) pinn_plane_destroy(plane[i]);
    pinn_context_destroy(t->context);
    pn_free(t->tiles);
    pn_free(t->tiles_before);
    pn_text_free(&t->tiles_from);
    pn_layout_free(&t->value_layout);
    pn_network_destroy(t->network);
    pn_problem_destroy(t->problem);
    pn_config_destroy(t->config);
    pn_text_free(&t->resolved);
    pn_text_free(&t->machine);
    pn_free(t->stored_machine);
    pn_free(t->directory);
    pn_free(t->row);
    pn_free(t->relative_l2);
    pn_free(t->term_name);
    pn_free(t->phase_points);
    pn_free(t->phase_size);
    pn_free(t);
}
