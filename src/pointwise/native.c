/* Machine code for runs of plain arithmetic: which instructions form a run, and which vector register holds what.
 *
 * One loop over the vectors of a block does the whole run. Values are kept in registers from their first use or their computation to
 * their last use; when registers run short, the one whose next use is farthest is given up (Belady 1966). A program register that is read
 * after the run goes to its slot at the end; outputs go to theirs at once.
 *
 * In a run's code, a function of the System V calling convention: rdi the slot table, rsi the bytes to do, rcx the byte offset of the
 * vector, rax a slot's address when there are more slots than general registers. */
#include "pointwise/native.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/memory.h"
#include "pointwise/encode.h"
#include "pointwise/program_code.h"

enum {
    LEAST_RUN = 2,   /* instructions: one alone is no faster than its lane function */
    MOST_RUN = 1024, /* keeps a loop's code well below a first-level instruction cache */
    ALIGNMENT = 64   /* bytes */
};
#define NEVER SIZE_MAX

typedef struct holder { /* what a vector register holds */
    uint32_t slot;
    bool used, dirty, locked; /* dirty: its slot in memory is older; locked: an operand of the current instruction */
    size_t next;              /* instruction of the next use; NEVER: free at the end of the current instruction */
} holder;

typedef struct run {
    const pn_program *p;
    pn_encoder *code;
    size_t first, end;
    const size_t (*next)[4]; /* [instructions]: next use of the value in d, a, b, c after the instruction, NEVER if none */
    holder holder[32];
    uint32_t base_slot[11]; size_t bases; /* slots whose address has a general register of its own */
} run;

typedef struct source { /* an operand: a vector register, or a slot in memory */
    bool memory;
    uint32_t number;
} source;

static const unsigned base_register[] = {PN_RDX, PN_R8, PN_R9, PN_R10, PN_R11, PN_RBX, PN_RBP, PN_R12, PN_R13, PN_R14, PN_R15};
enum { BASES = sizeof base_register / sizeof base_register[0], SCRATCH_BASES = 5 /* the others are the caller's */ };

static uint32_t arity(uint32_t op) {
    static const uint8_t of_lanes[] = {
#define X(name, count) [PN_LANE_##name - PN_OP_COUNT] = count,
        PN_LANE_TABLE(X)
#undef X
    };
    return op < PN_OP_COUNT ? (uint32_t)pn_op_arity((pn_op)op) : of_lanes[op - PN_OP_COUNT];
}

static bool is_plain(const pn_program *p, uint32_t op) {
    switch (op) {
    case PN_OP_ADD:
    case PN_OP_SUB:
    case PN_OP_MUL:
    case PN_OP_DIV:
    case PN_OP_MIN:
    case PN_OP_MAX:
    case PN_OP_SQRT:
    case PN_LANE_FMA:
    case PN_LANE_FMS:
    case PN_LANE_FNMA:
    case PN_LANE_COPY:
    case PN_LANE_SUM: return true;
    case PN_LANE_SUM_F64: return p->real == PN_FLOAT64;
    default: return false;
    }
}

static bool is_sum(uint32_t op) { return op == PN_LANE_SUM || op == PN_LANE_SUM_F64; }

static uint32_t operand(const pn_instruction *i, uint32_t k) { return k == 0 ? i->a : k == 1 ? i->b : i->c; }

/* ---- where values are --------------------------------------------------------------------------------------------------------- */

/* Immediates lie one after another: the first one's address serves all. */
static uint32_t base_of(const pn_program *p, uint32_t slot) { return slot < pn_slot_input(p) ? 0 : slot; }

static pn_place memory_of(run *r, uint32_t slot) {
    const uint32_t base = base_of(r->p, slot);
    pn_place place = {.memory = true, .indexed = r->p->step[slot] != 0, .number = PN_RAX};
    place.displacement = (int32_t)(slot - base) * PN_LANE_GROUP;
    size_t i = 0;
    while (i < r->bases && r->base_slot[i] != base) i++;
    if (i < r->bases)
        place.number = base_register[i];
    else
        pn_encode_load_address(r->code, PN_RAX, PN_RDI, (int32_t)(base * sizeof(void *)));
    return place;
}

static int find(const run *r, uint32_t slot) {
    for (int v = 0; v < (int)pn_encoder_registers(r->code); v++)
        if (r->holder[v].used && r->holder[v].slot == slot) return v;
    return -1;
}

