/* A program: some outputs of a DAG, compiled for many lanes, run by the CPU's vector interpreter or by a CUDA kernel.
 *
 * A lane is one (point p, column j), 0 <= p < points, 0 <= j < width. Every operand is an array addressed as
 *     base[p * row_stride + j * column_stride]           (strides in elements)
 * so that one convention serves all: a network activation [points, width] has strides (width, 1), a coordinate [points] has
 * (1, 0), a bias [width] has (0, 1), a loss weight [1] has (0, 0), column f of a [points, F] output has (F, 0).
 * An output with PN_SUM_POINTS is not stored per lane but summed over the points, one result per column (its row stride is 0).
 *
 * Results never depend on thread count or timing: sums run in a fixed order.
 */
#ifndef PN_POINTWISE_PROGRAM_H
#define PN_POINTWISE_PROGRAM_H

#include "core/real.h"
#include "pinn_graph.h"
#include "pointwise/ir.h"

typedef struct pn_stride {
    size_t row, column; /* elements */
} pn_stride;

typedef enum pn_output_kind {
    PN_STORE,          /* base[p*row + j*column] = value */
    PN_SUM_POINTS,     /* base[j*column] += sum over p, in the program's precision */
    PN_SUM_POINTS_F64  /* the same into a float64 array: losses */
} pn_output_kind;

typedef struct pn_program_spec {
    const pn_ir *ir; /* borrowed during creation */
    pn_real real;
    size_t width;    /* columns */
    const uint32_t *input;         /* input slots, in operand order; slots the outputs don't need are allowed */
    const pn_stride *input_stride; /* one per input */
    size_t inputs;
    const pn_value *output;
    const pn_output_kind *kind;
    const pn_stride *output_stride;
    size_t outputs;
} pn_program_spec;

typedef struct pn_program pn_program;

/* Copies all it needs. An output that is the same node as another is computed once. An input slot used by an output but not
 * listed: BAD_ARGUMENT. */
pinn_status pn_program_create(const pn_program_spec *spec, pn_program **out);
void pn_program_destroy(pn_program *program);
size_t pn_program_inputs(const pn_program *program);
size_t pn_program_outputs(const pn_program *program);
size_t pn_program_width(const pn_program *program);
pn_real pn_program_real(const pn_program *program);
bool pn_program_uses_input(const pn_program *program, size_t input); /* false: its address may be NULL */
/* Operations a lane: adds, multiplies, ... counted 1 each, a fused multiply-add 2, an elementary function 1 in `special`. */
void pn_program_count(const pn_program *program, size_t *arithmetic, size_t *special);

/* ---- CPU ------------------------------------------------------------------------------------------------------------------ */

/* Scratch one thread needs to run the program, in bytes; 64-byte aligned memory from pn_allocate. */
size_t pn_program_scratch(const pn_program *program);
/* Runs `points` points in the calling thread. `in`/`out`: one address per operand. Sums are ADDED to what the outputs hold.
 * An output may be the same array as an input of the same strides (each lane reads before it writes). */
void pn_program_run(const pn_program *program, size_t points, const void *const *in, void *const *out, void *scratch);
/* "avx512", "avx2", "sse2": the instruction set the interpreter picked at run time (PINN_ISA overrides downwards). */
const char *pn_program_isa(void);

/* ---- CUDA ----------------------------------------------------------------------------------------------------------------- */

/* One kernel that runs several programs, each over its own points: one launch for all point sets. */
typedef struct pn_section {
    const pn_program *program;
    size_t points;
} pn_section;

typedef struct pn_kernel pn_kernel;

/* CUDA C++ text for the programs, appended to `out`, without compiling; `name` is an identifier. Text depends on programs and precision,
 * not on `points`. Errors: BAD_ARGUMENT (no program, different precisions, a bad name), NO_MEMORY. */
