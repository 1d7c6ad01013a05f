/* pinn.h - train a physics-informed neural network from a problem file.
 *
 *     pinn_options options = {.config = "configs/heat.toml", .device = "auto"};
 *     pinn_training *training = NULL;
 *     pinn_status status = pinn_training_create(&options, &training);   // reads, checks, compiles, plans: trains nothing
 *     if (status == PINN_OK) status = pinn_training_run(training);      // to the last step or the first stop rule
 *     if (status != PINN_OK) fprintf(stderr, "%s\n", pinn_error_message());
 *     pinn_training_destroy(training);
 *
 * The step (sample, forward, residual, backward, optimizer) is recorded once as a graph (pinn_graph.h) and replayed. What the run
 * leaves on disk is described in docs/run-directory.md. One training is used by one thread; pinn_training_interrupt alone may be called
 * from anywhere.
 */
#ifndef PINN_H
#define PINN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pinn_status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PINN_VERSION "0.1.0"

typedef struct pinn_training pinn_training;

typedef struct pinn_options { /* all strings borrowed during pinn_training_create */
    const char *config;     /* path of the problem file */
    const char *const *set; /* "KEY=VALUE" assignments over the file, applied in order */
    size_t set_count;
    const char *device;     /* "auto" (or NULL), "cpu", "cuda", "cuda:N" */
    const char *executor;   /* NULL: environment variable PINN_GRAPH, else "graph" on a GPU; "graph" or "eager" */
    const char *lowering;   /* NULL: environment variable PINN_PASS, else "auto"; "tiled", "streamed", "layered", or "fma": tiled, a GPU's products by scalar
                               multiply-adds, the slow oracle of the tensor cores. One that cannot be: CONFIG; "auto" finds one that can */
    const char *tiles;      /* NULL: environment variable PINN_TILES, else "auto"; tiles of the GPU's pass, as a plan prints them */
    const char *compile_for; /* on a CPU: compile the kernels that a GPU of this architecture ("sm_90") would run, as a check: the training cannot be
                                run; NULL = don't */
    bool plan_only;         /* sizes alone, for pinn_training_plan: takes none of the memory that a run would, and cannot be run */
    const char *directory;  /* run directory; NULL = runs/<config's name without .toml> */
    bool no_directory;      /* write nothing: plans and benches */
    bool force, resume;     /* an existing run: overwrite it, or go on from its checkpoint */
    bool has_seed;          /* `seed` replaces the file's */
    uint64_t seed;          /* 0 to 2^63 - 1, as TOML's integers: the run's config.toml holds it */
    FILE *progress;         /* progress lines; NULL = none */
    /* Warnings and notes, whole lines; NULL = none. May write to `progress` or to the same terminal: a live line makes room. */
    void (*message)(void *user, const char *line);
    void *message_user;
} pinn_options;

/* Errors: CONFIG (the message lists every error of the file with its place), IO, UNSUPPORTED, DEVICE, NO_MEMORY. */
pinn_status pinn_training_create(const pinn_options *options, pinn_training **out);
void pinn_training_destroy(pinn_training *training);

/* Trains until a stop rule is met. PINN_OK when finished by whatever rule; INTERRUPTED (a checkpoint was written first); NUMERIC when the
 * loss or its gradient is not finite: the step that met it is not done, parameters and checkpoint are of the step before, and the message
 * names the first bad term, its point and the residual there; IO when the run directory can't be written. */
pinn_status pinn_training_run(pinn_training *training);
/* Asks a running pinn_training_run to stop at the next chance. Async-signal-safe. */
void pinn_training_interrupt(pinn_training *training);

/* Runs exactly `count` steps (at most 2^32 - 1) of the present phase in one launch, without events and stop rules: benches and tests.
 * `enqueue_seconds` (may be NULL) is the time the calling thread needed to enqueue them, `seconds` the time until they were done. NUMERIC
 * as for run. */
pinn_status pinn_training_steps(pinn_training *training, uint64_t count, double *enqueue_seconds, double *seconds);
/* Copies the parameters, as float64; `count` must be the network's. NULL `out`: only the count. */
pinn_status pinn_training_parameters(pinn_training *training, double *out, size_t *count);

typedef struct pinn_result {
    const char *stop_reason; /* "steps", "step", "loss", "relative_l2", "gradient_norm", "plateau", "seconds", "signal", "nan"; "" before the end */
    uint64_t steps;          /* done since the run began, resumptions included */
    double seconds;          /* of training alone */
    double steps_per_second; /* of this process */
    double loss;             /* total, of the last event, a resumed run's of before included; NaN before the first */
    double best_loss;        /* the smallest total loss of all steps (each before its update), NaN before the first step */
    uint64_t best_step;      /* the step that measured it, counted from 1 */
    size_t terms, fields;
    const char *const *term; /* names; borrowed from the training */
    const double *losses;    /* [terms], of the last event; NaN before the first */
    const char *const *field;
    const double *relative_l2; /* [fields]; NaN where there is no reference */
    const char *device, *executor, *precision, *directory;
    const char *lowering;    /* with compile_for this and the tiles are those of the GPU */
    uint64_t graph_builds, graph_launches; /* of the graph of a chunk of steps: a launch is a chunk */
    double product_operations, pointwise_operations, bytes; /* a step of the network pass */
    size_t parameters, rows;
    const char *tiles;       /* of the GPU's tiled or streamed pass; "" where there are none */
    double start_seconds;    /* what pinn_training_create took ... */
    double start_context, start_kernels; /* ... of it the CUDA context and cuBLAS, and waiting for kernels to be compiled and loaded */
    size_t start_compiled;   /* kernels compiled meanwhile: 0 when all came from the cache */
} pinn_result;

void pinn_training_result(const pinn_training *training, pinn_result *out);
/* One JSON object with the fields above; `status` decides its "status" and "error". Owned by the caller (free()). */
pinn_status pinn_training_json(const pinn_training *training, pinn_status status, char **out);
/* What would run: sizes, planes, memory, channels a set carries, operations a step, the recorded graph; of several phases a list, and the rest of
 * the present one, with plan_only the one that needs the most. Owned by the caller (free()). Errors also: BAD_ARGUMENT after a failed run. */
pinn_status pinn_training_plan(const pinn_training *training, char **out);

/* Measures the promising tiles of a GPU's network pass, and the layered pass, each over the steps of the longest phase, and gives the fastest
 * as the key `tiles` of a problem file takes it. `table` is what a person reads. Both are owned by the caller (free()). The training must write no
 * run and have tiles "auto"; afterwards it is good for nothing but to be destroyed. Errors also: CONFIG on a CPU. */
pinn_status pinn_training_tune(pinn_training *training, char **table, char **tiles);
/* Sets the key `tiles` of a problem file and leaves the rest of its text as it is; NULL `tiles` only looks whether that could be done. The
 * file is replaced: a symbolic link stays one, another hard link keeps the old text. Errors: CONFIG, also for a read-only file; IO; UNSUPPORTED where the file is written in
 * a way that leaves no safe place for the key. */
pinn_status pinn_config_set_tiles(const char *config, const char *tiles);

#ifdef __cplusplus
}
#endif
#endif
