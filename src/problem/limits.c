/* What a problem's numbers must keep to so that the training can compute with them.
 *
 * Precision. Everything is read in float64 and trained in float32 or float64. Rounded to less, a number may become infinite or 0, or lose
 * digits as a subnormal one; whatever reaches the device must be 0 or normal. A point x = lower + width*u must have room: with
 *     width >= 2^12 ulp(max(|lower|, |upper|))
 * points fall on at least 4096 places, and the scaled coordinate 2 (x - middle)/width is off by 2^-12 at most, less than the errors that
 * are trained for; with less, a set's points collapse onto a few places and the loss tells nothing. The k-th derivative of the network
 * carries (2/width)^k, which must be a number, too.
 *
 * Size. The pass stacks all points times their channels into rows that BLAS counts in 32 bits; a step takes so many terms as one
 * thread adds up (kernels/finish.h).
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "kernels/finish.h"
#include "problem/problem_internal.h"

#define PLACES 4096.0
#define MAX_ROWS ((uint64_t)INT_MAX / 2) /* as src/network/pass.c */

/* ---- numbers in the configured precision ------------------------------------------------------------------------------------ */

static const struct {
    const char *name, *range;
    double smallest, largest, epsilon; /* epsilon: ulp of 1 */
} precision[] = {
    [PN_FLOAT32] = {"float32", "1.2e-38 to 3.4e38", FLT_MIN, FLT_MAX, FLT_EPSILON},
    [PN_FLOAT64] = {"float64", "2.2e-308 to 1.8e308", DBL_MIN, DBL_MAX, DBL_EPSILON},
};

bool pn_real_holds(pn_real real, double value) {
    return value == 0 || (fabs(value) >= precision[real].smallest && fabs(value) <= precision[real].largest);
}

/* "too large for float32" */
static void print_fault(pn_real real, double value, pn_text *out) {
    pn_text_printf(out, "too %s for %s", fabs(value) < 1 ? "small" : "large", precision[real].name);
}

/* `advice`, and the higher precision where there is one. */
static void report(const pn_config *config, pn_diagnostics *list, pn_position at, const char *advice, const pn_text *message) {
    pn_text hint = {0};
    pn_text_string(&hint, advice);
    if (config->real == PN_FLOAT32) pn_text_string(&hint, ", or write precision = \"float64\"");
    pn_diagnose(list, at, pn_text_get(&hint), "%s", pn_text_get(message));
    pn_text_free(&hint);
}

void pn_report_unheld(const pn_config *config, pn_diagnostics *list, pn_position at, const char *what, double value) {
    pn_text message = {0}, advice = {0};
    pn_text_printf(&message, "%s ", what);
    pn_text_number(&message, value);
    pn_text_string(&message, " is ");
    print_fault(config->real, value, &message);
    pn_text_printf(&advice, "%s holds numbers from %s: rescale the problem", precision[config->real].name, precision[config->real].range);
    report(config, list, at, pn_text_get(&advice), &message);
    pn_text_free(&message);
    pn_text_free(&advice);
}

/* ---- domain ----------------------------------------------------------------------------------------------------------------- */

static void print_domain(const pn_config_coordinate *coordinate, const double *bound, pn_text *out) {
    pn_text_printf(out, "the domain of \"%s\", [", coordinate->name.text);
    pn_config_number(bound[0], out);
    pn_text_string(out, ", ");
    pn_config_number(bound[1], out);
    pn_text_string(out, "]");
}

static double spacing(pn_real real, double value) {
    int exponent;
    frexp(value, &exponent);
    return ldexp(precision[real].epsilon, exponent - 1);
}

bool pn_domain_check(const pn_compiler *compiler, const pn_config_coordinate *coordinate, const double *bound) {
    const pn_config *c = compiler->config;
    const double width = bound[1] - bound[0], ulp = spacing(c->real, fmax(fabs(bound[0]), fabs(bound[1])));
    const pn_position at = coordinate->bound[0].at;
    pn_text message = {0};
    for (int k = 0; k < 2; k++)
        if (!pn_real_holds(c->real, bound[k])) {
            pn_report_unheld(c, compiler->list, coordinate->bound[k].at, "the bound", bound[k]);
            return false;
        }
    print_domain(coordinate, bound, &message);
    if (!(width > 0)) {
        pn_text_string(&message, ", is empty");
        pn_diagnose(compiler->list, at, "the lower bound comes first", "%s", pn_text_get(&message));
    } else if (!isfinite(bound[0] + bound[1]) || !pn_real_holds(c->real, width) || !pn_real_holds(c->real, 2 / width)) {
        pn_text_printf(&message, ", is too %s for %s", width < 1 ? "narrow" : "wide", precision[c->real].name);
        report(c, compiler->list, at, "its width and 2/width must be numbers: rescale the coordinate", &message);
    } else if (width < PLACES * ulp) {
        const double count = floor(width / ulp) + 1;
        pn_text_printf(&message, ", holds only %.0f number%s of %s", count, count == 1 ? "" : "s", precision[c->real].name);
        report(c, compiler->list, at, "4096 numbers are needed to tell points apart: shift the coordinate to begin at 0", &message);
    } else {
        pn_text_free(&message);
        return true;
    }
    pn_text_free(&message);
    return false;
}

