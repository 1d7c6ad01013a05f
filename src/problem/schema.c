/* The table of keys of a problem file, and what old or foreign keys are called here. See schema.h. */
#include "problem/schema.h"

#include <math.h>
#include <string.h>

#include "pointwise/jet.h"

#define CONFIG(member) offsetof(pn_config, member)
#define SET(member) offsetof(pn_config_set, member)
#define PHASE(member) offsetof(pn_config_phase, member)

#define MAX_STEPS 1e12 /* a step number is exact in float64 */
#define MAX_POINTS 2147483647.0
#define MAX_INTEGER 0x1p63 /* stands for 2^63 - 1, TOML's largest integer, which no double holds */

#define ANY .low = -INFINITY, .high = INFINITY
#define FROM(l, h) .low = (l), .high = (h)
#define POSITIVE .low = 0, .open_low = true, .high = INFINITY
#define NOT_NEGATIVE .low = 0, .high = INFINITY
#define FRACTION .low = 0, .high = 1, .open_high = true

#define STRING PN_ACCEPT_STRING
#define INTEGER PN_ACCEPT_INTEGER
#define NUMBER PN_ACCEPT_NUMBER
#define TABLE PN_ACCEPT_TABLE
#define ARRAY PN_ACCEPT_ARRAY

static const char *const precisions[] = {"float32", "float64", "tf32", NULL};
static const char *const resamples[] = {"always", "never", NULL}; /* as pn_resample */
static const char *const kinds[] = {"mlp", NULL};
static const char *const optimizers[] = {"adam", NULL};
static const char *const decays[] = {"constant", "exponential", "cosine", NULL}; /* as pn_decay */

#define SET_KEYS(kind, what)                                                                                                       \
    {kind, ARRAY, NULL, false, ANY, .help = what}, {kind ".#", TABLE, NULL, false, ANY},                                           \
        {kind ".#.name", STRING, NULL, false, ANY, .store = PN_STORE_STRING, .offset = SET(name),                                  \
         .help = "Name of the point set, used in events and messages. Default: `" kind "1`, `" kind "2`, ... by its place among the " kind "s"},                    \
        {kind ".#.residual", STRING | TABLE, NULL, true, ANY,                                                                      \
         .help = "Expression that is driven to 0, or a table of named ones that share the points"},                                \
        {kind ".#.residual.*", STRING, NULL, false, ANY}, {kind ".#.points", INTEGER, NULL, true, FROM(1, MAX_POINTS),             \
         .store = PN_STORE_SIZE, .offset = SET(points), .help = "Number of points drawn, in total over all faces: at least one a face"},                \
        {kind ".#.weight", NUMBER | TABLE, "1", false, NOT_NEGATIVE,                                                               \
         .help = "Factor of the loss (mean of residual^2), or a table of factors by residual name; those it does not name weigh 1"},                               \
        {kind ".#.weight.*", NUMBER, NULL, false, NOT_NEGATIVE},                                                                   \
        {kind ".#.resample", STRING, "always", false, ANY, .choices = resamples, PN_STORE_CHOICE, SET(resample),                              \
         "`always`: new points each step; `never`: the points of the first step stay"}

