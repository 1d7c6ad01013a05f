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

/* Makes the directory with its parents, takes its lock (flock on DIR/.lock: it goes with the process, however that ends), so that
 * two runs never write into one, and checks that `mode` fits what is there: NEW is refused where any file of a run's is (the
 * message offers
 * --force and --resume), RESUME without a checkpoint, FORCE and RESUME before a config.toml that no run wrote. `input`: paths of the run's own
 * sources, NULL ones are skipped; refused when one of them is a file the run would write over. Nothing of an old run is touched:
 * until pn_run_start, pn_run_close leaves all as it was, and takes away a directory that was made here. Errors: CONFIG when `mode`
 * or an input doesn't fit, IO for the rest. */
pinn_status pn_run_claim(const char *path, pn_run_mode mode, const char *const *input, size_t inputs, pn_run **out);

typedef struct pn_run_spec {
    const char *config;          /* resolved TOML -> config.toml, unless that is a resumed run's problem file and no run's */
    const char *const *quantity; /* event columns: "step", "seconds", ... */
    size_t quantities;
    int64_t resume_step;        /* RESUME: rows up to this step are kept */
    size_t snapshot_parameters; /* network->parameters: sizes the slot of a snapshot */
    pn_real real;
} pn_run_spec;

/* Once, after everything else that may fail: removes what a killed run left half-written and, with FORCE, an old run's files by
 * name, nothing else (records kept aside as damaged stay); opens the record, writes config.toml (one that was edited by hand is kept
 * aside on RESUME) and starts the writer thread. When it fails nothing new is left; what comes below needs a run that has begun. */
pinn_status pn_run_start(pn_run *run, const pn_run_spec *spec);
/* Queues event rows (copied), any thread; waits while the queue is full. Returns the writer's first failure once there was one:
 * from then on nothing more is written, not even a checkpoint, so that the files stay those of one moment: the message says of
 * which. */
pinn_status pn_run_rows(pn_run *run, const double *row, size_t rows);
/* True when a snapshot can be taken now: the last one is written. */
bool pn_run_snapshot_ready(pn_run *run);
/* Queues a checkpoint (all arrays and texts copied, `network` borrowed until it is written); the rows queued before it reach the
 * disk first, so that a record never ends before its checkpoint. One with a parameter or moment that is not finite never replaces
 * the last good one: it is dropped, and pn_run_flush returns NUMERIC from then on. false through `taken` when skipped. `wait`: wait
 * for the last one instead of skipping. */
pinn_status pn_run_snapshot(pn_run *run, const pn_checkpoint *checkpoint, bool wait, bool *taken);
/* Queues solution.h5 (copied) at the end. */
pinn_status pn_run_solution(pn_run *run, const pn_solution *solution);
/* Of a resumed run that has nothing left to do and so never begins: writes solution.h5 where there is none of the solution's step, as after a
 * kill between checkpoint and solution. All else stays as it is. */
pinn_status pn_run_complete(pn_run *run, const pn_solution *solution);
/* Waits until everything queued is on disk; returns the first failure, or NUMERIC after a snapshot that was not finite. */
pinn_status pn_run_flush(pn_run *run);
/* Writes what is queued, stops the thread, releases the lock; returns a failure that no call has returned yet. NULL is fine. */
pinn_status pn_run_close(pn_run *run);
/* What the user should know about the old files of a resumed run (what was kept aside), or NULL. */
const char *pn_run_warning(const pn_run *run);

#endif
