/* The network pass described once, for all lowerings: which programs run on which rows, and where their operands lie.
 *
 * Stacked jets. Sets with equal layouts form a group of `points` points with C channels; in the stacked matrix of every layer
 * channel c of the group's point p is row `row + c*points + p`. Each layer has one buffer [rows, out], row-major: going forward it
 * holds the layer's output, going back the loss's derivative by it, in the same place. That works because
 *   the weight gradient A^T dZ is taken before dA = dZ W^T overwrites A, and
 *   a backward pointwise program reads Z and dA of its lane before it writes dZ over Z.
 *
 * Operand order of the programs (k runs over a layer's vector parameters, C channels, blocks column blocks, F fields):
 *   forward    in: coordinates [d] or Z [C], vectors [k]                  out: A [blocks][C]
 *   backward   in: as forward, dA [blocks][C]                             out: dZ [C] unless first, sums of trained vectors' derivatives
 *   residual   in: coordinates [d], normals [d] if any, raw fields [C][F], output bias [F], scale [residuals]
 *              out: sums of r^2 [residuals], d loss/d raw [C][F], sums of d loss/d bias [F]
 *   evaluation in: coordinates, normals, raw fields, output bias          out: fields [F], or residuals [residuals]
 */
#ifndef PN_NETWORK_DESCRIPTION_H
#define PN_NETWORK_DESCRIPTION_H

#include "network/pass.h"
#include "pointwise/program.h"

typedef enum pn_base { /* the memory an operand lies in */
    PN_BASE_PARAMETERS, /* [network->parameters] */
    PN_BASE_FIXED,      /* [network->fixed_count] */
    PN_BASE_POINTS,     /* the caller's */
    PN_BASE_SCALE,      /* [terms] */
    PN_BASE_WORK,       /* the layers' buffers */
    PN_BASE_GRADIENT,   /* partial sums */
    PN_BASE_LOSS,       /* partial sums, float64 whatever the precision */
    PN_BASE_FIELDS,     /* evaluation: [set][fields or residuals][points] */
    PN_BASES
} pn_base;

typedef struct pn_operand {
    pn_base base;
    size_t offset; /* elements */
} pn_operand;

typedef struct pn_group { /* sets with equal layouts */
    const pn_layout *layout; /* borrowed, read only while the pass is made */
    pn_layout carried;       /* the same per network->unit; likewise */
    size_t channels, points;
    size_t row;              /* its first row in the stacked matrix */
    pn_program **forward;    /* [layers]; NULL where the layer is LINEAR */
    pn_program **backward;   /* [layers]; NULL also where nothing below is trained */
} pn_group;

typedef struct pn_member { /* one point set */
    size_t group, points;
    size_t first;         /* its first point within the group */
    size_t point_columns, point_offset;
    size_t residuals, first_term;
    size_t field_offset;  /* evaluation: elements into the fields plane */
    pn_program *residual; /* or the one that stores fields or residuals */
} pn_member;

/* A run of points and where it lies: a whole set or group, or one tile. */
typedef struct pn_span {
    size_t points;
    size_t row, pitch;         /* channel c of point p: row `row + c*pitch + p` of the buffers */
    size_t point, point_pitch; /* column k of point p: element point + k*point_pitch + p of the points */
    size_t field, field_pitch; /* field f of point p: element field + f*field_pitch + p of the fields */
} pn_span;

typedef struct pn_lowering_form {
    const char *name;
    pinn_status (*create)(pn_pass *pass); /* places buffers and partials, makes pass->lowered */
    void (*destroy)(pn_pass *pass);
    pinn_status (*record)(pn_pass *pass, pinn_graph *graph);
    pinn_status (*finish)(pn_pass *pass); /* waits for kernels and loads them; any number of times. NULL: there are none */
    /* Begins to compile the kernels that a GPU of the architecture would run, and tells their tiles. Errors as of create. NULL: there are none, or
     * create does it */
    pinn_status (*check)(pn_pass *pass, const char *architecture, pn_compilation **out);
} pn_lowering_form;

extern const pn_lowering_form pn_tiled_form, pn_layered_form, pn_tile_form, pn_stream_form; /* CPU; both; GPU; GPU */

struct pn_pass {
    pinn_context *context;       /* borrowed */
    const pn_network *network;   /* borrowed */
    pn_real real;
    bool tf32, evaluate, store_residuals;
    const char *compile_for; /* borrowed during creation */
    const char *tiles;       /* likewise */
    bool products_fma;       /* tiled on a GPU: no tensor cores, slowly */
    pn_compilation *check; /* of compile_for: the kernels a GPU would run, compiled and thrown away; */
    const pn_lowering_form *checked; /* and their lowering. NULL: none are asked for */
    char note[320];          /* why AUTO fell back to layered */
    char chosen[PN_TILE_CHOICE_BYTES]; /* the tiles in use, as text; "" for lowerings that have none */
    size_t terms;
    size_t rows;                 /* of the stacked matrix */
    pn_group *group; size_t groups;
    pn_member *member; size_t members;
    size_t trained_from;         /* first layer with trained parameters: nothing before it is differentiated */
    size_t *buffer;              /* [layers]: where each layer's buffer starts in PN_BASE_WORK, elements */
    pinn_plane *plane[PN_BASES]; /* parameters, points, scale borrowed; the others owned; NULL where unused */
    pn_partial *gradient; size_t gradients;
    pn_partial *loss; size_t losses;
    const pn_lowering_form *form;
    void *lowered;               /* the lowering's own */
    pn_pass_cost cost;
};

