/* The typed form of a problem file. The schema (schema.c) is one table of keys with type, default, bounds and help; toml_adapter.cpp
 * is the only file that knows toml++. Every value remembers where it stands in the file, for diagnostics. */
#ifndef PN_PROBLEM_CONFIG_H
#define PN_PROBLEM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/diagnostics.h"
#include "core/real.h"

typedef struct pn_string { /* text with its place: `at` is its first byte inside the quotes */
    char *text; /* owned; NULL = absent */
    pn_position at;
} pn_string;

typedef struct pn_config_coordinate {
    pn_string name;
    pn_string bound[2]; /* constant expressions; a TOML number arrives as its decimal text */
} pn_config_coordinate;

typedef struct pn_config_named { /* a constant, definition, reference formula, residual */
    pn_string name, value;
    double weight; /* residuals only; default 1 */
    pn_position weight_at;
} pn_config_named;

typedef enum pn_resample { PN_RESAMPLE_ALWAYS, PN_RESAMPLE_NEVER } pn_resample;

typedef struct pn_config_set { /* one [[equation]] or [[condition]] */
    bool condition;
    pn_position at;
    pn_string name;
    pn_string *on; /* conditions: faces */
    size_t on_count;
    pn_config_named *residual; /* one or several; a single residual is named like the set */
    size_t residual_count;
    pn_position weight_at;
    size_t points;
    pn_position points_at;
    pn_resample resample;
} pn_config_set;

typedef enum pn_decay { PN_DECAY_CONSTANT, PN_DECAY_EXPONENTIAL, PN_DECAY_COSINE } pn_decay;

/* Learning rate after w warm-up steps, s = phase step counted from 0, S = phase steps:
 *   s < warmup: initial * (s+1) / warmup
 *   constant: initial.  exponential: initial * rate^((s-warmup)/every).  cosine: final + (initial-final)*(1+cos(pi*(s-warmup)/(S-warmup)))/2 */
typedef struct pn_config_schedule {
    pn_decay decay;
    double initial, final, rate;
    uint64_t every, warmup; /* steps; warmup < S */
} pn_config_schedule;

typedef struct pn_config_phase_points { /* another point count from a phase on */
    pn_string set;
    size_t points;
    pn_position at; /* of the number */
} pn_config_phase_points;

typedef struct pn_config_phase { /* one [[train]] */
    pn_string optimizer; /* "adam" */
    uint64_t steps;
    pn_config_schedule learning_rate;
    double beta1, beta2, epsilon;
    double clip_norm; /* global-norm clipping; 0 = none */
    pn_config_phase_points *points; /* by set name, from this phase on */
    size_t points_count;
} pn_config_phase;

typedef struct pn_config {
    char *path, *stem;    /* "configs/heat.toml", "heat"; owned. The stem is "" for a name that leaves none (".toml", "...toml") */
    pn_text source;       /* the file's bytes */
    char **assignment; size_t assignment_count; /* the --set texts; owned, for diagnostics */
    pn_string title, time;
    pn_string precision;  /* "float32", "float64", "tf32" */
    pn_real real;
    bool tf32;            /* precision = "tf32": float32 with tf32 products */
    uint64_t seed;        /* below 2^63 */
    pn_string tiles;      /* "auto", "layered", or a choice: core/tiles.h */
    pn_config_coordinate *coordinate; size_t coordinate_count;
    pn_config_named *constant; size_t constant_count;
    pn_config_named *field; size_t field_count; /* value unused */
    pn_config_named *define; size_t define_count;
    pn_config_set *set; size_t set_count; /* equations first, then conditions, each in file order */
    pn_config_named *reference; size_t reference_count; /* formulas by field */
    pn_string reference_file; /* relative to the config file's folder */
    struct {
        pn_string kind; /* "mlp" */
        size_t width, depth; /* depth = hidden layers */
        pn_string activation;
        bool fourier;
        size_t fourier_features; /* rows of B: the embedding has twice as many columns */
        double fourier_scale;
    } network;
    pn_config_phase *phase; size_t phase_count;
    struct { /* 0 = rule absent */
        double loss, relative_l2, gradient_norm, seconds;
        uint64_t step;
        uint64_t patience; /* of plateau; steps */
        double min_delta;  /* the same; has its default without the rule too */
        pn_position relative_l2_at;
    } stop;
    struct {
        uint64_t events;     /* default 100 */
        uint64_t checkpoint; /* default 1000; 0 = only at the end */
        uint64_t evaluate_every; /* default: `events` */
        /* The evaluation set, defaults resolved: a grid with one number of points a coordinate, or one number of seeded points.
         * Count 0 when the reference is a file: then its points are the set. */
        size_t *evaluate_points; size_t evaluate_count;
        bool evaluate_grid;
        pn_position evaluate_at;
    } output;
} pn_config;

/* Reads and checks a problem file; `set` are "--set" assignments ("train.0.steps=500"), applied before checking. All errors found
 * (a TOML syntax error comes alone) go to the thread's message in the diagnostics' form, those of an assignment with "--set ..." as
 * the place; status CONFIG, or IO when unreadable. Expressions are compiled here only to report their errors together with the
 * others; see problem.h. */
pinn_status pn_config_read(const char *path, const char *const *set, size_t set_count, pn_config **out);
/* The same from memory; `path` is only for messages, the stem and the folder of a reference file. */
pinn_status pn_config_parse(const char *path, const char *text, size_t length, const char *const *set, size_t set_count, pn_config **out);
void pn_config_destroy(pn_config *config);

/* The whole config as TOML with every default resolved; reading it back gives the same config. */
pinn_status pn_config_write(const pn_config *config, pn_text *out);
/* Keys (dotted) that differ between two resolved TOML texts and may not change on --resume from a checkpoint that stands in this phase: everything
 * but [stop], [output], [reference], title, tiles, larger train steps of the last phase and points of later phases. One a line into `out`, as "constants.alpha: 0.4 -> 0.5" ("(absent)" where a text has
 * not the key); nothing when resuming is fine. */
pinn_status pn_config_compare(const char *resolved_old, const char *resolved_new, uint64_t phase, pn_text *out);
/* Whether both texts show a solution in the same way: title, points of the evaluation, reference. */
pinn_status pn_config_same_solution(const char *resolved_old, const char *resolved_new, bool *same);
/* The string under a key of the top level of a resolved TOML text, owned by the caller (pn_free); NULL where there is none. */
pinn_status pn_config_find_string(const char *resolved, const char *key, char **out);
/* The file's text with its key `tiles` set to this value and nothing else changed, appended to `out`. Errors: UNSUPPORTED where the file is
 * written in a way that leaves no safe place for it. */
pinn_status pn_config_edit_tiles(const pn_config *config, const char *tiles, pn_text *out);
/* The path of the reference file, which the config must have: as given when absolute, else beside the config. Owned by the caller; NULL without memory. */
char *pn_config_reference_path(const pn_config *config);
/* The schema as a Markdown table, for docs/configuration.md. */
void pn_config_describe(pn_text *out);

#endif
