/* CUDA C++ text of kernels. The arithmetic is the interpreter's, instruction by instruction: a multiply-add is fused where the program
 * says so and nowhere else (the text is compiled without contraction), so both give the same bits but for elementary functions.
 *
 * An output may be the same array as an input, so nothing is `restrict`; every lane reads all its inputs before it writes. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "core/memory.h"
#include "pointwise/kernel.h"
#include "pointwise/program_code.h"

/* Operations as text: A, B, C stand for the operands, @ for the precision's suffix, T for its type. */
#define TEXT_CONST NULL
#define TEXT_INPUT NULL
#define TEXT_NEG "-A"
#define TEXT_ABS "fabs@(A)"
#define TEXT_SIGN "(A == A ? T(A > T(0)) - T(A < T(0)) : A)"
#define TEXT_FLOOR "floor@(A)"
#define TEXT_SQRT "sqrt@(A)"
#define TEXT_EXP "exp@(A)"
#define TEXT_EXPM1 "expm1@(A)"
#define TEXT_LOG "log@(A)"
#define TEXT_LOG1P "log1p@(A)"
#define TEXT_SIN "lane_sin@(A)"
#define TEXT_COS "lane_cos@(A)"
#define TEXT_TAN "tan@(A)"
#define TEXT_ASIN "asin@(A)"
#define TEXT_ACOS "acos@(A)"
#define TEXT_ATAN "atan@(A)"
#define TEXT_SINH "sinh@(A)"
#define TEXT_COSH "cosh@(A)"
#define TEXT_TANH "lane_tanh@(A)"
#define TEXT_ERF "erf@(A)"
#define TEXT_SOFTPLUS "(A > T(0) ? A : T(0)) + log1p@(exp@(-fabs@(A)))"
#define TEXT_ADD "A + B"
#define TEXT_SUB "A - B"
#define TEXT_MUL "A * B"
#define TEXT_DIV "A / B"
#define TEXT_POW "pow@(A, B)"
#define TEXT_ATAN2 "atan2@(A, B)"
#define TEXT_MIN "(A < B ? A : B)"
#define TEXT_MAX "(A > B ? A : B)"
#define TEXT_LT "T(A < B)"
#define TEXT_LE "T(A <= B)"
#define TEXT_EQ "T(A == B)"
#define TEXT_SELECT "(A != T(0) ? B : C)"
#define TEXT_FMA "fma@(A, B, C)"
#define TEXT_FMS "fma@(A, B, -C)"
#define TEXT_FNMA "fma@(-A, B, C)"
#define TEXT_COPY "A"
#define TEXT_SUM "A"
#define TEXT_SUM_F64 "A"

static const char *const operation_text[PN_LANE_COUNT] = {
#define X(name, arity, text) [PN_OP_##name] = TEXT_##name,
    PN_OP_TABLE(X)
#undef X
#define X(name, arity) [PN_LANE_##name] = TEXT_##name,
    PN_LANE_TABLE(X)
#undef X
};

static const char *type_name(const pn_program *p) { return p->real == PN_FLOAT32 ? "float" : "double"; }

/* ---- one lane ---------------------------------------------------------------------------------------------------------------- */

static void print_literal(pn_real real, double value, pn_text *out) {
    if (isnan(value))
        pn_text_string(out, real == PN_FLOAT32 ? "__int_as_float(0x7fffffff)" : "__longlong_as_double(0x7fffffffffffffffll)");
    else if (isinf(value))
        pn_text_printf(out, "(%s%s)", value < 0 ? "-" : "",
                       real == PN_FLOAT32 ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000ll)");
    else
        pn_text_printf(out, "%s%a%s%s", signbit(value) ? "(" : "", value, real == PN_FLOAT32 ? "f" : "", signbit(value) ? ")" : "");
}

static void print_slot(const pn_program *p, size_t slot, pn_text *out) {
    if (slot < pn_slot_input(p))
        print_literal(p->real, p->immediate[slot], out);
    else if (slot < pn_slot_output(p))
        pn_text_printf(out, "x%zu", slot - pn_slot_input(p));
    else if (slot < pn_slot_register(p))
        pn_text_printf(out, "y%zu", slot - pn_slot_output(p));
    else
        pn_text_printf(out, "r%zu", slot - pn_slot_register(p));
}

