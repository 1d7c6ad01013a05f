/* Matrix products on a GPU: kernels of product_split.cu where they are expected to be faster, else cuBLAS. cuBLAS is column-major; a
 * row-major [m, n] array is a column-major [n, m] one, so the transposed equation C^T = op(B)^T op(A)^T is what is asked for: the operands
 * change places, each keeps its own transpose flag.
 *
 * cuBLAS reads alpha and beta at the call (host pointer mode), so they may live on the stack in a capture too.
 */
#include <cublas_v2.h>
#include <stdlib.h>
#include <string.h>

#include "network/product_split.h"

enum { LEAST_ROWS = 64, LEAST_COLUMNS = 64, LEAST_INNER = 32 };
#define LEAST_PRODUCTS 1.6e7 /* m n k: below, starting and filling the pipeline is what takes time */

static pinn_status launch_blas(const pn_product *p, pn_real real, bool tf32, void *handle, void *stream, const void *a, const void *b,
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

/* PINN_PRODUCTS=blas: never; split: wherever the kernel takes the product; else: where it is worth while. */
static bool worth_splitting(const pn_product *p, pn_real real, bool tf32, const void *a, const void *b, const void *c) {
    const char *choice = getenv("PINN_PRODUCTS");
    if (real != PN_FLOAT32 || tf32 || (choice && strcmp(choice, "blas") == 0) || !pn_split_takes(p, a, b, c)) return false;
    if (choice && strcmp(choice, "split") == 0) return true;
    return p->m >= LEAST_ROWS && p->n >= LEAST_COLUMNS && p->k >= LEAST_INNER &&
           (double)p->m * (double)p->n * (double)p->k * (double)p->batch >= LEAST_PRODUCTS;
}

pinn_status pn_product_launch(const pn_product *p, pn_real real, bool tf32, void *handle, void *stream, const void *a, const void *b,
                              void *c) {
    if (worth_splitting(p, real, tf32, a, b, c)) return pn_split_launch(p, stream, a, b, c);
    return launch_blas(p, real, tf32, handle, stream, a, b, c);
}
