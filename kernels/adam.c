/* Adam on the CPU; see adam.h. */
#include "kernels/adam.h"

#define ADAM_LOOP(real)                                                                                              \
    static void adam_##real(uint64_t n, const pn_words *words, const pn_hyper *hyper, const real *restrict gradient, \
                            real *restrict parameter, real *restrict m, real *restrict v) {                          \
        const pn_words w = *words; /* copies: nothing stored below can change them */                                \
        const pn_hyper h = *hyper;                                                                                   \
        _Pragma("omp parallel for simd schedule(static) if (n >= PN_PARALLEL)") for (uint64_t i = 0; i < n; i++)     \
            pn_adam_update_##real(&w, &h, gradient[i], &parameter[i], &m[i], &v[i]);                                 \
    }
ADAM_LOOP(float)
ADAM_LOOP(double)

static pinn_status adam_cpu(const pinn_run *run) {
    const pn_adam_arguments *a = run->arguments;
    const pn_loop *loop = run->read[3];
    const uint64_t n = a->parameters;
    if (!loop->update) return PINN_OK;
    if (a->real == PN_FLOAT32) {
        float *moments = run->write[1];
        adam_float(n, run->read[1], run->read[2], run->read[0], run->write[0], moments, moments + n);
    } else {
        double *moments = run->write[1];
        adam_double(n, run->read[1], run->read[2], run->read[0], run->write[0], moments, moments + n);
    }
    return PINN_OK;
}

const pinn_operation pn_adam_operation = {"adam", adam_cpu, PN_CUDA_FORM(pn_adam_cuda)};
