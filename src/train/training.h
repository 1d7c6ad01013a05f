/* The inside of a pinn_training, shared by the files of this folder.
 *
 *   training.c   creation and destruction: config -> problem -> network -> planes
 *   machinery.c  what depends on the point counts: sampler, passes, step nodes, and the recorded graphs
 *   phases.c     what each phase takes, checked before the first step
 *   loop.c       phases, chunks, what the host looks at between them
 *   blame.c      where a loss that is not finite comes from
 *   drain.c      the recorded list that carries event rows and snapshots home, its host node, resuming
 *   report.c     result, JSON
 *   plan.c       the plan
 *   step.c       the nodes after the network pass
 *   profile.c    what each node of a step takes by itself
 *   tiles.c      who chooses the tiles of a GPU's network pass
 *   tune.c       measures them
 */
#ifndef PN_TRAIN_TRAINING_H
#define PN_TRAIN_TRAINING_H

#include <stdatomic.h>

#include "core/clock.h"
#include "core/memory.h"
#include "io/progress.h"
#include "io/run_directory.h"
#include "kernels/begin.h"
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
    size_t bytes; /* of all its planes */
} pn_machinery;

/* What a phase takes. */
typedef struct pn_phase_size {
    size_t planes, beside; /* bytes: of its machinery's planes, and of what its pass has beside them */
    double operations;     /* floating-point, a step */
    size_t *points;        /* [sets], in phase_points */
    bool changed;          /* other points than in the phase before */
    bool reached;          /* begins before last_step: else it was not measured */
} pn_phase_size;

struct pinn_training {
    /* what is asked for */
    pn_config *config;
    bool config_changed;   /* by options (--set, --seed): the file alone does not tell it */
    pn_problem *problem;
    pn_network *network;
    pn_text resolved;      /* the config as TOML with every default */
    pn_text machine;       /* what exact resume depends on, in the present phase */
    char *stored_machine;  /* the same of the run that is resumed, in the phase its checkpoint stands in; or NULL */
    char *directory;
    pn_lowering lowering;
    const char *lowering_from; /* who may say which, for messages: "PINN_PASS" or the option */
    bool products_fma;     /* as in pn_pass_spec */
    char *tiles; /* owned; in their canonical form; NULL = by the model. Once the pass is made: what it uses on a GPU */
    pn_text tiles_from; /* who gave them, for messages: "PINN_TILES", "configs/heat.toml:5:10: tiles"; empty: nobody, or the checkpoint */
    bool tiles_anew;     /* "auto" was asked for by an option or the environment: not what a checkpoint has */
    char *tiles_before;  /* owned; of the run that is resumed, where others may take their place; else NULL */
    const char *compile_for; /* borrowed while the training is created */
    bool idle;               /* resumed with nothing left to do: the run does not begin, and its files stay as they are */
    bool check_only;         /* made with compile_for or plan_only: never run, and its planes have no memory (graph/plan.h) */
    uint64_t seed, total_steps, last_step; /* last_step: the smaller of all phases' steps and [stop] step */
    FILE *progress_stream;
    pn_progress *progress; /* on it, while the training runs; else NULL */
    void (*message)(void *user, const char *line);
    void *message_user;

    /* the device side */
    pinn_context *context;
    pinn_plane *state;                      /* parameters, moments, words in one piece: a snapshot is one copy */
    pinn_plane *parameter, *moments, *words; /* views of it */
    size_t state_moments, state_words, state_bytes; /* byte offsets of the views */
    pinn_plane *hyper, *ring, *seed_plane;
    pinn_plane *loop, *unrolled, *single;   /* pn_loop and the two flags in it */
    pinn_plane *home_words, *home_ring, *home_state; /* pinned: where a drain lands */
    const pn_words *landed_words; /* their addresses, for the host function, which may not ask the graph layer */
    const double *landed_ring;
    const char *landed_state;
    pn_machinery machinery;
    bool machinery_new;     /* not recorded yet: its graphs are built anew, which is no news */
    pinn_plane *evaluation_points, *reference;
    pn_layout value_layout;
    pn_pass *evaluation;
    pinn_graph *chunk_graph;      /* a chunk of training steps: begin, then loops around the step; see kernels/begin.h */
    pinn_graph *sample_graph;     /* draws the fixed point sets, once a phase */
    pinn_graph *evaluation_graph; /* forward on the evaluation set, errors into the newest event row */
    pinn_graph *prediction_graph; /* forward only: the final fields */
    pinn_graph *drain[2];         /* rows; rows and snapshot */

    /* the host side of a run */
    pn_run *run;
    atomic_int interrupted;
    pn_hyper settings;         /* as on the device */
    uint32_t unroll;           /* steps in the body of the chunk graph's first loop */
    uint64_t longest;          /* no chunk has more steps */
    uint64_t step, phase_step; /* done; mirrors of the device words, as `stop`, the last step's scalars and the best loss */
    uint64_t stop, best_step;
    double loss, learning_rate, best_loss;
    size_t phase, phases_applied; /* the present [[train]]; how many of them have set their point counts */
    pn_phase_size *phase_size;    /* [phases], from the first that this process is to run; NULL with compile_for */
    size_t *phase_points;         /* [phases][sets] */
    uint64_t drained;       /* event rows already handed to the writer */
    double start, seconds_before; /* monotonic time of this process's first step; training seconds of earlier processes */
    double *row;            /* [1 + row length]: the newest event row, "seconds" inserted after the step */
    uint64_t first_step;    /* where this process began */
    double seconds;         /* training time of this process, up to the last chunk */
    bool trains;            /* it goes on */
    pn_progress_rate rate;  /* of the present phase */
    double start_seconds, start_context, start_kernels; /* of creating the training: in all, the context alone, waiting for kernels alone */
    size_t start_compiled;  /* kernels compiled meanwhile; the others came from the cache */
    double phase_began;     /* monotonic time; and how many kernels this process had compiled then, */
    size_t phase_compiled;
    bool told_compiling;    /* since then that it waits for kernels */
    const char *stop_reason;

