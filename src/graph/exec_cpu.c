/* The CPU executor: runs each node's CPU form at once, in the calling thread.
 *
 * If, while and for are C control flow on the same words that a GPU reads; branches run one after the other, in program order.
 *
 * Device planes are ordinary memory here; that they are reached through operations and copies only is the checks' business. Order,
 * refusals and the handling of failed host nodes are those of the CUDA executors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/graph.h"

#define ALIGNMENT 256 /* bytes; cudaMalloc's, so that vectorised code may rely on one number */

/* The processor's name as Linux tells it; NULL when memory is short. */
static char *processor_name(void) {
    static const char key[] = "model name";
    char line[512];
    const char *name = "CPU";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, sizeof key - 1) != 0 || !colon) continue;
        name = colon + 1 + strspn(colon + 1, " \t");
        break;
    }
    if (file) fclose(file);
    return pn_duplicate(name, strcspn(name, "\n"));
}

static pinn_status open_cpu(pinn_context *context, const pinn_context_options *options) {
    (void)options;
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    context->memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
    context->device_name = processor_name();
    return context->device_name ? PINN_OK : PN_NO_MEMORY("a context");
}

static void close_cpu(pinn_context *context) { (void)context; }

/* Large planes come as untouched zero pages. The address to free stands in the word before the plane. */
static pinn_status allocate_cpu(pinn_context *context, pinn_place place, size_t bytes, void **out) {
    (void)context, (void)place;
    enum { LARGE = 1 << 20 };
    void *memory = NULL;
    char *plane;
    if (bytes > SIZE_MAX - 2 * ALIGNMENT) return pn_fail(PINN_NO_MEMORY, "out of memory");
    if (bytes >= LARGE)
        memory = calloc(1, bytes + 2 * ALIGNMENT);
    else if (posix_memalign(&memory, ALIGNMENT, bytes + ALIGNMENT) != 0)
        memory = NULL;
    if (!memory) return pn_fail(PINN_NO_MEMORY, "out of memory");
    if (bytes >= LARGE)
        plane = (char *)memory + 2 * ALIGNMENT - (uintptr_t)memory % ALIGNMENT;
    else
        plane = (char *)memset(memory, 0, bytes + ALIGNMENT) + ALIGNMENT;
    memcpy(plane - sizeof memory, &memory, sizeof memory);
    *out = plane;
    return PINN_OK;
}

static void release_cpu(pinn_context *context, pinn_place place, void *address) {
    (void)context, (void)place;
    void *memory = NULL;
    if (address) memcpy(&memory, (char *)address - sizeof memory, sizeof memory);
    free(memory);
}

static pinn_status check_cpu(pinn_context *context, const char *name, pinn_place place, const void *address) {
    (void)context, (void)name, (void)place, (void)address;
    return PINN_OK;
}

static pinn_status transfer_cpu(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes) {
    (void)context, (void)place;
    memcpy(to, from, bytes);
    return PINN_OK;
}

static pinn_status synchronize_cpu(pinn_context *context) {
    (void)context;
    return PINN_OK;
}

static pinn_status join_cpu(pinn_context *context, void *stream) {
    (void)context, (void)stream;
    return PINN_OK;
}

static pinn_status build_cpu(const pinn_graph *graph, const pn_list *list, void **executable) {
    (void)graph, (void)list;
    *executable = NULL;
    return PINN_OK;
}

static pinn_status run_node(pn_graph_node *node) {
    switch (node->kind) {
    case PN_NODE_GPU: return pn_graph_node_run(node, node->cpu, NULL);
    case PN_NODE_HOST_OPERATION:
    case PN_NODE_HOST:
    case PN_NODE_EAGER: pn_graph_node_call(node); break;
    case PN_NODE_COPY:
        if (pn_copy_get_route(node) != PN_COPY_NOTHING) pn_graph_node_memcpy(node);
        break;
    default: break; /* branches run in program order: their entries do nothing */
    }
    return PINN_OK;
}

static uint32_t read_word(const void *address) {
    uint32_t word;
    memcpy(&word, address, sizeof word);
    return word;
}

static bool is_set(const pn_graph_node *node) { return node->reads == 0 || read_word(node->read_address[0]) != 0; }

static void count_trips(const pn_graph_node *node, uint32_t trips) {
    if (node->writes) memcpy(node->write_address[0], &trips, sizeof trips);
}

static pinn_status run_range(const pn_list *list, size_t first, size_t end);

static pinn_status run_if(const pn_list *list, size_t first) {
    const pn_graph_node *node = list->node[first];
    if (is_set(node)) return run_range(list, first + 1, node->next);
    return node->next == node->end ? PINN_OK : run_range(list, node->next + 1, node->end);
}

static pinn_status run_loop(const pn_list *list, size_t first) {
    const pn_graph_node *node = list->node[first];
    pinn_status status = PINN_OK;
    count_trips(node, 0);
    for (uint32_t trips = 0; status == PINN_OK && trips < node->cap && is_set(node);) {
        status = run_range(list, first + 1, node->end);
        count_trips(node, ++trips);
    }
    return status;
}

static pinn_status run_range(const pn_list *list, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        pn_graph_node *node = list->node[i];
        pinn_status status;
        if (pn_graph_node_is_conditional(node)) {
            status = node->kind == PN_NODE_IF ? run_if(list, i) : run_loop(list, i);
            i = node->end;
        } else {
            status = run_node(node);
        }
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status enqueue_cpu(const pinn_graph *graph, uint64_t times, uint64_t *done) {
    const pn_list *list = graph->built;
    pinn_status status = PINN_OK;
    for (; *done < times; ++*done) PN_TRY(run_range(list, 0, list->count));
fail:
    return status;
}

static void discard_cpu(void *executable) { (void)executable; }

const pn_backend pn_backend_cpu = {
    .open = open_cpu,
    .close = close_cpu,
    .allocate = allocate_cpu,
    .release = release_cpu,
    .check = check_cpu,
    .write = transfer_cpu,
    .read = transfer_cpu,
    .synchronize = synchronize_cpu,
    .join = join_cpu,
    .build = build_cpu,
    .enqueue = enqueue_cpu,
    .discard = discard_cpu,
};
