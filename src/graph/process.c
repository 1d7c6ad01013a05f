/* What is common to all contexts of the process, and what the calling thread is doing.
 *
 * CUDA's rule behind it: freeing or destroying any CUDA object while a stream capture is open anywhere in the process may kill
 * that capture. So all releases go through one queue that runs only while no capture is open. Releases run without the lock, so
 * that a host function that the driver waits for can push more of them; `exclusive` keeps captures out meanwhile.
 *
 * Who waits for whom. Exclusion waits for captures: a thread that holds one would wait for itself and is refused. A capture waits
 * for exclusion, under which only the library's own code runs, which opens neither. A second capture on one thread never waits, as
 * the first keeps exclusion out. Pushing a release never waits.
 */
#include "graph/graph.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t captures; /* open in the process */
static bool exclusive;  /* one thread runs releases or creates a context */
static pn_release *first_release;
static pn_release **last_release = &first_release;
static _Thread_local size_t held; /* captures that this thread has open */

uint64_t pn_generation_next(void) {
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

/* With the lock held and no capture open. */
static void run_releases(void) {
    exclusive = true;
    while (first_release) {
        pn_release *item = first_release;
        first_release = NULL;
        last_release = &first_release;
        pthread_mutex_unlock(&lock);
        while (item) {
            pn_release *next = item->next; /* read first: run() frees the object the item lies in */
            item->run(item);
            item = next;
        }
        pthread_mutex_lock(&lock);
    }
    exclusive = false;
    pthread_cond_broadcast(&changed);
}

void pn_release_push(pn_release *item) {
    pthread_mutex_lock(&lock);
    item->next = NULL;
    *last_release = item;
    last_release = &item->next;
    if (captures == 0 && !exclusive) run_releases();
    pthread_mutex_unlock(&lock);
}

void pn_capture_open(void) {
    pthread_mutex_lock(&lock);
    while (exclusive) pthread_cond_wait(&changed, &lock);
    captures++;
    pthread_mutex_unlock(&lock);
    held++;
}

void pn_capture_close(void) {
    held--;
    pthread_mutex_lock(&lock);
    if (--captures == 0) {
        if (first_release) run_releases();
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

pinn_status pn_exclusive_open(void) {
    if (held > 0) {
        const char *node = pn_inside_node();
        return pn_fail(PINN_REFUSED,
                       "it has to wait until no capture is open, and this thread is capturing '%s': call it outside of the recorded "
                       "operation",
                       node ? node : "a graph");
    }
    pthread_mutex_lock(&lock);
    while (captures > 0 || exclusive) pthread_cond_wait(&changed, &lock);
    exclusive = true;
    pthread_mutex_unlock(&lock);
    return PINN_OK;
}

void pn_exclusive_close(void) {
    pthread_mutex_lock(&lock);
    run_releases(); /* those pushed meanwhile; ends the exclusion */
    pthread_mutex_unlock(&lock);
}

/* ---- the calling thread ---------------------------------------------------------------------------------------------------- */

static _Thread_local pn_frame *frames;
static _Thread_local size_t runs; /* builds and enqueues this thread is inside of */
static _Thread_local pn_doomed *first_doomed, *last_doomed;

void pn_frame_push(pn_frame *frame, const pinn_context *context, const char *node, pn_frame_kind kind) {
    *frame = (pn_frame){.outer = frames, .context = context, .node = node, .kind = kind};
    frames = frame;
}

void pn_frame_pop(const pn_frame *frame) { frames = frame->outer; }

/* The frame that forbids a call with `context`: one of the same context, or a host node of a CUDA context when the call would reach
 * the CUDA runtime, which host functions must not. */
static const pn_frame *forbidding_frame(const pinn_context *context, bool eager_may) {
    for (const pn_frame *frame = frames; frame; frame = frame->outer) {
        if (frame->context == context && !(eager_may && frame->kind == PN_FRAME_EAGER)) return frame;
        if (frame->kind == PN_FRAME_HOST && frame->context->executor != PINN_EXECUTOR_CPU && context->executor != PINN_EXECUTOR_CPU)
            return frame;
    }
    return NULL;
}

const char *pn_inside_node(void) { return frames ? frames->node : NULL; }

const char *pn_inside_form(void) {
    const pn_frame *frame = frames;
    while (frame && frame->kind != PN_FRAME_FORM) frame = frame->outer;
    return frame ? frame->node : NULL;
}

static pinn_status enter(const pinn_context *context, const char *function, bool eager_may) {
    static const char *const kinds[] = {
        [PN_FRAME_FORM] = "operation", [PN_FRAME_HOST] = "host node", [PN_FRAME_EAGER] = "eager cut"};
    if (!context) return pn_fail(PINN_BAD_ARGUMENT, "%s: its object is NULL", function);
    const pn_frame *frame = forbidding_frame(context, eager_may);
    if (!frame) return PINN_OK;
    return pn_fail(PINN_REFUSED, "%s called from inside %s '%s' of the same context: return from it first, then call", function,
                   kinds[frame->kind], frame->node);
}

pinn_status pn_enter(const pinn_context *context, const char *function) { return enter(context, function, false); }

pinn_status pn_enter_or_eager(const pinn_context *context, const char *function) { return enter(context, function, true); }

void pn_run_begin(void) { runs++; }

void pn_run_end(void) {
    if (--runs > 0) return;
    while (first_doomed) {
        pn_doomed *doomed = first_doomed;
        first_doomed = doomed->next;
        if (!first_doomed) last_doomed = NULL;
        doomed->destroy(doomed->object);
    }
}

/* Inside an operation's form or an eager cut, or in a run but in no node (a message function), what is destroyed may be in use by
 * the run. A host function that got here destroys what belongs to another context. */
static bool must_postpone(void) {
    for (const pn_frame *frame = frames; frame; frame = frame->outer)
        if (frame->kind != PN_FRAME_HOST) return true;
    return runs > 0 && !frames;
}

void pn_destroy(pinn_context *context, pn_doomed *doomed, void (*destroy)(void *), void *object, const char *function) {
    const pn_frame *frame = forbidding_frame(context, false);
    if (frame && frame->kind == PN_FRAME_HOST) {
        pn_fault_keep(context, "%s called from inside host node '%s': ignored, destroy it outside", function, frame->node);
        return;
    }
    if (!must_postpone()) {
        destroy(object);
        return;
    }
    if (doomed->waiting) return;
    *doomed = (pn_doomed){.destroy = destroy, .object = object, .waiting = true};
    if (last_doomed)
        last_doomed->next = doomed;
    else
        first_doomed = doomed;
    last_doomed = doomed;
}
