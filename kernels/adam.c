/* The end of a step on the CPU; see adam.h. */
#include "kernels/adam.h"

#define ADAM_LOOP(real)                                                                                                    \
    static void adam_##real(uint64_t n, const pn_hyper *hyper, const pn_finish_rates *rates, double clip,                  \
                            const real *restrict gradient, real *restrict parameter, real *restrict m, real *restrict v) { \
        pn_adam_factors_##real factors;                                                                                    \
        pn_adam_factors_set_##real(&factors, hyper, rates);                                                                \
        factors.clip = (real)clip;                                                                                         \
        const pn_adam_factors_##real f = factors; /* nothing stored below can change it */                                 \
        _Pragma("omp parallel for simd schedule(static) if (n >= PN_PARALLEL)") for (uint64_t i = 0; i < n; i++)           \
            pn_adam_update_##real(&f, gradient[i], &parameter[i], &m[i], &v[i]);                                           \
    }
ADAM_LOOP(float)
ADAM_LOOP(double)

static double squares_sum(const double *square, uint64_t count) {
    double lane[PN_ADAM_LANES] = {0};
    for (uint64_t i = 0; i < count; i++) lane[i % PN_ADAM_LANES] += square[i];
    return pn_sum_fold_groups(lane, PN_ADAM_GROUPS);
}

static pinn_status adam_cpu(const pinn_run *run) {
    const pn_adam_arguments *a = run->arguments;
    const double squares = squares_sum(run->read[1], a->squares), *loss = run->read[2], *weighted = loss + a->terms;
    const pn_finish_rates *rates = run->read[3];
    const pn_hyper *hyper = run->read[4];
    pn_words *words = run->write[2];
    const uint64_t n = a->parameters;
    pn_finish_measure measure = {0};
    double total = 0;

    for (uint64_t k = 0; k < a->terms; k++) total += weighted[k];
    if (rates->open && pn_finish_accepted(total, squares)) {
        const double clip = pn_finish_clip(hyper, squares);
        if (a->real == PN_FLOAT32) {
            float *moments = run->write[1];
            adam_float(n, hyper, rates, clip, run->read[0], run->write[0], moments, moments + n);
        } else {
            double *moments = run->write[1];
            adam_double(n, hyper, rates, clip, run->read[0], run->write[0], moments, moments + n);
        }
    }
    if (pn_finish_words(words, run->write[4], hyper, rates, total, squares, &measure)) {
        const uint64_t length = PN_ROW_TERMS + a->terms + a->fields;
        double *row = (double *)run->write[3] + (words->rows - 1) % a->ring_rows * length;
        for (uint64_t i = 0; i < length; i++) row[i] = pn_finish_row(&measure, loss, a->terms, i);
    }
    return PINN_OK;
}

const pinn_operation pn_adam_operation = {"adam", adam_cpu, PN_CUDA_FORM(pn_adam_cuda)};
