/* How a kernel's threads share the lanes of its sections, and which sections share code. All of it depends on programs and numbers of
 * points alone, so sums run in the same order on every device. */
#include "pointwise/kernel.h"

#include <string.h>

#include "core/memory.h"
#include "pointwise/program_code.h"

#define MOST_BLOCKS 1024    /* of one section: several for each multiprocessor of the largest GPUs, few enough rows of partial sums */
#define LEAST_COLUMNS 32    /* neighbours in memory that one warp reads together */
#define WORTH_SPLITTING 1.2 /* more threads at work, to make up for rows that are read in pieces */
#define LEAST_PACKED 128    /* width from which threads have several columns: narrow layers are too short of threads */
#define PACK_BYTES 16       /* the longest vector a thread reads or writes at once */
#define PACK_REGISTERS 64   /* of a thread, for all its vectors: with more, too few threads fit a multiprocessor to keep its memory busy */

/* ---- columns and threads -------------------------------------------------------------------------------------------------------- */

bool pn_pack_fits(size_t pack, pn_stride stride) { return stride.column == 1 && stride.row > 0 && stride.row % pack == 0; }

size_t pn_pack_choose(const pn_program *program) {
    const size_t bytes = pn_real_bytes(program->real);
    size_t pack = PACK_BYTES / bytes, vectors = 0;
    if (program->width < LEAST_PACKED) return 1;
    while (program->width % pack != 0) pack /= 2;
    for (size_t i = 0; i < program->inputs; i++) vectors += pn_program_uses_input(program, i) && pn_pack_fits(pack, program->input[i].stride);
    for (size_t o = 0; o < program->outputs; o++)
        vectors += program->output[o].kind == PN_STORE && pn_pack_fits(pack, program->output[o].stride);
    if (vectors == 0) return 1;
    while (pack > 1 && vectors * pack * bytes > PACK_REGISTERS * sizeof(float)) pack /= 2;
    return pack;
}

static double threads_at_work(size_t packs, pn_shape shape) {
    return (double)packs * shape.rows / ((double)shape.tiles * PN_BLOCK_THREADS);
}

pn_shape pn_shape_choose(size_t packs) {
    pn_shape best = {0};
    for (size_t tiles = (packs + PN_BLOCK_THREADS - 1) / PN_BLOCK_THREADS;; tiles++) {
        const size_t columns = (packs + tiles - 1) / tiles;
        if (best.tiles > 0 && (columns < LEAST_COLUMNS || tiles > best.tiles + 8)) return best;
        const pn_shape shape = {(unsigned)columns, (unsigned)(PN_BLOCK_THREADS / columns), (unsigned)((packs + columns - 1) / columns)};
        if (best.tiles == 0 || threads_at_work(packs, shape) > WORTH_SPLITTING * threads_at_work(packs, best)) best = shape;
    }
}

/* Ranges of points, `share` points each (the last may have fewer); none for no points. */
static size_t count_ranges(pn_shape shape, size_t points, size_t *share) {
    const size_t rounds = (points + shape.rows - 1) / shape.rows; /* of one block doing all points */
    const size_t most = shape.tiles < MOST_BLOCKS ? MOST_BLOCKS / shape.tiles : 1;
    const size_t rounds_each = rounds > most ? (rounds + most - 1) / most : 1;
    *share = rounds_each * shape.rows;
    return (points + *share - 1) / *share;
}

size_t pn_program_count_outputs(const pn_program *program, pn_output_kind kind) {
    size_t count = 0;
    for (size_t o = 0; o < program->outputs; o++) count += program->output[o].kind == kind;
    return count;
}

size_t pn_section_words(const pn_program *program) {
    size_t words = pn_program_count_outputs(program, PN_STORE) + 2 + PN_SECTION_WORDS;
    for (size_t i = 0; i < program->inputs; i++) words += pn_program_uses_input(program, i);
    return words;
}

static bool same_stride(pn_stride a, pn_stride b) { return a.row == b.row && a.column == b.column; }

/* Whether two programs have the same text. */
static bool same_program(const pn_program *a, const pn_program *b) {
    if (a == b) return true;
    if (a->real != b->real || a->width != b->width || a->inputs != b->inputs || a->outputs != b->outputs ||
        a->instructions != b->instructions || a->immediates != b->immediates || a->registers != b->registers)
        return false;
    for (size_t i = 0; i < a->inputs; i++)
        if (pn_program_uses_input(a, i) != pn_program_uses_input(b, i) || !same_stride(a->input[i].stride, b->input[i].stride))
            return false;
    for (size_t o = 0; o < a->outputs; o++)
        if (a->output[o].kind != b->output[o].kind || !same_stride(a->output[o].stride, b->output[o].stride)) return false;
    return memcmp(a->immediate, b->immediate, a->immediates * sizeof *a->immediate) == 0 &&
           memcmp(a->code, b->code, a->instructions * sizeof *a->code) == 0;
}

size_t pn_kernel_groups(const pn_program *const *program, size_t count, size_t *group) {
    size_t groups = 0;
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (!same_program(program[first], program[i])) first++;
        group[i] = first == i ? groups++ : group[first];
    }
    return groups;
}

/* ---- the grid ------------------------------------------------------------------------------------------------------------------ */

