/* What the programs have in common: before anything else, -h, and standard output at the end. */
#ifndef PN_APPS_START_H
#define PN_APPS_START_H

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/status.h"

/* -h, the key 'h': a row of a program's options, and what it does. */
#define HELP_OPTION {NULL, 'h', NULL, 0, "The same as --help", -1}
static inline void print_help(const struct argp_state *state) { argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP); }

/* A list of counts, for nested regions, as OpenMP has it. */
static inline bool are_threads(const char *list, long most) {
    for (const char *c = list;; c++) {
        char *end;
        const long count = strtol(c, &end, 10);
        if (end == c || count < 1 || count > most) return false;
        c = end + strspn(end, " \t");
        if (!*c) return true;
        if (*c != ',') return false;
    }
}

/* OpenMP's variables, of which a wrong value is only warned of by GNU's library: it runs with as many threads as there are processors. The
 * most is far beyond any machine: GNU OpenMP has an array of all threads on the stack, and crashes where that does not fit. */
static inline pinn_status check_openmp(void) {
    enum { THREADS_MOST = 16384 };
    const char *const threads = getenv("OMP_NUM_THREADS"), *const policy = getenv("OMP_WAIT_POLICY");
    if (threads && *threads && !are_threads(threads, THREADS_MOST))
        return pn_fail(PINN_CONFIG, "OMP_NUM_THREADS is \"%.40s\"; it may be a number of threads from 1 to %d", threads, THREADS_MOST);
    if (policy && *policy && strcasecmp(policy, "active") != 0 && strcasecmp(policy, "passive") != 0)
        return pn_fail(PINN_CONFIG, "OMP_WAIT_POLICY is \"%.40s\"; it may be \"active\" or \"passive\"", policy);
    return PINN_OK;
}

/* Makes OpenMP threads sleep at a barrier instead of spinning. GNU OpenMP spins by default, which on a machine that has anything else to
 * do makes a step several times slower: the thread that spins keeps the core from the one it waits for. The policy is read when the
 * library is loaded, before main, so the program starts itself again with it set. A choice of the user's stands. */
static inline void sleep_at_barriers(char **argument) {
    const char *const threads = getenv("OMP_NUM_THREADS"), *const policy = getenv("OMP_WAIT_POLICY");
    if ((policy && *policy) || getenv("GOMP_SPINCOUNT") || check_openmp() != PINN_OK) return;
    if (threads && !*threads) unsetenv("OMP_NUM_THREADS"); /* GNU OpenMP has warned of it once, as of a wrong one */
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv("/proc/self/exe", argument);
    /* Where that fails the program goes on as it is: slower on a busy machine, and as right. */
}

/* A standard stream that is closed would lend its number to the next file opened, and messages would be written into that. The stand-in
 * has the wrong direction, so that using the stream still fails. */
static inline void hold_standard_streams(void) {
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) == -1 && open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) != stream) _exit(2);
}

/* What standard output still holds is written at exit, where nobody looks: after --help, too. What failed before was told, and has its
 * own status. */
static inline void check_output(int status, void *unused) {
    (void)unused;
    if (status != 0) return;
    if (fflush(stdout) != 0)
        fprintf(stderr, "%s: cannot write to standard output: %s\n", program_invocation_short_name, strerror(errno));
    else if (ferror(stdout))
        fprintf(stderr, "%s: cannot write to standard output\n", program_invocation_short_name);
    else
        return;
    _exit(1);
}

/* check_openmp is left to the program, which may have to answer in JSON. */
static inline void start(char **argument) {
    hold_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not end a run */
    sleep_at_barriers(argument);
    on_exit(check_output, NULL);
}

#endif
