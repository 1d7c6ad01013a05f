/* frames [--device WHERE] [--dot] [--time MIB]: every frame of a simulation goes home while the next steps run.
 *
 * Without options: 40 small frames, compared with those of a serial program. --dot prints the round's schedule for Graphviz. --time
 * measures rounds with a frame of that many MiB against the same nodes in one chain. See frames.md.
 */
#include "frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 40, STEPS = 6, MOST_STEPS = 4000 };

static pinn_status step_cpu(const pinn_run *run) {
    const frames_sizes *s = run->arguments;
    float *next = run->write[0];
    for (uint64_t i = 0; i < s->height; i++)
        for (uint64_t j = 0; j < s->width; j++) next[i * s->width + j] = frames_next(s, run->read[0], i, j);
    return PINN_OK;
}

static const pinn_operation step = {"step", step_cpu, TUTORIAL_CUDA(frames_step_cuda)};

typedef struct film {
    frames_sizes sizes;
    pinn_graph *graph;
    pinn_plane *a, *b, *c; /* device, [height][width], float: a holds the frame when a round begins and ends */
    pinn_plane *frame;     /* pinned, the same shape */
    uint64_t sum[ROUNDS];  /* of each frame as it came home */
    int frames;
} film;

/* Sum of the frame's bits as 32-bit numbers: any pixel that differs changes it. */
static uint64_t sum_of(const float *u, size_t pixels) {
    uint64_t sum = 0;
    for (size_t i = 0; i < pixels; i++) {
        uint32_t bits;
        memcpy(&bits, &u[i], sizeof bits);
        sum += bits;
    }
    return sum;
}

static pinn_status keep_frame(void *user) {
    film *f = user;
    if (f->frames == ROUNDS) return PINN_BAD_ARGUMENT;
    f->sum[f->frames++] = sum_of(pinn_plane_address(f->frame), f->sizes.height * f->sizes.width);
    return PINN_OK;
}

/* ---- what a round is made of --------------------------------------------------------------------------------------------- */

static void put_step(film *f, pinn_plane *from, pinn_plane *to) {
    tutorial_must(pinn_graph_operation(f->graph, &step, &f->sizes, sizeof f->sizes, PINN_PLANES(from), PINN_PLANES(to)));
}

static void put_frame(film *f, bool keep) {
    tutorial_must(pinn_graph_copy(f->graph, f->a, f->frame));
    if (keep) tutorial_must(pinn_graph_host(f->graph, "keep frame", keep_frame, f, PINN_PLANES(f->frame), PINN_NO_PLANES));
}

/* All steps of a round but the last read a at most: a -> b -> c -> b ... Returns the plane that holds their result. */
static pinn_plane *put_steps(film *f, int steps) {
    pinn_plane *from = f->a, *to = f->b;
    for (int k = 1; k < steps; k++) {
        put_step(f, from, to);
        from = to;
        to = from == f->b ? f->c : f->b;
    }
    return from;
}

static void record_forked(film *f, int steps, bool keep, bool wait) {
    tutorial_must(pinn_graph_begin(f->graph));
    tutorial_must(pinn_graph_fork(f->graph));
    tutorial_must(pinn_graph_branch(f->graph, "frame goes home"));
    put_frame(f, keep);
    tutorial_must(pinn_graph_branch(f->graph, "next steps"));
    pinn_plane *last = put_steps(f, steps);
    if (wait) tutorial_must(pinn_graph_wait(f->graph, f->a)); /* the step that overwrites a waits for the copy of it */
    put_step(f, last, f->a);
    tutorial_must(pinn_graph_join(f->graph));
}

static void record_chain(film *f, int steps, bool keep) {
    tutorial_must(pinn_graph_begin(f->graph));
    put_frame(f, keep);
    put_step(f, put_steps(f, steps), f->a);
}

/* ---- the film ------------------------------------------------------------------------------------------------------------ */

static void create(film *f, pinn_context *context, uint64_t height, uint64_t width) {
    const size_t bytes = sizeof(float) * height * width;
    *f = (film){.sizes = {height, width},
                .a = tutorial_plane(context, "a", PINN_DEVICE, bytes),
                .b = tutorial_plane(context, "b", PINN_DEVICE, bytes),
                .c = tutorial_plane(context, "c", PINN_DEVICE, bytes),
                .frame = tutorial_plane(context, "frame", PINN_PINNED, bytes)};
    tutorial_must(pinn_graph_create(context, "frames", &f->graph));
}

static void destroy(film *f) {
    pinn_graph_destroy(f->graph);
    pinn_plane_destroy(f->a);
    pinn_plane_destroy(f->b);
    pinn_plane_destroy(f->c);
    pinn_plane_destroy(f->frame);
}

