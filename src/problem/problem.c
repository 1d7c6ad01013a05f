/* Compiles a config: names and domain, then faces and residuals of every point set, then what they mean together. See problem.h. */
#include "problem/problem.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "problem/problem_internal.h"

/* ---- names ---------------------------------------------------------------------------------------------------------------- */

/* Reports coordinates and fields that cannot bear their names. Each is checked against all others, so that no order hides a clash. */
static pinn_status check_names(const pn_compiler *compiler, pn_ir *ir, pn_diagnostics *list, bool *good) {
    const pn_config *c = compiler->config;
    const char **coordinates = compiler->problem->coordinate_name, **fields = compiler->problem->field_name;
    const size_t nc = c->coordinate_count, nf = c->field_count;
    const char **others = pn_allocate(nc + nf, sizeof *others);
    if (!others) return PN_NO_MEMORY("names");
    pinn_status status = PINN_OK;
    for (size_t i = 0; i < nc + nf; i++) {
        const bool field = i >= nc;
        const pn_string *name = field ? &c->field[i - nc].name : &c->coordinate[i].name;
        const char **from = field ? fields : coordinates;
        const size_t n = field ? nf : nc, skipped = field ? i - nc : i;
        pn_scope *scope = NULL;
        for (size_t k = 0, m = 0; k < n; k++)
            if (k != skipped) others[m++] = from[k];
        status = field ? pn_scope_create(ir, coordinates, nc, -1, others, n - 1, &scope) : pn_scope_create(ir, others, n - 1, -1, NULL, 0, &scope);
        if (status != PINN_OK) break;
        const char *error = pn_scope_name_error(scope, name->text);
        if (error) {
            pn_diagnose(list, name->at, "choose another name", "%s", error);
            *good = false;
        }
        pn_scope_destroy(scope);
    }
    pn_free(others);
    return status;
}

