/* Recording: nodes are appended to a list after the checks that need one node only.
 *
 * A recording call that fails leaves a hole in the list, so the list remembers it and its build fails with the same message: a
 * caller who drops the status still gets it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

const char *pn_graph_node_kind_name(pn_graph_node_kind kind) {
    static const char *const names[] = {[PN_NODE_GPU] = "device",  [PN_NODE_HOST_OPERATION] = "host",
                                        [PN_NODE_HOST] = "host",   [PN_NODE_COPY] = "copy",
                                        [PN_NODE_EAGER] = "eager", [PN_NODE_IF] = "if",
                                        [PN_NODE_ELSE] = "else",   [PN_NODE_WHILE] = "while",
                                        [PN_NODE_FOR] = "for",     [PN_NODE_END] = "end",
                                        [PN_NODE_FORK] = "fork",   [PN_NODE_BRANCH] = "branch",
                                        [PN_NODE_WAIT] = "wait",   [PN_NODE_JOIN] = "join"};
    return names[kind];
}

static void destroy_node(pn_graph_node *node) {
    if (!node) return;
    for (size_t i = 0; i < node->reads; i++) pn_plane_unreference(node->read[i]);
    for (size_t i = 0; i < node->writes; i++) pn_plane_unreference(node->write[i]);
    pn_free(node->arguments);
    pn_free(node->after);
    pn_free(node->name);
    pn_free(node);
}

void pn_list_destroy(pn_list *list) {
    if (!list) return;
    for (size_t i = 0; i < list->count; i++) destroy_node(list->node[i]);
    pn_free(list->node);
    pn_text_free(&list->signature);
    pn_free(list->failure_text);
    pn_free(list);
}

pinn_status pinn_graph_begin(pinn_graph *graph) {
    pinn_status status = pn_enter(graph ? graph->context : NULL, __func__);
    if (status != PINN_OK) return status;
    pn_list *list = pn_allocate(1, sizeof *list);
    if (!list) return PN_NO_MEMORY("a list of nodes");
    list->lanes = list->next_lane = 1;
    pn_list_destroy(graph->list);
    graph->list = list;
    return PINN_OK;
}

pinn_status pn_list_reject(pinn_graph *graph, pinn_status status, const char *name, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pn_list *list = graph->list;
    pn_fail(status, "graph '%s', node %zu '%s': %s", graph->name, list->count + 1, name, text);
    if (list->failure == PINN_OK) {
        list->failure = status;
        list->failure_text = pn_duplicate(pinn_error_message(), strlen(pinn_error_message()));
    }
    return status;
}

pinn_status pn_list_enter(const pinn_graph *graph, const char *function) {
    pinn_status status = pn_enter(graph ? graph->context : NULL, function);
    if (status == PINN_OK && !graph->list)
        status = pn_fail(PINN_REFUSED, "%s: graph '%s' is not recording: call pinn_graph_begin first", function, graph->name);
    return status;
}

pinn_status pn_list_check_planes(pinn_graph *graph, const char *name, pinn_planes planes, const char *verb) {
    if (planes.count > PINN_NODE_PLANES)
        return pn_list_reject(graph, PINN_REFUSED, name,
                              "%s %zu planes, at most %d: put several into one plane and pass offsets as arguments", verb,
                              planes.count, PINN_NODE_PLANES);
    if (planes.count && !planes.plane)
        return pn_list_reject(graph, PINN_BAD_ARGUMENT, name, "the list of planes it %s is NULL", verb);
    for (size_t i = 0; i < planes.count; i++) {
        const pinn_plane *plane = planes.plane[i];
        if (!plane) return pn_list_reject(graph, PINN_BAD_ARGUMENT, name, "plane %zu that it %s is NULL", i + 1, verb);
        if (plane->context != graph->context)
            return pn_list_reject(graph, PINN_REFUSED, name,
                                  "plane '%s' belongs to another context: create it on this graph's context", plane->name);
        if (plane->freed || plane->root->freed) return pn_list_reject(graph, PINN_STALE, name, "plane '%s' was freed", plane->name);
    }
    return PINN_OK;
}

pinn_status pn_list_make_node(pinn_graph *graph, pn_graph_node_kind kind, const char *name, pinn_planes reads, pinn_planes writes,
                              pn_graph_node **out) {
    pn_graph_node *node = pn_allocate(1, sizeof *node);
    char *copy = pn_duplicate(name, strlen(name));
    if (!node || !copy) {
        pn_free(node);
        pn_free(copy);
        return pn_list_reject(graph, PINN_NO_MEMORY, name, "out of memory");
    }
    *node = (pn_graph_node){.kind = kind, .name = copy, .graph = graph, .reads = reads.count, .writes = writes.count};
    for (size_t i = 0; i < reads.count; i++) {
        node->read[i] = reads.plane[i];
        node->read_address[i] = reads.plane[i]->address;
        pn_plane_reference(node->read[i]);
    }
    for (size_t i = 0; i < writes.count; i++) {
        node->write[i] = writes.plane[i];
        node->write_address[i] = writes.plane[i]->address;
        pn_plane_reference(node->write[i]);
    }
    *out = node;
    return PINN_OK;
}

/* Takes the node, also when it fails. */
pinn_status pn_list_append(pinn_graph *graph, pn_graph_node *node) {
    pn_list *list = graph->list;
    node->depth = list->depth;
    node->in_body = list->bodies > 0;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        pn_graph_node **grown = pn_reallocate(list->node, list->count, capacity, sizeof *grown);
        if (!grown) {
            pinn_status status = pn_list_reject(graph, PINN_NO_MEMORY, node->name, "out of memory");
            destroy_node(node);
            return status;
        }
        list->node = grown;
        list->capacity = capacity;
    }
    list->node[list->count++] = node;
    node->number = list->count;
    if (list->depth && pn_graph_node_is_useful(node)) list->open[list->depth - 1].useful++;
    return PINN_OK;
}