static void print_instruction(const pn_program *p, const pn_instruction *i, pn_text *out) {
    pn_text_string(out, "    ");
    print_slot(p, i->d, out);
    pn_text_string(out, " = ");
    for (const char *text = operation_text[i->op]; *text; text++) {
        switch (*text) {
        case 'A': print_slot(p, i->a, out); break;
        case 'B': print_slot(p, i->b, out); break;
        case 'C': print_slot(p, i->c, out); break;
        case 'T': pn_text_string(out, type_name(p)); break;
        case '@': pn_text_string(out, p->real == PN_FLOAT32 ? "f" : ""); break;
        default: pn_text_append(out, text, 1);
        }
    }
    pn_text_string(out, ";\n");
}

/* Elementary functions of networks' lanes, short and as far as can be without branches, so that columns overlap.
 *   tanh, within 4 units in the last place: |x| < 0.55: x + x^3 P(x^2), P fitted for the least relative error; else (1 - e)/(1 + e),
 *         e = 2^(-2 log2(e) |x|)
 *         coarse, within 2^-14: |x| < 2^-7: x; else 2/(1 + 2^(-2 log2(e) x)) - 1
 *   sin, cos, within 2 units: x - q pi/2 in three parts (Cody and Waite 1980), then the polynomials of Cephes (Moshier 1989) on
 *         [-pi/4, pi/4]; where that loses digits, far from zero, CUDA's own function, called rather than inlined */
static const char lane_prelude[] =
    "/* Of a kernel launched by pn_launch_overlapping (src/graph/overlap.h), before it touches memory that other kernels touch. */\n"
    "[[maybe_unused]] static __device__ __forceinline__ void await_last() {\n"
    "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n"
    "    asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");\n"
    "    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
    "#endif\n"
    "}\n"
    "static __device__ __forceinline__ float lane_exp2(float x) {\n"
    "    float y;\n"
    "#ifdef __CUDA_ARCH__\n"
    "    asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x));\n"
    "#else\n"
    "    y = exp2f(x);\n"
    "#endif\n"
    "    return y;\n"
    "}\n"
    "static __device__ __forceinline__ float lane_reciprocal(float x) {\n"
    "    float y;\n"
    "#ifdef __CUDA_ARCH__\n"
    "    asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x));\n"
    "#else\n"
    "    y = 1.0f / x;\n"
    "#endif\n"
    "    return y;\n"
    "}\n"
    "[[maybe_unused]] static __device__ __forceinline__ float lane_tanhf(float x) {\n"
    "    if (LANE_COARSE) return fabsf(x) < 0x1p-7f ? x : fmaf(2.0f, lane_reciprocal(1.0f + lane_exp2(x * -0x1.715476p+1f)), -1.0f);\n"
    "    const float magnitude = fabsf(x), square = x * x;\n"
    "    const float e = lane_exp2(magnitude * -0x1.715476p+1f), r = lane_reciprocal(1.0f + e);\n"
    "    float p = fmaf(0x1.0d502ep-6f, square, -0x1.af7ccap-5f);\n"
    "    p = fmaf(p, square, 0x1.10cef6p-3f);\n"
    "    p = fmaf(p, square, -0x1.555452p-2f);\n"
    "    return magnitude < 0.55f ? fmaf(p * square, x, x) : copysignf((1.0f - e) * r, x);\n"
    "}\n"
    "#ifdef __CUDA_ARCH__\n"
    "__noinline__\n"
    "#endif\n"
    "[[maybe_unused]] static __device__ float lane_far(float x, int quarters) { return quarters ? cosf(x) : sinf(x); }\n"
    "/* sin(x + quarters pi/2) */\n"
    "[[maybe_unused]] static __device__ __forceinline__ float lane_sine(float x, int quarters) {\n"
    "    if (!(fabsf(x) < 105615.0f)) return lane_far(x, quarters);\n"
    "    const float q = rintf(x * 0x1.45f306p-1f);\n"
    "    const float r = fmaf(q, -0x1.84698ap-48f, fmaf(q, -0x1.4442dp-24f, fmaf(q, -0x1.921fb4p+0f, x))), square = r * r;\n"
    "    const int quarter = (int)q + quarters;\n"
    "    const float odd = fmaf(fmaf(fmaf(-0x1.9943f2p-13f, square, 0x1.11073cp-7f), square, -0x1.555546p-3f) * square, r, r);\n"
    "    const float even = fmaf(fmaf(fmaf(0x1.99eb9cp-16f, square, -0x1.6c0c34p-10f), square, 0x1.55554ap-5f), square * square, fmaf(-0.5f, square, 1.0f));\n"
    "    const float value = quarter & 1 ? even : odd;\n"
    "    return quarter & 2 ? -value : value;\n"
    "}\n"
    "[[maybe_unused]] static __device__ __forceinline__ float lane_sinf(float x) { return lane_sine(x, 0); }\n"
    "[[maybe_unused]] static __device__ __forceinline__ float lane_cosf(float x) { return lane_sine(x, 1); }\n"
    "[[maybe_unused]] static __device__ __forceinline__ double lane_tanh(double x) { return tanh(x); }\n"
    "[[maybe_unused]] static __device__ __forceinline__ double lane_sin(double x) { return sin(x); }\n"
    "[[maybe_unused]] static __device__ __forceinline__ double lane_cos(double x) { return cos(x); }\n\n";

