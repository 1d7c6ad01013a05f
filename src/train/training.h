/* The inside of a pinn_training, shared by the files of this folder.
 *
 *   training.c   creation and destruction: config -> problem -> network -> planes
 *   machinery.c  what depends on the point counts: sampler, passes, step nodes, and the four recorded graphs
 *   loop.c       phases, chunks, stop rules
 *   drain.c      the recorded list that carries event rows and snapshots home, its host node, resuming
 *   report.c     result, JSON, plan
 *   step.c       the nodes after the network pass
 */
#ifndef PN_TRAIN_TRAINING_H
#define PN_TRAIN_TRAINING_H

#include <stdatomic.h>

#include "core/memory.h"
#include "io/progress.h"
#include "io/run_directory.h"
#include "pinn.h"
#include "problem/problem.h"
#include "train/step.h"

/* Everything sized by the point counts; rebuilt when a phase changes them. */
typedef struct pn_machinery {
    pinn_plane *points;  /* device, the sets' columns one after another */
    pinn_plane *weight;  /* device, float64 [2][terms] */
    pinn_plane *scale;   /* device, [terms] */
    pn_sampler *sampler;
    pn_pass *pass;
    pn_step *step;
} pn_machinery;

struct pinn_training {
    /* what is asked for */
    pn_config *config;
    pn_problem *problem;
    pn_network *network;
    pn_text resolved;      /* the config as TOML with every default */
    pn_text machine;       /* what exact resume depends on */
    char *stored_machine;  /* the same of the run that is resumed, or NULL */
    char *directory;
    pn_lowering lowering;
    const char *compile_for; /* borrowed while the training is created */
    uint64_t seed, total_steps, last_step; /* last_step: the smaller of all phases' steps and [stop] step */
    FILE *progress_stream;
    void (*message)(void *user, const char *line);
    void *message_user;

    /* the device side */
    pinn_context *context;
    pinn_plane *state;                      /* parameters, moments, words in one piece: a snapshot is one copy */
    pinn_plane *parameter, *moments, *words; /* views of it */
    size_t state_moments, state_words, state_bytes; /* byte offsets of the views */
    pinn_plane *hyper, *ring, *seed_plane;
    pinn_plane *home_words, *home_ring, *home_state; /* pinned: where a drain lands */
    const pn_words *landed_words; /* their addresses, for the host function, which may not ask the graph layer */
    const double *landed_ring;
    const char *landed_state;
    pn_machinery machinery;
    pinn_plane *evaluation_points, *reference;
    pn_layout value_layout;
    pn_pass *evaluation;
    pinn_graph *step_graph;       /* one training step */
    pinn_graph *sample_graph;     /* draws the fixed point sets, once a phase */
    pinn_graph *evaluation_graph; /* forward on the evaluation set, errors into the newest event row */
    pinn_graph *prediction_graph; /* forward only: the final fields */
    pinn_graph *drain[2];         /* rows; rows and snapshot */

    /* the host side of a run */
    pn_run *run;
    atomic_int interrupted;
    uint64_t step, phase_step; /* done; mirrors of the device words */
    size_t phase, phases_applied; /* the present [[train]]; how many of them have set their point counts */
    uint64_t drained;       /* event rows already handed to the writer */
    double start, seconds_before; /* monotonic time of this process's first step; training seconds of earlier processes */
    double *row;            /* [1 + row length]: the newest event row, "seconds" inserted after the step */
    uint64_t first_step;    /* where this process began */
    double seconds;         /* training time of this process */
    const char *stop_reason;

    /* results, also borrowed by pinn_result */
    const char **term_name;
    double *relative_l2;    /* [fields] */
    bool has_evaluation;
};

#define PN_STATE_ALIGNMENT 256u /* bytes between the parts of the state */

pinn_status pn_machinery_create(pinn_training *training);
void pn_machinery_destroy(pn_machinery *machinery);
/* Records step_graph and sample_graph over the current machinery. */
pinn_status pn_machinery_record(pinn_training *training);
pinn_status pn_training_create_evaluation(pinn_training *training);
/* Writes the phase's schedule and the event rule into the hyper words. */
pinn_status pn_phase_begin(pinn_training *training, size_t phase);

pinn_status pn_drain_create(pinn_training *training);
/* Enqueues the copy of new rows (and a snapshot if `snapshot`); after the next wait they are with the writer. */
pinn_status pn_drain_enqueue(pinn_training *training, bool snapshot);
/* Writes a checkpoint of the present state and waits for the disk. */
pinn_status pn_checkpoint_now(pinn_training *training);
/* Takes parameters, moments and words from the directory's checkpoint. */
pinn_status pn_training_resume(pinn_training *training);
/* Event columns, in the order of the rows handed to the writer. `count` names, owned by the caller: free each, then the array. */
pinn_status pn_event_names(const pinn_training *training, char ***out, size_t *count);
void pn_event_names_free(char **names, size_t count);

/* Final fields on the evaluation set -> relative_l2 and, with a run directory, solution.h5. */
pinn_status pn_finish_solution(pinn_training *training);

double pn_clock(void); /* seconds, monotonic */
void pn_note(const pinn_training *training, const char *format, ...) __attribute__((format(printf, 2, 3)));
pn_real pn_training_real(const pinn_training *training);

#endif
