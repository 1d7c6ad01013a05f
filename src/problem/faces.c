/* "x=min", "t=0", "boundary": from a condition's `on` to faces of the box, and back. */
#include <ctype.h>
#include <string.h>

#include "core/memory.h"
#include "problem/problem_internal.h"

typedef struct place { /* one entry of `on` */
    const pn_compiler *compiler;
    const char *text;
    pn_position at;
} place;

static void report_twice(const place *p, const pn_face *face) {
    pn_text plane = {0};
    pn_text_printf(&plane, "%s = ", p->compiler->problem->coordinate_name[face->axis]);
    pn_config_number(face->value, &plane);
    if (strcmp(p->text, "boundary") == 0)
        pn_diagnose(p->compiler->list, p->at, "leave out that face, or name the others one by one",
                    "\"boundary\" overlaps: it includes %s, which is in this list too", pn_text_get(&plane));
    else
        pn_diagnose(p->compiler->list, p->at, "name each face once", "the face \"%s\" is in this list already", p->text);
    pn_text_free(&plane);
}

static pinn_status add_face(const place *p, pn_set *set, pn_face face) {
    for (size_t i = 0; i < set->face_count; i++)
        if (set->face[i].axis == face.axis && set->face[i].value == face.value) {
            report_twice(p, &face);
            return PINN_OK;
        }
    pn_face *grown = pn_reallocate(set->face, set->face_count, set->face_count + 1, sizeof *grown);
    if (!grown) return PN_NO_MEMORY("faces");
    set->face = grown;
    grown[set->face_count++] = face;
    return PINN_OK;
}

static pinn_status add_boundary(const place *p, pn_set *set) {
    const pn_problem *problem = p->compiler->problem;
    for (size_t i = 0; i < problem->coordinates; i++)
        for (int side = -1; side <= 1 && (int)i != problem->time; side += 2) {
            pinn_status status = add_face(p, set, (pn_face){(int)i, side, side < 0 ? problem->lower[i] : problem->upper[i]});
            if (status != PINN_OK) return status;
        }
    if (problem->coordinates == 1 && problem->time == 0)
        pn_diagnose(p->compiler->list, p->at, "name the face, as \"t=min\"", "\"boundary\" is empty: time is the only coordinate");
    return PINN_OK;
}

/* The coordinate named by text[0..length), or -1: reported. */
static int find_axis(const place *p, size_t length) {
    const pn_problem *problem = p->compiler->problem;
    for (size_t i = 0; i < problem->coordinates; i++)
        if (strlen(problem->coordinate_name[i]) == length && memcmp(problem->coordinate_name[i], p->text, length) == 0) return (int)i;
    char name[64];
    if (length >= sizeof name) length = sizeof name - 1;
    memcpy(name, p->text, length);
    name[length] = 0;
    pn_text hint = {0};
    const char *nearest = pn_nearest(name, problem->coordinate_name, problem->coordinates);
    pn_text_string(&hint, nearest ? "did you mean " : "coordinates: ");
    for (size_t i = 0; !nearest && i < problem->coordinates && i < 10; i++) pn_text_printf(&hint, "%s%s", i ? ", " : "", problem->coordinate_name[i]);
    if (nearest) pn_text_printf(&hint, "\"%s\"?", nearest);
    pn_diagnose(p->compiler->list, p->at, pn_text_get(&hint), "face of an unknown coordinate \"%s\"", name);
    pn_text_free(&hint);
    return -1;
}

/* A single word that is no constant: people write "x=left". True when it was one, and reported. */
static bool report_word(const place *p, pn_position at, int axis, const char *word) {
    const pn_config *c = p->compiler->config;
    const char *known[2 + 32] = {"min", "max"};
    size_t count = 2;
    for (const char *ch = word; *ch; ch++)
        if (!isascii(*ch) || (!isalpha(*ch) && *ch != '_' && (ch == word || !isdigit(*ch)))) return false;
    if (strcmp(word, "pi") == 0) return false;
    for (size_t i = 0; i < c->define_count; i++)
        if (strcmp(c->define[i].name.text, word) == 0) return false;
    for (size_t i = 0; i < c->constant_count; i++) {
        if (strcmp(c->constant[i].name.text, word) == 0) return false;
        if (count < sizeof known / sizeof *known) known[count++] = c->constant[i].name.text;
    }
    pn_text hint = {0};
    const char *nearest = pn_nearest(word, known, count);
    if (nearest) pn_text_printf(&hint, "did you mean \"%s\"? ", nearest);
    pn_text_string(&hint, "write min, max, a number or a constant expression");
    pn_diagnose(p->compiler->list, at, pn_text_get(&hint), "unknown place \"%s\" of the coordinate \"%s\"", word,
                p->compiler->problem->coordinate_name[axis]);
    pn_text_free(&hint);
    return true;
}

