/* The CPU executor's strict mode, which plays a GPU (see strict.h).
 *
 * enqueue only notes what to run; synchronize runs it, so host memory is not ready before a wait, and until then what the noted
 * work writes there shows poison. Branches of a fork run node by node in an order drawn from the seed: any order that program order
 * inside a branch and the waits allow, with a bias to one branch in half of the forks, as a steady mixture alone would hardly ever
 * let one branch run far ahead. An if, while, for or fork inside a branch counts as one node there. Host nodes run on a thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/strict.h"

/* Entries [first, last) of a built list, `times` times. */
typedef struct pn_job {
    const pn_list *list;
    size_t first, last;
    uint64_t times;
} pn_job;

/* Host memory whose contents are kept here until the next wait. */
typedef struct pn_veil {
    const pn_graph_node *node; /* the first to write it; of a list that was noted */
    const pinn_plane *plane;
    unsigned char *kept; /* [plane->bytes] */
} pn_veil;

/* ---- context and memory ---------------------------------------------------------------------------------------------------- */

static const char prefix[] = "strict:";

static bool read_seed(const char *mode, uint64_t *seed) {
    if (strncmp(mode, prefix, sizeof prefix - 1) != 0) return false;
    const char *digits = mode + sizeof prefix - 1;
    if (!*digits || digits[strspn(digits, "0123456789")]) return false;
    errno = 0;
    *seed = strtoull(digits, NULL, 10);
    return errno == 0;
}

pinn_status pn_backend_cpu_mode(const char *mode, const pn_backend **out) {
    uint64_t seed;
    if (!mode || strcmp(mode, "inline") == 0)
        *out = &pn_backend_cpu;
    else if (read_seed(mode, &seed))
        *out = &pn_backend_strict;
    else
        return pn_fail(PINN_BAD_ARGUMENT,
                       "pinn_context_create: cpu_mode \"%s\" is neither \"inline\" nor \"strict:SEED\" with a number below 2^64",
                       mode);
    return PINN_OK;
}

static pinn_status open_strict(pinn_context *context, const pinn_context_options *options) {
    pinn_status status;
    PN_TRY(pn_backend_cpu.open(context, options));
    PN_TRY(pn_regions_initialise());
    pn_strict *strict = context->device = pn_allocate(1, sizeof *strict);
    if (!strict) return PN_NO_MEMORY("a context");
    strict->context = context;
    read_seed(options->cpu_mode, &strict->random);
fail:
    return status;
}

static void close_strict(pinn_context *context) {
    pn_strict *strict = context->device;
    if (strict) {
        pn_free(strict->span);
        pn_free(strict->job);
        pn_free(strict->veil);
        pn_free(strict);
    }
    pn_backend_cpu.close(context);
}

static pinn_status allocate_strict(pinn_context *context, pinn_place place, size_t bytes, void **out) {
    return pn_region_create(context->device, place, bytes, out);
}

static void release_strict(pinn_context *context, pinn_place place, void *address) {
    (void)context, (void)place;
    pn_region_destroy(address);
}

static pinn_status check_strict(pinn_context *context, const char *name, pinn_place place, const void *address) {
    (void)context;
    const pn_region *region = pn_region_find(address);
    const bool on_device = region && region->rest == PN_ACCESS_NONE;
    if ((place == PINN_DEVICE) == on_device) return PINN_OK;
    return pn_fail(PINN_BAD_ARGUMENT, "plane '%s': %p is not %s memory: it is %s memory", name, address, pinn_place_name(place),
                   on_device ? "device" : "host");
}

/* memcpy with the memory of `plane` opened meanwhile. */
static void move(void *to, const void *from, size_t bytes, const void *plane) {
    pn_region *region = pn_region_find(plane);
    const pn_access before = region ? region->access : PN_ACCESS_WRITE;
    if (region) pn_region_set(region, PN_ACCESS_WRITE);
    memcpy(to, from, bytes);
    if (region) pn_region_set(region, before);
}

