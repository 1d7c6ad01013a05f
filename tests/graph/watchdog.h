/* A test that hangs ends by itself: Check has no time limit without forks. Included before the tests, it gives each START_TEST a
 * limit (CK_DEFAULT_TIMEOUT seconds, else 60), after which the process says which test it is and where it hangs, and aborts. The
 * limit holds until the next test begins, so it covers the fixture around it.
 */
#ifndef WATCHDOG_H
#define WATCHDOG_H

#include <check.h>
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *volatile watched;

static void say(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return; /* nothing else can be done in a signal handler */
}

static void give_up(int number) {
    void *frame[64];
    (void)number;
    signal(SIGABRT, SIG_DFL);
    say("hangs: ");
    say(watched);
    say(" (or the fixture behind it)\n");
    backtrace_symbols_fd(frame, backtrace(frame, 64), STDERR_FILENO);
    abort();
}

static void watch(const char *name) {
    const char *own = getenv("CK_DEFAULT_TIMEOUT");
    const int seconds = own ? atoi(own) : 0;
    void *frame[1];
    backtrace(frame, 1); /* its first call loads a library, which a signal handler must not */
    watched = name;
    signal(SIGALRM, give_up);
    alarm(seconds > 0 ? (unsigned)seconds : 60);
}

/* As Check's own, with watch() before the body. */
#undef START_TEST
#define START_TEST(test)                                                      \
    static void test##_body(int _i);                                          \
    static void test##_fn(int _i) {                                           \
        watch(#test);                                                         \
        test##_body(_i);                                                      \
    }                                                                         \
    static const TTest test##_ttest = {#test, test##_fn, __FILE__, __LINE__}; \
    static const TTest *test = &test##_ttest;                                 \
    static void test##_body(int _i CK_ATTRIBUTE_UNUSED)

#endif