static pinn_status add_constants(const pn_compiler *compiler, pn_scope *scope, pn_diagnostics *list, bool *good) {
    const pn_config *c = compiler->config;
    for (size_t i = 0; i < c->constant_count; i++) {
        const pn_config_named *constant = &c->constant[i];
        const char *error = pn_scope_name_error(scope, constant->name.text);
        if (error) {
            pn_diagnose(list, constant->name.at, "choose another name", "%s", error);
            *good = false;
            continue;
        }
        double value = 1; /* stands in for a wrong one, so that its name is known */
        pinn_status status = pn_go_on(pn_expression_number(scope, constant->value.text, constant->value.at, list, &value));
        if (status != PINN_OK) return status;
        if (!isfinite(value)) {
            pn_diagnose(list, constant->value.at, NULL, "the constant \"%s\" is not a finite number", constant->name.text);
            value = 1;
        }
        status = pn_scope_constant(scope, constant->name.text, value);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

pinn_status pn_scope_of_config(const pn_compiler *compiler, pn_ir *ir, pn_diagnostics *list, bool *good, pn_scope **out) {
    const pn_config *c = compiler->config;
    pn_scope *scope = NULL;
    pinn_status status;
    *good = true;
    PN_TRY(check_names(compiler, ir, list, good));
    if (!*good) return PINN_OK;
    PN_TRY(pn_scope_create(ir, compiler->problem->coordinate_name, c->coordinate_count, compiler->problem->time, compiler->problem->field_name,
                           c->field_count, &scope));
    PN_TRY(add_constants(compiler, scope, list, good));
    for (size_t i = 0; i < c->define_count; i++) {
        const pn_config_named *define = &c->define[i];
        const char *error = pn_scope_name_error(scope, define->name.text);
        if (error) {
            pn_diagnose(list, define->name.at, "choose another name", "%s", error);
            *good = false;
            continue;
        }
        PN_TRY(pn_scope_define(scope, define->name.text, define->value.text, define->value.at));
    }
    *out = scope;
    return PINN_OK;
fail:
    pn_scope_destroy(scope);
    return status;
}

/* ---- domain --------------------------------------------------------------------------------------------------------------- */

static pinn_status read_bounds(const pn_compiler *compiler, bool *good) {
    const pn_config *c = compiler->config;
    pn_problem *p = compiler->problem;
    for (size_t i = 0; i < c->coordinate_count; i++) {
        const pn_config_coordinate *coordinate = &c->coordinate[i];
        double bound[2];
        bool known = true;
        for (int k = 0; k < 2; k++) {
            pinn_status status = pn_expression_number(p->scope, coordinate->bound[k].text, coordinate->bound[k].at, compiler->list, &bound[k]);
            if (pn_go_on(status) != PINN_OK) return status;
            known &= status == PINN_OK;
        }
        known = known && pn_domain_check(compiler, coordinate, bound);
        *good &= known;
        p->lower[i] = known ? bound[0] : -INFINITY; /* unknown: every plane lies inside */
        p->upper[i] = known ? bound[1] : INFINITY;
    }
    return PINN_OK;
}

/* ---- residuals ------------------------------------------------------------------------------------------------------------ */

typedef struct normals { /* the outward normal on a set's faces */
    size_t coordinates;
    bool constant[PN_MAX_COORDINATES];
    double value[PN_MAX_COORDINATES];
} normals;

/* Component i of the normal is `side` on a face of axis i, else 0. */
static normals normals_of(const pn_set *set, size_t coordinates) {
    normals n = {.coordinates = coordinates};
    for (size_t i = 0; i < coordinates; i++) {
        n.constant[i] = true;
        for (size_t k = 0; k < set->face_count; k++) {
            double component = set->face[k].axis == (int)i ? set->face[k].side : 0;
            if (k == 0) n.value[i] = component;
            n.constant[i] &= component == n.value[i];
        }
    }
    return n;
}

static pn_value replace_normal(void *user, pn_ir *ir, uint32_t slot) {
    const normals *n = user;
    if (slot < n->coordinates || slot >= 2 * n->coordinates || !n->constant[slot - n->coordinates]) return PN_NONE;
    return pn_ir_const(ir, n->value[slot - n->coordinates]);
}

/* True when `value` depends on a component of the normal. */
static pinn_status uses_normal(const pn_problem *p, pn_value value, bool *out) {
    const size_t slots = 2 * p->coordinates;
    bool used[2 * PN_MAX_COORDINATES] = {false};
    pn_ir_inputs(p->ir, value, used, slots);
    *out = false;
    for (size_t i = p->coordinates; i < slots; i++) *out |= used[i];
    return PINN_OK;
}

/* Constant normals become numbers; a normal where there is none is an error. While the faces are unknown the normal stays as it is. */
static pinn_status settle_normals(const pn_compiler *compiler, const pn_string *text, pn_set *set, pn_value *residual) {
    pn_problem *p = compiler->problem;
    bool used;
    uses_normal(p, *residual, &used);
    if (!used || !set->face_count) return PINN_OK;
    for (size_t k = 0; k < set->face_count; k++) {
        const pn_face *face = &set->face[k];
        bool in_time = face->axis == p->time;
        if (face->axis < 0) continue; /* no normal is allowed inside: for want of memory pn_ir_inputs names all inputs */
        if (face->side != 0 && !in_time) continue;
        pn_text plane = {0}, hint = {0};
        pn_text_printf(&plane, "%s = ", p->coordinate_name[face->axis]);
        pn_config_number(face->value, &plane);
        pn_text_printf(&hint, "write the derivative itself, as d(%s, %s)", p->field_name[0], p->coordinate_name[face->axis]);
        pn_diagnose(compiler->list, text->at, pn_text_get(&hint), "the normal is used, but %s is %s", pn_text_get(&plane),
                    in_time ? "a plane in time and has none" : "inside the domain and has none");
        pn_text_free(&plane);
        pn_text_free(&hint);
        return PINN_CONFIG;
    }
    normals n = normals_of(set, p->coordinates);
    *residual = pn_ir_substitute(p->ir, *residual, replace_normal, &n);
    if (*residual == PN_NONE) return PN_NO_MEMORY("a residual");
    uses_normal(p, *residual, &used);
    set->uses_normal |= used;
    return PINN_OK;
}

static pinn_status compile_residual(const pn_compiler *compiler, const pn_config_set *config, const pn_config_named *named, pn_set *set, pn_term *term) {
    pn_problem *p = compiler->problem;
    const unsigned allow = PN_ALLOW_CONSTANTS | PN_ALLOW_COORDINATES | PN_ALLOW_FIELDS | (config->condition ? PN_ALLOW_NORMAL : 0);
    const bool alone = config->residual_count == 1 && strcmp(named->name.text, config->name.text) == 0;
    pn_text name = {0};
    pinn_status status;
    pn_text_printf(&name, alone ? "%s" : "%s.%s", config->name.text, named->name.text);
    term->name = name.failed ? NULL : pn_duplicate(pn_text_get(&name), name.length);
    term->weight = named->weight;
    term->residual = PN_NONE;
    pn_text_free(&name);
    if (!term->name) return PN_NO_MEMORY("a residual");
    pn_value residual = PN_NONE;
    PN_TRY(pn_expression_compile(p->scope, named->value.text, named->value.at, allow, compiler->list, &residual));
    PN_TRY(settle_normals(compiler, &named->value, set, &residual));
    term->residual = residual;
    PN_TRY(pn_residual_check(compiler, named->value.at, residual));
    if (!pn_expression_has_field(p->scope, residual))
        status = pn_diagnose(compiler->list, named->value.at, "a residual is an expression in the fields that is to become 0",
                             "the residual has no field in it");
fail:
    return pn_go_on(status);
}

static pinn_status compile_set(const pn_compiler *compiler, const pn_config_set *config, pn_set *set) {
    pn_problem *p = compiler->problem;
    pinn_status status = PINN_OK;
    set->name = pn_duplicate(config->name.text, strlen(config->name.text));
    set->fixed = config->resample == PN_RESAMPLE_NEVER;
    set->first_term = p->terms;
    if (!set->name) return PN_NO_MEMORY("a point set");
    if (config->condition) {
        PN_TRY(pn_faces_read(compiler, config, set));
    } else {
        set->face = pn_allocate(1, sizeof *set->face);
        if (!set->face) return PN_NO_MEMORY("a point set");
        set->face_count = 1;
        *set->face = (pn_face){.axis = -1};
    }
    set->points = config->points;
    for (size_t i = 0; i < config->residual_count; i++) {
        pn_term *term = &p->term[p->terms++];
        set->term_count++;
        PN_TRY(compile_residual(compiler, config, &config->residual[i], set, term));
    }
fail:
    return status;
}

/* Definitions that no residual uses are compiled too: an error in one is an error. */
static pinn_status compile_definitions(const pn_compiler *compiler) {
    const pn_config *c = compiler->config;
    const unsigned everything = PN_ALLOW_CONSTANTS | PN_ALLOW_COORDINATES | PN_ALLOW_FIELDS | PN_ALLOW_NORMAL;
    for (size_t i = 0; i < c->define_count; i++) {
        pn_value unused;
        const pn_config_named *define = &c->define[i];
        pinn_status status = pn_go_on(
            pn_expression_compile(compiler->problem->scope, define->name.text, define->name.at, everything, compiler->list, &unused));
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status compile_sets(const pn_compiler *compiler) {
    const pn_config *c = compiler->config;
    pn_problem *p = compiler->problem;
    size_t terms = 0;
    for (size_t i = 0; i < c->set_count; i++) terms += c->set[i].residual_count;
    p->set = pn_allocate(c->set_count, sizeof *p->set);
    p->term = pn_allocate(terms, sizeof *p->term);
    if (!p->set || !p->term) return PN_NO_MEMORY("point sets");
    for (size_t i = 0; i < c->set_count; i++) {
        pinn_status status = compile_set(compiler, &c->set[i], &p->set[p->sets++]);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

/* ---- what they mean together ---------------------------------------------------------------------------------------------- */

static void mark_used(const pn_problem *p, const bool *slot_used, bool *coordinate, bool *field) {
    for (uint32_t s = 0; s < pn_scope_slots(p->scope); s++) {
        if (!slot_used[s]) continue;
        const pn_slot slot = pn_scope_slot(p->scope, s);
        if (slot.kind == PN_SLOT_FIELD) {
            field[slot.index] = true;
            for (size_t k = 0; k < slot.channel.order; k++) coordinate[slot.channel.coordinate[k]] = true;
        } else
            coordinate[slot.index] = true;
    }
}

/* Fields and coordinates that occur nowhere, and weights that leave nothing to minimise. */
static pinn_status check_use(const pn_compiler *compiler) {
    const pn_config *c = compiler->config;
    pn_problem *p = compiler->problem;
    bool *slot = pn_allocate(pn_scope_slots(p->scope), sizeof *slot), *field = pn_allocate(p->fields, sizeof *field);
    bool coordinate[PN_MAX_COORDINATES] = {false}, weighted = false;
    pinn_status status = slot && field ? PINN_OK : PN_NO_MEMORY("a check");
    if (status != PINN_OK) goto fail;
    for (size_t i = 0; i < p->terms; i++) {
        pn_ir_inputs(p->ir, p->term[i].residual, slot, pn_scope_slots(p->scope));
        weighted |= p->term[i].weight > 0;
    }
    mark_used(p, slot, coordinate, field);
    for (size_t i = 0; i < p->sets; i++)
        for (size_t k = 0; k < p->set[i].face_count; k++)
            if (p->set[i].face[k].axis >= 0) coordinate[p->set[i].face[k].axis] = true;
    for (size_t i = 0; i < p->fields; i++)
        if (!field[i])
            pn_diagnose(compiler->list, c->field[i].name.at, "use it, or remove it", "the field \"%s\" occurs in no residual", p->field_name[i]);
    for (size_t i = 0; i < p->coordinates; i++)
        if (!coordinate[i])
            pn_diagnose(compiler->list, c->coordinate[i].name.at, "use it, or remove it", "the coordinate \"%s\" occurs in no residual and on no face",
                        p->coordinate_name[i]);
    if (!weighted)
        pn_diagnose(compiler->list, c->set[0].weight_at, NULL, "all weights are 0: there is nothing to minimise");
fail:
    pn_free(slot);
    pn_free(field);
    return status;
}

static pinn_status find_layouts(pn_problem *p) {
    for (size_t i = 0; i < p->sets; i++) {
        pn_set *set = &p->set[i];
        pn_value *residual = pn_allocate(set->term_count, sizeof *residual);
        if (!residual) return PN_NO_MEMORY("a point set");
        for (size_t k = 0; k < set->term_count; k++) residual[k] = p->term[set->first_term + k].residual;
        pinn_status status = pn_expression_closure(p->scope, residual, set->term_count, &set->layout);
        if (status == PINN_OK)
            for (size_t k = 0; k < set->term_count; k++) p->term[set->first_term + k].residual = residual[k];
        pn_free(residual);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status allocate_names(const pn_config *c, pn_problem *p) {
    p->config = c;
    p->coordinates = c->coordinate_count;
    p->fields = c->field_count;
    p->time = -1;
    p->coordinate_name = pn_allocate(p->coordinates, sizeof *p->coordinate_name);
    p->field_name = pn_allocate(p->fields, sizeof *p->field_name);
    p->lower = pn_allocate(p->coordinates, sizeof *p->lower);
    p->upper = pn_allocate(p->coordinates, sizeof *p->upper);
    if (!p->coordinate_name || !p->field_name || !p->lower || !p->upper) return PN_NO_MEMORY("a problem");
    for (size_t i = 0; i < p->coordinates; i++) {
        p->coordinate_name[i] = c->coordinate[i].name.text;
        if (c->time.text && strcmp(c->time.text, p->coordinate_name[i]) == 0) p->time = (int)i;
    }
    for (size_t i = 0; i < p->fields; i++) p->field_name[i] = c->field[i].name.text;
    return PINN_OK;
}

/* `whole`: the config is right in itself, so that use can be checked and the evaluation set be made. */
static pinn_status compile(const pn_compiler *compiler, bool whole) {
    pn_problem *p = compiler->problem;
    bool good;
    pinn_status status;
    PN_TRY(allocate_names(compiler->config, p));
    PN_TRY(pn_ir_create(&p->ir));
    PN_TRY(pn_scope_of_config(compiler, p->ir, compiler->list, &good, &p->scope));
    if (!good) return PINN_OK;
    PN_TRY(read_bounds(compiler, &good));
    PN_TRY(compile_definitions(compiler));
    PN_TRY(compile_sets(compiler));
    pn_points_check(compiler);
    pn_terms_check(compiler);
    if (whole && !compiler->list->count) PN_TRY(check_use(compiler));
    if (good) PN_TRY(pn_evaluation_create(compiler, whole && !compiler->list->count));
    if (whole && !compiler->list->count) {
        PN_TRY(find_layouts(p));
        PN_TRY(pn_limits_check(compiler));
    }
    status = pn_ir_check(p->ir);
fail:
    return status;
}

pinn_status pn_problem_diagnose(const pn_config *config, pn_diagnostics *list) {
    pn_problem *problem = pn_allocate(1, sizeof *problem);
    if (!problem) return PN_NO_MEMORY("a problem");
    const pn_compiler compiler = {config, problem, list};
    pinn_status status = compile(&compiler, false);
    pn_problem_destroy(problem);
    return status;
}

pinn_status pn_problem_create(const pn_config *config, pn_problem **out) {
    pn_diagnostics list;
    pn_config_diagnostics(config, &list);
    pn_problem *problem = pn_allocate(1, sizeof *problem);
    if (!problem) return PN_NO_MEMORY("a problem");
    const pn_compiler compiler = {config, problem, &list};
    pinn_status status;
    PN_TRY(compile(&compiler, true));
    PN_TRY(pn_config_check(config, &list));
    *out = problem;
    problem = NULL;
fail:
    pn_diagnostics_free(&list);
    pn_problem_destroy(problem);
    return status;
}

void pn_problem_destroy(pn_problem *problem) {
    if (!problem) return;
    for (size_t i = 0; problem->set && i < problem->sets; i++) {
        pn_free(problem->set[i].name);
        pn_free(problem->set[i].face);
        pn_layout_free(&problem->set[i].layout);
    }
    for (size_t i = 0; problem->term && i < problem->terms; i++) pn_free(problem->term[i].name);
    pn_free(problem->set);
    pn_free(problem->term);
    pn_scope_destroy(problem->scope);
    pn_ir_destroy(problem->ir);
    pn_free(problem->coordinate_name);
    pn_free(problem->field_name);
    pn_free(problem->lower);
    pn_free(problem->upper);
    pn_free(problem->evaluation_grid);
    pn_free(problem->evaluation_coordinate);
    pn_free(problem->reference);
    pn_free(problem->has_reference);
    pn_free(problem->reference_error);
    pn_free(problem);
}

pinn_status pn_problem_set_points(pn_problem *problem, const pn_config_phase *phase, bool *changed) {
    bool any = false;
    for (size_t i = 0; i < phase->points_count; i++)
        for (size_t k = 0; k < problem->sets; k++) {
            pn_set *set = &problem->set[k];
            if (strcmp(set->name, phase->points[i].set.text) != 0) continue;
            any |= set->points != phase->points[i].points;
            set->points = phase->points[i].points;
        }
    *changed = any;
    return PINN_OK;
}
