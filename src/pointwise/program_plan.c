/* Plans the interpreter's memory: how many lanes a block has, how every operand reaches its slot, where each thing lies in the scratch.
 *
 * A block is chosen so that everything an instruction sequence touches stays in the first-level cache: registers, operands, sums. The
 * plan does not depend on the instruction set or on the number of points, so neither do the order of sums nor the scratch size. */
#include "pointwise/program_code.h"

#define CACHE_BYTES 40960 /* of a first-level cache of 32 or 48 KiB: the rest is for what the caller and the prefetcher bring in */
#define MOST_LANES 4096
#define LEAST_GROUPS 4 /* below that the cost of starting an instruction shows */

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static size_t common_divisor(size_t a, size_t b) {
    while (b > 0) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static size_t operand_bytes(const pn_program *p, const pn_operand *operand) {
    return operand->kind == PN_SUM_POINTS_F64 ? sizeof(double) : pn_real_bytes(p->real);
}

/* Lanes whose registers and operands fill the cache, a multiple of the group. */
static size_t cached_lanes(const pn_program *p, size_t group) {
    size_t bytes = p->registers * pn_real_bytes(p->real);
    for (size_t i = 0; i < p->inputs; i++)
        if (p->input[i].access != PN_ACCESS_UNUSED && (p->input[i].stride.row > 0 || p->input[i].stride.column > 0))
            bytes += pn_real_bytes(p->real);
    for (size_t o = 0; o < p->outputs; o++) bytes += operand_bytes(p, &p->output[o]);
    size_t lanes = bytes > 0 ? CACHE_BYTES / bytes : MOST_LANES;
    if (lanes > MOST_LANES) lanes = MOST_LANES;
    if (lanes < LEAST_GROUPS * group) lanes = LEAST_GROUPS * group;
    return lanes / group * group;
}

static void choose_block(pn_program *p, size_t group) {
    const size_t lanes = cached_lanes(p, group);
    const size_t unit = group / common_divisor(group, p->width); /* so many rows are whole groups */
    p->rows = lanes / p->width;
    if (unit * p->width <= 2 * lanes) p->rows = p->rows < unit ? unit : p->rows / unit * unit;
    p->chunk = p->width;
    if (p->rows > 1) return;
    p->rows = 1;
    const size_t chunks = (p->width + lanes - 1) / lanes;
    p->chunk = round_up((p->width + chunks - 1) / chunks, group);
    if (p->chunk > p->width) p->chunk = p->width;
}

static pn_access choose_access(const pn_program *p, pn_stride stride) {
    const bool wide = p->width > 1;
    if (stride.row == 0 && (stride.column == 0 || !wide)) return PN_ACCESS_SCALAR;
    if (p->rows == 1) return stride.column == 1 ? PN_ACCESS_DIRECT : stride.column == 0 ? PN_ACCESS_POINT : PN_ACCESS_STRIDED;
    if (wide ? stride.column == 1 && stride.row == p->width : stride.row == 1) return PN_ACCESS_DIRECT;
    if (stride.row == 0) return PN_ACCESS_PATTERN;
    return stride.column == 0 && wide ? PN_ACCESS_POINT : PN_ACCESS_STRIDED;
}

/* Whether an input of the same strides is read after the output has been written: then the two must not share memory. */
static bool may_clobber(const pn_program *p, const pn_operand *output) {
    for (size_t i = 0; i < p->inputs; i++) {
        const pn_operand *input = &p->input[i];
        if (input->access == PN_ACCESS_DIRECT && input->when > output->when && input->stride.row == output->stride.row &&
            input->stride.column == output->stride.column)
            return true;
    }
    return false;
}

static size_t take(size_t *end, size_t bytes) {
    const size_t at = *end;
    *end = round_up(at + bytes, PN_LANE_GROUP);
    return at;
}

static void place_operands(pn_program *p, size_t lane_bytes, size_t lanes, size_t *end) {
    for (size_t i = 0; i < p->inputs; i++) {
        pn_operand *input = &p->input[i];
        if (input->access == PN_ACCESS_UNUSED) continue;
        const bool single = input->access == PN_ACCESS_SCALAR || (input->access == PN_ACCESS_POINT && p->rows == 1);
        p->step[pn_slot_input(p) + i] = single ? 0 : 1;
        if (input->access != PN_ACCESS_DIRECT) input->offset = take(end, single ? PN_LANE_GROUP : lane_bytes);
    }
    for (size_t o = 0; o < p->outputs; o++) {
        pn_operand *output = &p->output[o];
        p->step[pn_slot_output(p) + o] = 1;
        if (output->access == PN_ACCESS_SUM)
            output->offset = take(end, (p->rows > 1 ? lanes : round_up(p->width, PN_LANE_GROUP)) * operand_bytes(p, output));
        else if (output->access == PN_ACCESS_STRIDED || may_clobber(p, output))
            output->offset = take(end, lane_bytes);
    }
}

void pn_program_plan(pn_program *p) {
    const size_t size = pn_real_bytes(p->real), group = PN_LANE_GROUP / size;
    size_t end = 0;
    choose_block(p, group);
    for (size_t i = 0; i < p->inputs; i++)
        if (p->input[i].access != PN_ACCESS_UNUSED) p->input[i].access = choose_access(p, p->input[i].stride);
    for (size_t o = 0; o < p->outputs; o++) {
        pn_operand *output = &p->output[o];
        output->access = choose_access(p, output->stride) == PN_ACCESS_DIRECT ? PN_ACCESS_DIRECT : PN_ACCESS_STRIDED;
        if (output->kind != PN_STORE) output->access = PN_ACCESS_SUM;
    }
    const size_t lanes = round_up(p->rows * p->chunk, group);
    /* One group more than needed: arrays of a power of two bytes would compete for the same sets of the cache. */
    const size_t lane_bytes = (lanes + group) * size;
    take(&end, (2 * pn_program_slots(p) + p->outputs) * sizeof(void *));
    p->register_offset = take(&end, p->registers * lane_bytes);
    p->register_bytes = lane_bytes;
    p->immediate_offset = take(&end, p->immediates * PN_LANE_GROUP);
    p->tail_offset = take(&end, (p->inputs + p->outputs) * PN_TAIL_BYTES);
    place_operands(p, lane_bytes, lanes, &end);
    for (size_t r = 0; r < p->registers; r++) p->step[pn_slot_register(p) + r] = 1;
    p->scratch = end;
}
