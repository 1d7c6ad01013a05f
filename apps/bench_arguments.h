/* What the command lines of the benches share: lists of executors, numbers with bounds, exit statuses. */
#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "pinn_status.h"

enum { BENCH_REPEATS = 101 }; /* most */

#define BENCH_EXECUTORS "graph,eager,cpu"

/* Lists of names with commas: whether `name` is in the list, and whether every name of the list, one at least, is known. */
bool bench_list_holds(const char *list, const char *name);
bool bench_list_within(const char *list, const char *known);

/* The values of options. Each ends the program, with a message and exit status 2, when the value is none. */
const char *bench_parse_executors(struct argp_state *state, const char *value); /* known ones that this machine has, each once; until the next call */
int bench_parse_repeats(struct argp_state *state, const char *value);
uint64_t bench_parse_count(struct argp_state *state, const char *option, const char *value, uint64_t most); /* from 1 */
double bench_parse_seconds(struct argp_state *state, const char *option, const char *value, double most);

/* `message` without the "NAME: " it begins with, if it does: for rows and messages that name it already. */
const char *bench_without_name(const char *message, const char *name);
/* 2 when what was asked for can't be done, 1 when doing it failed. `begun`: reading files is over, so that files that fail are no
 * wrong names. */
int bench_exit_status(pinn_status status, bool begun);
/* The program's exit status, `failed` unless what was printed could not be written, which is told. */
int bench_finish(const char *program, int failed);

#endif
