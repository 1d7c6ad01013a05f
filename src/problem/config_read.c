/* From the TOML tree to pn_config: plain values by the schema's table; domain, point sets, reference, phases and output by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/tiles.h"
#include "pointwise/jet.h"
#include "problem/config_internal.h"

#define MAX_EVALUATION_POINTS 100000000u
#define MAX_NAME 60 /* bytes of a point set's or residual's name: it becomes a dataset's name and a column */

typedef struct reader {
    pn_config *config;
    pn_diagnostics *list;
} reader;

static pinn_status keep(const char *text, pn_position at, pn_string *out) {
    out->text = pn_duplicate(text, strlen(text));
    out->at = at;
    return out->text ? PINN_OK : PN_NO_MEMORY("a configuration");
}

static void *many(size_t count, size_t size) { return pn_allocate(count ? count : 1, size); }

/* The child of a table if it is there and good. */
static pn_toml *good(const pn_toml *table, const char *key) {
    pn_toml *node = pn_toml_find(table, key);
    return node && !node->bad ? node : NULL;
}

/* ---- plain values -------------------------------------------------------------------------------------------------------- */

static pinn_status store_value(const pn_key *key, const pn_toml *node, char *base) {
    void *at = base + key->offset;
    const char *text = node ? node->string : key->fallback;
    double number = node ? node->number : 0;
    uint64_t integer = node ? (uint64_t)node->integer : 0;
    if (!node && key->store != PN_STORE_STRING) {
        number = strtod(key->fallback, NULL);
        integer = (uint64_t)number;
    }
    switch (key->store) {
        case PN_STORE_NONE: break;
        case PN_STORE_STRING: return keep(text, node ? node->at : (pn_position){0, 0}, at);
        case PN_STORE_DOUBLE: *(double *)at = number; break;
        case PN_STORE_U64: *(uint64_t *)at = integer; break;
        case PN_STORE_SIZE: *(size_t *)at = (size_t)integer; break;
        case PN_STORE_CHOICE:
            for (unsigned i = 0; key->choices[i]; i++)
                if (strcmp(key->choices[i], text) == 0) *(unsigned *)at = i;
            break;
    }
    return PINN_OK;
}

/* A key that must be there and is not; the hint is the schema's help, without its Markdown. */
static void report_missing(const reader *r, const pn_toml *table, const pn_key *section, const pn_key *key) {
    pn_text where = {0}, hint = {0};
    const bool list = key->accepts & PN_ACCEPT_ARRAY;
    for (const char *c = key->help; *c; c++)
        if (*c != '`') pn_text_append(&hint, c, 1);
    pn_schema_section(section, &where);
    if (*section->pattern)
        pn_diagnose(r->list, table->at, pn_text_get(&hint), "missing key \"%s\" in %s", pn_schema_name(key), pn_text_get(&where));
    else
        pn_diagnose(r->list, (pn_position){0, 0}, pn_text_get(&hint), "there is no %s%s%s", list ? "[[" : "[", pn_schema_name(key),
                    list ? "]]" : "]");
    pn_text_free(&where);
    pn_text_free(&hint);
}

/* A number that the training would round to infinity or 0. */
static void check_rounded(const reader *r, const pn_key *key, const pn_toml *node) {
    const bool number = node->kind == PN_TOML_INTEGER || node->kind == PN_TOML_FLOAT;
    if (!key->rounded || !number || pn_real_holds(r->config->real, node->number)) return;
    pn_report_unheld(r->config, r->list, node->at, pn_schema_name(key), node->number);
}

