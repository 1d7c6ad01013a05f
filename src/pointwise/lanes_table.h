/* The table of one instruction set's lane functions, after both precisions of lanes_template.h. It is generated from the tables of
 * operations, so an operation without a lane function does not compile. PN_LANES_ISA is the set's name. */
#define CONST_f32 NULL /* operands, not instructions */
#define CONST_f64 NULL
#define INPUT_f32 NULL
#define INPUT_f64 NULL
#define PN_JOIN(a, b) a##b
#define PN_LANES_NAME(isa) PN_JOIN(pn_lanes_, isa)
#define PN_QUOTE(x) #x
#define PN_LANES_TEXT(isa) PN_QUOTE(isa)

const pn_lanes PN_LANES_NAME(PN_LANES_ISA) = {
    PN_LANES_TEXT(PN_LANES_ISA),
    {spread_f32, spread_f64},
    {{
#define X(name, arity, text) [PN_OP_##name] = name##_f32,
         PN_OP_TABLE(X)
#undef X
#define X(name, arity) [PN_LANE_##name] = name##_f32,
         PN_LANE_TABLE(X)
#undef X
     },
     {
#define X(name, arity, text) [PN_OP_##name] = name##_f64,
         PN_OP_TABLE(X)
#undef X
#define X(name, arity) [PN_LANE_##name] = name##_f64,
         PN_LANE_TABLE(X)
#undef X
     }},
};