/* A square of ones in the middle of `u`, which is zero otherwise. */
static void seed(const frames_sizes *s, float *u) {
    for (uint64_t i = s->height / 2 - 2; i < s->height / 2 + 2; i++)
        for (uint64_t j = s->width / 2 - 2; j < s->width / 2 + 2; j++) u[i * s->width + j] = 1;
}

static void compare(pinn_context *context) {
    film f;
    create(&f, context, 96, 128);
    const size_t pixels = f.sizes.height * f.sizes.width;
    float *u = calloc(2 * pixels, sizeof *u), *next = u + pixels;
    if (!u) exit(1);
    seed(&f.sizes, u);
    tutorial_must(pinn_plane_write(f.a, 0, u, pixels * sizeof *u));

    record_forked(&f, STEPS, true, true);
    tutorial_must(pinn_graph_launch(f.graph, ROUNDS));
    tutorial_check(f.frames == ROUNDS, "%d frames instead of %d", f.frames, ROUNDS);
    for (int k = 0; k < ROUNDS; k++) {
        const uint64_t expected = sum_of(u, pixels);
        if (k % 10 == 0) printf("frame %2d: %016llx\n", k, (unsigned long long)f.sum[k]);
        tutorial_check(f.sum[k] == expected, "frame %d differs from the serial program's", k);
        for (int n = 0; n < STEPS; n++, memcpy(u, next, pixels * sizeof *u))
            step_cpu(&(pinn_run){.arguments = &f.sizes, .read = (void *[]){u}, .write = (void *[]){next}});
    }
    free(u);
    tutorial_explain(f.graph);

    record_forked(&f, STEPS, true, false); /* without the wait the last step may overwrite what the copy still reads */
    const pinn_status status = pinn_graph_build(f.graph);
    printf("without the wait: %s\n# %s\n", pinn_status_name(status), pinn_error_message());
    tutorial_check(status == PINN_REFUSED, "the race was not refused");
    destroy(&f);
}

/* The round as a drawing: nothing needs to run for it. */
static void draw(pinn_context *context) {
    film f;
    char *text;
    create(&f, context, 96, 128);
    record_forked(&f, STEPS, true, true);
    tutorial_must(pinn_graph_dot(f.graph, &text));
    printf("%s", text);
    free(text);
    destroy(&f);
}

/* ---- times --------------------------------------------------------------------------------------------------------------- */

/* Best seconds a replay of what is recorded. */
static double seconds_of(const film *f, int replays) {
    double best = 0;
    tutorial_must(pinn_graph_launch(f->graph, 2));
    for (int k = 0; k < 5; k++) {
        const double start = tutorial_seconds();
        tutorial_must(pinn_graph_launch(f->graph, (uint64_t)replays));
        const double each = (tutorial_seconds() - start) / replays;
        if (k == 0 || each < best) best = each;
    }
    return best;
}

static void measure(pinn_context *context, uint64_t mib) {
    const bool gpu = pinn_context_executor(context) != PINN_EXECUTOR_CPU;
    const int replays = gpu ? 20 : 1;
    film f;
    create(&f, context, mib * 64, 4096);
    tutorial_must(pinn_graph_begin(f.graph));
    put_frame(&f, false);
    const double copy = seconds_of(&f, replays);
    tutorial_must(pinn_graph_begin(f.graph));
    put_step(&f, f.a, f.b);
    put_step(&f, f.b, f.a);
    const double one = seconds_of(&f, replays) / 2;
    /* As many steps as take about as long as the copy: the case in which the fork gains most. */
    int steps = (int)(copy / one + 0.5);
    if (steps < 2) steps = 2;
    if (steps > MOST_STEPS) steps = MOST_STEPS;
    record_chain(&f, steps, false);
    const double chain = seconds_of(&f, replays);
    record_forked(&f, steps, false, true);
    const double forked = seconds_of(&f, replays);
    printf("# frame of %llu MiB: copy %.3f ms, step %.4f ms, %d steps a round\n", (unsigned long long)mib, 1e3 * copy, 1e3 * one,
           steps);
    printf("# chain %.3f ms, forked %.3f ms, forked/chain %.3f\n", 1e3 * chain, 1e3 * forked, forked / chain);
    if (pinn_context_executor(context) == PINN_EXECUTOR_GRAPH && mib >= 64)
        tutorial_check(forked <= 0.7 * chain, "the copy does not overlap with the steps");
    destroy(&f);
}

int main(int count, char **argument) {
    pinn_context *context = tutorial_context(&count, argument);
    if (count == 3 && strcmp(argument[1], "--time") == 0 && atoi(argument[2]) > 0 && atoi(argument[2]) < 1000)
        measure(context, (uint64_t)atoi(argument[2]));
    else if (count == 2 && strcmp(argument[1], "--dot") == 0)
        draw(context);
    else if (count == 1)
        compare(context);
    else
        tutorial_usage("frames [--device WHERE] [--dot | --time MIB]");
    pinn_context_destroy(context);
    return 0;
}
