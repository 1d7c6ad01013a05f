/* The run directory and its writer thread.
 *
 * HDF5 is used by one thread only, the writer: rows and snapshots are handed over by the host node at the end of a drain and
 * written while training goes on. Rows are never lost: when the queue is full pn_run_rows waits. A snapshot that comes while the
 * last one is still being written is skipped (pn_run_snapshot says so).
 */
#ifndef PN_IO_RUN_DIRECTORY_H
#define PN_IO_RUN_DIRECTORY_H

#include "io/checkpoint.h"
#include "io/solution.h"

typedef struct pn_run pn_run;

typedef enum pn_run_mode { PN_RUN_NEW, PN_RUN_FORCE, PN_RUN_RESUME } pn_run_mode;

typedef struct pn_run_spec {
    const char *path;            /* directory; made with its parents */
    pn_run_mode mode;            /* NEW: refused when a run is there; the message offers --force and --resume. */
    const char *config;          /* resolved TOML -> config.toml */
    const char *const *quantity; /* event columns: "step", "seconds", ... */
    size_t quantities;
    int64_t resume_step;        /* RESUME: rows up to this step are kept */
    size_t snapshot_parameters; /* network->parameters: sizes the slot of a snapshot */
    pn_real real;
} pn_run_spec;

/* Takes the directory's lock (flock on DIR/.lock: it goes with the process, however that ends), so that two runs never write into
 * one. FORCE removes an old run's files by name, nothing else (records kept aside as damaged stay). RESUME needs a checkpoint. Then
 * writes config.toml, opens the record and starts the writer thread. Errors: CONFIG when `mode` doesn't fit what is there, IO for
 * the rest. */
pinn_status pn_run_open(const pn_run_spec *spec, pn_run **out);
/* Queues event rows (copied), any thread; waits while the queue is full. Returns the writer's first failure once there was one:
 * from then on nothing more is written, so that the files stay those of one moment. */
pinn_status pn_run_rows(pn_run *run, const double *row, size_t rows);
/* True when a snapshot can be taken now: the last one is written. */
bool pn_run_snapshot_ready(pn_run *run);
/* Queues a checkpoint (all arrays and texts copied, `network` borrowed until it is written); the rows queued before it reach the
 * disk first, so that a record never ends before its checkpoint. false through `taken` when skipped. `wait`: wait for the last one
 * instead of skipping. */
pinn_status pn_run_snapshot(pn_run *run, const pn_checkpoint *checkpoint, bool wait, bool *taken);
/* Queues solution.h5 (copied) at the end. */
pinn_status pn_run_solution(pn_run *run, const pn_solution *solution);
/* Waits until everything queued is on disk; returns the first failure. */
pinn_status pn_run_flush(pn_run *run);
/* Flushes, stops the thread, releases the lock. NULL is fine. */
pinn_status pn_run_close(pn_run *run);
const char *pn_run_path(const pn_run *run);
/* What the user should know about the old files of a resumed run (a damaged record kept aside), or NULL. */
const char *pn_run_warning(const pn_run *run);

#endif
