/* Compiles several kernels at once, and equal texts once: NVRTC takes seconds for a large one and runs in as many threads as there are.
 *
 * Jobs wait in one queue of the process; workers, at most one a processor, take them from its front and end when it is empty. Who asks for a
 * text that is being compiled, or was and some asker has not fetched it yet, shares that job; later askers find it in the cache. A job's error
 * becomes the error of each thread that asks for its result; when all have, the text is tried anew by who asks afterwards.
 *
 * A job belongs to its askers together: the last one to leave frees it. Until it is done it also belongs to whoever compiles it, so the last
 * asker of one that has begun waits. All members but those that compiling reads and writes are used with `lock` held. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "pointwise/kernel.h"

struct pn_compilation {
    char *source, *architecture; /* owned */
    size_t askers;
    pn_compilation *next;        /* in the queue of those not begun */
    pn_compilation *older;       /* in the list of all */
    bool done;
    pinn_status status;
    char *message;               /* owned; of a failure. NULL: there was no memory for it */
    void *image;                 /* owned */
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_done = PTHREAD_COND_INITIALIZER;
static pn_compilation *first, *last; /* the queue */
static pn_compilation *newest;       /* the list of all */
static long workers;
static _Thread_local const pn_patience *patience;

static void compile(pn_compilation *job) {
    job->status = pn_nvrtc_compile(job->source, job->architecture, &job->image, &job->bytes);
    if (job->status != PINN_OK) job->message = pn_duplicate(pinn_error_message(), strlen(pinn_error_message()));
}

static void *work(void *unused) {
    pthread_mutex_lock(&lock);
    while (first) {
        pn_compilation *job = first;
        first = job->next;
        pthread_mutex_unlock(&lock);
        compile(job);
        pthread_mutex_lock(&lock);
        job->done = true;
        pthread_cond_broadcast(&one_done);
    }
    workers--;
    pthread_mutex_unlock(&lock);
    return unused;
}

/* With `lock` held. Without any worker the one who waits does the work. */
static void add_worker(void) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_attr_t attributes;
    pthread_t thread;
    if (workers >= (processors < 1 ? 1 : processors) || pthread_attr_init(&attributes) != 0) return;
    if (pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 && pthread_create(&thread, &attributes, work, NULL) == 0) workers++;
    pthread_attr_destroy(&attributes);
}

static void free_job(pn_compilation *job) {
    pn_free(job->source);
    pn_free(job->architecture);
    pn_free(job->message);
    pn_free(job->image);
    pn_free(job);
}

/* One asker less; the last frees the job. With `lock` held, the job being done or in nobody's hands. */
static void leave(pn_compilation *job) {
    if (--job->askers > 0) return;
    pn_compilation **at = &newest;
    while (*at != job) at = &(*at)->older;
    *at = job->older;
    free_job(job);
}

/* With `lock` held. */
static pn_compilation *find_equal(const char *source, const char *architecture) {
    for (pn_compilation *job = newest; job; job = job->older)
        if (strcmp(job->source, source) == 0 && strcmp(job->architecture, architecture) == 0) return job;
    return NULL;
}

static pn_compilation *new_job(const char *source, const char *architecture) {
    pn_compilation *job = pn_allocate(1, sizeof *job);
    if (!job) return NULL;
    job->source = pn_duplicate(source, strlen(source));
    job->architecture = pn_duplicate(architecture, strlen(architecture));
    if (job->source && job->architecture) return job;
    free_job(job);
    return NULL;
}

/* With `lock` held. */
static void enqueue(pn_compilation *job) {
    job->older = newest;
    newest = job;
    if (first)
        last->next = job;
    else
        first = job;
    last = job;
    add_worker();
}

pinn_status pn_compilation_begin(const char *source, const char *architecture, pn_compilation **out) {
    pthread_mutex_lock(&lock);
    pn_compilation *job = find_equal(source, architecture);
    if (!job) {
        job = new_job(source, architecture);
        if (job) enqueue(job);
    }
    if (job) job->askers++;
    pthread_mutex_unlock(&lock);
    if (!job) return PN_NO_MEMORY("a kernel");
    *out = job;
    return PINN_OK;
}

/* Takes a job out of the queue, if it is still there. With `lock` held. */
static bool withdraw(pn_compilation *job) {
    pn_compilation *before = NULL, *at = first;
    for (; at && at != job; at = at->next) before = at;
    if (!at) return false;
    if (before)
        before->next = job->next;
    else
        first = job->next;
    if (last == job) last = before;
    return true;
}

void pn_compilation_patience(const pn_patience *new) { patience = new; }

/* Until this thread's patience ends, then tells of it. With `lock` held, which is free meanwhile. */
static void wait_patiently(const pn_compilation *job) {
    const time_t second = (time_t)patience->until;
    const struct timespec end = {second, (long)(1e9 * (patience->until - (double)second))}; /* of pn_clock's clock */
    while (!job->done && pthread_cond_clockwait(&one_done, &lock, CLOCK_MONOTONIC, &end) != ETIMEDOUT) continue;
    if (job->done) return;
    const pn_patience *const ended = patience;
    size_t kernels = 0;
    for (const pn_compilation *other = newest; other; other = other->older) kernels += !other->done;
    patience = NULL;
    pthread_mutex_unlock(&lock);
    ended->tell(ended->user, kernels);
    pthread_mutex_lock(&lock);
}

/* Until the job is done, by this thread if there is no worker. With `lock` held, which is free meanwhile. */
static void wait_for(pn_compilation *job) {
    if (workers == 0 && withdraw(job)) {
        pthread_mutex_unlock(&lock);
        compile(job);
        pthread_mutex_lock(&lock);
        job->done = true;
        pthread_cond_broadcast(&one_done);
    }
    if (patience && !job->done) wait_patiently(job);
    while (!job->done) pthread_cond_wait(&one_done, &lock);
}

/* An asker's own copy of the code; the last asker's is the original. With `lock` held. */
static pinn_status fetch(pn_compilation *job, void **image, size_t *bytes) {
    if (job->status != PINN_OK) return pn_fail(job->status, "%s", job->message ? job->message : "out of memory for a kernel");
    if (image) {
        void *own = job->askers > 1 ? pn_duplicate(job->image, job->bytes) : job->image;
        if (!own) return PN_NO_MEMORY("a kernel");
        if (own == job->image) job->image = NULL;
        *image = own;
    }
    if (bytes) *bytes = job->bytes;
    return PINN_OK;
}

pinn_status pn_compilation_end(pn_compilation *job, void **image, size_t *bytes) {
    pthread_mutex_lock(&lock);
    wait_for(job);
    const pinn_status status = fetch(job, image, bytes);
    leave(job);
    pthread_mutex_unlock(&lock);
    return status;
}

void pn_compilation_drop(pn_compilation *job) {
    if (!job) return;
    pthread_mutex_lock(&lock);
    if (job->askers == 1 && !withdraw(job))
        while (!job->done) pthread_cond_wait(&one_done, &lock);
    leave(job);
    pthread_mutex_unlock(&lock);
}

pinn_status pn_kernel_compile(const char *source, const char *architecture, void **cubin, size_t *bytes) {
    pn_compilation *job = NULL;
    pinn_status status = pn_compilation_begin(source, architecture, &job);
    return status == PINN_OK ? pn_compilation_end(job, cubin, bytes) : status;
}
