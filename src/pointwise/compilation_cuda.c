/* Compiles several kernels at once: NVRTC takes seconds for a large one and runs in as many threads as there are.
 *
 * Jobs wait in one list of the process; workers, at most one a processor, take them from its front and end when it is empty. A job's error
 * becomes the error of the thread that asks for its result. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "pointwise/kernel.h"

struct pn_compilation {
    char *source, *architecture; /* owned */
    pn_compilation *next;        /* in the list of those not begun */
    bool done;
    pinn_status status;
    char *message;               /* owned; of a failure. NULL: there was no memory for it */
    void *image;                 /* owned */
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_done = PTHREAD_COND_INITIALIZER;
static pn_compilation *first, *last; /* not begun */
static long workers;

static void compile(pn_compilation *job) {
    job->status = pn_kernel_compile(job->source, job->architecture, &job->image, &job->bytes);
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

pinn_status pn_compilation_begin(const char *source, const char *architecture, pn_compilation **out) {
    pn_compilation *job = pn_allocate(1, sizeof *job);
    if (!job) return PN_NO_MEMORY("a kernel");
    job->source = pn_duplicate(source, strlen(source));
    job->architecture = pn_duplicate(architecture, strlen(architecture));
    if (!job->source || !job->architecture) {
        free_job(job);
        return PN_NO_MEMORY("a kernel");
    }
    pthread_mutex_lock(&lock);
    if (first)
        last->next = job;
    else
        first = job;
    last = job;
    add_worker();
    pthread_mutex_unlock(&lock);
    *out = job;
    return PINN_OK;
}

/* Takes a job out of the list, if it is still there. With `lock` held. */
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

pinn_status pn_compilation_end(pn_compilation *job, void **image, size_t *bytes) {
    pthread_mutex_lock(&lock);
    const bool own = workers == 0 && withdraw(job);
    while (!own && !job->done) pthread_cond_wait(&one_done, &lock);
    pthread_mutex_unlock(&lock);
    if (own) compile(job);
    const pinn_status status = job->status;
    if (status != PINN_OK)
        pn_fail(status, "%s", job->message ? job->message : "out of memory for a kernel");
    else {
        if (bytes) *bytes = job->bytes;
        if (image) {
            *image = job->image;
            job->image = NULL;
        }
    }
    free_job(job);
    return status;
}

void pn_compilation_drop(pn_compilation *job) {
    if (!job) return;
    pthread_mutex_lock(&lock);
    const bool own = withdraw(job);
    while (!own && !job->done) pthread_cond_wait(&one_done, &lock);
    pthread_mutex_unlock(&lock);
    free_job(job);
}