/* What memory holds too may be forgotten unless this run reads it again. */
static size_t next_use(const run *r, size_t next, bool dirty) { return dirty || next < r->end ? next : NEVER; }

/* A vector register to write to; what it held is saved if anyone needs it. */
static unsigned take(run *r) {
    int best = -1;
    for (int v = 0; v < (int)pn_encoder_registers(r->code); v++) {
        const holder *h = &r->holder[v];
        if (!h->used) return (unsigned)v;
        if (!h->locked && (best < 0 || h->next > r->holder[best].next)) best = v;
    }
    holder *h = &r->holder[best];
    if (h->dirty) pn_encode_store(r->code, (unsigned)best, memory_of(r, h->slot));
    h->used = false;
    return (unsigned)best;
}

static void hold(run *r, unsigned v, uint32_t slot, size_t next, bool dirty) {
    r->holder[v] = (holder){.slot = slot, .used = true, .dirty = dirty, .locked = true, .next = next_use(r, next, dirty)};
}

/* Operand k of instruction `at` in a register. */
static unsigned fetch(run *r, size_t at, uint32_t k) {
    const uint32_t slot = operand(&r->p->code[at], k);
    const int found = find(r, slot);
    if (found >= 0) {
        hold(r, (unsigned)found, slot, r->next[at][1 + k], r->holder[found].dirty);
        return (unsigned)found;
    }
    const unsigned fresh = take(r);
    pn_encode_load(r->code, fresh, memory_of(r, slot));
    hold(r, fresh, slot, r->next[at][1 + k], false);
    return fresh;
}

static bool stays_in_memory(const run *r, size_t at, uint32_t k) {
    return r->next[at][1 + k] >= r->end && find(r, operand(&r->p->code[at], k)) < 0;
}

/* The last operand of a machine instruction may be in memory, which is best if this run does not need it again. */
static source reach(run *r, size_t at, uint32_t k) {
    if (stays_in_memory(r, at, k)) return (source){true, operand(&r->p->code[at], k)};
    return (source){false, fetch(r, at, k)};
}

/* To be called just before the instruction is written: rax serves one operand only. */
static pn_place place_of(run *r, source s) { return s.memory ? memory_of(r, s.number) : pn_in_register(s.number); }

static bool dies_in_register(const run *r, size_t at, uint32_t k) {
    const int v = find(r, operand(&r->p->code[at], k));
    return v >= 0 && next_use(r, r->next[at][1 + k], r->holder[v].dirty) == NEVER;
}

/* The result of instruction `at` is in v; d's old value is dead. */
static void keep_result(run *r, size_t at, unsigned v) {
    const uint32_t d = r->p->code[at].d;
    const bool output = d < pn_slot_register(r->p);
    const int old = find(r, d);
    if (old >= 0) r->holder[old].used = false;
    hold(r, v, d, r->next[at][0], !output);
    if (output) pn_encode_store(r->code, v, memory_of(r, d));
}

static void release(run *r) {
    for (unsigned v = 0; v < pn_encoder_registers(r->code); v++) {
        r->holder[v].locked = false;
        if (r->holder[v].next == NEVER) r->holder[v].used = false;
    }
}

/* ---- one instruction ---------------------------------------------------------------------------------------------------------- */

static void swap(uint32_t k[2]) {
    const uint32_t first = k[0];
    k[0] = k[1];
    k[1] = first;
}

static void put_sum(run *r, size_t at) {
    const uint32_t to = r->p->code[at].d;
    const unsigned a = fetch(r, at, 0), sum = take(r);
    pn_encode_operate(r->code, PN_V_ADD, sum, a, memory_of(r, to));
    pn_encode_store(r->code, sum, memory_of(r, to));
}

static void put_unary(run *r, size_t at) {
    const source a = reach(r, at, 0);
    const unsigned d = take(r);
    if (r->p->code[at].op == PN_OP_SQRT)
        pn_encode_sqrt(r->code, d, place_of(r, a));
    else
        pn_encode_load(r->code, d, place_of(r, a));
    keep_result(r, at, d);
}