static pinn_status write_strict(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes) {
    (void)place;
    pinn_status status = pn_strict_check(context->device);
    if (status == PINN_OK) move(to, from, bytes, to);
    return status;
}

static pinn_status read_strict(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes) {
    (void)place;
    pinn_status status = pn_strict_check(context->device);
    if (status == PINN_OK) move(to, from, bytes, from);
    return status;
}

/* ---- one node -------------------------------------------------------------------------------------------------------------- */

static void *call_host_node(void *node) {
    pn_graph_node_call(node);
    return NULL;
}

static pinn_status run_code(pn_graph_node *node) {
    pthread_t thread;
    if (node->kind == PN_NODE_GPU) return pn_graph_node_run(node, node->cpu, NULL);
    if (node->kind == PN_NODE_COPY) {
        pn_graph_node_memcpy(node);
        return PINN_OK;
    }
    const int error = pthread_create(&thread, NULL, call_host_node, node);
    if (error) return pn_fail(PINN_NO_MEMORY, "no thread for host node '%s': %s", node->name, strerror(error));
    pthread_join(thread, NULL);
    return PINN_OK;
}

static pinn_status run_node(pn_strict *strict, pn_graph_node *node) {
    if (node->kind == PN_NODE_COPY && pn_copy_get_route(node) == PN_COPY_NOTHING) return PINN_OK;
    if (pn_graph_node_on_host(node) && atomic_load(&strict->context->faulty)) return PINN_OK; /* skipped: its outputs stay */
    pinn_status status = pn_guard_open(strict, node);
    if (status != PINN_OK) return status;
    atomic_store(&strict->in_node, true);
    status = run_code(node);
    atomic_store(&strict->in_node, false);
    /* A broken declaration says more than the failure it may have led to; without one the failure's message must stay. */
    pinn_status broken = pn_guard_close(strict, node);
    return broken != PINN_OK ? broken : status;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------------- */

static uint32_t get_word(const void *address) {
    uint32_t word;
    move(&word, address, sizeof word, address);
    return word;
}

static pinn_status run_range(pn_strict *strict, const pn_list *list, size_t first, size_t last);

static pinn_status run_if(pn_strict *strict, const pn_list *list, size_t at) {
    const pn_graph_node *node = list->node[at];
    if (get_word(node->read_address[0])) return run_range(strict, list, at + 1, node->next);
    return node->next == node->end ? PINN_OK : run_range(strict, list, node->next + 1, node->end);
}

static pinn_status run_loop(pn_strict *strict, const pn_list *list, size_t at) {
    const pn_graph_node *node = list->node[at];
    for (uint32_t trips = 0;; trips++) {
        if (node->writes) move(node->write_address[0], &trips, sizeof trips, node->write_address[0]);
        if (trips == node->cap || (node->kind == PN_NODE_WHILE && !get_word(node->read_address[0]))) return PINN_OK;
        pinn_status status = run_range(strict, list, at + 1, node->end);
        if (status != PINN_OK) return status;
    }
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(pn_strict *strict, uint64_t below) {
    uint64_t z = strict->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % below;
}

/* How far each branch of a fork has come. */
typedef struct progress {
    size_t branch;  /* position of its BRANCH */
    size_t at, end; /* next entry to run; behind its last */
} progress;

static size_t unit_end(const pn_list *list, size_t at) {
    const pn_graph_node *node = list->node[at];
    return pn_graph_node_is_conditional(node) || node->kind == PN_NODE_FORK ? node->end + 1 : at + 1;
}

/* Has everything the WAIT waits for run? */
static bool is_over(const pn_graph_node *wait, const progress *branch, size_t branches) {
    for (size_t i = 0; i < wait->afters; i++)
        for (size_t b = 0; b < branches; b++)
            if (wait->after[i] >= branch[b].at && wait->after[i] < branch[b].end) return false;
    return true;
}

/* The branch to go on with, passing waits that are over; `branches` when all have ended. Earlier branches wait for no later ones,
 * so one is always ready. */
static size_t choose(pn_strict *strict, const pn_list *list, progress *branch, size_t branches, size_t favourite) {
    size_t ready = 0, chosen = branches;
    for (size_t b = 0; b < branches; b++) {
        progress *p = &branch[b];
        while (p->at < p->end && list->node[p->at]->kind == PN_NODE_WAIT && is_over(list->node[p->at], branch, branches)) p->at++;
        if (p->at == p->end || list->node[p->at]->kind == PN_NODE_WAIT) continue;
        if (b == favourite) return b;
        if (draw(strict, ++ready) == 0) chosen = b;
    }
    return chosen;
}

static pinn_status run_fork(pn_strict *strict, const pn_list *list, size_t at) {
    const pn_graph_node *fork = list->node[at];
    size_t branches = 0;
    for (size_t b = fork->next; b != fork->end; b = list->node[b]->next) branches++;
    progress *branch = pn_allocate(branches, sizeof *branch);
    if (!branch) return PN_NO_MEMORY("the branches of a fork");
    size_t b = fork->next;
    for (size_t i = 0; i < branches; i++, b = list->node[b]->next)
        branch[i] = (progress){.branch = b, .at = b + 1, .end = list->node[b]->next};
    const size_t favourite = draw(strict, 2 * branches);
    pinn_status status = PINN_OK;
    for (size_t i; status == PINN_OK && (i = choose(strict, list, branch, branches, favourite)) < branches;) {
        const size_t next = unit_end(list, branch[i].at);
        status = run_range(strict, list, branch[i].at, next);
        branch[i].at = next;
    }
    pn_free(branch);
    return status;
}

static pinn_status run_range(pn_strict *strict, const pn_list *list, size_t first, size_t last) {
    for (size_t i = first; i < last; i = unit_end(list, i)) {
        pn_graph_node *node = list->node[i];
        pinn_status status = node->kind == PN_NODE_IF             ? run_if(strict, list, i)
                             : pn_graph_node_is_conditional(node) ? run_loop(strict, list, i)
                             : node->kind == PN_NODE_FORK         ? run_fork(strict, list, i)
                                                                  : run_node(strict, node);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

/* ---- what is noted --------------------------------------------------------------------------------------------------------- */

static bool is_veiled(const pn_strict *strict, const pinn_plane *plane) {
    for (size_t i = 0; i < strict->veils; i++)
        if (strict->veil[i].plane->address == plane->address && strict->veil[i].plane->bytes == plane->bytes) return true;
    return false;
}

static pinn_status veil(pn_strict *strict, const pn_graph_node *node, pinn_plane *plane) {
    if (plane->place == PINN_DEVICE || is_veiled(strict, plane)) return PINN_OK;
    if (strict->veils == strict->veil_capacity) {
        size_t capacity = strict->veil_capacity ? 2 * strict->veil_capacity : 8;
        pn_veil *grown = pn_reallocate(strict->veil, strict->veil_capacity, capacity, sizeof *grown);
        if (!grown) return PN_NO_MEMORY("the strict mode's copies");
        strict->veil = grown;
        strict->veil_capacity = capacity;
    }
    unsigned char *kept = pn_allocate(plane->bytes, 1);
    if (!kept) return PN_NO_MEMORY("the strict mode's copies");
    memcpy(kept, plane->address, plane->bytes);
    memset(plane->address, PN_POISON, plane->bytes);
    strict->veil[strict->veils++] = (pn_veil){.node = node, .plane = plane, .kept = kept};
    return PINN_OK;
}

/* In reverse: of two that overlap, the later one keeps the earlier one's poison. */
static void lift_veils(pn_strict *strict) {
    while (strict->veils) {
        pn_veil *v = &strict->veil[--strict->veils];
        const unsigned char *memory = v->plane->address;
        for (size_t i = 0; i < v->plane->bytes; i++)
            if (memory[i] != PN_POISON) {
                pn_strict_break(
                    strict,
                    "plane '%s' was written at byte %zu by the caller after graph '%s' was enqueued, whose node %zu '%s' "
                    "writes it: wait first (pinn_context_synchronize)",
                    v->plane->name, i, v->node->graph->name, v->node->number, v->node->name);
                break;
            }
        memcpy(v->plane->address, v->kept, v->plane->bytes);
        pn_free(v->kept);
    }
}

static pinn_status note(pn_strict *strict, const pn_list *list, size_t first, size_t last, uint64_t times) {
    if (first == last || times == 0) return PINN_OK;
    strict->context->busy = true;
    pn_job *job = strict->jobs ? &strict->job[strict->jobs - 1] : NULL;
    if (job && job->list == list && job->first == first && job->last == last) {
        job->times += times;
        return PINN_OK;
    }
    for (size_t i = first; i < last; i++)
        for (size_t k = 0; k < list->node[i]->writes; k++) {
            pinn_status status = veil(strict, list->node[i], list->node[i]->write[k]);
            if (status != PINN_OK) return status;
        }
    if (strict->jobs == strict->job_capacity) {
        size_t capacity = strict->job_capacity ? 2 * strict->job_capacity : 8;
        pn_job *grown = pn_reallocate(strict->job, strict->job_capacity, capacity, sizeof *grown);
        if (!grown) return PN_NO_MEMORY("the strict mode's queue");
        strict->job = grown;
        strict->job_capacity = capacity;
    }
    strict->job[strict->jobs++] = (pn_job){.list = list, .first = first, .last = last, .times = times};
    return PINN_OK;
}

static pinn_status run_jobs(pn_strict *strict) {
    pinn_status status;
    lift_veils(strict);
    PN_TRY(pn_strict_check(strict));
    if (strict->jobs == 0) return PINN_OK;
    PN_TRY(pn_guard_begin(strict));
    for (size_t i = 0; i < strict->jobs && status == PINN_OK; i++) {
        const pn_job *job = &strict->job[i];
        for (uint64_t k = 0; k < job->times && status == PINN_OK; k++) status = run_range(strict, job->list, job->first, job->last);
    }
    pn_guard_end(strict);
fail:
    strict->jobs = 0;
    return status;
}

static pinn_status synchronize_strict(pinn_context *context) {
    pn_run_begin(); /* what a node destroys goes when all have run */
    pinn_status status = run_jobs(context->device);
    pn_run_end();
    return status;
}

static pinn_status enqueue_strict(const pinn_graph *graph, uint64_t times, uint64_t *done) {
    const pn_list *list = graph->built;
    pn_strict *strict = graph->context->device;
    pinn_status status;
    size_t cuts = 0;
    PN_TRY(pn_strict_check(strict));
    for (size_t i = 0; i < list->count; i++) cuts += list->node[i]->kind == PN_NODE_EAGER;
    if (cuts == 0) {
        PN_TRY(note(strict, list, 0, list->count, times));
        *done = times;
    }
    for (; *done < times; ++*done) {
        size_t first = 0;
        for (size_t i = 0; i < list->count; i++) {
            if (list->node[i]->kind != PN_NODE_EAGER) continue;
            PN_TRY(note(strict, list, first, i, 1));
            PN_TRY(run_jobs(strict));
            pn_graph_node_call(list->node[i]);
            first = i + 1;
        }
        PN_TRY(note(strict, list, first, list->count, 1));
    }
fail:
    return status;
}

static void discard_strict(void *executable) { (void)executable; }

static pinn_status join_strict(pinn_context *context, void *stream) { return pn_backend_cpu.join(context, stream); }

static pinn_status build_strict(const pinn_graph *graph, const pn_list *list, void **executable) {
    return pn_backend_cpu.build(graph, list, executable);
}

const pn_backend pn_backend_strict = {
    .open = open_strict,
    .close = close_strict,
    .allocate = allocate_strict,
    .release = release_strict,
    .check = check_strict,
    .write = write_strict,
    .read = read_strict,
    .synchronize = synchronize_strict,
    .join = join_strict,
    .build = build_strict,
    .enqueue = enqueue_strict,
    .discard = discard_strict,
};