const pn_key pn_schema[] = {
    {"title", STRING, NULL, false, ANY, .store = PN_STORE_STRING, .offset = CONFIG(title), .help = "Free text"},
    {"time", STRING, NULL, false, ANY, .store = PN_STORE_STRING, .offset = CONFIG(time),
     .help = "Which coordinate is time, if any: `lap` and `\"boundary\"` leave it out"},
    {"precision", STRING, "float32", false, ANY, .choices = precisions, PN_STORE_STRING, CONFIG(precision),
     "Arithmetic of the training; `tf32` (GPU only) is float32 with matrix products of 11-bit operands (TensorFloat-32, or scaled fp16)"},
    {"seed", INTEGER, "0", false, FROM(0, MAX_INTEGER), .store = PN_STORE_U64, .offset = CONFIG(seed),
     .help = "Key of all random numbers: points, initial parameters, Fourier features; `--seed` replaces it"},
    {"tiles", STRING, "auto", false, ANY, .store = PN_STORE_STRING, .offset = CONFIG(tiles),
     .help = "Tiles of a GPU's network pass: `\"auto\"`, by a model of the pass; `\"layered\"`, no tiles; or a choice, as `--plan` and `--tune` print "
             "it: `\"units 5, splits 2, keep shared, weights all\"`, or, for wide networks, `\"rows 128\"`. Not used on a CPU"},

    {"domain", TABLE, NULL, true, ANY, .help = "The coordinates, 1 to 100, in the order they stand"},
    {"domain.*", ARRAY, NULL, false, ANY,
     .help = "`[lower, upper]` of a coordinate: numbers or constant expressions such as `\"2*pi\"`; may use [constants]"},
    {"domain.*.#", NUMBER | STRING, NULL, false, ANY},

    {"constants", TABLE, NULL, false, ANY, .help = "Named numbers for expressions"},
    {"constants.*", NUMBER | STRING, NULL, false, ANY, .help = "A number or a constant expression over earlier constants"},

    {"fields", TABLE, NULL, true, ANY, .help = "The unknown functions: what the network computes"},
    {"fields.*", TABLE, NULL, false, ANY, .help = "An empty table: `u = {}`"},

    {"define", TABLE, NULL, false, ANY, .help = "Named sub-expressions"},
    {"define.*", STRING, NULL, false, ANY, .help = "An expression; may use earlier definitions"},

    SET_KEYS("equation", "Equations that hold inside the domain"),
    SET_KEYS("condition", "Initial and boundary conditions"),
    {"condition.#.on", STRING | ARRAY, NULL, true, ANY,
     .help = "Where: a face (`\"x=min\"`, `\"x=max\"`), a plane by value (`\"x=0.5\"`), `\"boundary\"` (all faces but time's), or a list"},
    {"condition.#.on.#", STRING, NULL, false, ANY},

    {"reference", TABLE, NULL, false, ANY, .help = "The solution to compare with, if one is known"},
    {"reference.file", STRING, NULL, false, ANY, .store = PN_STORE_STRING, .offset = CONFIG(reference_file),
     .help = "HDF5 file, relative to this file's folder: axes named as the coordinates and fields over them in domain order, or columns of "
             "equal length, a row a point"},
    {"reference.*", STRING, NULL, false, ANY, .help = "A formula for the field of that name"},

    {"network", TABLE, NULL, false, ANY, .help = "What represents the fields"},
    {"network.kind", STRING, "mlp", false, ANY, .choices = kinds, PN_STORE_STRING, CONFIG(network.kind), "`mlp`: fully connected layers"},
    {"network.width", INTEGER, "32", false, FROM(1, 65536), .store = PN_STORE_SIZE, .offset = CONFIG(network.width),
     .help = "Neurons a hidden layer"},
    {"network.depth", INTEGER, "3", false, FROM(1, 1000), .store = PN_STORE_SIZE, .offset = CONFIG(network.depth),
     .help = "Hidden layers"},
    {"network.activation", STRING, "tanh", false, ANY, .choices = pn_activation_names, PN_STORE_STRING, CONFIG(network.activation),
     "Activation function"},
    {"network.fourier", TABLE, NULL, false, ANY,
     .help = "Embeds the coordinates as [cos 2 pi B x, sin 2 pi B x], B normal and fixed (Tancik et al. 2020)"},
    {"network.fourier.features", INTEGER, "64", false, FROM(1, 65536), .store = PN_STORE_SIZE,
     .offset = CONFIG(network.fourier_features), .help = "Rows of B; the embedding has twice as many columns"},
    {"network.fourier.scale", NUMBER, "1", false, POSITIVE, .store = PN_STORE_DOUBLE, .offset = CONFIG(network.fourier_scale),
     .help = "Standard deviation of B; the coordinates are scaled to [-1, 1] first", .rounded = true},

    {"train", ARRAY, NULL, true, ANY, .help = "Training phases, run one after another"},
    {"train.#", TABLE, NULL, false, ANY},
    {"train.#.optimizer", STRING, "adam", false, ANY, .choices = optimizers, PN_STORE_STRING, PHASE(optimizer),
     "`adam` (Kingma & Ba 2015)"},
    {"train.#.steps", INTEGER, NULL, true, FROM(1, MAX_STEPS), .store = PN_STORE_U64, .offset = PHASE(steps),
     .help = "Optimizer steps of this phase"},
    {"train.#.learning_rate", NUMBER | TABLE, NULL, false, POSITIVE, .help = "A number (constant), or a table. Default: that table's defaults", .rounded = true},
    {"train.#.learning_rate.initial", NUMBER, "0.001", false, POSITIVE, .store = PN_STORE_DOUBLE,
     .offset = PHASE(learning_rate.initial), .help = "Learning rate after the warm-up", .rounded = true},
    {"train.#.learning_rate.decay", STRING, "constant", false, ANY, .choices = decays, PN_STORE_CHOICE, PHASE(learning_rate.decay),
     "How it falls"},
    {"train.#.learning_rate.final", NUMBER, "0", false, NOT_NEGATIVE, .store = PN_STORE_DOUBLE,
     .offset = PHASE(learning_rate.final), .help = "`cosine`: learning rate at the end of the phase", .rounded = true},
    {"train.#.learning_rate.rate", NUMBER, "0.9", false, POSITIVE, .store = PN_STORE_DOUBLE, .offset = PHASE(learning_rate.rate),
     .help = "`exponential`: factor every `every` steps"},
    {"train.#.learning_rate.every", INTEGER, "1000", false, FROM(1, MAX_STEPS), .store = PN_STORE_U64,
     .offset = PHASE(learning_rate.every), .help = "`exponential`: steps over which the rate falls by the factor `rate`"},
    {"train.#.learning_rate.warmup", INTEGER, "0", false, FROM(0, MAX_STEPS), .store = PN_STORE_U64,
     .offset = PHASE(learning_rate.warmup), .help = "Steps over which the rate first rises linearly; fewer than `steps`"},
    {"train.#.beta1", NUMBER, "0.9", false, FRACTION, .store = PN_STORE_DOUBLE, .offset = PHASE(beta1),
     .help = "Decay of the first moment"},
    {"train.#.beta2", NUMBER, "0.999", false, FRACTION, .store = PN_STORE_DOUBLE, .offset = PHASE(beta2),
     .help = "Decay of the second moment"},
    {"train.#.epsilon", NUMBER, "1e-08", false, POSITIVE, .store = PN_STORE_DOUBLE, .offset = PHASE(epsilon),
     .help = "Added to the root of the second moment", .rounded = true},
    {"train.#.clip_norm", NUMBER, "0", false, NOT_NEGATIVE, .store = PN_STORE_DOUBLE, .offset = PHASE(clip_norm),
     .help = "Largest 2-norm of the gradient; larger ones are scaled down; 0 = no limit", .rounded = true},
    {"train.#.points", TABLE, NULL, false, ANY, .help = "Other point counts from this phase on: `{ heat = 5000 }`"},
    {"train.#.points.*", INTEGER, NULL, false, FROM(1, MAX_POINTS)},

    {"stop", TABLE, NULL, false, ANY,
     .help = "Rules that end the training early; the first one met counts. Loss, gradient and plateau are looked at in every step, on what the "
             "step measured before its update; the step that meets a rule is the last one, done whole"},
    {"stop.loss", NUMBER, NULL, false, POSITIVE, .store = PN_STORE_DOUBLE, .offset = CONFIG(stop.loss),
     .help = "Total loss at or below"},
    {"stop.relative_l2", NUMBER, NULL, false, POSITIVE, .store = PN_STORE_DOUBLE, .offset = CONFIG(stop.relative_l2),
     .help = "Relative L2 error of every field at or below, looked at in every evaluation; needs a reference for each field"},
    {"stop.gradient_norm", NUMBER, NULL, false, POSITIVE, .store = PN_STORE_DOUBLE, .offset = CONFIG(stop.gradient_norm),
     .help = "2-norm of the gradient, before clipping, at or below"},
    {"stop.plateau", TABLE, NULL, false, ANY,
     .help = "The total loss no longer falls: for `patience` steps none was under (1 - `min_delta`) times the last one that was"},
    {"stop.plateau.patience", INTEGER, NULL, true, FROM(1, MAX_STEPS), .store = PN_STORE_U64, .offset = CONFIG(stop.patience),
     .help = "Steps without improvement, counted over all phases"},
    {"stop.plateau.min_delta", NUMBER, "0.001", false, FRACTION, .store = PN_STORE_DOUBLE, .offset = CONFIG(stop.min_delta),
     .help = "What counts as improvement: a fall by this part of the loss"},
    {"stop.step", INTEGER, NULL, false, FROM(1, MAX_STEPS), .store = PN_STORE_U64, .offset = CONFIG(stop.step),
     .help = "Steps done, counted over all phases"},
    {"stop.seconds", NUMBER, NULL, false, POSITIVE, .store = PN_STORE_DOUBLE, .offset = CONFIG(stop.seconds),
     .help = "Seconds of training, over all resumptions; looked at about twice a second"},

    {"output", TABLE, NULL, false, ANY, .help = "What a run records"},
    {"output.events", INTEGER, "100", false, FROM(1, MAX_STEPS), .store = PN_STORE_U64, .offset = CONFIG(output.events),
     .help = "Steps between two rows of `events.h5`"},
    {"output.checkpoint", INTEGER, "1000", false, FROM(0, MAX_STEPS), .store = PN_STORE_U64, .offset = CONFIG(output.checkpoint),
     .help = "Steps between two checkpoints, besides the one at the end of every `[[train]]`; 0 = only those"},
    {"output.evaluate", TABLE, NULL, false, ANY, .help = "The fixed set of points on which errors are measured"},
    {"output.evaluate.points", INTEGER | ARRAY, NULL, false, FROM(1, 1e8),
     .help = "A grid, `[101, 101]`: at least 2 points for each coordinate; or one number of random points. Default: `[1001]`, `[101, 101]`, `[21, 21, 21]`, `10000` "
             "for 1, 2, 3 and more coordinates. Not with a reference file: it brings its points"},
    {"output.evaluate.points.#", INTEGER, NULL, false, FROM(2, 1e8)},
    {"output.evaluate.every", INTEGER, NULL, false, FROM(1, MAX_STEPS), .store = PN_STORE_U64,
     .offset = CONFIG(output.evaluate_every), .help = "Steps between two evaluations. Default: `events`"},
};
const size_t pn_schema_count = sizeof pn_schema / sizeof *pn_schema;