    /* results, also borrowed by pinn_result */
    const char **term_name;
    double *relative_l2;    /* [fields] */
    uint64_t evaluated;     /* the step they are of */
    bool has_evaluation;
};

/* On a GPU a trip of a loop costs some 3 us beyond its kernels: shared by ten steps it is under 3 % of even the shortest steps (12 us), and
 * ten divides the usual numbers of steps between events, so that few chunks have steps left over for the loop of single ones. On the CPU a
 * trip costs nothing. */
#define PN_GPU_UNROLL 10u
#define PN_LONGEST_CHUNK UINT32_MAX /* steps: a loop counts its trips in 32 bits */
#define PN_STATE_ALIGNMENT 256u /* bytes between the parts of the state */

pinn_status pn_machinery_create(pinn_training *training);
void pn_machinery_destroy(pn_machinery *machinery);
/* Where each set's columns begin in the points plane, elements, [sets]; returns the plane's elements. */
size_t pn_points_place(const pn_problem *problem, size_t *offset);
/* Tiles of the GPU's network pass (tiles.c). Who gives them first is heard: the option, the environment, the file, the checkpoint that is
 * resumed; the file's "auto" gives none. What is given and does not fit is an error; a checkpoint's that do not fit another device are chosen anew, with a note. */
pinn_status pn_tiles_choose(pinn_training *training, const pinn_options *options, bool cpu);
pinn_status pn_tiles_resume(pinn_training *training, const char *stored);
/* After the pass could not be made with training->tiles: OK to try without them, or the error to return. */
pinn_status pn_tiles_refused(pinn_training *training);
/* After the pass could not be made without tiles: the error to return. */
pinn_status pn_lowering_refused(const pinn_training *training);
/* Keeps what the pass uses, for later phases and for the config of the run; says so when no tiles fit. */
pinn_status pn_tiles_settle(pinn_training *training);
/* A pass over the training points that stores residuals, [set][residuals][points]. The caller destroys it. */
pinn_status pn_residuals_create(pinn_training *training, pn_pass **out);
/* A pass as the step's own, with training->tiles. The caller destroys it. */
pinn_status pn_candidate_create(pinn_training *training, pn_pass **out);
/* Records and builds chunk_graph over the current machinery, draws the fixed points. */
pinn_status pn_machinery_record(pinn_training *training);
/* Appends a chunk to a graph that has begun: loops around `unroll` steps and around one. */
pinn_status pn_chunk_record(const pinn_training *training, pinn_graph *graph, uint32_t unroll);
/* The evaluation's planes and pass, whose kernels then compile in the background; its graphs. */
pinn_status pn_training_create_evaluation(pinn_training *training);
pinn_status pn_training_record_evaluation(pinn_training *training);
/* Makes the machinery that the phase needs, the first time the evaluation too, and describes the machine; writes the phase's schedule, what
 * falls due when and the stop rules into the settings and the hyper words. */
pinn_status pn_phase_begin(pinn_training *training, size_t phase);
/* Once the first phase is made: measures those to come, and refuses what cannot fit (NO_MEMORY). A training that only plans goes on to the phase
 * that needs the most. */
pinn_status pn_phases_check(pinn_training *training);
/* What the run has in all in a phase, bytes: on a GPU its planes; on a CPU also what there is beside the planes: the passes' own, the
 * evaluation set as it was read, and the writer's slot of a snapshot. */
size_t pn_phase_bytes(const pinn_training *training, size_t phase);
/* Which of the rules that the host looks at ends the run where it stands, "steps", "step" or "seconds"; or NULL. */
const char *pn_end_reached(const pinn_training *training);
/* Lets the next chunks have at most `longest` steps; `plain`: exactly so many. */
pinn_status pn_chunk_limit(pinn_training *training, uint64_t longest, bool plain);

pinn_status pn_drain_create(pinn_training *training);
/* Enqueues the copy of new rows (and a snapshot if `snapshot`); after the next wait they are with the writer. */
pinn_status pn_drain_enqueue(pinn_training *training, bool snapshot);
/* Writes a checkpoint of the present state and waits for the disk. */
pinn_status pn_checkpoint_now(pinn_training *training);
/* Takes the mirrors of the device words from where a drain or a checkpoint left them. */
void pn_mirror_words(pinn_training *training, const pn_words *words);
/* Takes parameters, moments and words from the directory's checkpoint, and the last event row; finds out whether anything is left to do. */
pinn_status pn_training_resume(pinn_training *training);
/* Event columns, in the order of the rows handed to the writer. `count` names, owned by the caller: free each, then the array. */
pinn_status pn_event_names(const pinn_training *training, char ***out, size_t *count);
void pn_event_names_free(char **names, size_t count);

/* The failure of a run whose loss or gradient is not finite: names the first bad term, its first bad point and the residual there.
 * Looks at the points and parameters as the stop rule left them. Returns NUMERIC. */
pinn_status pn_blame(pinn_training *training);

/* Final fields on the evaluation set -> relative_l2 and, with a run directory, solution.h5. */
pinn_status pn_finish_solution(pinn_training *training);

/* A line for the caller's message function, on a terminal above the live line. */
void pn_note(const pinn_training *training, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
