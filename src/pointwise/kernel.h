/* What the files of the CUDA kernels share.
 *
 *   kernel_source.c    CUDA C++ text of one program's lane function, and of a whole kernel
 *   kernel_grid.c      which thread does what, for the text and for the launch; the parameter
 *   kernel_cache.c     compiled code on disk
 *   nvrtc_cuda.c       NVRTC;  compilation_cuda.c  several at once, equal ones once
 *   code_cuda.c        loading and launching;  kernel_cuda.c  the public functions;  kernel_nocuda.c  no CUDA
 *
 * A kernel has one parameter, a structure that is an array of 64-bit words: for every group of sections with equal programs, for every
 * section of the group: the addresses of the inputs used, of the stored outputs, of the partial sums in the program's precision and in
 * float64 (those two always), then `points`, `share` and `end`. Blocks of the grid are numbered in the same order; a section's blocks
 * are those from the section's before up to `end`.
 *
 * A thread has `pack` neighbouring columns of a point, which it reads and writes as one vector where they lie together. A block of
 * PN_BLOCK_THREADS threads works on `columns` neighbouring packs, `rows` points at a time, and on `share` points in all: thread t has pack
 * t % columns and point t / columns. When the width exceeds `columns` packs, `tiles` blocks share one range of points.
 */
#ifndef PN_POINTWISE_KERNEL_H
#define PN_POINTWISE_KERNEL_H

#include "pointwise/program.h"

#define PN_BLOCK_THREADS 256
#define PN_KERNEL_WORDS (32764 / 8) /* CUDA's limit for the parameters of a kernel since compute capability 7.0 */
#define PN_SECTION_WORDS 3          /* points, share, end */

typedef struct pn_shape {
    unsigned columns, rows, tiles;
} pn_shape;

/* Columns of a thread: 1, 2 or 4, a divisor of the width. */
size_t pn_pack_choose(const pn_program *program);
/* Whether a thread reads or writes its columns of the operand as one vector: its address must be a multiple of the vector's size. */
bool pn_pack_fits(size_t pack, pn_stride stride);
pn_shape pn_shape_choose(size_t packs);
/* How many of the outputs are of this kind. */
size_t pn_program_count_outputs(const pn_program *program, pn_output_kind kind);
/* Words of one section's part of the parameter. */
size_t pn_section_words(const pn_program *program);
/* group[i]: the number of the group section i belongs to, groups being numbered by their first section. Returns how many. */
size_t pn_kernel_groups(const pn_program *const *program, size_t count, size_t *group);

/* One kernel's sections laid out over a grid. */
typedef struct pn_grid {
    pn_section *section; /* owned, [count], programs borrowed */
    size_t *place;       /* owned, [count] first word of the section's part of the parameter */
    size_t *rows;        /* owned, [count] rows of partial sums: ranges of points */
    uint64_t *word;      /* owned, [words] the parameter with sizes filled in */
    size_t count, words; /* words: at most PN_KERNEL_WORDS */
    unsigned blocks;     /* 0: no section has points */
} pn_grid;

/* Errors: UNSUPPORTED (too many addresses or blocks for one kernel), NO_MEMORY. */
pinn_status pn_grid_create(const pn_section *section, size_t count, pn_grid *out);
void pn_grid_free(pn_grid *grid);
/* BAD_ARGUMENT when an operand that is read or written as vectors is not aligned to them. */
pinn_status pn_grid_check(const pn_grid *grid, const void *const *in, void *const *out);
/* The parameter of one launch, `grid->words` words; operands as for pn_kernel_launch. */
void pn_grid_fill(const pn_grid *grid, const void *const *in, void *const *out, void *const *partial_real, double *const *partial_f64,
                  uint64_t *word);

/* What lane functions call: once, before them. `coarse`: elementary functions of networks as accurate as tf32 products, relative 2^-14. */
void pn_lane_prelude(bool coarse, pn_text *out);
/* A device function: static __device__ __forceinline__ void NAME(const T x.., T &y..), T float or double: the inputs used, then all
 * outputs, sums as one lane's summand. Pure: reads all, then writes. */
void pn_lane_source(const pn_program *program, const char *name, pn_text *out);

/* Compiles in this thread, or takes the code from the cache: pn_kernel_compile for one asker at a time. Both results are set. */
pinn_status pn_nvrtc_compile(const char *source, const char *architecture, void **image, size_t *bytes);

/* Of a key as below: different for different keys, but for a collision. */
unsigned long long pn_cache_hash(const char *key);
/* Compiled code by the full text it was compiled from. find: false when there is none; else `code` is the caller's (pn_free). Neither
 * fails: a cache that cannot be read or written only costs time; pn_cache_tell_trouble (program.h) says why. */
bool pn_cache_find(const char *key, void **code, size_t *bytes);
void pn_cache_keep(const char *key, const void *code, size_t bytes);

#endif
