/* Lane functions of programs as text, under uniform signatures: arrays in the programs' operand order. */
#ifndef PN_NETWORK_LANE_TEXT_H
#define PN_NETWORK_LANE_TEXT_H

#include "core/text.h"
#include "pointwise/program.h"

typedef struct pn_lane_array { /* of a wrapper's parameters */
    const char *name;
    size_t count;
} pn_lane_array;

/* static void NAME(const TYPE (&in)[n].., TYPE (&out)[n]..) { LANE(in[0], .., out[0], ..); } with the program's lane function LANE, printed by
 * pn_lane_source. Inputs the program does not use are not passed on; arrays of no elements are left out. */
void pn_lane_wrapper(const pn_program *program, const char *name, const char *lane, const pn_lane_array *in, size_t ins, const pn_lane_array *out,
                     size_t outs, pn_text *text);

#endif