static void put_binary(run *r, size_t at) {
    static const uint8_t form[] = {[PN_OP_ADD] = PN_V_ADD, [PN_OP_SUB] = PN_V_SUB, [PN_OP_MUL] = PN_V_MUL,
                                   [PN_OP_DIV] = PN_V_DIV, [PN_OP_MIN] = PN_V_MIN, [PN_OP_MAX] = PN_V_MAX};
    const uint32_t op = r->p->code[at].op;
    uint32_t k[2] = {0, 1};
    if ((op == PN_OP_ADD || op == PN_OP_MUL) && stays_in_memory(r, at, 0)) swap(k);
    const unsigned a = fetch(r, at, k[0]);
    const source b = reach(r, at, k[1]);
    const unsigned d = take(r);
    pn_encode_operate(r->code, (pn_vector_op)form[op], d, a, place_of(r, b));
    keep_result(r, at, d);
}

/* a*b + c: the machine overwrites a factor (form 213) or what is added (form 231). */
static void put_multiply_add(run *r, size_t at) {
    static const uint8_t form[][2] = {[PN_LANE_FMA - PN_LANE_FMA] = {PN_V_FMA213, PN_V_FMA231},
                                      [PN_LANE_FMS - PN_LANE_FMA] = {PN_V_FMS213, PN_V_FMS231},
                                      [PN_LANE_FNMA - PN_LANE_FMA] = {PN_V_FNMA213, PN_V_FNMA231}};
    const uint8_t *by = form[r->p->code[at].op - PN_LANE_FMA];
    uint32_t k[2] = {0, 1};
    const bool sum_dies = dies_in_register(r, at, 2);
    unsigned d;
    if (!sum_dies && (dies_in_register(r, at, 0) || dies_in_register(r, at, 1))) {
        if (!dies_in_register(r, at, 0)) swap(k);
        d = fetch(r, at, k[0]);
        const unsigned factor = fetch(r, at, k[1]);
        const source c = reach(r, at, 2);
        pn_encode_operate(r->code, (pn_vector_op)by[0], d, factor, place_of(r, c));
    } else {
        if (stays_in_memory(r, at, 0)) swap(k);
        const unsigned factor = fetch(r, at, k[0]);
        const source last = reach(r, at, k[1]), c = reach(r, at, 2);
        d = sum_dies ? c.number : take(r);
        if (!sum_dies) pn_encode_load(r->code, d, place_of(r, c));
        pn_encode_operate(r->code, (pn_vector_op)by[1], d, factor, place_of(r, last));
    }
    keep_result(r, at, d);
}

static void put_instruction(run *r, size_t at) {
    const uint32_t op = r->p->code[at].op;
    if (is_sum(op))
        put_sum(r, at);
    else if (op >= PN_OP_COUNT && op != PN_LANE_COPY)
        put_multiply_add(r, at);
    else if (arity(op) == 2)
        put_binary(r, at);
    else
        put_unary(r, at);
    release(r);
}

/* ---- a run -------------------------------------------------------------------------------------------------------------------- */

/* Slots of the run in the order they are met; program registers rarely go to memory. */
static void choose_bases(run *r) {
    for (size_t at = r->first; at < r->end; at++) {
        const pn_instruction *i = &r->p->code[at];
        for (uint32_t k = 0; k <= arity(i->op); k++) {
            const uint32_t slot = base_of(r->p, k ? operand(i, k - 1) : i->d);
            size_t known = 0;
            while (known < r->bases && r->base_slot[known] != slot) known++;
            if (known == r->bases && r->bases < BASES && slot < pn_slot_register(r->p)) r->base_slot[r->bases++] = slot;
        }
    }
}

static void write_run(run *r) {
    choose_bases(r);
    for (size_t i = SCRATCH_BASES; i < r->bases; i++) pn_encode_push(r->code, base_register[i]);
    for (size_t i = 0; i < r->bases; i++)
        pn_encode_load_address(r->code, base_register[i], PN_RDI, (int32_t)(r->base_slot[i] * sizeof(void *)));
    pn_encode_clear_index(r->code);
    const size_t start = r->code->count;
    for (size_t at = r->first; at < r->end; at++) put_instruction(r, at);
    for (unsigned v = 0; v < pn_encoder_registers(r->code); v++)
        if (r->holder[v].used && r->holder[v].dirty) pn_encode_store(r->code, v, memory_of(r, r->holder[v].slot));
    pn_encode_loop(r->code, start);
    for (size_t i = r->bases; i-- > SCRATCH_BASES;) pn_encode_pop(r->code, base_register[i]);
    pn_encode_return(r->code);
}