void pn_lane_prelude(bool coarse, pn_text *out) {
    pn_text_printf(out, "constexpr bool LANE_COARSE = %s;\n", coarse ? "true" : "false");
    pn_text_string(out, lane_prelude);
}

void pn_lane_source(const pn_program *p, const char *name, pn_text *out) {
    const char *between = "";
    pn_text_printf(out, "static __device__ __forceinline__ void %s(", name);
    for (size_t i = 0; i < p->inputs; i++)
        if (pn_program_uses_input(p, i)) {
            pn_text_printf(out, "%sconst %s x%zu", between, type_name(p), i);
            between = ", ";
        }
    for (size_t o = 0; o < p->outputs; o++, between = ", ") pn_text_printf(out, "%s%s &y%zu", between, type_name(p), o);
    pn_text_string(out, ") {\n");
    for (size_t r = 0; r < p->registers; r++) pn_text_printf(out, "    %s r%zu;\n", type_name(p), r);
    for (size_t i = 0; i < p->instructions; i++) print_instruction(p, &p->code[i], out);
    pn_text_string(out, "}\n\n");
}

/* ---- one group of sections ----------------------------------------------------------------------------------------------------- */

static void print_operands(const pn_program *p, size_t group, pn_text *out) {
    pn_text_printf(out, "struct operands%zu {\n", group);
    for (size_t i = 0; i < p->inputs; i++)
        if (pn_program_uses_input(p, i)) pn_text_printf(out, "    const %s *x%zu;\n", type_name(p), i);
    for (size_t o = 0; o < p->outputs; o++)
        if (p->output[o].kind == PN_STORE) pn_text_printf(out, "    %s *y%zu;\n", type_name(p), o);
    pn_text_printf(out, "    %s *sums;\n    double *sums_f64;\n    size points, share, end;\n};\n\n", type_name(p));
}

/* A value of the program's type for each column of the thread. */
static void print_pack(const pn_program *p, pn_text *out) { pn_text_printf(out, "pack<%s, %zu>", type_name(p), pn_pack_choose(p)); }

/* For each column of the thread, v. */
static void print_columns(const pn_program *p, const char *indent, pn_text *out) {
    pn_text_printf(out, "%s#pragma unroll\n%sfor (unsigned v = 0; v < %zu; v++) ", indent, indent, pn_pack_choose(p));
}

/* x[p*row + (j + v)*column] */
static void print_element(const char *name, size_t number, pn_stride stride, pn_text *out) {
    pn_text_printf(out, "s.%s%zu[p * %zu + (j + v) * %zu]", name, number, stride.row, stride.column);
}

/* The thread's columns of an operand as one vector. */
static void print_vector(const pn_program *p, const char *name, size_t number, pn_stride stride, const char *constant, pn_text *out) {
    pn_text_printf(out, "*reinterpret_cast<%s", constant);
    print_pack(p, out);
    pn_text_printf(out, " *>(s.%s%zu + p * %zu + j)", name, number, stride.row);
}

/* Loads of the inputs that change from point to point, or of those that don't. */
static void print_loads(const pn_program *p, bool per_point, const char *indent, pn_text *out) {
    const size_t pack = pn_pack_choose(p);
    for (size_t i = 0; i < p->inputs; i++) {
        const pn_stride stride = p->input[i].stride;
        if (!pn_program_uses_input(p, i) || (stride.row > 0) != per_point) continue;
        pn_text_string(out, indent);
        print_pack(p, out);
        pn_text_printf(out, " x%zu", i);
        if (pn_pack_fits(pack, stride)) {
            pn_text_string(out, " = ");
            print_vector(p, "x", i, stride, "const ", out);
        } else {
            pn_text_string(out, ";\n");
            print_columns(p, indent, out);
            pn_text_printf(out, "x%zu.lane[v] = ", i);
            print_element("x", i, stride, out);
        }
        pn_text_string(out, ";\n");
    }
}