/* ---- operations ------------------------------------------------------------------------------------------------------------ */

static const pinn_plane *first_plane(pinn_planes planes, bool on_device) {
    for (size_t i = 0; i < planes.count; i++)
        if ((planes.plane[i]->place == PINN_DEVICE) == on_device) return planes.plane[i];
    return NULL;
}

/* Where an operation runs: on the side all its planes are on. */
static pinn_status choose_side(pinn_graph *graph, const char *name, pinn_planes reads, pinn_planes writes,
                               pn_graph_node_kind *kind) {
    const pinn_plane *host_read = first_plane(reads, false), *host_write = first_plane(writes, false);
    const pinn_plane *device_read = first_plane(reads, true), *device_write = first_plane(writes, true);
    const pinn_plane *device = device_read ? device_read : device_write, *host = host_read ? host_read : host_write;
    if (!device && !host)
        return pn_list_reject(graph, PINN_REFUSED, name,
                              "an operation without planes has no place to run: declare what it reads and writes");
    *kind = device ? PN_NODE_GPU : PN_NODE_HOST_OPERATION;
    if (!device || !host) return PINN_OK;
    const char *where = pinn_place_name(host->place);
    if (host_read)
        return pn_list_reject(graph, PINN_REFUSED, name,
                              "planes on both sides: '%s' is device, '%s' is %s and read. Create a device plane of %zu bytes, add "
                              "pinn_graph_copy(graph, %s, <that plane>) before this node and read the copy",
                              device->name, host->name, where, host->bytes, host->name);
    return pn_list_reject(graph, PINN_REFUSED, name,
                          "planes on both sides: '%s' is device, '%s' is %s and written. Write a device plane of %zu bytes and add "
                          "pinn_graph_copy(graph, <that plane>, %s) after this node",
                          device->name, host->name, where, host->bytes, host->name);
}

static pinn_status check_form(pinn_graph *graph, const pinn_operation *operation, pn_graph_node_kind kind) {
    if (kind == PN_NODE_HOST_OPERATION && !operation->cpu)
        return pn_list_reject(graph, PINN_REFUSED, operation->name,
                              "its planes are on the host and it has no CPU form: give it one, or use device planes");
    if (kind != PN_NODE_GPU) return PINN_OK;
    bool cpu = graph->context->executor == PINN_EXECUTOR_CPU;
    if (cpu ? operation->cpu != NULL : operation->cuda != NULL) return PINN_OK;
    return pn_list_reject(graph, PINN_REFUSED, operation->name,
                          "it has no %s form, which the %s executor runs on device planes: give it one%s", cpu ? "CPU" : "CUDA",
                          pinn_executor_name(graph->context->executor),
                          cpu ? "" : ", or copy to host planes and run its CPU form there");
}

/* The node of an operation, without its arguments and not in the list yet. */
static pinn_status make_operation(pinn_graph *graph, const char *function, const pinn_operation *operation, pinn_planes reads,
                                  pinn_planes writes, pn_graph_node **out) {
    pn_graph_node_kind kind = PN_NODE_GPU;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, function));
    if (!operation || !operation->name) return pn_list_reject(graph, PINN_BAD_ARGUMENT, "?", "the operation or its name is NULL");
    PN_TRY(pn_list_check_planes(graph, operation->name, reads, "reads"));
    PN_TRY(pn_list_check_planes(graph, operation->name, writes, "writes"));
    PN_TRY(choose_side(graph, operation->name, reads, writes, &kind));
    PN_TRY(check_form(graph, operation, kind));
    PN_TRY(pn_structure_check(graph, operation->name));
    if (kind == PN_NODE_HOST_OPERATION) PN_TRY(pn_structure_check_host(graph, operation->name, "an operation on host planes"));
    PN_TRY(pn_list_make_node(graph, kind, operation->name, reads, writes, out));
    (*out)->cpu = operation->cpu;
    (*out)->cuda = operation->cuda;
