/* Relative L2 errors on the CPU; see evaluate.h. */
#include "kernels/evaluate.h"

static double relative_l2(uint64_t real, const void *field, uint64_t first, const double *reference, uint64_t points) {
    double error[PN_SUM_WIDE] = {0}, size[PN_SUM_WIDE] = {0};
    for (uint64_t i = 0; i < points; i++) {
        const double difference = pn_real_get((pn_real)real, field, first + i) - reference[i];
        error[i % PN_SUM_WIDE] += difference * difference;
        size[i % PN_SUM_WIDE] += reference[i] * reference[i];
    }
    return sqrt(pn_sum_fold_groups(error, PN_SUM_LANES)) / sqrt(pn_sum_fold_groups(size, PN_SUM_LANES));
}

static pinn_status evaluate_cpu(const pinn_run *run) {
    const pn_evaluate_arguments *a = run->arguments;
    const double *reference = run->read[1];
    const pn_hyper *hyper = run->read[2];
    pn_words *words = run->write[1];
    double *error = pn_evaluate_errors(a, hyper, words, run->write[0]);
    if (!error) return PINN_OK;
    for (uint64_t f = 0; f < a->fields; f++)
        error[f] = relative_l2(a->real, run->read[0], f * a->points, reference + f * a->points, a->points);
    pn_evaluate_rule(a, hyper, error, words);
    return PINN_OK;
}

const pinn_operation pn_evaluate_operation = {"evaluate", evaluate_cpu, PN_CUDA_FORM(pn_evaluate_cuda)};
