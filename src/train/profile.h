/* What every node of a training step takes by itself: the shares of a step, for benches. */
#ifndef PN_TRAIN_PROFILE_H
#define PN_TRAIN_PROFILE_H

#include "pinn.h"

typedef enum pn_step_part { PN_PART_SAMPLE, PN_PART_PASS, PN_PART_OPTIMIZER, PN_STEP_PARTS } pn_step_part;

typedef struct pn_node_time {
    char name[64];
    pn_step_part part;
    double seconds; /* of one run of the node */
} pn_node_time;

/* Times each node of the training's step, in their order: a list of copies of that node alone, replayed back to back for `seconds`, the
 * best of `repeats`. A copy follows the one before as nodes follow each other in a step, so its time holds a node's share of the
 * replay too; what differs from a step is that the node finds its own operands in the caches and not those its predecessors left there.
 * Parameters, moments and step words are afterwards what they were; event rows not yet taken home are lost. `out` is the caller's
 * (pn_free), `count` long. */
pinn_status pn_training_profile(pinn_training *training, double seconds, int repeats, pn_node_time **out, size_t *count);

#endif