/* "max+1": min and max are places, no numbers to compute with. True when one stands in an expression, and reported. */
static bool report_place(const place *p, pn_position at, const char *text) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (const char *c = text; *c; c++) {
        const size_t length = strspn(c, word);
        const bool call = c[length + strspn(c + length, " \t")] == '(';
        if (length == 3 && !call && (strncmp(c, "min", 3) == 0 || strncmp(c, "max", 3) == 0)) {
            at.column += (unsigned)(c - text);
            pn_diagnose(p->compiler->list, at, "write min, max, a number or a constant expression",
                        "\"%.3s\" is a place by itself, no number of an expression", c);
            return true;
        }
        if (length) c += length - 1;
    }
    return false;
}

static pinn_status add_plane(const place *p, pn_set *set, int axis, const char *value_text) {
    const pn_problem *problem = p->compiler->problem;
    double lower = problem->lower[axis], upper = problem->upper[axis], value = lower;
    if (strcmp(value_text, "min") != 0 && strcmp(value_text, "max") != 0) {
        pn_position at = {p->at.line, p->at.column + (unsigned)(value_text - p->text)};
        if (report_word(p, at, axis, value_text) || report_place(p, at, value_text)) return PINN_OK;
        pinn_status status = pn_expression_number(problem->scope, value_text, at, p->compiler->list, &value);
        if (status != PINN_OK) return pn_go_on(status);
        if (!(value >= lower && value <= upper)) {
            pn_text shown = {0};
            pn_text_printf(&shown, "%s = ", problem->coordinate_name[axis]);
            pn_text_number(&shown, value);
            pn_text_string(&shown, " lies outside the domain [");
            pn_config_number(lower, &shown);
            pn_text_string(&shown, ", ");
            pn_config_number(upper, &shown);
            pn_diagnose(p->compiler->list, at, NULL, "%s]", pn_text_get(&shown));
            pn_text_free(&shown);
            return PINN_OK;
        }
    } else if (strcmp(value_text, "max") == 0)
        value = upper;
    return add_face(p, set, (pn_face){axis, value == lower ? -1 : value == upper ? 1 : 0, value});
}

/* Cuts blanks at both ends, in place; the position moves along. */
static void trim(char *text, pn_position *at, char **out) {
    while (*text == ' ' || *text == '\t') {
        text++;
        at->column++;
    }
    size_t length = strlen(text);
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t')) text[--length] = 0;
    *out = text;
}

static pinn_status add_entry(const pn_compiler *compiler, char *copy, pn_position at, pn_set *set) {
    place p = {compiler, NULL, at};
    char *text;
    trim(copy, &p.at, &text);
    p.text = text;
    if (strcmp(text, "boundary") == 0) return add_boundary(&p, set);
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1]) {
        pn_diagnose(compiler->list, p.at, "\"x=min\", \"x=max\", a value as \"x=0.5\", or \"boundary\"", "\"%.60s\" names no face", text);
        return PINN_OK;
    }
    size_t length = (size_t)(equals - text);
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t')) length--;
    int axis = find_axis(&p, length);
    const char *value = equals + 1;
    while (*value == ' ' || *value == '\t') value++;
    return axis < 0 ? PINN_OK : add_plane(&p, set, axis, value);
}

pinn_status pn_faces_read(const pn_compiler *compiler, const pn_config_set *config, pn_set *set) {
    const pn_diagnostics *list = compiler->list;
    const size_t errors = list->count + list->dropped;
    for (size_t i = 0; i < config->on_count; i++) {
        char *copy = pn_duplicate(config->on[i].text, strlen(config->on[i].text));
        if (!copy) return PN_NO_MEMORY("faces");
        pinn_status status = add_entry(compiler, copy, config->on[i].at, set);
        pn_free(copy);
        if (status != PINN_OK) return status;
    }
    if (list->count + list->dropped != errors) set->face_count = 0; /* not all known: no residual is judged by those that are */
    return PINN_OK;
}

void pn_face_print(const pn_problem *problem, const pn_face *face, pn_text *out) {
    pn_text_printf(out, "%s=", problem->coordinate_name[face->axis]);
    if (face->side)
        pn_text_string(out, face->side < 0 ? "min" : "max");
    else
        pn_config_number(face->value, out);
}
