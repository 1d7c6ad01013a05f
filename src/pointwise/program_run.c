/* The interpreter: runs a program's bytecode over blocks of lanes.
 *
 * Every stage, a lane function or a run of instructions in machine code (native.h), runs over all lanes of a block before the next one
 * starts, so its cost of dispatch is shared by hundreds of lanes.
 * Lanes are handled by whole vectors only. What remains at a block's end is copied into padded scratch and runs through the same vector
 * functions, so a lane's bits never depend on where it lies, and nothing outside the operands is touched.
 *
 * Sums: lane k of every block adds into accumulator k, in block order; at the end row r = 0, 1, ... of the accumulators is added up. */
#include <string.h>

#include "pointwise/program_code.h"

typedef struct block {
    const pn_program *p;
    const void *const *in;
    void *const *out;
    char *scratch;
    void **slot;   /* [slots] addresses for the whole vectors */
    void **tail;   /* [slots] addresses for the rest of the block */
    void **staged; /* [outputs] where a stored output is computed if not in place; NULL = in place */
    size_t row, rows, column, columns;
} block;

/* ---- moving lanes ----------------------------------------------------------------------------------------------------------- */

#define DEFINE_MOVES(real, suffix)                                                                                            \
    static void gather_##suffix(real *to, const real *from, pn_stride stride, size_t rows, size_t columns) {                  \
        for (size_t r = 0; r < rows; r++, to += columns, from += stride.row) {                                                \
            if (stride.column == 1)                                                                                           \
                memcpy(to, from, columns * sizeof *to);                                                                       \
            else if (stride.column == 0)                                                                                      \
                for (size_t j = 0; j < columns; j++) to[j] = *from;                                                           \
            else                                                                                                              \
                for (size_t j = 0; j < columns; j++) to[j] = from[j * stride.column];                                         \
        }                                                                                                                     \
    }                                                                                                                         \
    static void scatter_##suffix(real *to, const real *from, pn_stride stride, size_t rows, size_t columns) {                 \
        for (size_t r = 0; r < rows; r++, to += stride.row, from += columns) {                                                \
            if (stride.column == 1)                                                                                           \
                memcpy(to, from, columns * sizeof *to);                                                                       \
            else                                                                                                              \
                for (size_t j = 0; j < columns; j++) to[j * stride.column] = from[j];                                         \
        }                                                                                                                     \
    }                                                                                                                         \
    static void fold_##suffix(real *to, size_t stride, real *sum, size_t rows, size_t columns) {                              \
        for (size_t r = 1; r < rows; r++)                                                                                     \
            for (size_t j = 0; j < columns; j++) sum[j] += sum[r * columns + j];                                              \
        for (size_t j = 0; j < columns; j++) to[j * stride] += sum[j];                                                        \
    }                                                                                                                         \
    static void add_##suffix(real *to, const real *from, size_t count) {                                                      \
        for (size_t j = 0; j < count; j++) to[j] += from[j];                                                                  \
    }
DEFINE_MOVES(float, f32)
DEFINE_MOVES(double, f64)

/* A single column is one long row. */
static void straighten(pn_stride *stride, size_t *rows, size_t *columns) {
    if (*columns != 1) return;
    stride->column = stride->row;
    *columns = *rows;
    *rows = 1;
}

static void gather(const pn_program *p, void *to, const void *from, pn_stride stride, size_t rows, size_t columns) {
    straighten(&stride, &rows, &columns);
    if (p->real == PN_FLOAT32)
        gather_f32(to, from, stride, rows, columns);
    else
        gather_f64(to, from, stride, rows, columns);
}

static void scatter(const pn_program *p, void *to, const void *from, pn_stride stride, size_t rows, size_t columns) {
    straighten(&stride, &rows, &columns);
    if (p->real == PN_FLOAT32)
        scatter_f32(to, from, stride, rows, columns);
    else
        scatter_f64(to, from, stride, rows, columns);
}

/* One value, repeated over a whole group. */
static void broadcast(const pn_program *p, void *to, const void *from) {
    gather(p, to, from, (pn_stride){0, 0}, 1, PN_LANE_GROUP / pn_real_bytes(p->real));
}

/* A row of the width, `rows` times. */
static void repeat(const pn_program *p, void *to, const void *from, pn_stride stride, size_t rows) {
    const size_t row = p->width * pn_real_bytes(p->real);
    gather(p, to, from, stride, 1, p->width);
    for (size_t done = 1, more; done < rows; done += more) {
        more = rows - done < done ? rows - done : done;
        memcpy((char *)to + done * row, to, more * row);
    }
}

