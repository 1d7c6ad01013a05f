/* The beginning of a chunk, the steps that one launch of the training graph does: it says at which step the chunk ends and sets the
 * flags of the graph's loops.
 *
 *     until = the first step after `step` at which the host has something to do: events to take, an evaluation, a checkpoint, the
 *             phase's or the run's end; at most `longest` steps away
 * The host computes the same with the same function and so knows what is due then, unless a stop rule ended the chunk before.
 * Where a chunk ends changes nothing of what its steps do.
 *
 * The graph runs  begin, WHILE (unrolled) { `unroll` steps }, WHILE (single) { a step }:  the first loop takes as many steps as
 * fill whole bodies, the second the rest, so no step is computed in vain but those behind a stop rule in one body. A step
 * (finish.h) that finds the chunk at its end or a stop rule met leaves everything as it is.
 */
#ifndef PN_KERNELS_BEGIN_H
#define PN_KERNELS_BEGIN_H

#include <stdbool.h>

#include "kernels/portable.h"
#include "kernels/words.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Steps at least between two drains of the ring, so that `events = 1` does not wait for the device at every step. The ring must
 * hold so many rows and a few. */
#define PN_LEAST_CHUNK 40u

typedef struct pn_begin_arguments {
    uint64_t unroll; /* steps in the first loop's body; at least 1 */
} pn_begin_arguments;

/* reads: words, hyper. writes: loop */
extern const pinn_operation pn_begin_operation;
pinn_status pn_begin_cuda(const pinn_run *run);

#ifdef __cplusplus
}
#endif

PN_PORTABLE bool pn_due(uint64_t step, uint64_t every) { return every != 0 && step % every == 0; }

/* The step at which a chunk that begins at `step` ends; `step` itself when nothing is left to do. */
PN_PORTABLE uint64_t pn_chunk_end(const pn_hyper *h, uint64_t step, uint64_t phase_step) {
    if (h->plain) return step + h->longest;
    if (step >= h->last_step || phase_step >= h->phase_steps) return step;
    uint64_t left = h->last_step - step; /* counted in steps from here: no sum can overflow */
    if (left > h->longest) left = h->longest;
    if (left > h->phase_steps - phase_step) left = h->phase_steps - phase_step;
    if (h->evaluate_every && left > h->evaluate_every - step % h->evaluate_every)
        left = h->evaluate_every - step % h->evaluate_every;
    if (h->checkpoint_every && left > h->checkpoint_every - step % h->checkpoint_every)
        left = h->checkpoint_every - step % h->checkpoint_every;
    if (h->event_every) {
        uint64_t event = h->event_every - step % h->event_every;
        if (event < PN_LEAST_CHUNK) event += (PN_LEAST_CHUNK - event) / h->event_every * h->event_every;
        if (left > event) left = event;
    }
    return step + left;
}

/* Whether the chunk's next step is to be done. */
PN_PORTABLE bool pn_loop_open(const pn_loop *loop, const pn_words *words) {
    return words->stop == PN_STOP_NONE && words->step < loop->until;
}

/* Sets the flags of both loops. */
PN_PORTABLE void pn_loop_mark(pn_loop *loop, const pn_words *words) {
    const bool open = pn_loop_open(loop, words);
    loop->unrolled = open && loop->until - words->step >= loop->unroll;
    loop->single = open;
}

PN_PORTABLE void pn_begin_chunk(const pn_begin_arguments *a, const pn_words *words, const pn_hyper *hyper, pn_loop *loop) {
    loop->unroll = a->unroll;
    loop->until = pn_chunk_end(hyper, words->step, words->phase_step);
    pn_loop_mark(loop, words);
}

#endif