/* A channel's derivative of the scaled coordinates, in the user's ones: the product of 2/width over its coordinates. */
static double channel_scale(const pn_compiler *compiler, const uint8_t *coordinate, size_t order) {
    const pn_problem *p = compiler->problem;
    double scale = 1;
    for (size_t k = 0; k < order; k++) {
        scale *= 2 / (p->upper[coordinate[k]] - p->lower[coordinate[k]]);
        if (compiler->config->network.fourier) scale *= 2 * M_PI * compiler->config->network.fourier_scale;
    }
    return scale;
}

static void check_derivative(const pn_compiler *compiler, const uint8_t *coordinate, size_t order, double coefficient) {
    const pn_config *c = compiler->config;
    const double scale = coefficient * channel_scale(compiler, coordinate, order);
    if (pn_real_holds(c->real, scale) && scale != 0) return;
    pn_text message = {0};
    pn_text_string(&message, "the derivative by ");
    for (size_t k = 0; k < order; k++) pn_text_printf(&message, "%s%s", k ? ", " : "", c->coordinate[coordinate[k]].name.text);
    pn_text_string(&message, " has the factor ");
    pn_text_number(&message, scale);
    pn_text_string(&message, ", ");
    print_fault(c->real, scale, &message);
    report(c, compiler->list, c->coordinate[coordinate[0]].bound[0].at,
           c->network.fourier ? "each order multiplies by 2/width of the coordinate and 2 pi scale of the Fourier features: rescale"
                              : "each order multiplies by 2/width of the coordinate: rescale it to a width near 1",
           &message);
    pn_text_free(&message);
}

static void check_derivatives(const pn_compiler *compiler) {
    for (size_t s = 0; s < compiler->problem->sets; s++) {
        const pn_layout *layout = &compiler->problem->set[s].layout;
        for (size_t i = 0; i < layout->count; i++) {
            const pn_channel *channel = &layout->channel[i];
            if (!channel->laplacian) check_derivative(compiler, channel->coordinate, channel->order, 1);
            for (size_t k = 0; channel->laplacian && k < layout->coordinates; k++)
                if (layout->laplacian[k] != 0)
                    check_derivative(compiler, (const uint8_t[]){(uint8_t)k, (uint8_t)k}, 2, layout->laplacian[k]);
        }
    }
}

/* ---- residuals -------------------------------------------------------------------------------------------------------------- */

/* The constant of [constants] that has this value, or its negative; NULL when there is none. */
static const pn_config_named *find_constant(const pn_compiler *compiler, double value) {
    const pn_config *c = compiler->config;
    const pn_config_named *found = NULL;
    pn_diagnostics known; /* their errors were reported when they were read */
    pn_config_diagnostics(c, &known);
    for (size_t i = 0; i < c->constant_count && !found; i++) {
        double constant;
        if (pn_expression_number(compiler->problem->scope, c->constant[i].value.text, c->constant[i].value.at, &known, &constant) == PINN_OK &&
            fabs(constant) == fabs(value))
            found = &c->constant[i];
    }
    pn_diagnostics_free(&known);
    return found;
}

static void report_number(const pn_compiler *compiler, pn_position at, double value) {
    const pn_config_named *constant = find_constant(compiler, value);
    pn_text what = {0};
    if (constant)
        pn_text_printf(&what, "the constant \"%s\" =", constant->name.text);
    else
        pn_text_string(&what, "the residual's number");
    pn_report_unheld(compiler->config, compiler->list, constant ? constant->value.at : at, pn_text_get(&what), value);
    pn_text_free(&what);
}

pinn_status pn_residual_check(const pn_compiler *compiler, pn_position at, pn_value residual) {
    const pn_ir *ir = compiler->problem->ir;
    bool *needed = pn_allocate((size_t)residual + 1, sizeof *needed);
    if (!needed) return PN_NO_MEMORY("a residual");
    needed[residual] = true;
    for (size_t i = (size_t)residual + 1; i-- > 0;) {
        if (!needed[i]) continue;
        const pn_node *node = pn_ir_node(ir, (pn_value)i);
        const pn_value operand[3] = {node->a, node->b, node->c};
        for (int k = 0; k < pn_op_arity(node->op); k++) needed[operand[k]] = true;
        if (node->op == PN_OP_CONST && !pn_real_holds(compiler->config->real, node->constant))
            report_number(compiler, at, node->constant);
    }
    pn_free(needed);
    return PINN_OK;
}

