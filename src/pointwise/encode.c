/* Encoding of x86-64 instructions; see encode.h. */
#include "pointwise/encode.h"

#include "core/memory.h"

static void put(pn_encoder *code, unsigned byte) {
    if (code->count == code->capacity && !code->failed) {
        const size_t capacity = code->capacity ? 2 * code->capacity : 1024;
        uint8_t *grown = pn_reallocate(code->byte, code->capacity, capacity, 1);
        code->failed = !grown;
        if (grown) code->byte = grown, code->capacity = capacity;
    }
    if (!code->failed) code->byte[code->count++] = (uint8_t)byte;
}

static void put32(pn_encoder *code, int32_t value) {
    for (int i = 0; i < 4; i++) put(code, (uint32_t)value >> 8 * i & 255);
}

/* ModRM, and for memory SIB and a 32-bit displacement: base + rcx or base alone. */
static void put_operands(pn_encoder *code, unsigned reg, pn_place rm) {
    if (!rm.memory) {
        put(code, 0xc0 | (reg & 7) << 3 | (rm.number & 7));
        return;
    }
    put(code, 0x84 | (reg & 7) << 3);
    put(code, (unsigned)(rm.indexed ? PN_RCX : PN_RSP) << 3 | (rm.number & 7)); /* rsp here means no index */
    put32(code, rm.displacement);
}

typedef struct opcode {
    unsigned prefix; /* pp: 0 none, 1 66 */
    unsigned map;    /* 1 0F, 2 0F38 */
    bool double_width;
    unsigned byte;
} opcode;

/* One vector instruction: destination `reg`, first source `second`, last operand `rm`. Prefix bits are stored inverted. */
static void put_vector(pn_encoder *code, opcode op, unsigned reg, unsigned second, pn_place rm) {
    const unsigned r = ~reg >> 3 & 1, b = ~rm.number >> 3 & 1;
    if (code->wide) {
        const unsigned x = rm.memory ? 1 : ~rm.number >> 4 & 1;
        put(code, 0x62);
        put(code, r << 7 | x << 6 | b << 5 | (~reg >> 4 & 1) << 4 | op.map);
        put(code, (unsigned)op.double_width << 7 | (~second & 15) << 3 | 4 | op.prefix);
        put(code, 2 << 5 /* 512 bits */ | (~second >> 4 & 1) << 3);
    } else {
        put(code, 0xc4);
        put(code, r << 7 | 1 << 6 | b << 5 | op.map);
        put(code, (unsigned)op.double_width << 7 | (~second & 15) << 3 | 1 << 2 /* 256 bits */ | op.prefix);
    }
    put(code, op.byte);
    put_operands(code, reg, rm);
}

void pn_encode_operate(pn_encoder *code, pn_vector_op op, unsigned d, unsigned a, pn_place b) {
    static const uint8_t byte[] = {[PN_V_ADD] = 0x58,     [PN_V_MUL] = 0x59,     [PN_V_SUB] = 0x5c,      [PN_V_DIV] = 0x5e,
                                   [PN_V_MIN] = 0x5d,     [PN_V_MAX] = 0x5f,     [PN_V_FMA213] = 0xa8,   [PN_V_FMA231] = 0xb8,
                                   [PN_V_FMS213] = 0xaa,  [PN_V_FMS231] = 0xba,  [PN_V_FNMA213] = 0xac,  [PN_V_FNMA231] = 0xbc};
    const bool wide = code->real == PN_FLOAT64;
    put_vector(code, op >= PN_V_FMA213 ? (opcode){1, 2, wide, byte[op]} : (opcode){wide, 1, wide, byte[op]}, d, a, b);
}

void pn_encode_sqrt(pn_encoder *code, unsigned d, pn_place a) {
    const bool wide = code->real == PN_FLOAT64;
    put_vector(code, (opcode){wide, 1, wide, 0x51}, d, 0, a);
}

void pn_encode_load(pn_encoder *code, unsigned d, pn_place from) { put_vector(code, (opcode){0, 1, false, 0x10}, d, 0, from); }
void pn_encode_store(pn_encoder *code, unsigned from, pn_place to) { put_vector(code, (opcode){0, 1, false, 0x11}, from, 0, to); }

static void put_short(pn_encoder *code, unsigned base, unsigned general) {
    if (general >= PN_R8) put(code, 0x41);
    put(code, base + (general & 7));
}

void pn_encode_push(pn_encoder *code, unsigned general) { put_short(code, 0x50, general); }
void pn_encode_pop(pn_encoder *code, unsigned general) { put_short(code, 0x58, general); }

void pn_encode_load_address(pn_encoder *code, unsigned general, unsigned base, int32_t displacement) {
    put(code, 0x48 | (general >> 3) << 2 | base >> 3);
    put(code, 0x8b);
    put_operands(code, general, (pn_place){.memory = true, .number = base, .displacement = displacement});
}

void pn_encode_clear_index(pn_encoder *code) {
    put(code, 0x31);
    put(code, 0xc9);
}

void pn_encode_loop(pn_encoder *code, size_t start) {
    static const uint8_t add[] = {0x48, 0x83, 0xc1}, compare_and_jump_below[] = {0x48, 0x39, 0xf1, 0x0f, 0x82};
    for (size_t i = 0; i < sizeof add; i++) put(code, add[i]);
    put(code, code->wide ? 64 : 32);
    for (size_t i = 0; i < sizeof compare_and_jump_below; i++) put(code, compare_and_jump_below[i]);
    put32(code, (int32_t)start - (int32_t)(code->count + 4));
}

void pn_encode_return(pn_encoder *code) {
    static const uint8_t zero_upper_and_return[] = {0xc5, 0xf8, 0x77, 0xc3};
    for (size_t i = 0; i < sizeof zero_upper_and_return; i++) put(code, zero_upper_and_return[i]);
}

void pn_encode_align(pn_encoder *code, size_t bytes) {
    while (!code->failed && code->count % bytes) put(code, 0x90);
}
