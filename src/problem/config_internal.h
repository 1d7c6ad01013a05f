/* What the files of this folder share: --set assignments, and diagnostics that know them. */
#ifndef PN_PROBLEM_CONFIG_INTERNAL_H
#define PN_PROBLEM_CONFIG_INTERNAL_H

#include "problem/config.h"
#include "problem/schema.h"

/* Positions inside assignment i use the lines from PN_ASSIGNMENT_LINE + i*PN_ASSIGNMENT_LINES on, far behind any file's last one: an
 * expression's errors, placed relative to its first byte, still tell which assignment they belong to. */
#define PN_ASSIGNMENT_LINE (1u << 24)
#define PN_ASSIGNMENT_LINES 4096u
#define PN_MAX_ASSIGNMENTS 1000u

/* Applies config->assignment to the tree, in order. */
pinn_status pn_assignments_apply(const pn_config *config, pn_toml *root, pn_diagnostics *list);

/* Fills the config from a tree; reports what is wrong. `named` is true when coordinates, fields, constants and definitions all arrived,
 * so that looking up names in expressions makes sense. Errors: NO_MEMORY. */
pinn_status pn_config_fill(pn_config *config, pn_toml *root, pn_diagnostics *list, bool *named);

/* Shortest decimal text of a finite number, whole numbers without point or exponent: valid TOML and valid in expressions. */
void pn_config_number(double value, pn_text *out);

/* True for what `real` computes with: 0, and normal finite numbers. */
bool pn_real_holds(pn_real real, double value);
/* Reports "`what` 1e+39 is too large for float32". */
void pn_report_unheld(const pn_config *config, pn_diagnostics *list, pn_position at, const char *what, double value);

void pn_config_diagnostics(const pn_config *config, pn_diagnostics *list);
/* Like pn_diagnostics_check, with the errors of assignments shown under "--set KEY=VALUE"; repeated errors are shown once. */
pinn_status pn_config_check(const pn_config *config, pn_diagnostics *list);

/* Compiles what can be compiled of a config, only to report the errors of its expressions. Errors: NO_MEMORY. */
pinn_status pn_problem_diagnose(const pn_config *config, pn_diagnostics *list);

#endif