static void place_section(pn_grid *grid, size_t i, size_t *blocks) {
    const pn_section *section = &grid->section[i];
    const pn_shape shape = pn_shape_choose(section->program->width / pn_pack_choose(section->program));
    size_t share;
    grid->rows[i] = count_ranges(shape, section->points, &share);
    *blocks += grid->rows[i] * shape.tiles;
    grid->place[i] = grid->words;
    grid->words += pn_section_words(section->program);
    uint64_t *sizes = grid->word + grid->words - PN_SECTION_WORDS;
    sizes[0] = section->points;
    sizes[1] = share;
    sizes[2] = *blocks;
}

static pinn_status place_sections(pn_grid *grid) {
    const pn_program **program = pn_allocate(grid->count, sizeof *program);
    size_t *group = pn_allocate(grid->count, sizeof *group);
    size_t blocks = 0;
    pinn_status status = program && group ? PINN_OK : PN_NO_MEMORY("a kernel");
    if (status == PINN_OK) {
        for (size_t i = 0; i < grid->count; i++) program[i] = grid->section[i].program;
        const size_t groups = pn_kernel_groups(program, grid->count, group);
        for (size_t g = 0; g < groups; g++)
            for (size_t i = 0; i < grid->count; i++)
                if (group[i] == g) place_section(grid, i, &blocks);
        grid->blocks = (unsigned)blocks;
        if (blocks > INT32_MAX) status = pn_fail(PINN_UNSUPPORTED, "a kernel of %zu thread blocks is more than CUDA launches", blocks);
    }
    pn_free(program);
    pn_free(group);
    return status;
}

pinn_status pn_grid_create(const pn_section *section, size_t count, pn_grid *out) {
    pinn_status status;
    pn_grid grid = {.count = count};
    size_t words = 0;
    for (size_t i = 0; i < count; i++) words += pn_section_words(section[i].program);
    if (words > PN_KERNEL_WORDS)
        return pn_fail(PINN_UNSUPPORTED, "a kernel of %zu sections has %zu addresses and sizes, CUDA takes %d: use several kernels", count,
                       words, PN_KERNEL_WORDS);
    grid.section = pn_allocate(count, sizeof *grid.section);
    grid.place = pn_allocate(count, sizeof *grid.place);
    grid.rows = pn_allocate(count, sizeof *grid.rows);
    grid.word = pn_allocate(words, sizeof *grid.word);
    if (!grid.section || !grid.place || !grid.rows || !grid.word) {
        status = PN_NO_MEMORY("a kernel");
        goto fail;
    }
    if (count > 0) memcpy(grid.section, section, count * sizeof *section);
    PN_TRY(place_sections(&grid));
    *out = grid;
    return PINN_OK;
fail:
    pn_grid_free(&grid);
    return status;
}

void pn_grid_free(pn_grid *grid) {
    pn_free(grid->section);
    pn_free(grid->place);
    pn_free(grid->rows);
    pn_free(grid->word);
    *grid = (pn_grid){0};
}

static bool is_aligned(const void *address, size_t pack, pn_stride stride, size_t bytes) {
    return !pn_pack_fits(pack, stride) || (uintptr_t)address % (pack * bytes) == 0;
}

pinn_status pn_grid_check(const pn_grid *grid, const void *const *in, void *const *out) {
    for (size_t s = 0; s < grid->count; s++) {
        const pn_program *program = grid->section[s].program;
        const size_t pack = pn_pack_choose(program), bytes = pn_real_bytes(program->real);
        for (size_t i = 0; i < program->inputs; i++, in++)
            if (pn_program_uses_input(program, i) && !is_aligned(*in, pack, program->input[i].stride, bytes))
                return pn_fail(PINN_BAD_ARGUMENT, "section %zu of a kernel: input %zu must be aligned to %zu bytes", s, i, pack * bytes);
        for (size_t o = 0; o < program->outputs; o++, out++)
            if (program->output[o].kind == PN_STORE && !is_aligned(*out, pack, program->output[o].stride, bytes))
                return pn_fail(PINN_BAD_ARGUMENT, "section %zu of a kernel: output %zu must be aligned to %zu bytes", s, o, pack * bytes);
    }
    return PINN_OK;
}

static uint64_t address(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

void pn_grid_fill(const pn_grid *grid, const void *const *in, void *const *out, void *const *partial_real, double *const *partial_f64,
                  uint64_t *word) {
    memcpy(word, grid->word, grid->words * sizeof *word);
    for (size_t s = 0; s < grid->count; s++) {
        const pn_program *program = grid->section[s].program;
        uint64_t *next = word + grid->place[s];
        for (size_t i = 0; i < program->inputs; i++, in++)
            if (pn_program_uses_input(program, i)) *next++ = address(*in);
        for (size_t o = 0; o < program->outputs; o++, out++)
            if (program->output[o].kind == PN_STORE) *next++ = address(*out);
        *next++ = pn_program_count_outputs(program, PN_SUM_POINTS) > 0 ? address(partial_real[s]) : 0;
        *next++ = pn_program_count_outputs(program, PN_SUM_POINTS_F64) > 0 ? address(partial_f64[s]) : 0;
    }
}
