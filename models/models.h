/* The network architectures, one file each. A model appends its layers and parameters to an empty network. */
#ifndef PN_MODELS_MODELS_H
#define PN_MODELS_MODELS_H

#include "network/network.h"

/* name in a config's [network] kind, builder. The one table of models. */
#define PN_MODEL_TABLE(X) X(mlp, pn_mlp_build)

#define X(name, build) pinn_status build(const pn_network_spec *spec, pn_network *network);
PN_MODEL_TABLE(X)
#undef X

#endif