static bool sums_f64(const pn_program *p, const pn_operand *output) {
    return output->kind == PN_SUM_POINTS_F64 || p->real == PN_FLOAT64;
}

static size_t output_bytes(const pn_program *p, const pn_operand *output) {
    return output->access == PN_ACCESS_SUM && sums_f64(p, output) ? sizeof(double) : pn_real_bytes(p->real);
}

static void *at(void *base, size_t elements, size_t size) { return (char *)base + elements * size; }
static const void *at_const(const void *base, size_t elements, size_t size) { return (const char *)base + elements * size; }

/* ---- once a run --------------------------------------------------------------------------------------------------------------- */

static bool overwrites_input(const block *b, size_t o) {
    const pn_program *p = b->p;
    for (size_t i = 0; i < p->inputs; i++)
        if (p->input[i].access == PN_ACCESS_DIRECT && p->input[i].when > p->output[o].when && b->in[i] == b->out[o]) return true;
    return false;
}

static void prepare_inputs(block *b, size_t points) {
    const pn_program *p = b->p;
    const size_t rows = points < p->rows ? points : p->rows;
    for (size_t i = 0; i < p->inputs; i++) {
        const pn_operand *input = &p->input[i];
        const size_t s = pn_slot_input(p) + i;
        b->slot[s] = b->scratch + input->offset;
        b->tail[s] = p->step[s] ? b->scratch + p->tail_offset + i * PN_TAIL_BYTES : b->slot[s];
        if (input->access == PN_ACCESS_SCALAR) broadcast(p, b->slot[s], b->in[i]);
        if (input->access == PN_ACCESS_PATTERN) repeat(p, b->slot[s], b->in[i], input->stride, rows);
    }
}

static void prepare_outputs(block *b, size_t points) {
    const pn_program *p = b->p;
    const size_t rows = points < p->rows ? points : p->rows;
    for (size_t o = 0; o < p->outputs; o++) {
        const pn_operand *output = &p->output[o];
        const size_t s = pn_slot_output(p) + o;
        b->tail[s] = b->scratch + p->tail_offset + (p->inputs + o) * PN_TAIL_BYTES;
        b->slot[s] = b->scratch + output->offset;
        const bool aside = output->access == PN_ACCESS_STRIDED || (output->access == PN_ACCESS_DIRECT && overwrites_input(b, o));
        b->staged[o] = aside ? b->slot[s] : NULL;
        if (output->access == PN_ACCESS_SUM) memset(b->slot[s], 0, rows * p->width * output_bytes(p, output));
    }
}

static void prepare(block *b, size_t points) {
    const pn_program *p = b->p;
    const size_t slots = pn_program_slots(p);
    b->slot = (void **)(void *)b->scratch;
    b->tail = b->slot + slots;
    b->staged = b->tail + slots;
    for (size_t i = 0; i < p->immediates; i++) {
        float single = (float)p->immediate[i];
        b->slot[i] = b->tail[i] = b->scratch + p->immediate_offset + i * PN_LANE_GROUP;
        broadcast(p, b->slot[i], p->real == PN_FLOAT32 ? (const void *)&single : (const void *)&p->immediate[i]);
    }
    prepare_inputs(b, points);
    prepare_outputs(b, points);
    for (size_t r = 0, s = pn_slot_register(p); r < p->registers; r++, s++)
        b->slot[s] = b->tail[s] = b->scratch + p->register_offset + r * p->register_bytes;
}

static void fold_sums(const block *b, size_t points) {
    const pn_program *p = b->p;
    const size_t rows = points < p->rows ? points : p->rows;
    for (size_t o = 0; o < p->outputs; o++) {
        const pn_operand *output = &p->output[o];
        if (output->access != PN_ACCESS_SUM) continue;
        if (sums_f64(p, output))
            fold_f64(b->out[o], output->stride.column, (double *)(void *)(b->scratch + output->offset), rows, p->width);
        else
            fold_f32(b->out[o], output->stride.column, (float *)(void *)(b->scratch + output->offset), rows, p->width);
    }
}

/* ---- once a block ------------------------------------------------------------------------------------------------------------- */