static const pn_key file_key = {.pattern = "", .accepts = TABLE};

/* Keys of other programs, or of habit. Section "*": anywhere. */
static const struct {
    const char *section, *key, *advice;
} trap[] = {
    {"*", "epochs", "the number of optimizer steps is steps in [[train]]"},
    {"*", "iterations", "the number of optimizer steps is steps in [[train]]"},
    {"*", "max_steps", "the number of optimizer steps is steps in [[train]]"},
    {"*", "lr", "it is called learning_rate, in [[train]]"},
    {"*", "batch_size", "the number of points is points in each [[equation]] and [[condition]]"},
    {"*", "num_points", "it is called points"},
    {"*", "n_points", "it is called points"},
    {"*", "num_domain", "the number of points is points in each [[equation]]"},
    {"*", "num_boundary", "the number of points is points in each [[condition]]"},
    {"network", "layers", "it is called depth: the number of hidden layers"},
    {"network", "hidden_layers", "it is called depth: the number of hidden layers"},
    {"network", "layer_sizes", "width is the neurons of each hidden layer, depth their number"},
    {"network", "neurons", "it is called width"},
    {"network", "units", "it is called width"},
    {"network", "hidden", "it is called width"},
    {"network", "type", "it is called kind"},
    {"network", "act", "it is called activation"},
    {"", "dtype", "it is called precision"},
    {"", "device", "the device is the option --device of the command line"},
    {"", "parameters", "it is called [constants]"},
    {"", "variables", "unknown functions are [fields], coordinates stand in [domain]"},
    {"", "coordinates", "coordinates stand in [domain]"},
    {"", "geometry", "coordinates stand in [domain]"},
    {"", "pde", "it is called [[equation]]"},
    {"", "equations", "it is called [[equation]], one for each"},
    {"", "conditions", "it is called [[condition]], one for each"},
    {"", "boundary", "it is called [[condition]], with on = \"boundary\""},
    {"", "initial", "it is called [[condition]], with on = \"t=min\""},
    {"", "optimizer", "it is a key of [[train]]"},
    {"", "training", "it is called [[train]], one for each phase"},
    {"", "solution", "it is called [reference]"},
    {"equation.#", "expression", "it is called residual"},
    {"equation.#", "equation", "it is called residual"},
    {"condition.#", "expression", "it is called residual"},
    {"condition.#", "value", "write residual = \"u - value\""},
    {"condition.#", "face", "it is called on"},
    {"condition.#", "where", "it is called on"},
    {"train.#", "schedule", "it is learning_rate = { initial, decay, ... }"},
    {"train.#", "gradient_clip", "it is called clip_norm"},
    {"train.#", "eps", "it is called epsilon"},
    {"stop", "patience", "write plateau = { patience = N }"},
    {"stop", "min_delta", "write plateau = { patience = N, min_delta = D }"},
    {"output", "log_every", "it is called events"},
    {"output", "save_every", "it is called checkpoint"},
};

