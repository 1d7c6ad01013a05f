/* The end of a test program: its suite run, or the program skipped, as the exit status that ctest expects. */
#ifndef SUITE_H
#define SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs and frees a suite; EXIT_SUCCESS if nothing failed. CK_VERBOSITY says how much is printed. */
static inline int suite_run_as(Suite *suite, enum fork_status fork) {
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, fork);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Each test in a process of its own, unless CK_FORK=no. */
static inline int suite_run(Suite *suite) { return suite_run_as(suite, CK_FORK_GETENV); }

/* All tests in this process: neither CUDA nor OpenMP's threads survive a fork. */
static inline int suite_run_nofork(Suite *suite) { return suite_run_as(suite, CK_NOFORK); }

/* For main to return before it creates a suite, which nobody would free. */
static inline int suite_skip(const char *why) {
    printf("skipped: %s\n", why);
    return 77; /* SKIP_RETURN_CODE in CMakeLists.txt */
}

#endif