static void enter(const block *b) {
    const pn_program *p = b->p;
    const size_t size = pn_real_bytes(p->real);
    for (size_t i = 0; i < p->inputs; i++) {
        const pn_operand *input = &p->input[i];
        const size_t s = pn_slot_input(p) + i;
        if (input->access < PN_ACCESS_DIRECT || input->access == PN_ACCESS_PATTERN) continue;
        const void *from = at_const(b->in[i], b->row * input->stride.row + b->column * input->stride.column, size);
        if (input->access == PN_ACCESS_DIRECT)
            b->slot[s] = (void *)from; /* operands that are inputs are only read */
        else if (p->step[s] == 0)
            broadcast(p, b->slot[s], from);
        else if (input->access == PN_ACCESS_POINT)
            p->lanes->spread[p->real](b->slot[s], from, input->stride.row, b->rows, b->columns);
        else
            gather(p, b->slot[s], from, input->stride, b->rows, b->columns);
    }
    for (size_t o = 0; o < p->outputs; o++) {
        const pn_operand *output = &p->output[o];
        const size_t s = pn_slot_output(p) + o;
        if (output->access == PN_ACCESS_SUM)
            b->slot[s] = b->scratch + output->offset + b->column * output_bytes(p, output);
        else if (!b->staged[o])
            b->slot[s] = at(b->out[o], b->row * output->stride.row + b->column * output->stride.column, size);
    }
}

static void leave(const block *b) {
    const pn_program *p = b->p;
    for (size_t o = 0; o < p->outputs; o++) {
        const pn_stride stride = p->output[o].stride;
        if (p->output[o].access == PN_ACCESS_SUM || !b->staged[o]) continue;
        void *to = at(b->out[o], b->row * stride.row + b->column * stride.column, pn_real_bytes(p->real));
        scatter(p, to, b->staged[o], stride, b->rows, b->columns);
    }
}

static void execute(const pn_program *p, void *const *slot, size_t lanes) {
    pn_lane_function *const *function = p->lanes->function[p->real];
    for (const pn_stage *stage = p->stage; stage < p->stage + p->stages; stage++) {
        if (stage->run)
            stage->run(slot, lanes * pn_real_bytes(p->real));
        else
            for (size_t i = stage->first; i < stage->end; i++) function[p->code[i].op](&p->code[i], slot, p->step, lanes);
    }
}

/* The `rest` lanes after the first `done`, fewer than a group: padded with copies of the first of them. */
static void execute_tail(const block *b, size_t done, size_t rest) {
    const pn_program *p = b->p;
    const size_t size = pn_real_bytes(p->real), group = PN_LANE_GROUP / size;
    for (size_t i = 0, s = pn_slot_input(p); i < p->inputs; i++, s++) {
        if (p->step[s] == 0) continue;
        memcpy(b->tail[s], at(b->slot[s], done, size), rest * size);
        for (size_t k = rest; k < group; k++) memcpy(at(b->tail[s], k, size), b->tail[s], size);
    }
    for (size_t o = 0, s = pn_slot_output(p); o < p->outputs; o++, s++) memset(b->tail[s], 0, PN_TAIL_BYTES);
    execute(p, b->tail, group);
    for (size_t o = 0, s = pn_slot_output(p); o < p->outputs; o++, s++) {
        void *to = at(b->slot[s], done, output_bytes(p, &p->output[o]));
        if (p->output[o].access != PN_ACCESS_SUM)
            memcpy(to, b->tail[s], rest * size);
        else if (sums_f64(p, &p->output[o]))
            add_f64(to, b->tail[s], rest);
        else
            add_f32(to, b->tail[s], rest);
    }
}

void pn_program_run(const pn_program *program, size_t points, const void *const *in, void *const *out, void *scratch) {
    const size_t group = PN_LANE_GROUP / pn_real_bytes(program->real);
    block b = {.p = program, .in = in, .out = out, .scratch = scratch};
    if (points == 0) return;
    prepare(&b, points);
    for (b.row = 0; b.row < points; b.row += program->rows) {
        b.rows = points - b.row < program->rows ? points - b.row : program->rows;
        for (b.column = 0; b.column < program->width; b.column += program->chunk) {
            b.columns = program->width - b.column < program->chunk ? program->width - b.column : program->chunk;
            const size_t lanes = b.rows * b.columns, rest = lanes % group;
            enter(&b);
            if (lanes > rest) execute(program, b.slot, lanes - rest);
            if (rest > 0) execute_tail(&b, lanes - rest, rest);
            leave(&b);
        }
    }
    fold_sums(&b, points);
}
