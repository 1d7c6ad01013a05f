/* Programs: bytecode from the ordered operations (program_graph.c), and the questions a caller may ask about one.
 *
 * Registers are given away at a value's last use and reused last-in first-out, so the few in use stay in the first-level cache. An
 * operation may write over its own operand: lane functions are elementwise. */
#include "pointwise/program.h"

#include "core/memory.h"
#include "pointwise/program_code.h"

typedef struct assembly {
    pn_program *program;
    pn_vertices graph;
    uint32_t *order;     /* [count] operations */
    size_t operations;
    uint32_t *slot;      /* [count] of every vertex that has a value; a register's number until the registers are numbered */
    uint32_t *remaining; /* [count] uses to come */
    uint32_t *spare;     /* [spares] free registers */
    size_t spares;
} assembly;

static bool is_special(uint32_t op) {
    return (op >= PN_OP_EXP && op <= PN_OP_SOFTPLUS) || op == PN_OP_POW || op == PN_OP_ATAN2;
}

static uint32_t take_register(assembly *a) {
    if (a->spares > 0) return a->spare[--a->spares];
    return (uint32_t)(pn_slot_register(a->program) + a->program->registers++);
}

static void emit(assembly *a, uint32_t op, uint32_t d, const uint32_t operand[3], uint32_t arity) {
    pn_program *p = a->program;
    pn_instruction *i = &p->code[p->instructions];
    *i = (pn_instruction){.op = op, .d = d, .a = operand[0]};
    if (arity > 1) i->b = operand[1];
    if (arity > 2) i->c = operand[2];
    for (uint32_t k = 0; k < arity; k++)
        if (operand[k] >= pn_slot_input(p) && operand[k] < pn_slot_output(p))
            p->input[operand[k] - pn_slot_input(p)].when = p->instructions;
    if (d >= pn_slot_output(p) && d < pn_slot_register(p)) p->output[d - pn_slot_output(p)].when = p->instructions;
    if (is_special(op))
        p->special++;
    else if (op != PN_LANE_COPY)
        p->arithmetic += op == PN_LANE_FMA || op == PN_LANE_FMS || op == PN_LANE_FNMA ? 2 : 1;
    p->instructions++;
}

/* The output in whose slot a vertex's value is computed: the first that stores it. */
static size_t home_output(const assembly *a, uint32_t vertex) {
    size_t o = 0;
    while (a->graph.root[o] != vertex || a->program->output[o].kind != PN_STORE) o++;
    return o;
}

/* All outputs that are this vertex, but the one whose slot it lives in. */
static void emit_outputs(assembly *a, uint32_t vertex) {
    static const uint32_t op[] = {[PN_STORE] = PN_LANE_COPY, [PN_SUM_POINTS] = PN_LANE_SUM, [PN_SUM_POINTS_F64] = PN_LANE_SUM_F64};
    pn_program *p = a->program;
    for (size_t o = 0; o < p->outputs; o++) {
        const uint32_t d = (uint32_t)(pn_slot_output(p) + o);
        if (a->graph.root[o] == vertex && d != a->slot[vertex]) emit(a, op[p->output[o].kind], d, &a->slot[vertex], 1);
    }
}

static void emit_operation(assembly *a, uint32_t vertex) {
    const pn_vertex *v = &a->graph.vertex[vertex];
    uint32_t operand[3] = {0};
    for (uint32_t k = 0; k < v->arity; k++) operand[k] = a->slot[v->operand[k]];
    for (uint32_t k = 0; k < v->arity; k++) {
        const pn_vertex *x = &a->graph.vertex[v->operand[k]];
        if (--a->remaining[v->operand[k]] == 0 && x->arity > 0 && !x->stored) a->spare[a->spares++] = operand[k];
    }
    a->slot[vertex] = v->stored ? (uint32_t)(pn_slot_output(a->program) + home_output(a, vertex)) : take_register(a);
    emit(a, v->op, a->slot[vertex], operand, v->arity);
    if (v->outputs > 0) emit_outputs(a, vertex);
    if (v->uses == 0 && !v->stored) a->spare[a->spares++] = a->slot[vertex];
}

/* Slots of constants and inputs. */
static void place_leaves(assembly *a) {
    pn_program *p = a->program;
    for (size_t i = 0; i < a->graph.count; i++) {
        const pn_vertex *v = &a->graph.vertex[i];
        if (v->op != PN_OP_CONST) continue;
        a->slot[i] = (uint32_t)p->immediates;
        p->immediate[p->immediates++] = p->real == PN_FLOAT32 ? (double)(float)v->constant : v->constant;
    }
    for (size_t i = 0; i < a->graph.count; i++) {
        const pn_vertex *v = &a->graph.vertex[i];
        if (v->op == PN_OP_INPUT) a->slot[i] = (uint32_t)(pn_slot_input(p) + v->input);
        a->remaining[i] = v->uses;
    }
}

