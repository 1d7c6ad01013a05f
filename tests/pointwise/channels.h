/* Channels for the tests of jets. */
#ifndef CHANNELS_H
#define CHANNELS_H

#include "pointwise/jet.h"

/* "xxy" as a channel. */
static inline pn_channel channel(const char *letters) {
    pn_channel result = {0};
    for (; *letters; letters++) result.coordinate[result.order++] = (uint8_t)(*letters - 'x');
    return result;
}

static const pn_channel laplacian_channel = {.order = 2, .laplacian = true};

#endif
