/* The tutorials' common part; see tutorial.h. */
#include "tutorial.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void print_message(void *user, const char *line) {
    (void)user;
    printf("# %s\n", line);
}

pinn_context *tutorial_context(int *count, char **argument) {
    const char *where = pinn_device_count() > 0 ? "cuda" : "cpu";
    pinn_context_options options = {.message = print_message};
    pinn_context *context;
    for (int i = 1; i + 1 < *count; i++)
        if (strcmp(argument[i], "--device") == 0) {
            where = argument[i + 1];
            for (int k = i; k + 2 <= *count; k++) argument[k] = argument[k + 2];
            *count -= 2;
            break;
        }
    if (strcmp(where, "cuda") == 0)
        options.executor = PINN_EXECUTOR_GRAPH;
    else if (strcmp(where, "eager") == 0)
        options.executor = PINN_EXECUTOR_EAGER;
    else {
        options.executor = PINN_EXECUTOR_CPU;
        if (strcmp(where, "cpu") != 0) options.cpu_mode = where;
    }
    if (options.executor != PINN_EXECUTOR_CPU && pinn_device_count() == 0) {
        printf("skipped: no GPU\n");
        exit(77);
    }
    tutorial_must(pinn_context_create(&options, &context));
    printf("# %s, executor %s\n", pinn_context_device_name(context), pinn_executor_name(options.executor));
    return context;
}

void tutorial_must(pinn_status status) {
    if (status == PINN_OK) return;
    fprintf(stderr, "%s: %s\n", pinn_status_name(status), pinn_error_message());
    exit(1);
}

void tutorial_usage(const char *form) {
    fprintf(stderr, "usage: %s\n", form);
    exit(2);
}

void tutorial_check(bool holds, const char *format, ...) {
    if (holds) return;
    va_list values;
    va_start(values, format);
    fprintf(stderr, "check failed: ");
    vfprintf(stderr, format, values);
    fprintf(stderr, "\n");
    va_end(values);
    exit(1);
}

pinn_plane *tutorial_plane(pinn_context *context, const char *name, pinn_place place, size_t bytes) {
    pinn_plane *plane;
    tutorial_must(pinn_plane_create(context, name, place, bytes, &plane));
    return plane;
}

void tutorial_explain(const pinn_graph *graph) {
    char *text;
    tutorial_must(pinn_graph_explain(graph, &text));
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line) printf("# %s\n", line);
    free(text);
}

double tutorial_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
