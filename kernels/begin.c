/* The beginning of a chunk on the CPU; see begin.h. */
#include "kernels/begin.h"

static pinn_status begin_cpu(const pinn_run *run) {
    pn_begin_chunk(run->arguments, run->read[0], run->read[1], run->write[0]);
    return PINN_OK;
}

const pinn_operation pn_begin_operation = {"begin", begin_cpu, PN_CUDA_FORM(pn_begin_cuda)};
