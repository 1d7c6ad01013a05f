/* Operations that cannot be captured, with what the refusal says. Part of test_graph_cuda.c.
 *
 * Where CUDA leaves open whether a call breaks the capture or only fails, either status is right: the part of the message is then "".
 * What is certain is that the build fails, that the node is named and that nothing else has changed.
 */
#ifndef BAD_OPERATIONS_H
#define BAD_OPERATIONS_H

typedef struct bad_operation {
    const char *name;
    pinn_status (*form)(const pinn_run *);
    const char *at_top, *in_body; /* part of the message; NULL = not tried there */
} bad_operation;

/* A host function is right at top level. The default stream has a test of its own there. */
static const bad_operation bad_operations[] = {
    {"nothing", nothing_cuda, "recorded nothing", "recorded nothing"},
    {"allocate", allocate_cuda, "", ""},
    {"allocate-async", allocate_async_cuda, "memory", ""},
    {"wait", wait_cuda, "", ""},
    {"unjoined", unjoined_cuda, "joined again", "joined again"},
    {"bad-launch", bad_launch_cuda, "left a CUDA error", NULL},
    {"fails", fail_cuda, "PINN_NUMERIC", "PINN_NUMERIC"},
    {"pageable", pageable_cuda, "from pageable memory", "from pageable memory"},
    {"legacy", default_stream_cuda, NULL, ""},
    {"host-call", host_call_cuda, NULL, "host function, which cannot run inside the body"},
};
enum { BAD_OPERATIONS = sizeof bad_operations / sizeof *bad_operations };

/* The recorded list, whose node `number` is `bad`, is refused; what was built before, which adds 1 to x, makes it `replays`. */
static void check_bad(const bad_operation *bad, const char *part, int number, const pinn_plane *x, int32_t replays) {
    char named[64];
    ck_assert_msg(pinn_graph_launch(graph, 1) != PINN_OK, "%s: built", bad->name);
    snprintf(named, sizeof named, "node %d '%s'", number, bad->name);
    ck_assert_msg(strstr(pinn_error_message(), named), "%s", pinn_error_message());
    ck_assert_msg(strstr(pinn_error_message(), part), "%s", pinn_error_message());
    CUDA(cudaGetLastError());
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), replays);
}

#endif