fail:
    return status;
}

pinn_status pinn_graph_operation(pinn_graph *graph, const pinn_operation *operation, const void *arguments, size_t argument_bytes,
                                 pinn_planes reads, pinn_planes writes) {
    pn_graph_node *node = NULL;
    pinn_status status = make_operation(graph, __func__, operation, reads, writes, &node);
    if (status != PINN_OK) return status;
    if (argument_bytes) {
        if (!arguments) {
            status = pn_list_reject(graph, PINN_BAD_ARGUMENT, operation->name, "%zu bytes of arguments at NULL", argument_bytes);
            goto fail;
        }
        node->arguments = pn_allocate(argument_bytes, 1);
        if (!node->arguments) {
            status =
                pn_list_reject(graph, PINN_NO_MEMORY, operation->name, "out of memory for %zu bytes of arguments", argument_bytes);
            goto fail;
        }
        memcpy(node->arguments, arguments, argument_bytes);
        node->argument_bytes = argument_bytes;
    }
    return pn_list_append(graph, node);
fail:
    destroy_node(node);
    return status;
}

pinn_status pinn_graph_opaque(pinn_graph *graph, const pinn_operation *operation, void *user, pinn_planes reads,
                              pinn_planes writes) {
    pn_graph_node *node = NULL;
    pinn_status status = make_operation(graph, __func__, operation, reads, writes, &node);
    if (status != PINN_OK) return status;
    node->user = user;
    node->opaque = true;
    return pn_list_append(graph, node);
}

/* ---- copies ---------------------------------------------------------------------------------------------------------------- */

bool pn_planes_overlap(const pinn_plane *a, const pinn_plane *b) {
    uintptr_t first = (uintptr_t)a->address, second = (uintptr_t)b->address;
    return first < second ? second - first < a->bytes : first - second < b->bytes;
}

/* Copies that need a host function, where such functions are refused. */
static pinn_status check_copy_place(pinn_graph *graph, const pinn_plane *from, const pinn_plane *to) {
    if (from->address == to->address) return PINN_OK;
    const pinn_plane *pageable = from->place == PINN_HOST ? from : to->place == PINN_HOST ? to : NULL;
    bool device = from->place == PINN_DEVICE || to->place == PINN_DEVICE;
    if (!device) return pn_structure_check_host(graph, "copy", "a copy between host planes, which is a host function,");
    return pageable ? pn_structure_check_pageable(graph, "copy", pageable) : PINN_OK;
}

pinn_status pinn_graph_copy(pinn_graph *graph, pinn_plane *from, pinn_plane *to) {
    static const char name[] = "copy";
    pn_graph_node *node = NULL;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, __func__));
    PN_TRY(pn_list_check_planes(graph, name, PINN_PLANES(from), "reads"));
    PN_TRY(pn_list_check_planes(graph, name, PINN_PLANES(to), "writes"));
    if (from->bytes != to->bytes)
        return pn_list_reject(graph, PINN_REFUSED, name,
                              "'%s' has %zu bytes, '%s' has %zu: copy between planes of one size, pinn_plane_view makes a part one",
                              from->name, from->bytes, to->name, to->bytes);
    if (from->address != to->address && pn_planes_overlap(from, to))
        return pn_list_reject(graph, PINN_REFUSED, name, "'%s' and '%s' overlap in part: go through a third plane", from->name,
                              to->name);
    PN_TRY(pn_structure_check(graph, name));
    PN_TRY(check_copy_place(graph, from, to));
    PN_TRY(pn_list_make_node(graph, PN_NODE_COPY, name, PINN_PLANES(from), PINN_PLANES(to), &node));
    return pn_list_append(graph, node);
fail:
    return status;
}

pn_copy_route pn_copy_get_route(const pn_graph_node *node) {
    if (node->read_address[0] == node->write_address[0]) return PN_COPY_NOTHING;
    bool device = node->read[0]->place == PINN_DEVICE || node->write[0]->place == PINN_DEVICE;
    return device ? PN_COPY_DEVICE : PN_COPY_HOST;
}

bool pn_copy_is_pageable(const pn_graph_node *node) {
    return pn_copy_get_route(node) == PN_COPY_DEVICE && (node->read[0]->place == PINN_HOST || node->write[0]->place == PINN_HOST);
}

