/* Reading a problem file from end to end, and freeing it. */
#include "problem/config.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "problem/config_internal.h"

#define MAX_FILE (4u << 20) /* bytes */

static void free_named(pn_config_named *named, size_t count) {
    for (size_t i = 0; named && i < count; i++) {
        pn_free(named[i].name.text);
        pn_free(named[i].value.text);
    }
    pn_free(named);
}

static void free_sets(pn_config *c) {
    for (size_t i = 0; c->set && i < c->set_count; i++) {
        pn_config_set *set = &c->set[i];
        pn_free(set->name.text);
        for (size_t k = 0; k < set->on_count; k++) pn_free(set->on[k].text);
        pn_free(set->on);
        free_named(set->residual, set->residual_count);
    }
    pn_free(c->set);
}

static void free_phases(pn_config *c) {
    for (size_t i = 0; c->phase && i < c->phase_count; i++) {
        pn_config_phase *phase = &c->phase[i];
        pn_free(phase->optimizer.text);
        for (size_t k = 0; k < phase->points_count; k++) pn_free(phase->points[k].set.text);
        pn_free(phase->points);
    }
    pn_free(c->phase);
}

void pn_config_destroy(pn_config *config) {
    if (!config) return;
    for (size_t i = 0; config->assignment && i < config->assignment_count; i++) pn_free(config->assignment[i]);
    pn_free(config->assignment);
    for (size_t i = 0; config->coordinate && i < config->coordinate_count; i++) {
        pn_free(config->coordinate[i].name.text);
        pn_free(config->coordinate[i].bound[0].text);
        pn_free(config->coordinate[i].bound[1].text);
    }
    pn_free(config->coordinate);
    free_named(config->constant, config->constant_count);
    free_named(config->field, config->field_count);
    free_named(config->define, config->define_count);
    free_named(config->reference, config->reference_count);
    free_sets(config);
    free_phases(config);
    pn_free(config->title.text);
    pn_free(config->time.text);
    pn_free(config->precision.text);
    pn_free(config->tiles.text);
    pn_free(config->reference_file.text);
    pn_free(config->network.kind.text);
    pn_free(config->network.activation.text);
    pn_free(config->output.evaluate_points);
    pn_text_free(&config->source);
    pn_free(config->path);
    pn_free(config->stem);
    pn_free(config);
}

/* "heat" of "configs/heat.toml"; "" where that would name no folder of its own ("..toml"). NULL without memory. */
static char *stem_of(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = strlen(base);
    if (length >= 5 && strcmp(base + length - 5, ".toml") == 0) length -= 5;
    const bool nameless = (length == 1 && base[0] == '.') || (length == 2 && base[0] == '.' && base[1] == '.');
    return pn_duplicate(base, nameless ? 0 : length);
}

/* An empty config that knows its path, text and assignments. */
static pinn_status create(const char *path, const char *text, size_t length, const char *const *set, size_t set_count, pn_config **out) {
    pn_config *config = pn_allocate(1, sizeof *config);
    if (!config) return PN_NO_MEMORY("a configuration");
    config->path = pn_duplicate(path, strlen(path));
    config->stem = stem_of(path);
    config->assignment = pn_allocate(set_count ? set_count : 1, sizeof *config->assignment);
    pn_text_append(&config->source, text, length);
    bool failed = !config->path || !config->stem || !config->assignment || config->source.failed;
    for (size_t i = 0; i < set_count && !failed; i++) {
        config->assignment[i] = pn_duplicate(set[i], strlen(set[i]));
        failed = !config->assignment[i];
        config->assignment_count++;
    }
    if (failed) {
        pn_config_destroy(config);
        return PN_NO_MEMORY("a configuration");
    }
    *out = config;
    return PINN_OK;
}

/* The repair of a table that stands twice: TOML refuses it before its keys can be looked at. */
static void advise_table(pn_toml_error *error) {
    char element[96];
    if (!*error->table) return;
    snprintf(element, sizeof element, "%s.#", error->table);
    const pn_key *below = pn_schema_find(element);
    snprintf(element, sizeof element, "%s.#.name", error->table);
    if (below && below->accepts == PN_ACCEPT_TABLE)
        snprintf(error->hint, sizeof error->hint, "write [[%s]] with two pairs of brackets each time%s", error->table,
                 pn_schema_find(element) ? ", and another name below each" : "");
    else
        snprintf(error->hint, sizeof error->hint, "write [%s] once, with all its keys in the lines below", error->table);
}

pinn_status pn_config_parse(const char *path, const char *text, size_t length, const char *const *set, size_t set_count, pn_config **out) {
    if (set_count > PN_MAX_ASSIGNMENTS) return pn_fail(PINN_BAD_ARGUMENT, "more than %u --set assignments", PN_MAX_ASSIGNMENTS);
    pn_config *config = NULL;
    pinn_status status = create(path, text, length, set, set_count, &config);
    if (status != PINN_OK) return status;
    pn_diagnostics list;
    pn_toml_error error;
    pn_toml *root = NULL;
    bool named;
    pn_config_diagnostics(config, &list);
    status = pn_toml_parse(pn_text_get(&config->source), length, &error, &root);
    if (status == PINN_CONFIG) {
        advise_table(&error);
        pn_diagnose(&list, error.at, *error.hint ? error.hint : NULL, "%s", error.message);
        status = pn_config_check(config, &list);
    }
    if (status != PINN_OK) goto fail;
    PN_TRY(pn_assignments_apply(config, root, &list));
    PN_TRY(pn_config_fill(config, root, &list, &named));
    if (list.count && named) PN_TRY(pn_problem_diagnose(config, &list));
    status = pn_config_check(config, &list);
fail:
    pn_diagnostics_free(&list);
    pn_toml_destroy(root);
    if (status == PINN_OK)
        *out = config;
    else
        pn_config_destroy(config);
    return status;
}

pinn_status pn_config_read(const char *path, const char *const *set, size_t set_count, pn_config **out) {
    pn_text text = {0};
    pinn_status status = pn_text_read_file(&text, path, MAX_FILE);
    if (status == PINN_OK) status = pn_config_parse(path, pn_text_get(&text), text.length, set, set_count, out);
    pn_text_free(&text);
    return status;
}
