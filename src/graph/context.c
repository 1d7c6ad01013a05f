/* Contexts: creation by executor, the life of what hangs on them, failures of host functions.
 *
 * A host function fails on a thread of the CUDA runtime, long after the call that enqueued it has returned. Its failure is kept
 * here and returned by the next call that can: until then host nodes are skipped, while GPU nodes and copies go on, as they cannot
 * be called back.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

static const char *const executor_names[] = {
    [PINN_EXECUTOR_GRAPH] = "graph", [PINN_EXECUTOR_EAGER] = "eager", [PINN_EXECUTOR_CPU] = "cpu"};

const char *pinn_executor_name(pinn_executor executor) {
    return (size_t)executor < sizeof executor_names / sizeof *executor_names ? executor_names[executor] : "?";
}

static void release_context(pn_release *self) {
    pinn_context *context = (pinn_context *)((char *)self - offsetof(pinn_context, release));
    context->backend->close(context);
    pthread_mutex_destroy(&context->fault_lock);
    pn_free(context->device_name);
    pn_free(context);
}

void pn_context_reference(pinn_context *context) { atomic_fetch_add(&context->references, 1); }

void pn_context_unreference(pinn_context *context) {
    if (atomic_fetch_sub(&context->references, 1) == 1) pn_release_push(&context->release);
}

static pinn_status check_options(const pinn_context_options *options, const pn_backend **backend) {
    if (!options) return pn_fail(PINN_BAD_ARGUMENT, "pinn_context_create: options is NULL");
    if (pn_inside_node())
        return pn_fail(PINN_REFUSED, "pinn_context_create called from inside node '%s': create contexts outside of nodes",
                       pn_inside_node());
    switch (options->executor) {
    case PINN_EXECUTOR_CPU: return pn_backend_cpu_mode(options->cpu_mode, backend);
    case PINN_EXECUTOR_GRAPH:
    case PINN_EXECUTOR_EAGER: return pn_backend_cuda(options->executor, backend);
    }
    return pn_fail(PINN_BAD_ARGUMENT, "pinn_context_create: %d is not an executor", (int)options->executor);
}

pinn_status pinn_context_create(const pinn_context_options *options, pinn_context **out) {
    const pn_backend *backend = NULL;
    pinn_status status = check_options(options, &backend);
    if (status != PINN_OK) return status;
    pinn_context *context = pn_allocate(1, sizeof *context);
    if (!context) return PN_NO_MEMORY("a context");
    context->backend = backend;
    context->executor = options->executor;
    context->message = options->message;
    context->message_user = options->message_user;
    context->release.run = release_context;
    atomic_init(&context->references, 1);
    atomic_init(&context->faulty, false);
    pthread_mutex_init(&context->fault_lock, NULL);
    PN_TRY(backend->open(context, options));
    *out = context;
    return PINN_OK;
fail:
    pn_context_unreference(context); /* what was opened goes when no capture is open */
    return status;
}

static void destroy_context(void *object) {
    pinn_context *context = object;
    pn_context_wait(context); /* a failed device has nothing left to wait for */
    if (context->planes || context->graphs)
        pn_context_message(context,
                           "context destroyed while %zu plane(s) and %zu graph(s) on it live: it is freed with the last of them",
                           context->planes, context->graphs);
    context->message = NULL;
    pn_context_unreference(context);
}

void pinn_context_destroy(pinn_context *context) {
    if (context) pn_destroy(context, &context->doomed, destroy_context, context, "pinn_context_destroy");
}

void pn_context_message(const pinn_context *context, const char *format, ...) {
    if (!context->message) return;
    char line[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    context->message(context->message_user, line);
}

pinn_status pn_context_wait(pinn_context *context) {
    if (!context->busy) return PINN_OK;
    pinn_status status = context->backend->synchronize(context);
    if (status != PINN_OK) return status;
    context->busy = false;
    for (pinn_graph *graph = context->first_graph; graph; graph = graph->next) graph->completed = graph->enqueued;
    return PINN_OK;
}

pinn_status pinn_context_synchronize(pinn_context *context) {
    pinn_status status;
    PN_TRY(pn_enter(context, __func__));
    /* Not pn_context_wait alone: the caller may have work of his own on the stream. */
    context->busy = true;
    PN_TRY(pn_context_wait(context));
    PN_TRY(pn_fault_take(context));
fail:
    return status;
}

void pn_fault_keep(pinn_context *context, const char *format, ...) {
    pthread_mutex_lock(&context->fault_lock);
    if (!atomic_load(&context->faulty)) {
        va_list list;
        va_start(list, format);
        vsnprintf(context->fault, sizeof context->fault, format, list);
        va_end(list);
        atomic_store(&context->faulty, true);
    }
    pthread_mutex_unlock(&context->fault_lock);
}

pinn_status pn_fault_take(pinn_context *context) {
    if (!atomic_load(&context->faulty)) return PINN_OK;
    pinn_status status = pn_context_wait(context);
    if (status != PINN_OK) return status;
    pthread_mutex_lock(&context->fault_lock);
    pn_fail(PINN_HOST_FAILED, "%s", context->fault);
    atomic_store(&context->faulty, false);
    pthread_mutex_unlock(&context->fault_lock);
    pn_context_message(context, "%s", pinn_error_message());
    return PINN_HOST_FAILED;
}

pinn_status pinn_context_join(pinn_context *context, void *stream) {
    pinn_status status = pn_enter(context, __func__);
    return status == PINN_OK ? context->backend->join(context, stream) : status;
}

pinn_executor pinn_context_executor(const pinn_context *context) { return context->executor; }
const char *pinn_context_device_name(const pinn_context *context) { return context->device_name; }
void *pinn_context_stream(const pinn_context *context) { return context->stream; }
void *pinn_context_blas(const pinn_context *context) { return context->blas; }
int pinn_context_multiprocessors(const pinn_context *context) { return context->multiprocessors; }

void pn_context_plan(pinn_context *context, bool plans) { context->plans = plans; }
bool pn_context_plans(const pinn_context *context) { return context->plans; }
size_t pn_context_bytes(const pinn_context *context) { return context->plane_bytes; }
size_t pn_context_memory(const pinn_context *context) { return context->memory; }
