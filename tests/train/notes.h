/* What a training says: its notes, a line each, for pinn_options.message. */
#ifndef NOTES_H
#define NOTES_H

#include <string.h>

static char notes[8192];

static inline void note(void *user, const char *line) {
    (void)user;
    strncat(notes, line, sizeof notes - strlen(notes) - 2);
    strcat(notes, "\n");
}

#endif
