/* Nodes of the step, each timed alone; see profile.h.
 *
 * A node may be run any number of times on end: the sampler and the pass only overwrite, and so does `reduce`; `adam` moves parameters,
 * moments and words, so these are put back before each node. A chunk without end is begun first, or `reduce` and `adam` would find
 * that no step is to be done. */
#include "train/profile.h"

#include <math.h>
#include <stdio.h>

#include "graph/graph.h"
#include "train/training.h"

/* On a GPU a graph's launch costs some microseconds, as much as a node: shared by so many it counts no more. */
enum { GPU_COPIES = 64, MOST_LAUNCHES = 1000000 };

typedef struct profile {
    pinn_training *training;
    pinn_graph *step;         /* recorded, never built: where the nodes are taken from */
    size_t end[PN_STEP_PARTS]; /* position behind the part's last node */
    pinn_graph *begin;        /* begins a chunk */
    void *state;              /* [training->state_bytes], as it was */
    double seconds;
    int repeats;
} profile;

static pinn_status record_parts(profile *p) {
    const pn_machinery *m = &p->training->machinery;
    pinn_status status;
    PN_TRY(pinn_graph_create(p->training->context, "step", &p->step));
    PN_TRY(pinn_graph_begin(p->step));
    PN_TRY(pn_sampler_record(m->sampler, p->step, false));
    p->end[PN_PART_SAMPLE] = p->step->list->count;
    PN_TRY(pn_pass_record(m->pass, p->step));
    p->end[PN_PART_PASS] = p->step->list->count;
    PN_TRY(pn_step_record(m->step, p->step));
    p->end[PN_PART_OPTIMIZER] = p->step->list->count;
fail:
    return status;
}

static pinn_status record_begin(profile *p) {
    const pn_begin_arguments arguments = {.unroll = 1};
    pinn_training *t = p->training;
    pinn_status status;
    PN_TRY(pinn_graph_create(t->context, "begin", &p->begin));
    PN_TRY(pinn_graph_begin(p->begin));
    PN_TRY(pinn_graph_operation(p->begin, &pn_begin_operation, &arguments, sizeof arguments, PINN_PLANES(t->words, t->hyper),
                                PINN_PLANES(t->loop)));
fail:
    return status;
}

static pinn_status record_copies(const pn_graph_node *node, size_t copies, pinn_graph *graph) {
    const pinn_operation operation = {node->name, node->cpu, node->cuda};
    const pinn_planes reads = {node->read, node->reads}, writes = {node->write, node->writes};
    pinn_status status;
    if (node->kind != PN_NODE_GPU) return pn_fail(PINN_UNSUPPORTED, "node '%s' of the step is no operation on the device", node->name);
    PN_TRY(pinn_graph_begin(graph));
    for (size_t i = 0; i < copies; i++)
        PN_TRY(pinn_graph_operation(graph, &operation, node->arguments, node->argument_bytes, reads, writes));
fail:
    return status;
}

static pinn_status time_launches(pinn_graph *graph, uint64_t launches, double *seconds) {
    const double start = pn_clock();
    pinn_status status = pinn_graph_launch(graph, launches);
    *seconds = pn_clock() - start;
    return status;
}

static pinn_status time_node(const profile *p, const pn_graph_node *node, double *best) {
    const pinn_training *t = p->training;
    const size_t copies = pinn_context_executor(t->context) == PINN_EXECUTOR_CPU ? 1 : GPU_COPIES;
    pinn_graph *graph = NULL;
    pinn_status status;
    double seconds;
    PN_TRY(pinn_plane_write(t->state, 0, p->state, t->state_bytes));
    PN_TRY(pinn_graph_launch(p->begin, 1));
    PN_TRY(pinn_graph_create(t->context, node->name, &graph));
    PN_TRY(record_copies(node, copies, graph));
    PN_TRY(pinn_graph_build(graph));
    PN_TRY(pinn_graph_launch(graph, 1)); /* loads kernels */
    PN_TRY(time_launches(graph, 1, &seconds));
    const uint64_t launches = (uint64_t)fmin(fmax(p->seconds / fmax(seconds, 1e-9), 1), MOST_LAUNCHES);
    *best = INFINITY;
    for (int i = 0; i < p->repeats; i++) {
        PN_TRY(time_launches(graph, launches, &seconds));
        *best = fmin(*best, seconds / (double)(launches * copies));
    }
fail:
    pinn_graph_destroy(graph);
    return status;
}

static pinn_status time_nodes(const profile *p, pn_node_time **out, size_t *count) {
    const pn_list *list = p->step->list;
    pinn_status status = PINN_OK;
    pn_node_time *times = pn_allocate(list->count, sizeof *times);
    if (!times) return PN_NO_MEMORY("the times of a step's nodes");
    for (size_t i = 0; i < list->count; i++) {
        snprintf(times[i].name, sizeof times[i].name, "%s", list->node[i]->name);
        while (i >= p->end[times[i].part]) times[i].part++;
        PN_TRY(time_node(p, list->node[i], &times[i].seconds));
    }
    *out = times;
    *count = list->count;
    return PINN_OK;
fail:
    pn_free(times);
    return status;
}

pinn_status pn_training_profile(pinn_training *training, double seconds, int repeats, pn_node_time **out, size_t *count) {
    profile p = {.training = training, .seconds = seconds, .repeats = repeats};
    pinn_status status;
    PN_TRY(pn_chunk_limit(training, PN_LONGEST_CHUNK, true));
    p.state = pn_allocate(training->state_bytes, 1);
    if (!p.state) return PN_NO_MEMORY("a copy of the training's state");
    PN_TRY(pinn_plane_read(training->state, 0, p.state, training->state_bytes));
    PN_TRY(record_parts(&p));
    PN_TRY(record_begin(&p));
    status = time_nodes(&p, out, count);
    pinn_status restored = pinn_plane_write(training->state, 0, p.state, training->state_bytes);
    if (status == PINN_OK && restored != PINN_OK) {
        pn_free(*out);
        status = restored;
    }
fail:
    pinn_graph_destroy(p.begin);
    pinn_graph_destroy(p.step);
    pn_free(p.state);
    return status;
}
