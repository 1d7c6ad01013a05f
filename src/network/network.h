/* A network: a list of layers over one flat parameter vector. Models (models/NAME.c) build the list. */
#ifndef PN_NETWORK_NETWORK_H
#define PN_NETWORK_NETWORK_H

#include "core/real.h"
#include "pointwise/jet.h"

typedef enum pn_layer_kind {
    PN_LAYER_LINEAR,   /* Z = A W: one GEMM over all rows of all channels; W [in, out] row-major at `parameter[0]` */
    PN_LAYER_POINTWISE /* out columns from in columns by a program of the IR, jets by the chain rule */
} pn_layer_kind;

/* A pointwise layer's parameters are vectors with one entry a lane (a bias, a row of the first weight matrix). */
typedef struct pn_vector_parameter {
    size_t offset; /* into the flat vector, elements; into `fixed` when not trained */
    bool trained;  /* false: fixed (Fourier matrix); kept in `fixed`, not in the parameter vector */
} pn_vector_parameter;

typedef struct pn_layer pn_layer;

/* Builds the channels of the layer's `outputs` column blocks at column j. `input[c]` for a layer after a LINEAR: the channels of its
 * column j, without bias; for the first layer: the coordinates x_0..x_{d-1} in their own units. `parameter[k]`: nodes of the vector
 * parameters' entry j. out[b*layout->count + c]: channel c of output column b*in + j. Channels are per network->unit of a coordinate. */
typedef pinn_status pn_layer_build(const pn_layer *layer, pn_ir *ir, const pn_layout *layout, const pn_value *input,
                                   const pn_value *parameter, pn_value *out);

/* Layers alternate: POINTWISE over coordinates, LINEAR, POINTWISE, LINEAR, ..., the last LINEAR. */
struct pn_layer {
    pn_layer_kind kind;
    size_t in, out;   /* columns; POINTWISE: `in` lanes j (also for the first layer), out = blocks * in */
    size_t blocks;    /* POINTWISE: output column blocks (Fourier: cos and sin = 2) */
    bool coordinates; /* POINTWISE: the first layer, reads coordinates */
    size_t parameters;
    pn_vector_parameter *parameter; /* owned; LINEAR: one entry, the matrix */
    pn_layer_build *build;          /* POINTWISE */
    const void *user;               /* for build; borrowed from the network */
};

typedef enum pn_initial {
    PN_INIT_ZERO,
    PN_INIT_GLOROT_UNIFORM /* Glorot & Bengio 2010: U(-r, r), r = sqrt(6/(rows+columns)) */
} pn_initial;

typedef struct pn_parameter { /* one named block of the parameter vector, as it appears in a checkpoint */
    char *name;       /* "layer1/weight" */
    size_t offset, rows, columns; /* columns = 0: a vector of `rows` */
    pn_initial init;
} pn_parameter;

typedef struct pn_network {
    size_t coordinates, fields;
    pn_layer *layer; size_t layers; /* the last is LINEAR to `fields` columns; its bias is added where fields are read */
    size_t output_bias;             /* offset of the last bias [fields] */
    pn_parameter *parameter; size_t parameter_blocks;
    size_t parameters;              /* elements of the flat vector */
    double *fixed; size_t fixed_count; /* untrained numbers (Fourier matrix), float64, drawn on the host */
    void *model;                    /* owned by the model: what pn_layer.user points to */
    void (*free_model)(void *);
    double unit[PN_MAX_COORDINATES]; /* jets are carried per unit[i] of coordinate i (pointwise/jet.h), by the model's choice; 1 unless it chooses */
} pn_network;

typedef struct pn_network_spec {
    const char *kind, *activation;
    size_t coordinates, fields, width, depth;
    const double *lower, *upper; /* [coordinates]: inputs are scaled to [-1, 1] inside the first layer */
    size_t fourier_features;     /* 0 = none */
    double fourier_scale;
    uint64_t seed;
} pn_network_spec;

/* Errors: CONFIG for an unknown kind or activation (naming the known ones), BAD_ARGUMENT for a width, depth or count of 0 or an
 * empty interval, NO_MEMORY. */
pinn_status pn_network_create(const pn_network_spec *spec, pn_network **out);
void pn_network_destroy(pn_network *network);
/* Initial parameters from Philox: the same for any precision up to rounding. `parameters` has network->parameters float64 entries. */
void pn_network_initialise(const pn_network *network, uint64_t seed, double *parameters);

/* ---- for models ----------------------------------------------------------------------------------------------------------- */

/* Appends a named block to the parameter vector; `offset` receives where it starts. */
pinn_status pn_network_add_parameter(pn_network *network, const char *name, size_t rows, size_t columns, pn_initial init, size_t *offset);
/* Appends untrained numbers, normally distributed with the given standard deviation (Box & Muller 1958 over Philox). */
pinn_status pn_network_add_fixed_normal(pn_network *network, size_t count, double deviation, uint64_t seed, size_t *offset);
/* Appends Z = A W with W [in, out] at `weight`. */
pinn_status pn_network_add_linear(pn_network *network, size_t in, size_t out, size_t weight);
/* Appends a pointwise layer; `layer` without its parameters is copied, and so is the list of vector parameters. */
pinn_status pn_network_add_pointwise(pn_network *network, const pn_layer *layer, const pn_vector_parameter *parameter, size_t count);

#endif
