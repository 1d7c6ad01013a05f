/* The end of a step on the GPU; see adam.h. Eight warps of a block update a parameter a thread, and more where there are very many;
 * a ninth fetches the scalars while they add up the squares. After the one barrier every thread makes of those what it needs by
 * itself, and the ninth warp of the first block ends the step: words, loop, event row. */
#include "kernels/adam.h"

#include "graph/overlap.h"

#define THREADS (PN_ADAM_LANES + PN_SUM_LANES)
#define SQUARES_BATCH 4 /* squares a thread loads at once: all there may be */
#define TERMS_BATCH 8
#define MOST_BLOCKS 512u /* beyond, a thread has several parameters: each block reads all squares again */

static_assert(PN_ADAM_GROUPS == 8, "what pn_sum_fold_eight adds");

template <typename real>
struct forms;

template <>
struct forms<float> {
    typedef pn_adam_factors_float factors;
    static __device__ __forceinline__ void set(factors *f, const pn_hyper *hyper, const pn_finish_rates *rates) {
        pn_adam_factors_set_float(f, hyper, rates);
    }
    static __device__ __forceinline__ void update(const factors *f, float g, float *p, float *m, float *v) {
        pn_adam_update_float(f, g, p, m, v);
    }
};

template <>
struct forms<double> {
    typedef pn_adam_factors_double factors;
    static __device__ __forceinline__ void set(factors *f, const pn_hyper *hyper, const pn_finish_rates *rates) {
        pn_adam_factors_set_double(f, hyper, rates);
    }
    static __device__ __forceinline__ void update(const factors *f, double g, double *p, double *m, double *v) {
        pn_adam_update_double(f, g, p, m, v);
    }
};

/* What the kernel reads and writes, as declared in adam.h. */
template <typename real>
struct planes {
    const real *gradient;
    const double *squares, *losses;
    const pn_finish_rates *rates;
    const pn_hyper *hyper;
    real *parameter, *moments;
    pn_words *words;
    double *ring;
    pn_loop *loop;
};

/* What a block's threads share. */
template <typename real>
struct scalars {
    double group[PN_ADAM_GROUPS]; /* of the squares; the rest is the ninth warp's */
    double loss;
    pn_hyper hyper;
    pn_finish_rates rates;
    typename forms<real>::factors factors;
    pn_words words; /* these two of the first block only */
    pn_loop loop;
};

/* A struct of 8-byte words moves by one warp, a word a lane: all structs in one trip to memory. */
template <typename type>
static __device__ __forceinline__ uint64_t take(const type *from, unsigned lane) {
    static_assert(sizeof(type) % 8 == 0 && sizeof(type) / 8 <= PN_SUM_LANES && alignof(type) == 8, "a word a lane");
    uint64_t word = 0;
    if (lane < sizeof(type) / 8) memcpy(&word, (const char *)__builtin_assume_aligned(from, 8) + 8 * lane, 8);
    return word;
}

template <typename type>
static __device__ __forceinline__ void put(type *to, uint64_t word, unsigned lane) {
    if (lane < sizeof(type) / 8) memcpy((char *)__builtin_assume_aligned(to, 8) + 8 * lane, &word, 8);
}

template <typename real>
struct element {
    real g, p, m, v;
};

template <typename real>
static __device__ __forceinline__ element<real> load(const planes<real> &p, uint64_t n, uint64_t i) {
    if (i >= n) return {};
    return {p.gradient[i], p.parameter[i], p.moments[i], p.moments[n + i]};
}

/* By the ninth warp. */
template <typename real>
static __device__ __forceinline__ void fetch(const pn_adam_arguments &a, const planes<real> &p, bool ends, scalars<real> *s,
                                             unsigned lane) {
    const uint64_t hyper = take(p.hyper, lane), rates = take(p.rates, lane);
    const uint64_t words = ends ? take(p.words, lane) : 0, loop = ends ? take(p.loop, lane) : 0;
    if (lane == 0) s->loss = pn_sum_strided<1, TERMS_BATCH, 1>(p.losses + a.terms, 1, 0, (unsigned)a.terms);
    put(&s->hyper, hyper, lane);
    put(&s->rates, rates, lane);
    put(&s->words, words, lane);
    put(&s->loop, loop, lane);
    __syncwarp();
    if (lane == 0) forms<real>::set(&s->factors, &s->hyper, &s->rates);
}

