/* Training points on the CPU; see sample.h. Points are independent, so the bits are the same for any number of threads. */
#include "kernels/sample.h"

static pinn_status sample_cpu(const pinn_run *run) {
    const pn_sample_arguments *a = run->arguments;
    const uint64_t seed = *(const uint64_t *)run->read[0], step = *(const uint64_t *)run->read[1];
    const pn_sample_face *faces = run->read[2];
    const double *box = run->read[3];
    void *points = run->write[0];
#pragma omp parallel for schedule(static) if (a->points >= PN_PARALLEL)
    for (uint64_t i = 0; i < a->points; i++) pn_sample_point(a, i, seed, step, faces, box, points);
    return PINN_OK;
}

const pinn_operation pn_sample_operation = {"sample", sample_cpu, PN_CUDA_FORM(pn_sample_cuda)};