size_t pn_list_length(const char *const *list) {
    size_t n = 0;
    while (list && list[n]) n++;
    return n;
}

const pn_key *pn_schema_find(const char *pattern) {
    if (!*pattern) return &file_key;
    for (size_t i = 0; i < pn_schema_count; i++)
        if (strcmp(pn_schema[i].pattern, pattern) == 0) return &pn_schema[i];
    return NULL;
}

/* The last segment of `key` when its parent is `parent`, else NULL. */
static const char *segment_under(const pn_key *key, const pn_key *parent) {
    size_t length = strlen(parent->pattern);
    const char *rest = key->pattern;
    if (length) {
        if (strncmp(rest, parent->pattern, length) != 0 || rest[length] != '.') return NULL;
        rest += length + 1;
    }
    return strchr(rest, '.') ? NULL : rest;
}

const pn_key *pn_schema_child(const pn_key *parent, const char *name) {
    const pn_key *any = NULL;
    for (size_t i = 0; i < pn_schema_count; i++) {
        const char *segment = segment_under(&pn_schema[i], parent);
        if (!segment) continue;
        bool wildcard = strcmp(segment, "*") == 0 || strcmp(segment, "#") == 0;
        if (!wildcard && strcmp(segment, name) == 0) return &pn_schema[i];
        if (strcmp(segment, "*") == 0 || (wildcard && strcmp(segment, name) == 0)) any = &pn_schema[i];
    }
    return any;
}