/* ---- host functions -------------------------------------------------------------------------------------------------------- */

pinn_status pinn_graph_host(pinn_graph *graph, const char *name, pinn_host_function *function, void *user, pinn_planes reads,
                            pinn_planes writes) {
    pn_graph_node *node = NULL;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, __func__));
    if (!name || !function)
        return pn_list_reject(graph, PINN_BAD_ARGUMENT, name ? name : "?", "the host function or its name is NULL");
    PN_TRY(pn_list_check_planes(graph, name, reads, "reads"));
    PN_TRY(pn_list_check_planes(graph, name, writes, "writes"));
    const pinn_plane *read = first_plane(reads, true), *written = first_plane(writes, true);
    if (read)
        return pn_list_reject(
            graph, PINN_REFUSED, name,
            "a host function cannot read device plane '%s': create a pinned plane of %zu bytes, add pinn_graph_copy(graph, %s, "
            "<that plane>) before this node and read the copy",
            read->name, read->bytes, read->name);
    if (written)
        return pn_list_reject(graph, PINN_REFUSED, name,
                              "a host function cannot write device plane '%s': write a pinned plane of %zu bytes and add "
                              "pinn_graph_copy(graph, <that plane>, %s) after this node",
                              written->name, written->bytes, written->name);
    PN_TRY(pn_structure_check(graph, name));
    PN_TRY(pn_structure_check_host(graph, name, "a host function"));
    PN_TRY(pn_list_make_node(graph, PN_NODE_HOST, name, reads, writes, &node));
    node->host = function;
    node->user = user;
    return pn_list_append(graph, node);
fail:
    return status;
}

pinn_status pinn_graph_eager(pinn_graph *graph, const char *name, pinn_host_function *function, void *user, pinn_planes reads,
                             pinn_planes writes) {
    pn_graph_node *node = NULL;
    pinn_status status;
    PN_TRY(pn_list_enter(graph, __func__));
    if (!name || !function)
        return pn_list_reject(graph, PINN_BAD_ARGUMENT, name ? name : "?", "the eager cut's function or its name is NULL");
    PN_TRY(pn_list_check_planes(graph, name, reads, "reads"));
    PN_TRY(pn_list_check_planes(graph, name, writes, "writes"));
    PN_TRY(pn_structure_check_eager(graph, name));
    PN_TRY(pn_list_make_node(graph, PN_NODE_EAGER, name, reads, writes, &node));
    node->host = function;
    node->user = user;
    return pn_list_append(graph, node);
fail:
    return status;
}

/* ---- running one node ------------------------------------------------------------------------------------------------------ */

static pinn_status call_form(const pn_graph_node *node, pn_form *form, void *stream) {
    pinn_run run = {.context = node->graph->context,
                    .stream = stream,
                    .arguments = node->opaque ? node->user : node->arguments,
                    .read = node->read_address,
                    .write = node->write_address};
    return form(&run);
}

pinn_status pn_graph_node_run(const pn_graph_node *node, pn_form *form, void *stream) {
    pn_frame frame;
    pn_frame_push(&frame, node->graph->context, node->name, PN_FRAME_FORM);
    pinn_status status = call_form(node, form, stream);
    pn_frame_pop(&frame);
    /* A form of the caller's may return a status without setting a message, so the status stands beside the message. */
    if (status != PINN_OK)
        pn_fail_within(status, "graph '%s', node %zu '%s' failed with %s", node->graph->name, node->number, node->name,
                       pinn_status_name(status));
    return status;
}

void pn_graph_node_call(void *object) {
    const pn_graph_node *node = object;
    pinn_context *context = node->graph->context;
    if (atomic_load(&context->faulty)) return;
    pn_frame frame;
    const bool eager = node->kind == PN_NODE_EAGER;
    pn_frame_push(&frame, context, node->name, eager ? PN_FRAME_EAGER : PN_FRAME_HOST);
    pinn_status status = node->host ? node->host(node->user) : call_form(node, node->cpu, NULL);
    pn_frame_pop(&frame);
    if (status == PINN_OK) return;
    const char *last = pinn_error_message(); /* the function's own, unless it set none */
    pn_fault_keep(context, "graph '%s', %s %zu '%s' failed with %s%s%s", node->graph->name, eager ? "eager cut" : "host node",
                  node->number, node->name, pinn_status_name(status), *last ? "; its thread's last message: " : "", last);
}

void pn_graph_node_memcpy(void *object) {
    const pn_graph_node *node = object;
    memcpy(node->write_address[0], node->read_address[0], node->read[0]->bytes);
}