static void print_call(const pn_program *p, size_t group, pn_text *out) {
    const char *between = "";
    for (size_t o = 0; o < p->outputs; o++) {
        pn_text_string(out, "            ");
        print_pack(p, out);
        pn_text_printf(out, " y%zu;\n", o);
    }
    print_columns(p, "            ", out);
    pn_text_printf(out, "lane%zu(", group);
    for (size_t i = 0; i < p->inputs; i++)
        if (pn_program_uses_input(p, i)) {
            pn_text_printf(out, "%sx%zu.lane[v]", between, i);
            between = ", ";
        }
    for (size_t o = 0; o < p->outputs; o++, between = ", ") pn_text_printf(out, "%sy%zu.lane[v]", between, o);
    pn_text_string(out, ");\n");
}

static void print_stores(const pn_program *p, pn_text *out) {
    const size_t pack = pn_pack_choose(p);
    for (size_t o = 0; o < p->outputs; o++) {
        const pn_stride stride = p->output[o].stride;
        if (p->output[o].kind == PN_STORE && pn_pack_fits(pack, stride)) {
            pn_text_string(out, "            ");
            print_vector(p, "y", o, stride, "", out);
            pn_text_printf(out, " = y%zu;\n", o);
            continue;
        }
        print_columns(p, "            ", out);
        if (p->output[o].kind == PN_STORE) {
            print_element("y", o, stride, out);
            pn_text_printf(out, " = y%zu.lane[v];\n", o);
        } else {
            pn_text_printf(out, "sum%zu.lane[v] += y%zu.lane[v];\n", o, o);
        }
    }
}

/* The block's sums of one kind, to its row of the partials. */
static void print_sums(const pn_program *p, pn_output_kind kind, pn_shape shape, const char *array, pn_text *out) {
    const size_t row = pn_program_count_outputs(p, kind) * p->width;
    const char *type = kind == PN_SUM_POINTS_F64 ? "double" : type_name(p);
    size_t at = 0;
    for (size_t o = 0; o < p->outputs; o++) {
        if (p->output[o].kind != kind) continue;
        print_columns(p, "    ", out);
        pn_text_printf(out, "{\n        const %s sum = sum_rows<%s, %u, %u>(sum%zu.lane[v], part);\n", type, type, shape.columns, shape.rows, o);
        pn_text_printf(out, "        if (active && y == 0) s.%s[range * %zu + %zu + j + v] = sum;\n    }\n", array, row, at);
        at += p->width;
    }
}

static void print_section(const pn_program *p, size_t group, pn_text *out) {
    const size_t pack = pn_pack_choose(p);
    const pn_shape shape = pn_shape_choose(p->width / pack);
    pn_text_printf(out, "static __device__ __forceinline__ void section%zu(const operands%zu &s, const unsigned block, void *part) {\n",
                   group, group);
    pn_text_printf(out, "    const unsigned y = threadIdx.x / %u;\n", shape.columns);
    pn_text_printf(out, "    const size range = block / %u, j = (block %% %u * %u + threadIdx.x %% %u) * %zu;\n", shape.tiles, shape.tiles,
                   shape.columns, shape.columns, pack);
    pn_text_printf(out, "    const bool active = y < %u && j < %zu;\n", shape.rows, p->width);
    for (size_t o = 0; o < p->outputs; o++)
        if (p->output[o].kind != PN_STORE)
            pn_text_printf(out, "    pack<%s, %zu> sum%zu = {};\n", p->output[o].kind == PN_SUM_POINTS_F64 ? "double" : type_name(p), pack, o);
    pn_text_string(out, "    if (active) {\n        size p = range * s.share + y;\n");
    print_loads(p, false, "        ", out);
    pn_text_string(out, "        const size stop = (range + 1) * s.share < s.points ? (range + 1) * s.share : s.points;\n");
    pn_text_printf(out, "        for (; p < stop; p += %u) {\n", shape.rows);
    print_loads(p, true, "            ", out);
    print_call(p, group, out);
    print_stores(p, out);
    pn_text_string(out, "        }\n    }\n");
    print_sums(p, PN_SUM_POINTS, shape, "sums", out);
    print_sums(p, PN_SUM_POINTS_F64, shape, "sums_f64", out);
    pn_text_string(out, "}\n\n");
}

