/* Lane functions of a pass's programs as text, under uniform signatures: arrays in the programs' operand order. What the generated passes of
 * tile_source.c and stream_source.c share. */
#ifndef PN_NETWORK_LANE_TEXT_H
#define PN_NETWORK_LANE_TEXT_H

#include "core/text.h"
#include "network/description.h"

enum { PN_LANE_NAME = 48 }; /* bytes of a lane function's name */

typedef struct pn_lane_array { /* of a wrapper's parameters */
    const char *name;
    size_t count;
} pn_lane_array;

/* static void NAME(const TYPE (&in)[n].., TYPE (&out)[n]..) { LANE(in[0], .., out[0], ..); } with the program's lane function LANE, printed by
 * pn_lane_source. Inputs the program does not use are not passed on; arrays of no elements are left out. */
void pn_lane_wrapper(const pn_program *program, const char *name, const char *lane, const pn_lane_array *in, size_t ins, const pn_lane_array *out,
                     size_t outs, pn_text *text);

/* The program's lane function; its name, KIND_laneNUMBER, goes to `lane`. */
void pn_lane_print(const pn_program *program, const char *kind, size_t number, char lane[PN_LANE_NAME], pn_text *text);
/* The residual of a point set: template <> struct set_of<NUMBER>. */
void pn_lane_set(const pn_pass *pass, const pn_member *member, size_t number, pn_text *text);

/* struct groupNUMBER: constants C and the two of `size`, the wrappers first, first_adjoint, remember, recall, adjoint after their lane functions,
 * and `turn`, the declaration of what goes from its fields to their adjoints. */
void pn_lane_group(const pn_pass *pass, const pn_uniform *net, size_t g, const pn_kept *kept, const pn_lane_array size[2], const char *turn, pn_text *text);
/* A line for each of the group's sets: `format` takes the set's place in `order`, the group, and the place again. */
void pn_lane_sets(const pn_pass *pass, const size_t *order, size_t g, const char *format, pn_text *text);
/* A line for each group: `format` takes the place of the last of its sets in `order`, where they stand together, and the group. */
void pn_lane_groups(const pn_pass *pass, const size_t *order, const char *format, pn_text *text);

/* All hidden layers of a group run the same programs, or UNSUPPORTED: a kernel has one text for them. `lowering`: its name in the message. */
pinn_status pn_lane_check_layers(const pn_pass *pass, const pn_group *group, const char *lowering);

extern const char pn_lane_stages_text[]; /* of kernels/lane_stages.cuh */

#endif