/* Compiles the programs of one group (layers) and one set. The set's residual goes through `ir` and `scope`. */
pinn_status pn_describe_group(const pn_pass *pass, pn_group *group);
pinn_status pn_describe_member(const pn_pass_spec *spec, const pn_pass *pass, const pn_pass_set *set, pn_member *member);

/* A network whose hidden layers are alike, as the generated passes want it: POINTWISE over coordinates, then LINEAR and POINTWISE of one width,
 * then LINEAR to the fields. */
typedef struct pn_uniform {
    size_t hidden;                    /* layers with a product of one width */
    size_t first, first_lanes, width; /* columns of the first stage, of one of its blocks, of the hidden stages */
    size_t first_vectors, vectors;    /* vector parameters of the first and of each hidden stage */
    size_t sum_vectors;               /* summed by vector: trained ones and the output weights */
    bool first_trained;
} pn_uniform;
/* Errors: UNSUPPORTED, with the reason; `lowering`: its name in the message. */
pinn_status pn_describe_uniform(const pn_pass *pass, const char *lowering, pn_uniform *out);

typedef struct pn_device_limits {
    size_t shared_bytes; /* of shared memory a block may have */
    unsigned processors; /* multiprocessors */
    size_t memory;       /* of the device, bytes; 0: not known */
} pn_device_limits;
/* Of a usual GPU of the architecture, for checks that have no device; of an unknown one those of the smallest. */
pn_device_limits pn_limits_of(const char *architecture); /* see also pn_limits_known in pass.h */

/* Point sets as tiles run through them: most channels first, the sets of a group together. order: [pass->members]. */
void pn_describe_order(const pn_pass *pass, size_t *order);
size_t pn_most_channels(const pn_pass *pass);

/* A hidden layer's programs for a lowering that keeps its input for the way back. Where outputs and adjoint need the value z of the input
 * in one elementary function only, that is kept in its place (tanh(z): its derivatives are polynomials in it), so that it is computed once.
 *   remember   in: Z [C], vectors      out: A [C], kept value
 *   recall     in: kept value, Z [1..C), vectors       out: A [C]
 *   adjoint    in: as recall, dA [C]                   out: dZ [C], sums of the vectors' derivatives */
typedef struct pn_kept {
    pn_program *remember, *recall, *adjoint; /* owned */
} pn_kept;
pinn_status pn_describe_kept(const pn_pass *pass, const pn_group *group, size_t layer, pn_kept *out);
void pn_kept_free(pn_kept *kept);

/* Fills the operands of a program over a span, in the order above; sums point at the parameter's (term's) own place. */
void pn_bind_forward(const pn_pass *pass, const pn_group *group, size_t layer, const pn_span *span, pn_operand *in, pn_operand *out);
void pn_bind_backward(const pn_pass *pass, const pn_group *group, size_t layer, const pn_span *span, pn_operand *in, pn_operand *out);
void pn_bind_residual(const pn_pass *pass, const pn_member *member, const pn_span *span, pn_operand *in, pn_operand *out);

static inline size_t pn_base_bytes(const pn_pass *pass, pn_base base) {
    return base == PN_BASE_LOSS ? sizeof(double) : pn_real_bytes(pass->real);
}

static inline void *pn_operand_address(const pn_pass *pass, void *const *base, pn_operand operand) {
    return base[operand.base] ? (char *)base[operand.base] + operand.offset * pn_base_bytes(pass, operand.base) : NULL;
}

/* Adds to the pass's lists of partials. */
pinn_status pn_pass_add_gradient(pn_pass *pass, pn_partial partial);
pinn_status pn_pass_add_loss(pn_pass *pass, pn_partial partial);
/* A device plane of the pass; when memory is short the message says how much the pass needs. */
pinn_status pn_pass_allocate(pn_pass *pass, pn_base base, const char *name, size_t elements);
/* Planes of the bases in `mask` (bit b = base b) that the pass has, in the order of pn_base; `list` has room for PN_BASES. */
pinn_planes pn_pass_planes(const pn_pass *pass, unsigned mask, pinn_plane **list);
/* The reverse, when a node runs: addresses in that order into base[]. */
void pn_pass_addresses(const pn_pass *pass, unsigned mask, void *const *address, void **base);

#endif
