/* The progress line (see progress.h). A live line is rewritten in place: carriage return, erase to the end (ECMA-48 EL), text. The
 * stream's own lock keeps lines of several threads apart. */
#include "io/progress.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"

struct pn_progress {
    FILE *stream; /* borrowed */
    bool terminal;
    double last;  /* seconds of the monotonic clock: last line, or creation */
    bool live;    /* a live line stands on the terminal */
    pn_text text; /* that line */
};

pn_progress *pn_progress_create(FILE *stream, bool quiet) {
    if (quiet || !stream) return NULL;
    pn_progress *progress = pn_allocate(1, sizeof *progress);
    if (!progress) return NULL;
    progress->stream = stream;
    progress->terminal = isatty(fileno(stream));
    progress->last = pn_clock();
    return progress;
}

static void append_duration(pn_text *text, double seconds) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e9) return;
    const unsigned long s = (unsigned long)(seconds + 0.5);
    if (s >= 3600)
        pn_text_printf(text, "  %luh %02lum left", s / 3600, s / 60 % 60);
    else if (s >= 60)
        pn_text_printf(text, "  %lum %02lus left", s / 60, s % 60);
    else
        pn_text_printf(text, "  %lus left", s);
}

/* The step comes first: an error is not to be read without it. */
static void append_errors(const pn_progress_state *state, bool brief, pn_text *text) {
    bool first = true;
    for (size_t f = 0; f < state->fields; f++) {
        if (isnan(state->relative_l2[f])) continue;
        pn_text_string(text, !first ? " " : brief ? "  L2" : "  relative L2");
        if (first && state->evaluated != state->step) pn_text_printf(text, " (step %llu)", (unsigned long long)state->evaluated);
        pn_text_printf(text, " %s %.2e", state->field[f], state->relative_l2[f]);
        first = false;
    }
}

/* Columns two blanks apart, what is wanted first in front: a terminal may be too narrow for the last ones. */
static void describe(const pn_progress_state *state, bool brief, pn_text *text) {
    const double rate = state->steps_per_second;
    text->length = 0;
    text->failed = false;
    pn_text_printf(text, "step %llu/%llu", (unsigned long long)state->step, (unsigned long long)state->steps);
    if (!isnan(state->loss)) pn_text_printf(text, "  loss %.*e", brief ? 2 : 3, state->loss);
    if (rate > 0 && isfinite(rate)) {
        pn_text_printf(text, "  %.*f%s/s", rate < 10 ? 1 : 0, rate, brief ? "" : " steps");
        if (state->steps > state->step) append_duration(text, (double)(state->steps - state->step) / rate);
    }
    append_errors(state, brief, text);
    if (!isnan(state->learning_rate)) pn_text_printf(text, "  learning rate %.2e", state->learning_rate);
}

/* Sums whose parts fade with their age: their quotient needs no first value to begin with. */
void pn_progress_rate_add(pn_progress_rate *rate, double steps, double seconds) {
    static const double memory = 10; /* seconds after which a part counts 1/e */
    const double fade = exp(-seconds / memory);
    rate->steps = fade * rate->steps + steps;
    rate->seconds = fade * rate->seconds + seconds;
}

double pn_progress_rate_get(const pn_progress_rate *rate) { return rate->seconds > 0 ? rate->steps / rate->seconds : 0; }

/* How much of a line `width` bytes show, without half a column; the first column is cut where it must be. */
static int fitting(const char *line, int width) {
    if (strlen(line) <= (size_t)width) return width;
    for (int end = width; end > 0; end--)
        if (line[end] == ' ' && line[end + 1] == ' ') return end;
    return width;
}

/* Cut to the terminal's width: a wrapped line could not be erased. */
static void draw(pn_progress *progress) {
    struct winsize size;
    int width = ioctl(fileno(progress->stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
    const char *line = pn_text_get(&progress->text);
    fprintf(progress->stream, "\r\033[K%.*s", fitting(line, width), line);
    progress->live = true;
}

void pn_progress_update(pn_progress *progress, const pn_progress_state *state, bool force) {
    if (!progress) return;
    flockfile(progress->stream);
    const double time = pn_clock();
    if (force || time - progress->last >= (progress->terminal ? 0.2 : 5.0)) {
        progress->last = time;
        describe(state, progress->terminal, &progress->text);
        if (progress->terminal)
            draw(progress);
        else
            fprintf(progress->stream, "%s\n", pn_text_get(&progress->text));
        fflush(progress->stream);
    }
    funlockfile(progress->stream);
}

void pn_progress_pause(pn_progress *progress) {
    if (!progress) return;
    flockfile(progress->stream);
    if (!progress->live) return;
    fputs("\r\033[K", progress->stream);
    fflush(progress->stream); /* what follows may come another way to the same terminal */
}

void pn_progress_resume(pn_progress *progress) {
    if (!progress) return;
    if (progress->live) draw(progress);
    fflush(progress->stream);
    funlockfile(progress->stream);
}

void pn_progress_destroy(pn_progress *progress) {
    if (!progress) return;
    if (progress->live) {
        fputc('\n', progress->stream);
        fflush(progress->stream);
    }
    pn_text_free(&progress->text);
    pn_free(progress);
}
