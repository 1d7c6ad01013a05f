/* A build without CUDA: no device, no CUDA executor. */
#include "graph/graph.h"

int pinn_device_count(void) { return 0; }

pinn_status pn_backend_cuda(pinn_executor executor, const pn_backend **out) {
    (void)out;
    return pn_fail(PINN_UNSUPPORTED,
                   "the %s executor needs CUDA, which this build is without: use the CPU executor, or build with the CUDA "
                   "Toolkit 13.0 or newer",
                   pinn_executor_name(executor));
}