/* Reads all plain keys of a section from `table` (NULL: all defaults) into the struct at `base`; reports missing keys. */
static pinn_status read_plain(const reader *r, const pn_toml *table, const char *section, void *base) {
    const pn_key *parent = pn_schema_find(section);
    for (size_t i = 0; i < pn_schema_count; i++) {
        const pn_key *key = &pn_schema[i];
        if (pn_schema_child(parent, pn_schema_name(key)) != key || *pn_schema_name(key) == '*') continue;
        const pn_toml *node = pn_toml_find(table, pn_schema_name(key));
        if (!node && key->required) report_missing(r, table, parent, key);
        if (node && node->bad) node = NULL;
        if (node) check_rounded(r, key, node);
        if (key->store == PN_STORE_NONE || (!node && !key->fallback)) continue;
        pinn_status status = store_value(key, node, base);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

/* ---- names: coordinates, fields, constants, definitions ------------------------------------------------------------------- */

/* A string, or a number as its decimal text. */
static pinn_status keep_expression(const pn_toml *node, pn_string *out) {
    if (node->kind == PN_TOML_STRING) return keep(node->string, node->at, out);
    pn_text text = {0};
    if (node->kind == PN_TOML_INTEGER)
        pn_text_printf(&text, "%lld", (long long)node->integer);
    else
        pn_config_number(node->number, &text);
    pinn_status status = pn_text_check(&text);
    if (status == PINN_OK) status = keep(pn_text_get(&text), node->at, out);
    pn_text_free(&text);
    return status;
}

/* The children of a table as named values; bad ones are left out and clear `complete`. */
static pinn_status read_named(const pn_toml *table, pn_config_named **out, size_t *count, bool *complete) {
    *out = many(table ? table->count : 0, sizeof **out);
    if (!*out) return PN_NO_MEMORY("a configuration");
    for (size_t i = 0; table && i < table->count; i++) {
        const pn_toml *node = &table->child[i];
        if (node->bad) {
            *complete = false;
            continue;
        }
        pn_config_named *named = &(*out)[(*count)++];
        named->weight = 1;
        pinn_status status = keep(node->key, node->key_at, &named->name);
        if (status == PINN_OK && node->kind != PN_TOML_TABLE) status = keep_expression(node, &named->value);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status read_domain(const reader *r, const pn_toml *domain, bool *complete) {
    size_t n = domain ? domain->count : 0;
    r->config->coordinate = many(n, sizeof *r->config->coordinate);
    if (!r->config->coordinate) return PN_NO_MEMORY("a configuration");
    if (domain && (n == 0 || n > PN_MAX_COORDINATES)) {
        pn_diagnose(r->list, domain->at, NULL, n ? "more than %d coordinates" : "no coordinate; there must be from 1 to %d",
                    PN_MAX_COORDINATES);
        *complete = false;
        return PINN_OK;
    }
    for (size_t i = 0; i < n; i++) {
        const pn_toml *node = &domain->child[i];
        if (!node->bad && node->count != 2)
            pn_diagnose(r->list, node->at, NULL, "\"%s\" must be [lower, upper], two bounds", node->key);
        if (node->bad || node->count != 2 || node->child[0].bad || node->child[1].bad) {
            *complete = false;
            continue;
        }
        pn_config_coordinate *coordinate = &r->config->coordinate[r->config->coordinate_count++];
        pinn_status status = keep(node->key, node->key_at, &coordinate->name);
        for (int k = 0; k < 2 && status == PINN_OK; k++) status = keep_expression(&node->child[k], &coordinate->bound[k]);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status nearest_name(const char *word, const char *const *names, size_t count, pn_text *hint) {
    const char *nearest = pn_nearest(word, names, count);
    if (nearest) {
        pn_text_printf(hint, "did you mean \"%s\"?", nearest);
        return PINN_OK;
    }
    for (size_t i = 0; i < count && i < 10; i++) pn_text_printf(hint, "%s\"%s\"", i ? ", " : "known: ", names[i]);
    return PINN_OK;
}

/* Reports `word` as unknown, with the nearest of the names that `name(i)` would give. */
static pinn_status report_name(const reader *r, pn_position at, const char *what, const char *word, const char *const *names, size_t count) {
    pn_text hint = {0};
    nearest_name(word, names, count, &hint);
    pn_diagnose(r->list, at, hint.length ? pn_text_get(&hint) : NULL, "%s \"%s\"", what, word);
    pn_text_free(&hint);
    return PINN_CONFIG;
}

static bool is_one_of(const char *word, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], word) == 0) return true;
    return false;
}

static pinn_status read_names(const reader *r, const pn_toml *root, bool *named) {
    pn_config *c = r->config;
    const char **names = NULL;
    pinn_status status;
    const char *const tables[] = {"domain", "fields", "constants", "define"};
    *named = true;
    for (size_t i = 0; i < 4; i++) {
        const pn_toml *table = pn_toml_find(root, tables[i]);
        if (table ? table->bad : i < 2) *named = false;
    }
    PN_TRY(read_domain(r, good(root, "domain"), named));
    PN_TRY(read_named(good(root, "constants"), &c->constant, &c->constant_count, named));
    PN_TRY(read_named(good(root, "fields"), &c->field, &c->field_count, named));
    PN_TRY(read_named(good(root, "define"), &c->define, &c->define_count, named));
    const pn_toml *fields = good(root, "fields");
    if (fields && fields->count == 0) {
        pn_diagnose(r->list, fields->at, "write u = {}", "no field");
        *named = false;
    }
    for (size_t i = 0; i < c->field_count; i++)
        if (strcmp(c->field[i].name.text, "file") == 0)
            pn_diagnose(r->list, c->field[i].name.at, NULL, "a field cannot be named \"file\": that is a key of [reference]");
    names = many(c->coordinate_count, sizeof *names);
    if (!names) PN_TRY(PN_NO_MEMORY("a configuration"));
    for (size_t i = 0; i < c->coordinate_count; i++) names[i] = c->coordinate[i].name.text;
    if (c->time.text && *named && !is_one_of(c->time.text, names, c->coordinate_count)) {
        report_name(r, c->time.at, "time is no coordinate of [domain]:", c->time.text, names, c->coordinate_count);
        *named = false;
    }
fail:
    pn_free(names);
    return status;
}

/* ---- equations and conditions --------------------------------------------------------------------------------------------- */

/* Names of sets and residuals become names of datasets and of terms ("set.residual"). */
static void check_set_name(const reader *r, const pn_string *name) {
    const char *c = name->text;
    bool good_name = *c && strlen(c) <= MAX_NAME;
    for (; *c; c++)
        good_name &= (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' || (c != name->text && ((*c >= '0' && *c <= '9') || *c == '-'));
    if (!good_name)
        pn_diagnose(r->list, name->at, "letters, digits, _ and -, beginning with a letter, at most 60", "bad name \"%.80s\"", name->text);
    else if (strcmp(name->text, "total") == 0)
        pn_diagnose(r->list, name->at, NULL, "the name \"total\" is reserved for the whole loss");
}

static pinn_status read_residuals(const reader *r, const pn_toml *node, pn_config_set *set) {
    if (!node) return PINN_OK;
    bool complete = true;
    if (node->kind == PN_TOML_TABLE) {
        if (node->count == 0) pn_diagnose(r->list, node->at, "write a string, or { name = \"...\" }", "no residual");
        pinn_status status = read_named(node, &set->residual, &set->residual_count, &complete);
        for (size_t i = 0; i < set->residual_count && status == PINN_OK; i++) check_set_name(r, &set->residual[i].name);
        return status;
    }
    set->residual = many(1, sizeof *set->residual);
    if (!set->residual) return PN_NO_MEMORY("a configuration");
    set->residual_count = 1;
    set->residual->weight = 1;
    pinn_status status = keep(set->name.text, set->name.at, &set->residual->name);
    return status == PINN_OK ? keep(node->string, node->at, &set->residual->value) : status;
}

static pinn_status read_weight(const reader *r, const pn_toml *node, pn_config_set *set) {
    if (!node) return PINN_OK;
    set->weight_at = node->at;
    if (node->kind != PN_TOML_TABLE) {
        for (size_t i = 0; i < set->residual_count; i++) {
            set->residual[i].weight = node->number;
            set->residual[i].weight_at = node->at;
        }
        return PINN_OK;
    }
    const char **names = many(set->residual_count, sizeof *names);
    if (!names) return PN_NO_MEMORY("a configuration");
    for (size_t i = 0; i < set->residual_count; i++) names[i] = set->residual[i].name.text;
    for (size_t i = 0; i < node->count; i++) {
        const pn_toml *child = &node->child[i];
        if (set->residual_count && !is_one_of(child->key, names, set->residual_count))
            report_name(r, child->key_at, "weight of an unknown residual", child->key, names, set->residual_count);
        for (size_t k = 0; k < set->residual_count; k++)
            if (!child->bad && strcmp(names[k], child->key) == 0) {
                set->residual[k].weight = child->number;
                set->residual[k].weight_at = child->at;
            }
    }
    pn_free(names);
    return PINN_OK;
}

static pinn_status read_faces(const reader *r, const pn_toml *node, pn_config_set *set) {
    if (!node) return PINN_OK;
    size_t n = node->kind == PN_TOML_ARRAY ? node->count : 1;
    if (n == 0) pn_diagnose(r->list, node->at, "name a face, as on = \"x=min\"", "a condition on no face");
    set->on = many(n, sizeof *set->on);
    if (!set->on) return PN_NO_MEMORY("a configuration");
    for (size_t i = 0; i < n; i++) {
        const pn_toml *face = node->kind == PN_TOML_ARRAY ? &node->child[i] : node;
        if (face->bad) continue;
        pinn_status status = keep(face->string, face->at, &set->on[set->on_count++]);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status read_set(const reader *r, const pn_toml *node, bool condition, size_t number, pn_config_set *set) {
    const char *kind = condition ? "condition" : "equation";
    pinn_status status;
    set->condition = condition;
    set->at = set->weight_at = node->at;
    PN_TRY(read_plain(r, node, condition ? "condition.#" : "equation.#", set));
    set->points_at = good(node, "points") ? good(node, "points")->at : node->at;
    if (!set->name.text) {
        char name[32];
        snprintf(name, sizeof name, "%s%zu", kind, number);
        PN_TRY(keep(name, node->at, &set->name));
    }
    check_set_name(r, &set->name);
    PN_TRY(read_residuals(r, good(node, "residual"), set));
    PN_TRY(read_weight(r, good(node, "weight"), set));
    if (condition) PN_TRY(read_faces(r, good(node, "on"), set));
fail:
    return status;
}

static pinn_status read_sets(const reader *r, const pn_toml *root) {
    pn_config *c = r->config;
    const pn_toml *list[] = {good(root, "equation"), good(root, "condition")};
    c->set = many((list[0] ? list[0]->count : 0) + (list[1] ? list[1]->count : 0), sizeof *c->set);
    if (!c->set) return PN_NO_MEMORY("a configuration");
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; list[k] && i < list[k]->count; i++) {
            if (list[k]->child[i].bad) continue;
            pinn_status status = read_set(r, &list[k]->child[i], k == 1, i + 1, &c->set[c->set_count++]);
            if (status != PINN_OK) return status;
        }
    if (c->set_count == 0 && !pn_toml_find(root, "equation") && !pn_toml_find(root, "condition"))
        pn_diagnose(r->list, (pn_position){0, 0}, "write an [[equation]] with a residual and points", "no equation and no condition");
    for (size_t i = 0; i < c->set_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->set[i].name.text, c->set[k].name.text) == 0) {
                pn_diagnose(r->list, c->set[i].name.at, "give each [[equation]] and [[condition]] a name of its own",
                            "two point sets are named \"%s\"", c->set[i].name.text);
                break;
            }
    return PINN_OK;
}

/* ---- reference and output ------------------------------------------------------------------------------------------------- */

static pinn_status read_reference(const reader *r, const pn_toml *reference, bool named) {
    pn_config *c = r->config;
    c->reference = many(reference ? reference->count : 0, sizeof *c->reference);
    const char **names = many(c->field_count, sizeof *names);
    pinn_status status = c->reference && names ? PINN_OK : PN_NO_MEMORY("a configuration");
    for (size_t i = 0; i < c->field_count && status == PINN_OK; i++) names[i] = c->field[i].name.text;
    for (size_t i = 0; reference && i < reference->count && status == PINN_OK; i++) {
        const pn_toml *node = &reference->child[i];
        if (node->bad || strcmp(node->key, "file") == 0) continue;
        if (named && !is_one_of(node->key, names, c->field_count))
            report_name(r, node->key_at, "reference of an unknown field", node->key, names, c->field_count);
        if (c->reference_file.text)
            pn_diagnose(r->list, node->key_at, "keep one of the two", "[reference] has a file and a formula for \"%s\"", node->key);
        pn_config_named *formula = &c->reference[c->reference_count++];
        status = keep(node->key, node->key_at, &formula->name);
        if (status == PINN_OK) status = keep(node->string, node->at, &formula->value);
    }
    pn_free(names);
    return status;
}

static pinn_status read_evaluation(const reader *r, const pn_toml *output, bool named) {
    static const size_t grid[] = {0, 1001, 101, 21}; /* points a coordinate, by number of coordinates; then seeded points */
    pn_config *c = r->config;
    const size_t d = c->coordinate_count;
    if (!c->output.evaluate_every) c->output.evaluate_every = c->output.events;
    const pn_toml *evaluate = good(output, "evaluate"), *node = good(evaluate, "points");
    bool array = node && node->kind == PN_TOML_ARRAY;
    size_t count = array ? node->count : !node && d <= 3 ? d : 1;
    c->output.evaluate_points = many(count, sizeof *c->output.evaluate_points);
    if (!c->output.evaluate_points) return PN_NO_MEMORY("a configuration");
    c->output.evaluate_at = node ? node->at : (pn_position){0, 0};
    c->output.evaluate_grid = array || (!node && d <= 3);
    if (c->reference_file.text) {
        if (node) pn_diagnose(r->list, node->at, "remove one of the two", "evaluate.points beside a reference file, which brings its own points");
        return PINN_OK;
    }
    double total = 1;
    for (size_t i = 0; i < count; i++) {
        const pn_toml *value = array ? &node->child[i] : node;
        if (value && value->bad) return PINN_OK;
        c->output.evaluate_points[i] = value ? (size_t)value->integer : d <= 3 ? grid[d] : 10000;
        total *= (double)c->output.evaluate_points[i];
    }
    c->output.evaluate_count = count;
    if (array && named && count != d)
        pn_diagnose(r->list, node->at, "or write one number of random points, without brackets",
                    "evaluate.points has %zu number%s for %zu coordinate%s", count, count == 1 ? "" : "s", d, d == 1 ? "" : "s");
    else if (total > MAX_EVALUATION_POINTS)
        pn_diagnose(r->list, node->at, NULL, "%.15g evaluation points are too many; at most %u", total, MAX_EVALUATION_POINTS);
    return PINN_OK;
}

/* ---- training phases ------------------------------------------------------------------------------------------------------ */

/* A schedule's keys that its decay does not use would be read in vain. */
static void check_schedule_keys(const reader *r, const pn_toml *table, const pn_config_phase *phase) {
    static const struct {
        const char *key, *name;
        pn_decay decay;
    } use[] = {{"final", "cosine", PN_DECAY_COSINE}, {"rate", "exponential", PN_DECAY_EXPONENTIAL}, {"every", "exponential", PN_DECAY_EXPONENTIAL}};
    const pn_toml *decay = pn_toml_find(table, "decay");
    if (decay && decay->bad) return;
    for (size_t i = 0; i < sizeof use / sizeof *use; i++) {
        const pn_toml *node = pn_toml_find(table, use[i].key);
        if (!node || phase->learning_rate.decay == use[i].decay) continue;
        pn_text hint = {0};
        pn_text_printf(&hint, "write decay = \"%s\", or remove it", use[i].name);
        pn_diagnose(r->list, node->key_at, pn_text_get(&hint), "\"%s\" has no meaning here: it belongs to decay = \"%s\"", use[i].key, use[i].name);
        pn_text_free(&hint);
    }
}

static pinn_status read_phase_points(const reader *r, const pn_toml *table, pn_config_phase *phase) {
    pn_config *c = r->config;
    phase->points = many(table ? table->count : 0, sizeof *phase->points);
    const char **names = many(c->set_count, sizeof *names);
    pinn_status status = phase->points && names ? PINN_OK : PN_NO_MEMORY("a configuration");
    for (size_t i = 0; i < c->set_count && status == PINN_OK; i++) names[i] = c->set[i].name.text;
    for (size_t i = 0; table && i < table->count && status == PINN_OK; i++) {
        const pn_toml *node = &table->child[i];
        if (node->bad) continue;
        if (!is_one_of(node->key, names, c->set_count))
            report_name(r, node->key_at, "points of an unknown set", node->key, names, c->set_count);
        pn_config_phase_points *points = &phase->points[phase->points_count++];
        points->points = (size_t)node->integer;
        points->at = node->at;
        status = keep(node->key, node->key_at, &points->set);
    }
    pn_free(names);
    return status;
}

static pinn_status read_phase(const reader *r, const pn_toml *node, pn_config_phase *phase) {
    pinn_status status;
    PN_TRY(read_plain(r, node, "train.#", phase));
    const pn_toml *rate = good(node, "learning_rate"), *table = rate && rate->kind == PN_TOML_TABLE ? rate : NULL;
    PN_TRY(read_plain(r, table, "train.#.learning_rate", phase));
    if (rate && !table) phase->learning_rate.initial = rate->number;
    if (table) check_schedule_keys(r, table, phase);
    const pn_toml *warmup = good(table, "warmup");
    if (warmup && phase->steps && phase->learning_rate.warmup >= phase->steps)
        pn_diagnose(r->list, warmup->at, NULL, "a warm-up of %lld steps in a phase of %llu", (long long)warmup->integer,
                    (unsigned long long)phase->steps);
    PN_TRY(read_phase_points(r, good(node, "points"), phase));
fail:
    return status;
}

static pinn_status read_phases(const reader *r, const pn_toml *root) {
    const pn_toml *list = good(root, "train");
    size_t n = list ? list->count : 0;
    r->config->phase = many(n, sizeof *r->config->phase);
    if (!r->config->phase) return PN_NO_MEMORY("a configuration");
    if (list && n == 0) pn_diagnose(r->list, list->at, NULL, "there must be at least one [[train]]");
    for (size_t i = 0; i < n; i++) {
        if (list->child[i].bad) continue;
        pinn_status status = read_phase(r, &list->child[i], &r->config->phase[r->config->phase_count++]);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status read_network(const reader *r, const pn_toml *network) {
    pinn_status status = read_plain(r, network, "network", r->config);
    const pn_toml *fourier = good(network, "fourier");
    if (status != PINN_OK || !fourier) return status;
    r->config->network.fourier = true;
    return read_plain(r, fourier, "network.fourier", r->config);
}

static void check_tiles(const reader *r) {
    const pn_string *tiles = &r->config->tiles;
    char canonical[PN_TILE_CHOICE_BYTES];
    if (!*tiles->text) /* an environment variable's "auto", not a file's */
        pn_diagnose(r->list, tiles->at, PN_TILES_REMEDY, "\"\" is no choice of tiles");
    else if (pn_tiles_read(tiles->text, canonical) != PINN_OK)
        pn_diagnose(r->list, tiles->at, PN_TILES_REMEDY, "%s", pinn_error_message());
}

static pinn_status read_stop(const reader *r, const pn_toml *stop) {
    const pn_toml *relative_l2 = good(stop, "relative_l2"), *plateau = good(stop, "plateau");
    if (relative_l2) r->config->stop.relative_l2_at = relative_l2->at;
    pinn_status status = read_plain(r, stop, "stop", r->config);
    if (status != PINN_OK) return status;
    return plateau ? read_plain(r, plateau, "stop.plateau", r->config)
                   : store_value(pn_schema_find("stop.plateau.min_delta"), NULL, (char *)r->config);
}

pinn_status pn_config_fill(pn_config *config, pn_toml *root, pn_diagnostics *list, bool *named) {
    const reader r = {config, list};
    const pn_toml *output = good(root, "output"), *stop = good(root, "stop");
    pinn_status status;
    pn_schema_check(root, pn_schema_find(""), list);
    PN_TRY(read_plain(&r, root, "", config));
    config->real = strcmp(config->precision.text, "float64") == 0 ? PN_FLOAT64 : PN_FLOAT32;
    config->tf32 = strcmp(config->precision.text, "tf32") == 0;
    check_tiles(&r);
    PN_TRY(read_names(&r, root, named));
    PN_TRY(read_sets(&r, root));
    PN_TRY(read_plain(&r, good(root, "reference"), "reference", config));
    PN_TRY(read_reference(&r, good(root, "reference"), *named));
    PN_TRY(read_network(&r, good(root, "network")));
    PN_TRY(read_phases(&r, root));
    PN_TRY(read_stop(&r, stop));
    PN_TRY(read_plain(&r, output, "output", config));
    PN_TRY(read_plain(&r, good(output, "evaluate"), "output.evaluate", config));
    PN_TRY(read_evaluation(&r, output, *named));
fail:
    return status;
}