/* By the ninth warp of the first block, the only one that reads or writes words, ring and loop. */
template <typename real>
static __device__ void finish(const pn_adam_arguments &a, const planes<real> &p, scalars<real> *s, double squares, unsigned lane) {
    __shared__ pn_finish_measure measure;
    __shared__ bool row_due;
    if (lane == 0) row_due = pn_finish_words(&s->words, &s->loop, &s->hyper, &s->rates, s->loss, squares, &measure);
    __syncwarp();
    put(p.words, take(&s->words, lane), lane);
    put(p.loop, take(&s->loop, lane), lane);
    if (!row_due) return;
    const uint64_t length = PN_ROW_TERMS + a.terms + a.fields;
    double *row = p.ring + (s->words.rows - 1) % a.ring_rows * length;
    for (uint64_t i = lane; i < length; i += PN_SUM_LANES) row[i] = pn_finish_row(&measure, p.losses, a.terms, i);
}

template <typename real>
static __global__ void __launch_bounds__(THREADS) adam_kernel(pn_adam_arguments a, planes<real> p) {
    __shared__ scalars<real> s;
    const unsigned thread = threadIdx.x, warp = thread / PN_SUM_LANES, lane = thread % PN_SUM_LANES;
    const uint64_t n = a.parameters;
    const bool updates = warp < PN_ADAM_GROUPS, ends = !updates && blockIdx.x == 0;
    uint64_t i = (uint64_t)blockIdx.x * PN_ADAM_LANES + thread;
    element<real> x = {};

    pn_await_last();
    if (updates) {
        x = load(p, n, i); /* while the squares add up */
        const double sum = pn_sum_fold(pn_sum_strided<PN_ADAM_LANES, SQUARES_BATCH, 1>(p.squares, 1, thread, (unsigned)a.squares));
        if (lane == 0) s.group[warp] = sum;
    } else
        fetch(a, p, ends, &s, lane);
    __syncthreads();

    const double squares = pn_sum_fold_eight(s.group, 1);
    if (ends) finish(a, p, &s, squares, lane);
    if (!updates || !s.rates.open || !pn_finish_accepted(s.loss, squares)) return;
    typename forms<real>::factors factors = s.factors;
    factors.clip = (real)pn_finish_clip(&s.hyper, squares);
    while (i < n) {
        forms<real>::update(&factors, x.g, &x.p, &x.m, &x.v);
        p.parameter[i] = x.p;
        p.moments[i] = x.m;
        p.moments[n + i] = x.v;
        i += (uint64_t)gridDim.x * PN_ADAM_LANES;
        x = load(p, n, i);
    }
}

template <typename real>
static pinn_status launch(const pinn_run *run, const pn_adam_arguments *arguments) {
    pn_adam_arguments a = *arguments;
    planes<real> p = {(const real *)run->read[0],     (const double *)run->read[1],
                            (const double *)run->read[2],   (const pn_finish_rates *)run->read[3],
                            (const pn_hyper *)run->read[4], (real *)run->write[0],
                            (real *)run->write[1],          (pn_words *)run->write[2],
                            (double *)run->write[3],        (pn_loop *)run->write[4]};
    const uint64_t needed = (a.parameters + PN_ADAM_LANES - 1) / PN_ADAM_LANES;
    const unsigned blocks = needed < MOST_BLOCKS ? (unsigned)needed : MOST_BLOCKS;
    void *argument[] = {&a, &p};
    return pn_launch_overlapping((const void *)adam_kernel<real>, blocks, THREADS, 0, run->stream, argument);
}

extern "C" pinn_status pn_adam_cuda(const pinn_run *run) {
    const pn_adam_arguments *a = (const pn_adam_arguments *)run->arguments;
    return a->real == PN_FLOAT32 ? launch<float>(run, a) : launch<double>(run, a);
}