/* ---- the kernel ----------------------------------------------------------------------------------------------------------------- */

/* Sums over the rows of a block, in a fixed order: a tree over shared memory. All threads call it; row 0 gets the sums. */
static const char prelude[] =
    "typedef unsigned long long size;\n\n"
    "template <typename T, unsigned n>\n"
    "struct alignas(n * sizeof(T)) pack {\n"
    "    T lane[n];\n"
    "};\n\n"
    "template <typename T, unsigned columns, unsigned rows>\n"
    "static __device__ __forceinline__ T sum_rows(T value, void *shared) {\n"
    "    if (rows == 1) return value;\n"
    "    T *part = static_cast<T *>(shared);\n"
    "    const unsigned t = threadIdx.x;\n"
    "    unsigned half = 1;\n"
    "    while (2 * half < rows) half *= 2;\n"
    "    part[t] = value;\n"
    "    __syncthreads();\n"
    "    for (; half > 0; half /= 2) {\n"
    "        if (t < half * columns && t + half * columns < rows * columns) part[t] += part[t + half * columns];\n"
    "        __syncthreads();\n"
    "    }\n"
    "    value = part[t];\n"
    "    __syncthreads();\n"
    "    return value;\n"
    "}\n\n";

/* One block a multiprocessor will do: left to choose, the compiler gives programs of hundreds of channels 32 registers and kilobytes of local
 * memory (a Laplacian in 100 dimensions took half as long again). */
static void print_entry(const char *name, const size_t *sections, size_t groups, pn_text *out) {
    pn_text_string(out, "struct arguments {\n");
    for (size_t g = 0; g < groups; g++) pn_text_printf(out, "    operands%zu group%zu[%zu];\n", g, g, sections[g]);
    pn_text_printf(out, "};\n\nextern \"C\" __global__ void __launch_bounds__(%u, 1) %s(const __grid_constant__ arguments a) {\n",
                   (unsigned)PN_BLOCK_THREADS, name);
    pn_text_printf(out, "    __shared__ double part[%u];\n", (unsigned)PN_BLOCK_THREADS);
    pn_text_string(out, "    const unsigned block = blockIdx.x;\n    unsigned first = 0, i = 0;\n");
    for (size_t g = 0; g < groups; g++) {
        pn_text_printf(out, "    if (block < a.group%zu[%zu].end) {\n", g, sections[g] - 1);
        if (sections[g] > 1) pn_text_printf(out, "        while (block >= a.group%zu[i].end) first = (unsigned)a.group%zu[i++].end;\n", g, g);
        pn_text_printf(out, "        section%zu(a.group%zu[i], block - first, part);\n        return;\n    }\n", g, g);
        pn_text_printf(out, "    first = (unsigned)a.group%zu[%zu].end;\n", g, sections[g] - 1);
    }
    pn_text_string(out, "}\n");
}

static pinn_status check_request(const char *name, const pn_program *const *program, size_t count) {
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_') return pn_fail(PINN_BAD_ARGUMENT, "kernel name '%s' is not an identifier", name);
    if (count == 0 || !*name || isdigit((unsigned char)*name))
        return pn_fail(PINN_BAD_ARGUMENT, "kernel '%s': it needs a program and a name that is an identifier", name);
    for (size_t i = 1; i < count; i++)
        if (program[i]->real != program[0]->real)
            return pn_fail(PINN_BAD_ARGUMENT, "kernel %s: programs %zu and 0 differ in precision", name, i);
    return PINN_OK;
}

pinn_status pn_kernel_source(const char *name, const pn_program *const *program, size_t count, pn_text *out) {
    pinn_status status = check_request(name, program, count);
    if (status != PINN_OK) return status;
    size_t *group = pn_allocate(2 * count, sizeof *group);
    if (!group) return PN_NO_MEMORY("a kernel's text");
    size_t *sections = group + count; /* of each group */
    const size_t groups = pn_kernel_groups(program, count, group);
    pn_lane_prelude(false, out);
    pn_text_string(out, prelude);
    for (size_t i = 0; i < count; i++)
        if (sections[group[i]]++ == 0) {
            char lane[32];
            snprintf(lane, sizeof lane, "lane%zu", group[i]);
            pn_lane_source(program[i], lane, out);
            print_operands(program[i], group[i], out);
            print_section(program[i], group[i], out);
        }
    print_entry(name, sections, groups, out);
    pn_free(group);
    return pn_text_check(out);
}
