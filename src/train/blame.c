/* Where a loss or gradient that is not finite comes from. The stop rule left parameters, step word and points as the bad step had
 * them, so its residuals can be evaluated once more, point by point, in the same precision, on the same device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "train/training.h"

typedef struct suspect { /* residuals of one term */
    size_t term, set;
    size_t point; /* the first one whose residual is not finite, else the one with the largest */
    double residual;
} suspect;

/* The shortest decimal that reads back as the same number of the run's precision. */
static void print_number(pn_text *text, pn_real real, double value) {
    char digits[32];
    if (isnan(value))
        pn_text_string(text, "NaN"); /* C leaves its sign to chance */
    else if (real == PN_FLOAT64 || isinf(value))
        pn_text_number(text, value);
    else {
        int precision = 6;
        do snprintf(digits, sizeof digits, "%.*g", precision, value);
        while (strtof(digits, NULL) != (float)value && precision++ < 9);
        pn_text_string(text, digits);
    }
}

/* Residuals of all terms at the present points: [set][residuals][points] in the run's precision; owned by the caller (pn_free). */
static pinn_status evaluate_residuals(pinn_training *training, void **out) {
    pinn_graph *graph = NULL;
    pn_pass *pass = NULL;
    void *residual = NULL;
    pinn_status status;
    PN_TRY(pn_residuals_create(training, &pass));
    PN_TRY(pinn_graph_create(training->context, "residuals", &graph));
    PN_TRY(pinn_graph_begin(graph));
    PN_TRY(pn_pass_record(pass, graph));
    PN_TRY(pinn_graph_launch(graph, 1));
    const size_t bytes = pinn_plane_bytes(pn_pass_fields(pass));
    residual = pn_allocate(bytes, 1);
    if (!residual) {
        status = PN_NO_MEMORY("the residuals");
        goto fail;
    }
    PN_TRY(pinn_plane_read(pn_pass_fields(pass), 0, residual, bytes));
    *out = residual;
    residual = NULL;
fail:
    pn_free(residual);
    pinn_graph_destroy(graph);
    pn_pass_destroy(pass);
    return status;
}

/* Looks at the residuals of `term`, or of all terms when it is problem->terms. */
static suspect find_suspect(const pinn_training *training, const void *residual, size_t term) {
    const pn_problem *problem = training->problem;
    suspect found = {.term = term, .residual = 0};
    size_t element = 0;
    for (size_t s = 0; s < problem->sets; s++)
        for (size_t k = 0; k < problem->set[s].term_count; k++)
            for (size_t p = 0; p < problem->set[s].points; p++) {
                const size_t of = problem->set[s].first_term + k;
                const double r = pn_real_get(training->config->real, residual, element++);
                if ((term != problem->terms && of != term) || !isfinite(found.residual)) continue;
                if (!isfinite(r) || fabs(r) >= fabs(found.residual)) found = (suspect){of, s, p, r};
            }
    return found;
}

/* "x = 0.31, t = 0.77" */
static pinn_status print_point(const pinn_training *training, const suspect *at, pn_text *text) {
    const pn_problem *problem = training->problem;
    const pn_real real = training->config->real;
    const size_t points = problem->set[at->set].points;
    size_t *offset = pn_allocate(problem->sets, sizeof *offset);
    pinn_status status = PINN_OK;
    if (!offset) return PN_NO_MEMORY("the point sets");
    pn_points_place(problem, offset);
    for (size_t i = 0; i < problem->coordinates && status == PINN_OK; i++) {
        union {
            float single;
            double wide;
        } raw = {.wide = 0};
        status = pinn_plane_read(training->machinery.points, (offset[at->set] + i * points + at->point) * pn_real_bytes(real), &raw,
                                 pn_real_bytes(real));
        pn_text_printf(text, "%s%s = ", i ? ", " : "", problem->coordinate_name[i]);
        print_number(text, real, pn_real_get(real, &raw, 0));
    }
    pn_free(offset);
    return status;
}

/* What the residuals of `term` (problem->terms: of all terms) say. */
static pinn_status explain_residuals(pinn_training *training, size_t term, pn_text *text) {
    void *residual = NULL;
    pinn_status status;
    PN_TRY(evaluate_residuals(training, &residual));
    const suspect found = find_suspect(training, residual, term);
    const bool bad = !isfinite(found.residual);
    pn_text_string(text, bad ? "residual is " : "every residual is finite, the largest is ");
    print_number(text, training->config->real, found.residual);
    if (term == training->problem->terms) pn_text_printf(text, " of term \"%s\"", training->term_name[found.term]);
    pn_text_string(text, " at ");
    PN_TRY(print_point(training, &found, text));
    if (!bad && term != training->problem->terms) pn_text_string(text, "; the sum of their squares overflows");
fail:
    pn_free(residual);
    return status;
}

