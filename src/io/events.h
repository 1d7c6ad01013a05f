/* events.h5: the training record, one extendible dataset per quantity, readable with SWMR readers while the run writes it.
 *
 * All datasets exist before SWMR writing starts; appending extends every dataset by the same rows and flushes. After kill -9 the
 * lengths may differ by the rows in flight: readers use the shortest. Status flags are never cleared.
 */
#ifndef PN_IO_EVENTS_H
#define PN_IO_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

typedef struct pn_events pn_events;

/* Quantities in row order; "step" is stored as int64, the rest float64. "loss/heat" becomes /events/loss/heat. */
pinn_status pn_events_create(const char *path, const char *const *quantity, size_t count, pn_events **out);
/* Appends `rows` rows of `count` float64 each and flushes to the file system. */
pinn_status pn_events_append(pn_events *events, const double *row, size_t rows);
pinn_status pn_events_close(pn_events *events);

/* Continues a record: reads `path` as a SWMR reader, writes rows with step <= `last_step` into a new file, renames it over `path`,
 * and opens that for appending. A file that can't be read any more is kept as path.damaged and a new one begun; `warning` (may be
 * NULL) then gets a text. */
pinn_status pn_events_resume(const char *path, const char *const *quantity, size_t count, int64_t last_step, pn_events **out,
                             char **warning);

/* The last row with step <= `last_step` of a record that nobody writes, left as it is; NaN for quantities that it has not. `row` [count] is
 * written only where there is one. IO: no record, or a damaged one. */
pinn_status pn_events_last(const char *path, const char *const *quantity, size_t count, int64_t last_step, double *row, bool *found);

#endif