pinn_status pn_kernel_source(const char *name, const pn_program *const *program, size_t count, pn_text *out);
/* Whether this NVRTC compiles for "sm_90", ... Errors: CONFIG, with the architectures that there are; UNSUPPORTED without CUDA. */
pinn_status pn_architecture_check(const char *name);
/* Compiles by NVRTC (or takes it from the cache) for `architecture` ("sm_90"; "compute_90" gives PTX). Needs no GPU. Errors:
 * UNSUPPORTED without CUDA, DEVICE_FAILED with NVRTC's log. `cubin` (may be NULL) receives the machine code, owned by the caller
 * (pn_free). The cache: $PINN_CACHE, $XDG_CACHE_HOME/pinn or ~/.cache/pinn. A text that another thread is compiling is waited for. */
pinn_status pn_kernel_compile(const char *source, const char *architecture, void **cubin, size_t *bytes);

/* The same in the background, on as many threads as there are processors: begun for all kernels first, waited for afterwards. A text begun
 * several times is compiled once, and each asker gets its own copy, or the error. */
typedef struct pn_compilation pn_compilation;
pinn_status pn_compilation_begin(const char *source, const char *architecture, pn_compilation **out);
/* Waits. Errors as of pn_kernel_compile. The compilation is gone afterwards, whatever the outcome. */
pinn_status pn_compilation_end(pn_compilation *compilation, void **cubin, size_t *bytes);
/* Who waits in pn_compilation_end beyond the moment `until` (pn_clock) is told so, once: how many kernels are not there yet, some of which
 * may still come from the cache. For this thread, borrowed until it is set anew; NULL: nobody is told. */
typedef struct pn_patience {
    double until;
    void (*tell)(void *user, size_t kernels);
    void *user;
} pn_patience;
void pn_compilation_patience(const pn_patience *patience);
/* Waits, if it has begun, and forgets it. NULL is fine. */
void pn_compilation_drop(pn_compilation *compilation);
/* How many kernels this process has compiled: the others came from the cache. */
size_t pn_compiled_kernels(void);
/* How many different kernels it has asked for; one asked for again is then in the cache, and counts once. */
size_t pn_asked_kernels(void);
/* A line about compiled code that could not be kept, to be shown once in a process: true the first time that there is one. */
#define PN_CACHE_TROUBLE_BYTES 1024
bool pn_cache_tell_trouble(char text[PN_CACHE_TROUBLE_BYTES]);
/* Whether what is compiled now can be kept, by writing a file that goes again; where not, the line above says why. */
bool pn_cache_can_keep(void);

/* Compiles for the context's device, loads. `section` is copied; programs are borrowed. Errors also: UNSUPPORTED on a CPU context, or
 * when the sections have more operands than one kernel takes (about 4000). */
pinn_status pn_kernel_create(pinn_context *context, const char *name, const pn_section *section, size_t count, pn_kernel **out);
/* The same in two parts: the first lets the compilation run in the background; only after the second, which waits for it, may the kernel
 * be launched. A second finish does nothing. `name` is for messages; `entry`, an identifier, is the kernel's name in the text: kernels with
 * equal entries and programs have equal texts, which are compiled once. */
pinn_status pn_kernel_begin(pinn_context *context, const char *name, const char *entry, const pn_section *section, size_t count,
                            pn_kernel **out);
pinn_status pn_kernel_finish(pn_kernel *kernel);
void pn_kernel_destroy(pn_kernel *kernel);
/* Sums leave the kernel as partials, one row per thread block of the section: number of rows of section s, and the row length in
 * elements for real sums (columns of all PN_SUM_POINTS outputs one after another, width each) and for float64 sums. */
size_t pn_kernel_partial_rows(const pn_kernel *kernel, size_t section);
/* Launches on the stream (inside a capture too). Operand addresses of all sections one after another; addresses of sum outputs
 * are ignored: instead row r of section s goes to partial_real[s] + r*(sum outputs * width), likewise partial_f64[s]. An operand whose
 * columns lie together and whose row stride, like the width, is a multiple of four must be aligned to 16 bytes: BAD_ARGUMENT. */
pinn_status pn_kernel_launch(const pn_kernel *kernel, void *stream, const void *const *in, void *const *out, void *const *partial_real,
                             double *const *partial_f64);

#endif
