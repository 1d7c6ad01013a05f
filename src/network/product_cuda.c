/* Matrix products on a GPU: cuBLAS, which is column-major. A row-major [m, n] array is a column-major [n, m] one, so the transposed
 * equation C^T = op(B)^T op(A)^T is what is asked for: the operands change places, each keeps its own transpose flag.
 *
 * cuBLAS reads alpha and beta at the call (host pointer mode), so they may live on the stack in a capture too.
 */
#include "network/product.h"

#include <cublas_v2.h>

pinn_status pn_product_launch(const pn_product *p, pn_real real, bool tf32, void *handle, void *stream, const void *a, const void *b,
                              void *c) {
    const cublasOperation_t ta = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, tb = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = p->transpose_a ? m : k, ldb = p->transpose_b ? k : n;
    const float one = 1.0f, zero = 0.0f;
    const double one64 = 1.0, zero64 = 0.0;
    const bool wide = real == PN_FLOAT64;
    const cudaDataType_t type = wide ? CUDA_R_64F : CUDA_R_32F;
    const cublasComputeType_t compute = wide ? CUBLAS_COMPUTE_64F : tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const void *alpha = wide ? (const void *)&one64 : &one, *beta = wide ? (const void *)&zero64 : &zero;
    cudaStream_t current;
    cublasStatus_t status = cublasGetStream(handle, &current);
    if (status == CUBLAS_STATUS_SUCCESS && current != (cudaStream_t)stream)
        return pn_fail(PINN_INTERNAL, "the cuBLAS handle is set to another stream than the node runs on");
    if (status == CUBLAS_STATUS_SUCCESS && p->batch == 1)
        status = cublasGemmEx(handle, tb, ta, n, m, k, alpha, b, type, ldb, a, type, lda, beta, c, type, n, compute, CUBLAS_GEMM_DEFAULT);
    else if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasGemmStridedBatchedEx(handle, tb, ta, n, m, k, alpha, b, type, ldb, (long long)p->stride_b, a, type, lda,
                                            (long long)p->stride_a, beta, c, type, n, (long long)p->stride_c, (int)p->batch, compute,
                                            CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return PINN_OK;
    return pn_fail(PINN_DEVICE_FAILED, "cuBLAS product [%d, %d] x [%d, %d]: %s", m, k, k, n, cublasGetStatusString(status));
}
