/* A network: a list of layers over one flat parameter vector. Models (models/NAME.c) build the list. */
#ifndef PN_NETWORK_NETWORK_H
#define PN_NETWORK_NETWORK_H

#include "core/real.h"
#include "pointwise/jet.h"

typedef enum pn_layer_kind {
    PN_LAYER_LINEAR,   /* Z = A W: one GEMM over all rows of all channels; W [in, out] row-major at `parameter[0]` */
    PN_LAYER_POINTWISE /* out columns from in columns by a program of the IR, jets by the chain rule */
} pn_layer_kind;

/* A pointwise layer's parameters are vectors with one entry a column (a bias, a row of the first weight matrix). */
typedef struct pn_vector_parameter {
    size_t offset;  /* into the flat vector, elements */
    bool trained;   /* false: fixed (Fourier matrix); kept in `fixed`, not in the parameter vector */
} pn_vector_parameter;

typedef struct pn_layer pn_layer;

/* Builds the channels of the layer's `outputs` column blocks at column j. `input[c]` for a layer after a LINEAR: the channels of its
 * column j, without bias; for the first layer: the coordinates x_0..x_{d-1} in their own units. `parameter[k]`: nodes of the vector
 * parameters' entry j. out[b*layout->count + c]: channel c of output column b*in + j. */
typedef pinn_status pn_layer_build(const pn_layer *layer, pn_ir *ir, const pn_layout *layout, const pn_value *input,
                                   const pn_value *parameter, pn_value *out);

struct pn_layer {
    pn_layer_kind kind;
    size_t in, out;   /* columns; POINTWISE: out = blocks * width, where `width` columns are lanes */
    size_t blocks;    /* POINTWISE: output column blocks (Fourier: cos and sin = 2) */
    bool coordinates; /* POINTWISE: the first layer, reads coordinates */
    size_t parameters;
    pn_vector_parameter *parameter; /* owned; LINEAR: one entry, the matrix */
    pn_layer_build *build;          /* POINTWISE */
    const void *user;               /* for build; borrowed from the network */
};

typedef struct pn_parameter { /* one named block of the parameter vector, as it appears in a checkpoint */
    char *name;       /* "layer1/weight" */
    size_t offset, rows, columns; /* columns = 0: a vector of `rows` */
    enum { PN_INIT_ZERO, PN_INIT_GLOROT_UNIFORM } init; /* Glorot & Bengio 2010: U(-r, r), r = sqrt(6/(rows+columns)) */
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
} pn_network;

typedef struct pn_network_spec {
    const char *kind, *activation;
    size_t coordinates, fields, width, depth;
    const double *lower, *upper; /* [coordinates]: inputs are scaled to [-1, 1] inside the first layer */
    size_t fourier_features;     /* 0 = none */
    double fourier_scale;
    uint64_t seed;
} pn_network_spec;

/* Errors: CONFIG for an unknown kind or activation (naming the known ones), NO_MEMORY. */
pinn_status pn_network_create(const pn_network_spec *spec, pn_network **out);
void pn_network_destroy(pn_network *network);
/* Initial parameters from Philox: the same for any precision up to rounding. `parameters` has network->parameters float64 entries. */
void pn_network_initialise(const pn_network *network, uint64_t seed, double *parameters);

#endif
