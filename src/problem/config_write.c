/* The resolved config as TOML: plain values by the schema's table, in its order, the rest by hand. Reading the text back gives the
 * same config. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "problem/config_internal.h"

static void write_key(const char *key, pn_text *out) {
    bool bare = *key != 0;
    for (const char *c = key; *c; c++)
        bare &= (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_' || *c == '-';
    if (bare)
        pn_text_string(out, key);
    else
        pn_text_quoted(out, key);
}

static void write_pair(const char *key, const char *string, pn_text *out) {
    write_key(key, out);
    pn_text_string(out, " = ");
    pn_text_quoted(out, string);
}

void pn_config_number(double value, pn_text *out) {
    if (fabs(value) < 1e15 && value == floor(value))
        pn_text_printf(out, "%.0f", value);
    else
        pn_text_number(out, value);
}

/* A TOML number when it reads back as the same text, else a string. */
static void write_expression(const char *text, pn_text *out) {
    char *end;
    double value = strtod(text, &end);
    pn_text number = {0};
    if (*text && !*end && isfinite(value)) pn_config_number(value, &number);
    if (number.length && strcmp(pn_text_get(&number), text) == 0 && strcmp(text, "-0") != 0)
        pn_text_string(out, text);
    else
        pn_text_quoted(out, text);
    pn_text_free(&number);
}

/* True when the value may be left out: no default, and absent in the config. */
static bool absent(const pn_key *key, const char *base) {
    const void *at = base + key->offset;
    if (key->store == PN_STORE_STRING) return !((const pn_string *)at)->text;
    if (key->fallback || key->required) return false;
    return key->store == PN_STORE_DOUBLE ? *(const double *)at == 0 : key->store == PN_STORE_U64 && *(const uint64_t *)at == 0;
}

static void write_value(const pn_key *key, const char *base, pn_text *out) {
    const void *at = base + key->offset;
    switch (key->store) {
        case PN_STORE_NONE: break;
        case PN_STORE_STRING: pn_text_quoted(out, ((const pn_string *)at)->text); break;
        case PN_STORE_DOUBLE: pn_config_number(*(const double *)at, out); break;
        case PN_STORE_U64: pn_text_printf(out, "%llu", (unsigned long long)*(const uint64_t *)at); break;
        case PN_STORE_SIZE: pn_text_printf(out, "%zu", *(const size_t *)at); break;
        case PN_STORE_CHOICE: pn_text_quoted(out, key->choices[*(const unsigned *)at]); break;
    }
}

/* The plain keys of a section, `separator` between them; `skip` leaves out one that does not apply. */
static void write_plain(const char *section, const void *base, const char *separator, bool (*skip)(const pn_key *, const void *), pn_text *out) {
    const pn_key *parent = pn_schema_find(section);
    bool first = true;
    for (size_t i = 0; i < pn_schema_count; i++) {
        const pn_key *key = &pn_schema[i];
        const char *name = pn_schema_name(key);
        if (key->store == PN_STORE_NONE || pn_schema_child(parent, name) != key || absent(key, base) || (skip && skip(key, base))) continue;
        if (!first) pn_text_string(out, separator);
        first = false;
        pn_text_printf(out, "%s = ", name);
        write_value(key, base, out);
    }
}

static void write_named(const char *section, const pn_config_named *named, size_t count, pn_text *out) {
    if (count) pn_text_printf(out, "\n[%s]\n", section);
    for (size_t i = 0; i < count; i++) {
        write_key(named[i].name.text, out);
        pn_text_string(out, " = ");
        if (!named[i].value.text)
            pn_text_string(out, "{}");
        else if (strcmp(section, "constants") == 0)
            write_expression(named[i].value.text, out);
        else
            pn_text_quoted(out, named[i].value.text);
        pn_text_string(out, "\n");
    }
}

static void write_domain(const pn_config *config, pn_text *out) {
    pn_text_string(out, "\n[domain]\n");
    for (size_t i = 0; i < config->coordinate_count; i++) {
        const pn_config_coordinate *coordinate = &config->coordinate[i];
        write_key(coordinate->name.text, out);
        pn_text_string(out, " = [");
        write_expression(coordinate->bound[0].text, out);
        pn_text_string(out, ", ");
        write_expression(coordinate->bound[1].text, out);
        pn_text_string(out, "]\n");
    }
}

static void write_residuals(const pn_config_set *set, pn_text *out) {
    if (set->residual_count == 1 && strcmp(set->residual->name.text, set->name.text) == 0) {
        write_pair("residual", set->residual->value.text, out);
        pn_text_string(out, "\nweight = ");
        pn_config_number(set->residual->weight, out);
        pn_text_string(out, "\n");
        return;
    }
    pn_text_string(out, "residual = { ");
    for (size_t i = 0; i < set->residual_count; i++) {
        if (i) pn_text_string(out, ", ");
        write_pair(set->residual[i].name.text, set->residual[i].value.text, out);
    }
    pn_text_string(out, " }\nweight = { ");
    for (size_t i = 0; i < set->residual_count; i++) {
        if (i) pn_text_string(out, ", ");
        write_key(set->residual[i].name.text, out);
        pn_text_string(out, " = ");
        pn_config_number(set->residual[i].weight, out);
    }
    pn_text_string(out, " }\n");
}

