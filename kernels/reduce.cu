/* Partial sums to gradient on the GPU; see reduce.h. A block of 32 x 16 threads a tile: x is the column, y the lane of rows, so a
 * warp reads one row's 32 neighbouring entries. */
#include "kernels/reduce.h"

template <typename real>
static __global__ void __launch_bounds__(PN_SUM_LANES *PN_REDUCE_LANES)
    reduce_kernel(const real *__restrict__ partial, const pn_reduce_tile *__restrict__ tiles, real *__restrict__ gradient,
                  double *__restrict__ squares) {
    __shared__ double lane[PN_REDUCE_LANES][PN_SUM_LANES];
    const pn_reduce_tile tile = tiles[blockIdx.x];
    const unsigned x = threadIdx.x, y = threadIdx.y;
    double sum = 0;
    if (x < tile.count) {
        const real *column = partial + tile.offset + x;
#pragma unroll 8
        for (uint64_t r = y; r < tile.rows; r += PN_REDUCE_LANES) sum += (double)column[r * tile.stride];
    }
    lane[y][x] = sum;
    __syncthreads();
    for (unsigned half = PN_REDUCE_LANES / 2; half > 0; half /= 2) {
        if (y < half) lane[y][x] += lane[y + half][x];
        __syncthreads();
    }
    if (y > 0) return; /* what follows is the first warp's, whole */
    double square = 0;
    if (x < tile.count) {
        const real g = (real)lane[0][x];
        gradient[tile.first + x] = g;
        square = (double)g * (double)g;
    }
    square = pn_sum_fold(square);
    if (x == 0) squares[blockIdx.x] = square;
}

extern "C" pinn_status pn_reduce_cuda(const pinn_run *run) {
    const pn_reduce_arguments *a = (const pn_reduce_arguments *)run->arguments;
    const dim3 block(PN_SUM_LANES, PN_REDUCE_LANES);
    const pn_reduce_tile *tiles = (const pn_reduce_tile *)run->read[1];
    double *squares = (double *)run->write[1];
    cudaStream_t stream = (cudaStream_t)run->stream;
    if (a->real == PN_FLOAT32)
        reduce_kernel<float>
            <<<(unsigned)a->tiles, block, 0, stream>>>((const float *)run->read[0], tiles, (float *)run->write[0], squares);
    else
        reduce_kernel<double>
            <<<(unsigned)a->tiles, block, 0, stream>>>((const double *)run->read[0], tiles, (double *)run->write[0], squares);
    return pn_launch_check("reduce");
}