/* Where the gradient is not finite: the first such entry's parameter. */
static pinn_status explain_gradient(const pinn_training *training, pn_text *text) {
    const pn_network *network = training->network;
    const pn_real real = training->config->real;
    const size_t bytes = network->parameters * pn_real_bytes(real);
    pinn_status status;
    void *gradient = pn_allocate(bytes, 1);
    if (!gradient) return PN_NO_MEMORY("the gradient");
    PN_TRY(pinn_plane_read(pn_step_gradient(training->machinery.step), 0, gradient, bytes));
    for (size_t b = 0; b < network->parameter_blocks; b++) {
        const pn_parameter *block = &network->parameter[b];
        const size_t count = block->rows * (block->columns ? block->columns : 1);
        for (size_t i = 0; i < count; i++) {
            const double g = pn_real_get(real, gradient, block->offset + i);
            if (isfinite(g)) continue;
            pn_text_printf(text, "every loss is finite, a derivative is not: first by %s[%zu], ", block->name, i);
            print_number(text, real, g);
            goto fail;
        }
    }
    pn_text_string(text, "every loss and derivative is finite, the sum of the derivatives' squares overflows");
fail:
    pn_free(gradient);
    return status;
}

/* `row`: the bad step's event row, [pn_row_length]. */
static pinn_status explain(pinn_training *training, const double *row, pn_text *text) {
    const pn_problem *problem = training->problem;
    const unsigned long long step = (unsigned long long)row[PN_ROW_STEP];
    size_t term = 0;
    pinn_status status = PINN_OK;
    while (term < problem->terms && isfinite(row[PN_ROW_TERMS + term])) term++;
    if (term < problem->terms) {
        pn_text_printf(text, "loss of term \"%s\" is ", training->term_name[term]);
        print_number(text, PN_FLOAT64, row[PN_ROW_TERMS + term]);
        pn_text_printf(text, " at step %llu: ", step);
        return explain_residuals(training, term, text);
    }
    if (!isfinite(row[PN_ROW_LOSS])) {
        pn_text_string(text, "the total loss is ");
        print_number(text, PN_FLOAT64, row[PN_ROW_LOSS]);
        pn_text_printf(text, " at step %llu: every term's loss is finite, their weighted sum overflows; ", step);
    } else {
        pn_text_string(text, "the gradient's norm is ");
        print_number(text, PN_FLOAT64, row[PN_ROW_GRADIENT_NORM]);
        pn_text_printf(text, " at step %llu: ", step);
        PN_TRY(explain_gradient(training, text));
        pn_text_string(text, "; ");
    }
    PN_TRY(explain_residuals(training, problem->terms, text));
fail:
    return status;
}

pinn_status pn_blame(pinn_training *training) {
    const size_t length = pn_row_length(training->problem->terms, training->problem->fields);
    pn_text text = {0}, reason = {0};
    pn_words words;
    pinn_status status;
    double *row = pn_allocate(length, sizeof *row);
    if (!row) return PN_NO_MEMORY("an event row");
    PN_TRY(pinn_plane_read(training->words, 0, &words, sizeof words));
    PN_TRY(pinn_plane_read(training->ring, (words.rows - 1) % PN_RING_ROWS * length * sizeof *row, row, length * sizeof *row));
    if (explain(training, row, &text) != PINN_OK) pn_text_printf(&reason, " (looking closer failed: %s)", pinn_error_message());
    status = pn_fail(
        PINN_NUMERIC,
        "%s%s. The step was not done: the parameters are those after step %llu%s. %s", pn_text_get(&text), pn_text_get(&reason),
        (unsigned long long)words.step, training->run ? ", which checkpoint.h5 holds" : "",
        words.step == 0 ? "No step was done before it: look for singular points of the expressions, such as the logarithm of what may be negative"
                        : "Try a smaller learning_rate, clip_norm in [[train]], or check the expressions for singular points");
fail:
    pn_text_free(&reason);
    pn_text_free(&text);
    pn_free(row);
    return status;
}