static void write_set(const pn_config_set *set, pn_text *out) {
    pn_text_printf(out, "\n[[%s]]\n", set->condition ? "condition" : "equation");
    write_plain(set->condition ? "condition.#" : "equation.#", set, "\n", NULL, out);
    pn_text_string(out, "\n");
    if (set->condition) {
        pn_text_string(out, "on = [");
        for (size_t i = 0; i < set->on_count; i++) {
            if (i) pn_text_string(out, ", ");
            pn_text_quoted(out, set->on[i].text);
        }
        pn_text_string(out, "]\n");
    }
    write_residuals(set, out);
}

/* Keys of a schedule that its decay does not use. */
static bool idle_schedule_key(const pn_key *key, const void *base) {
    const pn_decay decay = ((const pn_config_phase *)base)->learning_rate.decay;
    const char *name = pn_schema_name(key);
    if (strcmp(name, "final") == 0) return decay != PN_DECAY_COSINE;
    return (strcmp(name, "rate") == 0 || strcmp(name, "every") == 0) && decay != PN_DECAY_EXPONENTIAL;
}

static void write_phase(const pn_config_phase *phase, pn_text *out) {
    pn_text_string(out, "\n[[train]]\n");
    write_plain("train.#", phase, "\n", NULL, out);
    pn_text_string(out, "\nlearning_rate = { ");
    write_plain("train.#.learning_rate", phase, ", ", idle_schedule_key, out);
    pn_text_string(out, " }\n");
    if (phase->points_count == 0) return;
    pn_text_string(out, "points = { ");
    for (size_t i = 0; i < phase->points_count; i++) {
        if (i) pn_text_string(out, ", ");
        write_key(phase->points[i].set.text, out);
        pn_text_printf(out, " = %zu", phase->points[i].points);
    }
    pn_text_string(out, " }\n");
}

static void write_output(const pn_config *config, pn_text *out) {
    pn_text_string(out, "\n[output]\n");
    write_plain("output", config, "\n", NULL, out);
    pn_text_string(out, "\nevaluate = { ");
    if (config->output.evaluate_count) {
        pn_text_printf(out, "points = %s", config->output.evaluate_grid ? "[" : "");
        for (size_t i = 0; i < config->output.evaluate_count; i++)
            pn_text_printf(out, "%s%zu", i ? ", " : "", config->output.evaluate_points[i]);
        pn_text_printf(out, "%s, ", config->output.evaluate_grid ? "]" : "");
    }
    write_plain("output.evaluate", config, ", ", NULL, out);
    pn_text_string(out, " }\n");
}

/* The file as an absolute path where it can be found and TOML can hold it: the text is also written to places from which a relative one
 * would not lead there. */
static void write_reference_file(const pn_config *config, pn_text *out) {
    char *path = pn_config_reference_path(config), *absolute = path ? realpath(path, NULL) : NULL;
    if (!path) out->failed = true;
    pn_text_string(out, "\n[reference]\n");
    write_pair("file", absolute && pn_text_is_utf8(absolute) ? absolute : config->reference_file.text, out);
    pn_text_string(out, "\n");
    free(absolute);
    pn_free(path);
}

pinn_status pn_config_write(const pn_config *config, pn_text *out) {
    write_plain("", config, "\n", NULL, out);
    pn_text_string(out, "\n");
    write_domain(config, out);
    write_named("constants", config->constant, config->constant_count, out);
    write_named("fields", config->field, config->field_count, out);
    write_named("define", config->define, config->define_count, out);
    for (size_t i = 0; i < config->set_count; i++) write_set(&config->set[i], out);
    if (config->reference_file.text)
        write_reference_file(config, out);
    else
        write_named("reference", config->reference, config->reference_count, out);
    pn_text_string(out, "\n[network]\n");
    write_plain("network", config, "\n", NULL, out);
    pn_text_string(out, "\n");
    if (config->network.fourier) {
        pn_text_string(out, "fourier = { ");
        write_plain("network.fourier", config, ", ", NULL, out);
        pn_text_string(out, " }\n");
    }
    for (size_t i = 0; i < config->phase_count; i++) write_phase(&config->phase[i], out);
    pn_text_string(out, "\n[stop]\n");
    write_plain("stop", config, "\n", NULL, out);
    pn_text_string(out, "\n");
    if (config->stop.patience) {
        pn_text_string(out, "plateau = { ");
        write_plain("stop.plateau", config, ", ", NULL, out);
        pn_text_string(out, " }\n");
    }
    write_output(config, out);
    return pn_text_check(out);
}