/* The adjoint of a residual starts from 2*weight/points times the residual. */
static void check_weight(const pn_compiler *compiler, const pn_config_named *residual, size_t points) {
    const pn_config *c = compiler->config;
    const double scale = 2 * residual->weight / (double)points;
    if (!pn_real_holds(c->real, residual->weight))
        pn_report_unheld(c, compiler->list, residual->weight_at, "the weight", residual->weight);
    else if (!pn_real_holds(c->real, scale))
        pn_report_unheld(c, compiler->list, residual->weight_at, "2*weight/points =", scale);
}

/* ---- points ----------------------------------------------------------------------------------------------------------------- */

typedef struct counts { /* of all sets, in one phase */
    size_t *points;
    pn_position *at;
} counts;

/* The rows of all sets together; when they are too many, the largest set is told how many points would fit. */
static bool check_rows(const pn_compiler *compiler, const counts *n) {
    const pn_problem *p = compiler->problem;
    uint64_t total = 0, largest = 0;
    size_t s = 0;
    for (size_t i = 0; i < p->sets; i++) {
        const uint64_t rows = (uint64_t)n->points[i] * p->set[i].layout.count;
        total += rows;
        if (rows > largest) {
            largest = rows;
            s = i;
        }
    }
    if (total <= MAX_ROWS) return true;
    const uint64_t others = total - largest;
    const size_t channels = p->set[s].layout.count, fit = others < MAX_ROWS ? (size_t)((MAX_ROWS - others) / channels) : 0;
    pn_text hint = {0};
    pn_text_printf(&hint, fit ? "at most %zu points fit here" : "the other sets alone have more", fit);
    pn_diagnose(compiler->list, n->at[s], pn_text_get(&hint),
                "%zu points with %zu channel%s each (value and derivatives) are too many: %llu rows in all, at most %llu", n->points[s],
                channels, channels == 1 ? "" : "s", (unsigned long long)total, (unsigned long long)MAX_ROWS);
    pn_text_free(&hint);
    return false;
}

static bool check_counts(const pn_compiler *compiler, const counts *n) {
    const pn_config *c = compiler->config;
    for (size_t i = 0; i < c->set_count; i++)
        for (size_t k = 0; k < c->set[i].residual_count; k++) check_weight(compiler, &c->set[i].residual[k], n->points[i]);
    return check_rows(compiler, n);
}

static pinn_status check_phases(const pn_compiler *compiler) {
    const pn_config *c = compiler->config;
    counts n = {pn_allocate(c->set_count, sizeof *n.points), pn_allocate(c->set_count, sizeof *n.at)};
    pinn_status status = n.points && n.at ? PINN_OK : PN_NO_MEMORY("a check");
    if (status != PINN_OK) goto fail;
    for (size_t i = 0; i < c->set_count; i++) {
        n.points[i] = c->set[i].points;
        n.at[i] = c->set[i].points_at;
    }
    bool good = check_counts(compiler, &n);
    for (size_t k = 0; good && k < c->phase_count; k++) {
        const pn_config_phase *phase = &c->phase[k];
        for (size_t j = 0; j < phase->points_count; j++)
            for (size_t i = 0; i < c->set_count; i++)
                if (strcmp(c->set[i].name.text, phase->points[j].set.text) == 0) {
                    n.points[i] = phase->points[j].points;
                    n.at[i] = phase->points[j].at;
                }
        if (phase->points_count) good = check_counts(compiler, &n);
    }
fail:
    pn_free(n.points);
    pn_free(n.at);
    return status;
}

static void report_faces(const pn_compiler *compiler, pn_position at, size_t points, size_t faces) {
    pn_text hint = {0};
    pn_text_printf(&hint, "write at least %zu, one a face", faces);
    pn_diagnose(compiler->list, at, pn_text_get(&hint), "%zu point%s for %zu faces", points, points == 1 ? "" : "s", faces);
    pn_text_free(&hint);
}

void pn_points_check(const pn_compiler *compiler) {
    const pn_config *c = compiler->config;
    for (size_t i = 0; i < compiler->problem->sets; i++) {
        const size_t faces = compiler->problem->set[i].face_count;
        const pn_config_set *set = &c->set[i];
        if (set->points > 0 && set->points < faces) report_faces(compiler, set->points_at, set->points, faces); /* 0: reported as missing */
        for (size_t k = 0; k < c->phase_count; k++)
            for (size_t j = 0; j < c->phase[k].points_count; j++) {
                const pn_config_phase_points *points = &c->phase[k].points[j];
                if (strcmp(points->set.text, set->name.text) == 0 && points->points < faces)
                    report_faces(compiler, points->at, points->points, faces);
            }
    }
}

void pn_terms_check(const pn_compiler *compiler) {
    const pn_config *c = compiler->config;
    size_t terms = 0;
    for (size_t i = 0; i < c->set_count; i++)
        for (size_t k = 0; k < c->set[i].residual_count; k++)
            if (terms++ == PN_FINISH_TERMS)
                pn_diagnose(compiler->list, c->set[i].residual[k].value.at, NULL, "more than %d residuals", PN_FINISH_TERMS);
}

pinn_status pn_limits_check(const pn_compiler *compiler) {
    check_derivatives(compiler);
    return check_phases(compiler);
}