const char *pn_schema_name(const pn_key *key) {
    const char *dot = strrchr(key->pattern, '.');
    return dot ? dot + 1 : key->pattern;
}

void pn_schema_section(const pn_key *key, pn_text *out) {
    const char *dot = strchr(key->pattern, '.');
    if (!*key->pattern)
        pn_text_string(out, "the top level");
    else if (!dot)
        pn_text_printf(out, "[%s]", key->pattern);
    else if (strcmp(dot, ".#") == 0)
        pn_text_printf(out, "[[%.*s]]", (int)(dot - key->pattern), key->pattern);
    else if (strcmp(pn_schema_name(key), "*") == 0)
        pn_text_printf(out, "an entry of [%.*s]", (int)(dot - key->pattern), key->pattern);
    else
        pn_text_string(out, pn_schema_name(key));
}

void pn_schema_types(const pn_key *key, pn_text *out) {
    static const struct {
        unsigned bit;
        const char *name;
    } type[] = {{STRING, "a string"}, {INTEGER, "an integer"}, {NUMBER, "a number"}, {TABLE, "a table"}, {ARRAY, "an array"}};
    bool first = true;
    for (size_t i = 0; i < sizeof type / sizeof *type; i++)
        if (key->accepts & type[i].bit) {
            pn_text_printf(out, "%s%s", first ? "" : " or ", type[i].name);
            first = false;
        }
}

void pn_schema_range(const pn_key *key, pn_text *out) {
    if (!(key->accepts & (INTEGER | NUMBER))) return;
    bool low = isfinite(key->low), high = isfinite(key->high);
    if (low && key->high == MAX_INTEGER)
        pn_text_printf(out, "from %.15g to 2^63 - 1", key->low);
    else if (low && high && !key->open_low && !key->open_high)
        pn_text_printf(out, "from %.15g to %.15g", key->low, key->high);
    else {
        if (low) pn_text_printf(out, "%s %.15g", key->open_low ? ">" : ">=", key->low);
        if (high) pn_text_printf(out, "%s%s %.15g", low ? " and " : "", key->open_high ? "<" : "<=", key->high);
    }
}

void pn_schema_hint(const pn_key *section, const char *unknown, pn_text *out) {
    for (size_t i = 0; i < sizeof trap / sizeof *trap; i++)
        if (strcmp(trap[i].key, unknown) == 0 && (strcmp(trap[i].section, "*") == 0 || strcmp(trap[i].section, section->pattern) == 0)) {
            pn_text_string(out, trap[i].advice);
            return;
        }
    const char *candidate[32];
    size_t count = 0;
    for (size_t i = 0; i < pn_schema_count && count < 32; i++) {
        const char *segment = segment_under(&pn_schema[i], section);
        if (segment && *segment != '*' && *segment != '#') candidate[count++] = segment;
    }
    const char *nearest = pn_nearest(unknown, candidate, count);
    if (nearest) {
        pn_text_printf(out, "did you mean \"%s\"?", nearest);
        return;
    }
    for (size_t i = 0; i < pn_schema_count; i++) { /* the right key in the wrong table */
        const char *dot = strrchr(pn_schema[i].pattern, '.');
        if (strcmp(dot ? dot + 1 : pn_schema[i].pattern, unknown) != 0) continue;
        char parent[64] = "";
        if (dot) memcpy(parent, pn_schema[i].pattern, (size_t)(dot - pn_schema[i].pattern));
        const pn_key *home = pn_schema_find(parent);
        if (!home) continue;
        pn_text_printf(out, "\"%s\" is a key of ", unknown);
        pn_schema_section(home, out);
        return;
    }
    for (size_t i = 0; i < count; i++) pn_text_printf(out, "%s%s", i ? ", " : "its keys: ", candidate[i]);
    pn_text_string(out, count ? "; docs/configuration.md explains them" : "it takes no keys: write {}");
}