/* ---- a program ---------------------------------------------------------------------------------------------------------------- */

static void find_next_uses(const pn_program *p, size_t *of_slot, size_t (*next)[4]) {
    for (size_t s = 0; s < pn_program_slots(p); s++) of_slot[s] = NEVER;
    for (size_t at = p->instructions; at-- > 0;) {
        const pn_instruction *i = &p->code[at];
        next[at][0] = of_slot[i->d];
        if (!is_sum(i->op)) of_slot[i->d] = NEVER;
        for (uint32_t k = 0; k < arity(i->op); k++) next[at][1 + k] = of_slot[operand(i, k)];
        for (uint32_t k = 0; k < arity(i->op); k++) of_slot[operand(i, k)] = at;
    }
}

/* The end of the stage that starts at `first`. */
static size_t stage_end(const pn_program *p, bool native, size_t first) {
    size_t end = first;
    while (end < p->instructions) {
        size_t plain = end;
        while (native && plain < p->instructions && plain - end < MOST_RUN && is_plain(p, p->code[plain].op)) plain++;
        if (plain - end >= LEAST_RUN) return end == first ? plain : end;
        end = plain > end ? plain : end + 1;
    }
    return end;
}

static bool is_native(const pn_program *p, const pn_stage *stage) {
    return stage->end - stage->first >= LEAST_RUN && is_plain(p, p->code[stage->first].op) && is_plain(p, p->code[stage->first + 1].op);
}

/* Moves the code to memory that is first writable, then executable, never both; on failure the lane functions do it all. */
static void install(pn_program *p, const pn_encoder *code, const size_t *offset) {
    void *memory = mmap(NULL, code->count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    memcpy(memory, code->byte, code->count);
    if (mprotect(memory, code->count, PROT_READ | PROT_EXEC) != 0) {
        munmap(memory, code->count);
        return;
    }
    p->native = memory;
    p->native_bytes = code->count;
    for (size_t s = 0; s < p->stages; s++)
        if (offset[s] != NEVER) {
            const void *entry = p->native + offset[s];
            memcpy(&p->stage[s].run, &entry, sizeof entry); /* ISO C has no cast from data to functions */
        }
}

static bool wanted(const pn_program *p) {
    const char *isa = p->lanes->isa, *choice = getenv("PINN_NATIVE");
    return (strcmp(isa, "avx2") == 0 || strcmp(isa, "avx512") == 0) && !(choice && strcmp(choice, "0") == 0);
}

pinn_status pn_native_create(pn_program *p) {
    pinn_status status = PINN_OK;
    const bool native = wanted(p);
    pn_encoder code = {.wide = strcmp(p->lanes->isa, "avx512") == 0, .real = p->real};
    size_t(*next)[4] = pn_allocate(p->instructions, sizeof *next), *offset = NULL;
    size_t *of_slot = pn_allocate(pn_program_slots(p), sizeof *of_slot);
    for (size_t at = 0; at < p->instructions; at = stage_end(p, native, at)) p->stages++;
    p->stage = pn_allocate(p->stages, sizeof *p->stage);
    offset = pn_allocate(p->stages, sizeof *offset);
    if (!next || !of_slot || !p->stage || !offset) {
        status = PN_NO_MEMORY("a pointwise program");
        goto fail;
    }
    find_next_uses(p, of_slot, next);
    for (size_t s = 0, at = 0; s < p->stages; s++) {
        p->stage[s] = (pn_stage){.first = at, .end = stage_end(p, native, at)};
        at = p->stage[s].end;
        offset[s] = NEVER;
        if (!native || !is_native(p, &p->stage[s])) continue;
        pn_encode_align(&code, ALIGNMENT);
        offset[s] = code.count;
        run r = {.p = p, .code = &code, .first = p->stage[s].first, .end = at, .next = (const size_t(*)[4])next};
        write_run(&r);
    }
    if (code.failed)
        status = PN_NO_MEMORY("a pointwise program");
    else if (code.count)
        install(p, &code, offset);
fail:
    pn_free(code.byte);
    pn_free(offset);
    pn_free(of_slot);
    pn_free(next);
    return status;
}

void pn_native_destroy(pn_program *p) {
    if (p->native) munmap(p->native, p->native_bytes);
    pn_free(p->stage);
}
