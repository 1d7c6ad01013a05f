/* Inside of a run directory, shared by run_directory.c (files, lock) and run_writer.c (queue, thread). */
#ifndef PN_IO_RUN_H
#define PN_IO_RUN_H

#include <pthread.h>
#include <stdint.h>

#include "io/events.h"
#include "io/run_directory.h"

enum { PN_RUN_QUEUE_ROWS = 1024 }; /* four device rings: the training runs this far ahead of the disk */

typedef enum pn_snapshot_state { PN_SNAPSHOT_FREE, PN_SNAPSHOT_FILLING, PN_SNAPSHOT_QUEUED, PN_SNAPSHOT_WRITING } pn_snapshot_state;

struct pn_run {
    char *path, *events_path, *checkpoint_path, *solution_path, *config_path; /* owned */
    pn_text warning;                                                          /* empty: none */
    pn_run_mode mode;
    int lock;             /* descriptor of the lock file; -1: none */
    bool made_lock;       /* the lock file is new */
    size_t made;          /* length of the first directory's path that was made here; 0: none was */
    bool config_is_input; /* config.toml is the problem file of this resumed run */
    bool keeps_config;    /* ... and no run wrote it */
    bool began;           /* pn_run_start has gone well */
    bool has_checkpoint;  /* on disk, of step checkpoint_step; guarded by the mutex once there is a thread */
    uint64_t checkpoint_step;
    size_t quantities, snapshot_parameters;
    pn_real real;
    pn_events *events; /* the writer thread's while it runs */

    pthread_t thread;
    bool started;              /* thread, mutex and conditions exist */
    pthread_mutex_t mutex;     /* guards all below */
    pthread_cond_t work, done; /* something to write; something written */
    bool stop;

    double *queue;            /* [PN_RUN_QUEUE_ROWS][quantities], a ring */
    uint64_t queued, written; /* rows since the run was opened; queued - written of them are in the ring */

    pn_snapshot_state snapshot_state;
    pn_checkpoint snapshot;  /* its arrays lie in `slot`, its texts are owned */
    void *slot;              /* [3][snapshot_parameters] in `real`: parameters, m, v */
    uint64_t snapshot_after; /* rows to be written before it */

    pn_solution *solution; /* owned deep copy, NULL: none queued */

    pinn_status failure; /* the first */
    char failure_message[4096];
    bool told;       /* some call has returned it */
    bool not_finite; /* a snapshot was dropped; the step it was of: */
    uint64_t not_finite_step;
};

/* Mutex, conditions, queue, slot, thread. On failure nothing is left but what pn_run_writer_stop frees. */
pinn_status pn_run_writer_allocate(pn_run *run);
pinn_status pn_run_writer_start(pn_run *run);
/* Writes what is queued, ends the thread, frees the writer's memory. */
void pn_run_writer_stop(pn_run *run);

#endif