static pinn_status assemble(pn_program *p, const pn_program_spec *spec) {
    pinn_status status;
    assembly a = {.program = p};
    PN_TRY(pn_vertices_create(spec, &a.graph));
    const size_t n = a.graph.count;
    a.order = pn_allocate(n, sizeof *a.order);
    a.slot = pn_allocate(n, sizeof *a.slot);
    a.remaining = pn_allocate(n, sizeof *a.remaining);
    a.spare = pn_allocate(n, sizeof *a.spare);
    p->immediate = pn_allocate(n, sizeof *p->immediate);
    p->code = pn_allocate(n + spec->outputs, sizeof *p->code);
    if (!a.order || !a.slot || !a.remaining || !a.spare || !p->immediate || !p->code) {
        status = PN_NO_MEMORY("a pointwise program");
        goto fail;
    }
    PN_TRY(pn_vertices_schedule(&a.graph, spec->outputs, a.order, &a.operations));
    place_leaves(&a);
    for (size_t i = 0; i < a.operations; i++) emit_operation(&a, a.order[i]);
    for (size_t i = 0; i < n; i++)
        if (a.graph.vertex[i].arity == 0 && a.graph.vertex[i].outputs > 0) emit_outputs(&a, (uint32_t)i);
    for (size_t i = 0; i < n; i++)
        if (a.graph.vertex[i].op == PN_OP_INPUT) p->input[a.graph.vertex[i].input].access = PN_ACCESS_SCALAR; /* used; planned later */
fail:
    pn_vertices_free(&a.graph);
    pn_free(a.order);
    pn_free(a.slot);
    pn_free(a.remaining);
    pn_free(a.spare);
    return status;
}

pinn_status pn_program_create(const pn_program_spec *spec, pn_program **out) {
    pinn_status status;
    if (spec->width == 0) return pn_fail(PINN_BAD_ARGUMENT, "program: width must be at least 1");
    pn_program *p = pn_allocate(1, sizeof *p);
    if (!p) return PN_NO_MEMORY("a pointwise program");
    p->real = spec->real;
    p->width = spec->width;
    p->inputs = spec->inputs;
    p->outputs = spec->outputs;
    p->input = pn_allocate(spec->inputs, sizeof *p->input);
    p->output = pn_allocate(spec->outputs, sizeof *p->output);
    if (!p->input || !p->output) {
        status = PN_NO_MEMORY("a pointwise program");
        goto fail;
    }
    for (size_t i = 0; i < spec->inputs; i++) p->input[i].stride = spec->input_stride[i];
    for (size_t o = 0; o < spec->outputs; o++) {
        p->output[o].stride = spec->output_stride[o];
        p->output[o].kind = spec->kind[o];
    }
    PN_TRY(assemble(p, spec));
    p->step = pn_allocate(pn_program_slots(p), sizeof *p->step);
    if (!p->step) {
        status = PN_NO_MEMORY("a pointwise program");
        goto fail;
    }
    p->lanes = pn_lanes_select();
    pn_program_plan(p);
    PN_TRY(pn_native_create(p));
    *out = p;
    return PINN_OK;
fail:
    pn_program_destroy(p);
    return status;
}

void pn_program_destroy(pn_program *program) {
    if (!program) return;
    pn_free(program->input);
    pn_free(program->output);
    pn_free(program->code);
    pn_free(program->immediate);
    pn_free(program->step);
    pn_native_destroy(program);
    pn_free(program);
}

size_t pn_program_inputs(const pn_program *program) { return program->inputs; }
size_t pn_program_outputs(const pn_program *program) { return program->outputs; }
size_t pn_program_width(const pn_program *program) { return program->width; }
pn_real pn_program_real(const pn_program *program) { return program->real; }
bool pn_program_uses_input(const pn_program *program, size_t input) { return program->input[input].access != PN_ACCESS_UNUSED; }
size_t pn_program_scratch(const pn_program *program) { return program->scratch; }
const char *pn_program_isa(void) { return pn_lanes_select()->isa; }

void pn_program_count(const pn_program *program, size_t *arithmetic, size_t *special) {
    *arithmetic = program->arithmetic;
    *special = program->special;
}
