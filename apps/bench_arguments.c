/* The command lines of the benches; see bench_arguments.h. */
#include "bench_arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pinn_graph.h"

bool bench_list_holds(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == length && strncmp(list, name, length) == 0) return true;
    return false;
}

bool bench_list_within(const char *list, const char *known) {
    for (;; list++) {
        char name[32];
        const size_t length = strcspn(list, ",");
        if (length == 0 || length >= sizeof name) return false;
        snprintf(name, sizeof name, "%.*s", (int)length, list);
        if (!bench_list_holds(known, name)) return false;
        list += length;
        if (!*list) return true;
    }
}

const char *bench_parse_executors(struct argp_state *state, const char *value) {
    static char once[sizeof BENCH_EXECUTORS]; /* has room for all */
    if (!bench_list_within(value, BENCH_EXECUTORS))
        argp_error(state, "--executors %s: a list of graph, eager, cpu is needed", value);
    else if (pinn_device_count() == 0 && (bench_list_holds(value, "graph") || bench_list_holds(value, "eager")))
        argp_error(state, "--executors %s: there is no usable GPU here; cpu needs none", value);
    once[0] = 0;
    for (const char *rest = value; *rest; rest += strcspn(rest, ","), rest += *rest == ',') {
        char name[8]; /* a known one */
        const size_t used = strlen(once);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(rest, ","), rest);
        if (!bench_list_holds(once, name)) snprintf(once + used, sizeof once - used, "%s%s", used ? "," : "", name);
    }
    return once;
}

uint64_t bench_parse_count(struct argp_state *state, const char *option, const char *value, uint64_t most) {
    char *end;
    errno = 0;
    const unsigned long long count = strtoull(value, &end, 10);
    if (errno || end == value || *end || strchr(value, '-') || count < 1 || count > most)
        argp_error(state, "--%s %s: a whole number from 1 to %" PRIu64 " is needed", option, value, most);
    return count;
}

int bench_parse_repeats(struct argp_state *state, const char *value) {
    return (int)bench_parse_count(state, "repeat", value, BENCH_REPEATS);
}

double bench_parse_seconds(struct argp_state *state, const char *option, const char *value, double most) {
    char *end;
    const double seconds = strtod(value, &end);
    if (end == value || *end || !(seconds > 0 && seconds <= most)) argp_error(state, "--%s %s: over 0, at most %g", option, value, most);
    return seconds;
}

const char *bench_without_name(const char *message, const char *name) {
    const size_t length = strlen(name);
    return strncmp(message, name, length) == 0 && strncmp(message + length, ": ", 2) == 0 ? message + length + 2 : message;
}

int bench_exit_status(pinn_status status, bool begun) {
    switch (status) {
    case PINN_OK: return 0;
    case PINN_CONFIG:
    case PINN_BAD_ARGUMENT: return 2;
    case PINN_IO: return begun ? 1 : 2;
    default: return 1;
    }
}

int bench_finish(const char *program, int failed) {
    if (!ferror(stdout) && fflush(stdout) == 0) return failed;
    fprintf(stderr, "%s: cannot write to standard output\n", program);
    return 1;
}
