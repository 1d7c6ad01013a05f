/* Inside of a compiled program: its bytecode and the plan of its memory. For program*.c and kernel*.c only.
 *
 * Operands are slots, numbered: immediates, then inputs, then outputs, then registers. The bytecode is one straight line that both the
 * interpreter and the CUDA printer follow; an operation whose value is stored writes the output's slot itself.
 *
 * A block of the interpreter is `rows` whole points of `width` columns, or, when a point is too wide for the first-level cache, `chunk`
 * columns of one point (rows = 1).
 */
#ifndef PN_POINTWISE_PROGRAM_CODE_H
#define PN_POINTWISE_PROGRAM_CODE_H

#include "pointwise/lanes.h"
#include "pointwise/native.h"
#include "pointwise/program.h"

/* How an operand reaches its slot. */
typedef enum pn_access {
    PN_ACCESS_UNUSED,  /* an input nothing depends on */
    PN_ACCESS_SCALAR,  /* one value a run (step 0) */
    PN_ACCESS_DIRECT,  /* lanes of a block lie one after another in memory: used in place */
    PN_ACCESS_PATTERN, /* one value a column: expanded to `rows` rows once a run */
    PN_ACCESS_POINT,   /* one value a point: spread over the row for each block (step 0 when rows = 1) */
    PN_ACCESS_STRIDED, /* gathered before, or scattered after each block */
    PN_ACCESS_SUM      /* an output summed over the points: lanes of a block pattern are accumulated, folded at the end */
} pn_access;

typedef struct pn_operand {
    pn_stride stride;
    pn_access access;
    pn_output_kind kind; /* of an output */
    size_t offset;       /* bytes into the scratch: the lanes of an operand not used in place */
    size_t when;         /* input: last instruction that reads it; output: the instruction that writes it */
} pn_operand;

struct pn_program {
    pn_real real;
    size_t width;
    size_t inputs, outputs;
    pn_operand *input, *output; /* [inputs], [outputs] */
    pn_instruction *code;       /* [instructions] */
    size_t instructions, registers, immediates;
    double *immediate;          /* [immediates] values, already rounded to `real` */
    uint32_t *step;             /* [slots] */
    size_t arithmetic, special;

    const pn_lanes *lanes;
    size_t rows, chunk;         /* of a block */
    size_t register_bytes;      /* from one register to the next */
    size_t register_offset, immediate_offset, tail_offset; /* bytes into the scratch; the slot tables lie at 0 */
    size_t scratch;             /* bytes */
    pn_stage *stage; size_t stages;        /* what the interpreter goes through */
    unsigned char *native; size_t native_bytes; /* mapped machine code, or NULL */
};

#define PN_TAIL_BYTES (2 * PN_LANE_GROUP) /* one group of lanes of any operand, float64 sums of a float32 program too */

static inline size_t pn_slot_input(const pn_program *p) { return p->immediates; }
static inline size_t pn_slot_output(const pn_program *p) { return p->immediates + p->inputs; }
static inline size_t pn_slot_register(const pn_program *p) { return p->immediates + p->inputs + p->outputs; }
static inline size_t pn_program_slots(const pn_program *p) { return pn_slot_register(p) + p->registers; }

/* The compiler's view of the DAG (program_graph.c): what the outputs need, in the IR's order, multiply-adds fused. */
typedef struct pn_vertex {
    uint32_t op;         /* pn_op, or FMA, FMS, FNMA */
    uint32_t arity;      /* 0: constant or input */
    uint32_t operand[3]; /* vertices, always before this one */
    uint32_t uses;       /* how often other vertices name this one as an operand */
    uint32_t outputs;    /* how many outputs are this one */
    bool stored;         /* one of them is PN_STORE: the value lives in that output's slot, else in a register */
    bool fused;          /* a product that became part of a multiply-add: not computed */
    uint32_t input;      /* of INPUT: the operand's number */
    double constant;     /* of CONST */
} pn_vertex;

typedef struct pn_vertices {
    pn_vertex *vertex; /* owned, [count] */
    size_t count;
    uint32_t *root;    /* owned, [outputs of the spec] */
} pn_vertices;

pinn_status pn_vertices_create(const pn_program_spec *spec, pn_vertices *out);
void pn_vertices_free(pn_vertices *graph);
/* An order of the operations that keeps few values in registers: `order`, room for graph->count, receives `count` vertices. */
pinn_status pn_vertices_schedule(const pn_vertices *graph, size_t roots, uint32_t *order, size_t *count);

/* Chooses the block, the access of every operand and the layout of the scratch. */
void pn_program_plan(pn_program *program);

#endif
