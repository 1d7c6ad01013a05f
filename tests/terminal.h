/* A terminal to write to, and what was written. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <check.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef struct terminal {
    int master;
    FILE *stream;
} terminal;

/* False, having said so, where there are no pseudo-terminals: a bare root without /dev/pts. */
static inline bool open_terminal(terminal *t, unsigned short columns) {
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    t->master = posix_openpt(O_RDWR | O_NOCTTY);
    if (t->master < 0) {
        printf("skipped: no pseudo-terminal here\n");
        return false;
    }
    ck_assert_int_eq(grantpt(t->master) | unlockpt(t->master), 0);
    int slave = open(ptsname(t->master), O_RDWR | O_NOCTTY);
    ck_assert_int_ge(slave, 0);
    ck_assert_int_eq(ioctl(slave, TIOCSWINSZ, &size), 0);
    t->stream = fdopen(slave, "w");
    ck_assert_ptr_nonnull(t->stream);
    return true;
}

/* All that was written, as the terminal shows it: \n has become \r\n. At most what the kernel's buffer holds, 4 KiB. */
static inline void read_terminal(const terminal *t, char *text, size_t size) {
    size_t length = 0;
    fflush(t->stream);
    ck_assert_int_eq(fcntl(t->master, F_SETFL, O_NONBLOCK), 0);
    for (ssize_t got; length < size - 1 && (got = read(t->master, text + length, size - 1 - length)) > 0;) length += (size_t)got;
    text[length] = 0;
}

static inline void close_terminal(terminal *t) {
    fclose(t->stream);
    close(t->master);
}

#endif
