/* What the programs have in common: what they do before anything else, and -h. */
#ifndef PN_APPS_START_H
#define PN_APPS_START_H

#include <argp.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* -h, the key 'h': a row of a program's options, and what it does. */
#define HELP_OPTION {NULL, 'h', NULL, 0, "The same as --help", -1}
static inline void print_help(const struct argp_state *state) { argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP); }

/* Makes OpenMP threads sleep at a barrier instead of spinning. GNU OpenMP spins by default, which on a machine that has anything else to
 * do makes a step several times slower: the thread that spins keeps the core from the one it waits for. The policy is read when the
 * library is loaded, before main, so the program starts itself again with it set. A choice of the user's stands. */
static inline void sleep_at_barriers(char **argument) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv("/proc/self/exe", argument);
    /* Where that fails the program goes on as it is: slower on a busy machine, and as right. */
}

/* Far beyond any machine. GNU OpenMP has an array of all threads on the stack: it crashes where that does not fit. */
static inline void check_threads(void) {
    enum { THREADS_MOST = 16384 };
    const char *threads = getenv("OMP_NUM_THREADS");
    if (!threads || strtol(threads, NULL, 10) <= THREADS_MOST) return;
    fprintf(stderr, "OMP_NUM_THREADS is \"%.40s\"; at most %d threads can be started\n", threads, THREADS_MOST);
    exit(2);
}

/* A standard stream that is closed would lend its number to the next file opened, and messages would be written into that. The stand-in
 * has the wrong direction, so that using the stream still fails. */
static inline void hold_standard_streams(void) {
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) == -1 && open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) != stream) _exit(2);
}

static inline void start(char **argument) {
    hold_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not end a run */
    check_threads();
    sleep_at_barriers(argument);
}

#endif
