/* The functions of the expression language, and what people who come from elsewhere call them. */
#include <stdio.h>
#include <string.h>

#include "core/diagnostics.h"
#include "expression/internal.h"

#define UNARY(name, op) \
    { name, PN_FUNCTION_OP, 1, 1, PN_OP_##op, name "(a)" }
#define BINARY(name, op) \
    { name, PN_FUNCTION_OP, 2, 2, PN_OP_##op, name "(a, b)" }

static const pn_function functions[] = {
    UNARY("sin", SIN),
    UNARY("cos", COS),
    UNARY("tan", TAN),
    UNARY("asin", ASIN),
    UNARY("acos", ACOS),
    UNARY("atan", ATAN),
    UNARY("sinh", SINH),
    UNARY("cosh", COSH),
    UNARY("tanh", TANH),
    UNARY("exp", EXP),
    UNARY("expm1", EXPM1),
    UNARY("log", LOG),
    UNARY("log1p", LOG1P),
    UNARY("sqrt", SQRT),
    UNARY("abs", ABS),
    UNARY("sign", SIGN),
    UNARY("floor", FLOOR),
    UNARY("erf", ERF),
    BINARY("min", MIN),
    BINARY("max", MAX),
    BINARY("atan2", ATAN2),
    {"pow", PN_FUNCTION_POWER, 2, 2, PN_OP_POW, "pow(a, b)"},
    {"if", PN_FUNCTION_IF, 3, 3, PN_OP_SELECT, "if(condition, a, b)"},
    {"d", PN_FUNCTION_D, 2, PN_MAX_ORDER + 1, PN_OP_COUNT, "d(a, x) or d(a, x, y, ...)"},
    {"lap", PN_FUNCTION_LAP, 1, 1, PN_OP_COUNT, "lap(a)"},
    {"dn", PN_FUNCTION_DN, 1, 1, PN_OP_COUNT, "dn(a)"},
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const struct {
    const char *name;
    const char *hint;
} elsewhere[] = {
    {"ln", "write log(a)"},
    {"log10", "write log(a)/log(10)"},
    {"log2", "write log(a)/log(2)"},
    {"exp2", "write 2^a"},
    {"fabs", "write abs(a)"},
    {"arcsin", "write asin(a)"},
    {"arccos", "write acos(a)"},
    {"arctan", "write atan(a)"},
    {"arctan2", "write atan2(a, b)"},
    {"asinh", "write log(a + sqrt(a^2 + 1))"},
    {"acosh", "write log(a + sqrt(a^2 - 1))"},
    {"atanh", "write 0.5*log((1 + a)/(1 - a))"},
    {"cot", "write 1/tan(a)"},
    {"sec", "write 1/cos(a)"},
    {"csc", "write 1/sin(a)"},
    {"coth", "write 1/tanh(a)"},
    {"sech", "write 1/cosh(a)"},
    {"csch", "write 1/sinh(a)"},
    {"erfc", "write 1 - erf(a)"},
    {"sgn", "write sign(a)"},
    {"ceil", "write -floor(-a)"},
    {"round", "write floor(a + 0.5)"},
    {"mod", "write a - b*floor(a/b)"},
    {"fmod", "write a - b*floor(a/b)"},
    {"cbrt", "write sign(a)*abs(a)^(1/3)"},
    {"sqr", "write a^2"},
    {"square", "write a^2"},
    {"hypot", "write sqrt(a^2 + b^2)"},
    {"power", "write a^b"},
    {"sigmoid", "write 1/(1 + exp(-a))"},
    {"heaviside", "write if(a < 0, 0, 1)"},
    {"step", "write if(a < 0, 0, 1)"},
    {"relu", "write max(a, 0)"},
    {"where", "write if(condition, a, b)"},
    {"ifelse", "write if(condition, a, b)"},
    {"select", "write if(condition, a, b)"},
    {"diff", "write d(a, x)"},
    {"Derivative", "write d(a, x)"},
    {"derivative", "write d(a, x)"},
    {"D", "write d(a, x)"},
    {"dx", "write d(a, x)"},
    {"dt", "write d(a, t)"},
    {"laplace", "write lap(a)"},
    {"laplacian", "write lap(a)"},
    {"Laplacian", "write lap(a)"},
    {"grad", "write the components: d(a, x), d(a, y)"},
    {"div", "write d(a, x) + d(b, y)"},
};

const pn_function *pn_function_find(const char *name, size_t length) {
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (strncmp(functions[i].name, name, length) == 0 && functions[i].name[length] == 0) return &functions[i];
    return NULL;
}

const char *pn_function_hint(const char *name, size_t length, char *buffer, size_t size) {
    char word[64];
    if (length >= sizeof word) return NULL;
    memcpy(word, name, length);
    word[length] = 0;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(elsewhere[i].name, word) == 0) return elsewhere[i].hint;
    const char *candidate[FUNCTIONS];
    for (size_t i = 0; i < FUNCTIONS; i++) candidate[i] = functions[i].name;
    const char *nearest = pn_nearest(word, candidate, FUNCTIONS);
    if (!nearest || (length <= 3 && nearest[0] != word[0])) return NULL; /* "foo" is no "cos" */
    snprintf(buffer, size, "did you mean \"%s\"?", nearest);
    return buffer;
}
