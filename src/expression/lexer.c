/* Bytes to tokens.
 *
 * Numbers are decimal: digits with an optional point, an optional exponent (2, 2., .5, 1e-4); names are [A-Za-z_][A-Za-z0-9_]*.
 * Whatever else people paste from papers (a Unicode minus, x squared with a raised 2, Greek letters) is an error that names what to
 * write; an operator that is plain to see is then taken as meant, so that the rest of the expression is still checked.
 */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expression/internal.h"

enum { MAX_NUMBER = 100 /* bytes of one number */, TOKEN_SKIP = -1 /* reported, then treated as a blank */ };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* ---- What doesn't belong ----------------------------------------------------------------------------------------------- */

static const struct {
    unsigned code; /* Unicode */
    int kind;      /* token it stands for, or TOKEN_SKIP */
    const char *hint; /* {u} and {x}: the first field and coordinate */
} symbols[] = {
    {0x2212, PN_TOKEN_SUB, "write \"-\""},
    {0x2013, PN_TOKEN_SUB, "write \"-\""},
    {0x2014, PN_TOKEN_SUB, "write \"-\""},
    {0x00d7, PN_TOKEN_MUL, "write \"*\""},
    {0x00b7, PN_TOKEN_MUL, "write \"*\""},
    {0x22c5, PN_TOKEN_MUL, "write \"*\""},
    {0x2217, PN_TOKEN_MUL, "write \"*\""},
    {0x00f7, PN_TOKEN_DIV, "write \"/\""},
    {0x2264, PN_TOKEN_LE, "write \"<=\""},
    {0x2265, PN_TOKEN_GE, "write \">=\""},
    {0x00b9, TOKEN_SKIP, "write ^1"},
    {0x00b2, TOKEN_SKIP, "write ^2"},
    {0x00b3, TOKEN_SKIP, "write ^3"},
    {0x2070, TOKEN_SKIP, "write ^0"},
    {0x2074, TOKEN_SKIP, "write ^4"},
    {0x2075, TOKEN_SKIP, "write ^5"},
    {0x2076, TOKEN_SKIP, "write ^6"},
    {0x2077, TOKEN_SKIP, "write ^7"},
    {0x2078, TOKEN_SKIP, "write ^8"},
    {0x2079, TOKEN_SKIP, "write ^9"},
    {0x00a0, TOKEN_SKIP, "this is a no-break space: write a plain space"},
    {0x2009, TOKEN_SKIP, "this is a thin space: write a plain space"},
    {0x200b, TOKEN_SKIP, "this is an invisible space: delete it"},
    {0xfeff, TOKEN_SKIP, "this is an invisible byte order mark: delete it"},
    {0x2202, PN_TOKEN_BAD, "write a derivative as {u}_{x} or d({u}, {x})"},
    {0x2206, PN_TOKEN_BAD, "write the Laplacian as lap({u})"},
    {0x0394, PN_TOKEN_BAD, "write the Laplacian as lap({u})"},
    {0x2207, PN_TOKEN_BAD, "write derivatives as {u}_{x}, d({u}, {x}) or lap({u})"},
    {0x221a, PN_TOKEN_BAD, "write sqrt(...)"},
    {0x221e, PN_TOKEN_BAD, "every number is finite"},
    {0x2260, PN_TOKEN_BAD, "for \"not equal\" write 1 - (a == b)"},
    {0x00bd, PN_TOKEN_BAD, "write 0.5"},
};

/* alpha is U+03B1, and so on in order. */
static const char *const greek[] = {"alpha", "beta",   "gamma",   "delta", "epsilon", "zeta",    "eta",  "theta", "iota",
                                    "kappa", "lambda", "mu",      "nu",    "xi",      "omicron", "pi",   "rho",   "sigma",
                                    "sigma", "tau",    "upsilon", "phi",   "chi",     "psi",     "omega"};

static const struct {
    const char *text;
    const char *hint;
} punctuation[] = {
    {"!=", "for \"not equal\" write 1 - (a == b)"},
    {"<>", "for \"not equal\" write 1 - (a == b)"},
    {"&&", "for \"and\" multiply conditions: (a < b)*(c < d)"},
    {"||", "for \"or\" write max(a < b, c < d)"},
    {"&", "for \"and\" multiply conditions: (a < b)*(c < d)"},
    {"|", "for \"or\" write max(a < b, c < d); for a magnitude abs(a)"},
    {"!", "for \"not\" write 1 - (a < b)"},
    {"%", "for a remainder write a - b*floor(a/b)"},
    {"?", "write if(condition, a, b)"},
    {":", "write if(condition, a, b)"},
    {"'", "write a derivative as {u}_{x} or d({u}, {x})"},
    {"[", "group with \"(\" and \")\""},
    {"]", "group with \"(\" and \")\""},
    {"{", "group with \"(\" and \")\""},
    {"}", "group with \"(\" and \")\""},
    {";", "one text holds one expression"},
    {".", "a number needs a digit beside its point"},
};

/* Layout and direction marks would disturb the terminal they are printed on. */
static bool is_invisible(unsigned code) {
    return code <= 0xa0 || (code >= 0x2000 && code <= 0x200f) || (code >= 0x2028 && code <= 0x202f) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

/* What the non-ASCII character at `at` stands for (a token kind or TOKEN_SKIP) and its length in bytes; code 0 = not UTF-8. */
static int classify(const pn_source *source, size_t at, size_t *length, unsigned *code, const char **hint) {
    *code = 0;
    *length = pn_text_utf8(source->text + at, code);
    *hint = "names are ASCII letters, digits and \"_\"";
    if (*length == 0) *length = 1;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (symbols[i].code == *code) {
            *hint = symbols[i].hint;
            return symbols[i].kind;
        }
    return PN_TOKEN_BAD;
}

/* Puts the scope's own names into a hint. */
static const char *with_names(const pn_source *source, const char *hint, char *buffer, size_t size) {
    const pn_scope *scope = source->scope;
    const char *coordinate = scope->coordinates ? scope->name[0].text : "x", *field = scope->fields ? scope->name[scope->coordinates].text : "u";
    size_t n = 0;
    for (const char *c = hint; *c && n + 1 < size;) {
        const char *name = strncmp(c, "{x}", 3) == 0 ? coordinate : strncmp(c, "{u}", 3) == 0 ? field : NULL;
        if (name)
            n += (size_t)snprintf(buffer + n, size - n, "%s", name);
        else
            buffer[n++] = *c;
        c += name ? 3 : 1;
    }
    buffer[n < size ? n : size - 1] = 0;
    return buffer;
}

/* Reports the non-ASCII character at `at`; returns its length in bytes, and the token kind it stands for. */
static size_t report_unicode(pn_source *source, size_t at, int *kind) {
    unsigned code;
    size_t length;
    const char *hint, *text = source->text + at;
    char spelled[256];
    *kind = classify(source, at, &length, &code, &hint);
    if (code >= 0x3b1 && code <= 0x3c9) {
        snprintf(spelled, sizeof spelled, "write %s", greek[code - 0x3b1]);
        hint = spelled;
    } else
        hint = with_names(source, hint, spelled, sizeof spelled);
    if (code == 0)
        pn_source_report(source, at, "an expression is plain ASCII text", "byte 0x%02x in an expression", (unsigned char)*text);
    else if (is_invisible(code))
        pn_source_report(source, at, hint, "character U+%04X in an expression", code);
    else
        pn_source_report(source, at, hint, "character \"%.*s\" (U+%04X) in an expression", (int)length, text, code);
    return length;
}

/* Reports the ASCII character at `at` that begins no token; its length in bytes. */
static size_t report_ascii(pn_source *source, size_t at) {
    const char *p = source->text + at;
    if ((unsigned char)*p < 0x20 || *p == 0x7f) {
        pn_source_report(source, at, "delete it", "control character 0x%02x in an expression", (unsigned char)*p);
        return 1;
    }
    for (size_t i = 0; i < sizeof punctuation / sizeof *punctuation; i++) {
        size_t length = strlen(punctuation[i].text);
        if (strncmp(p, punctuation[i].text, length) != 0) continue;
        char hint[256];
        pn_source_report(source, at, with_names(source, punctuation[i].hint, hint, sizeof hint), "\"%s\" is not an operator",
                         punctuation[i].text);
        return length;
    }
    pn_source_report(source, at, "delete it", "character \"%c\" in an expression", *p);
    return 1;
}

/* ---- Tokens ------------------------------------------------------------------------------------------------------------ */

/* In the C locale whatever the program has set: a comma is never a decimal point here. */
static double read_decimal(const char *text) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c) return strtod(text, NULL);
    double value = strtod_l(text, NULL, c);
    freelocale(c);
    return value;
}

static pn_token lex_number(pn_source *source, size_t begin) {
    const char *text = source->text;
    size_t i = begin;
    bool zero = true; /* all mantissa digits are 0 */
    int points = 0;
    for (; is_digit(text[i]) || text[i] == '.'; i++) {
        if (text[i] == '.') points++;
        if (text[i] > '0' && text[i] <= '9') zero = false;
    }
    if (text[i] == 'e' || text[i] == 'E') {
        size_t j = i + 1 + (text[i + 1] == '+' || text[i + 1] == '-');
        bool digits = is_digit(text[j]);
        while (is_digit(text[j])) j++;
        if (digits) {
            i = j;
        } else if (!is_letter(text[i + 1])) { /* "2exp(x)" is a product that lacks its "*"; "2e" and "2e-" lack digits */
            pn_source_report(source, begin, "write digits after the exponent's \"e\", as in 1e-4",
                             "number \"%s\" has an empty exponent", pn_source_excerpt(source, begin, j).text);
            return (pn_token){PN_TOKEN_BAD, (uint32_t)begin, (uint32_t)j, 0};
        }
    }
    pn_token token = {PN_TOKEN_NUMBER, (uint32_t)begin, (uint32_t)i, 0};
    char digits[MAX_NUMBER + 1];
    if (points > 1 || i - begin > MAX_NUMBER) {
        pn_source_report(source, begin, points > 1 ? "a number has one decimal point" : "16 digits are all a float64 holds",
                         points > 1 ? "number \"%s\" has more than one point" : "number \"%s\" is too long",
                         pn_source_excerpt(source, begin, i).text);
        token.kind = PN_TOKEN_BAD;
        return token;
    }
    memcpy(digits, text + begin, i - begin);
    digits[i - begin] = 0;
    token.number = read_decimal(digits);
    if (isinf(token.number) || (token.number == 0 && !zero)) {
        pn_source_report(source, begin, "float64 numbers lie between about 1e-308 and 1e308", "number \"%s\" is out of range",
                         pn_source_excerpt(source, begin, i).text);
        token.kind = PN_TOKEN_BAD;
    }
    return token;
}

static pn_token lex_name(pn_source *source, size_t begin) {
    size_t i = begin, length;
    bool bad = false;
    unsigned code;
    const char *hint;
    int kind;
    for (;;) {
        while (is_letter(source->text[i]) || is_digit(source->text[i])) i++;
        /* A foreign letter is part of the name; a foreign operator or blank ends it. */
        if ((unsigned char)source->text[i] < 0x80 || classify(source, i, &length, &code, &hint) != PN_TOKEN_BAD) break;
        if (!bad) report_unicode(source, i, &kind);
        bad = true;
        i += length;
    }
    return (pn_token){bad ? PN_TOKEN_BAD : PN_TOKEN_NAME, (uint32_t)begin, (uint32_t)i, 0};
}

static const struct {
    const char *text;
    pn_token_kind kind;
} operators[] = {/* longer ones first */
                 {"<=", PN_TOKEN_LE},    {">=", PN_TOKEN_GE},  {"==", PN_TOKEN_EQ},   {"<", PN_TOKEN_LT},   {">", PN_TOKEN_GT},
                 {"=", PN_TOKEN_ASSIGN}, {"+", PN_TOKEN_ADD},  {"-", PN_TOKEN_SUB},   {"*", PN_TOKEN_MUL},  {"/", PN_TOKEN_DIV},
                 {"^", PN_TOKEN_POWER},  {"(", PN_TOKEN_OPEN}, {")", PN_TOKEN_CLOSE}, {",", PN_TOKEN_COMMA}};

pn_token pn_lex_next(pn_source *source, size_t *cursor) {
    const char *text = source->text;
    for (;;) {
        while (is_blank(text[*cursor])) ++*cursor;
        size_t i = *cursor;
        pn_token token = {PN_TOKEN_END, (uint32_t)i, (uint32_t)i, 0};
        if (i >= source->length) return token;
        if ((unsigned char)text[i] >= 0x80) {
            int kind;
            *cursor += report_unicode(source, i, &kind);
            if (kind == TOKEN_SKIP) continue;
            while (kind == PN_TOKEN_BAD && (is_letter(text[*cursor]) || is_digit(text[*cursor]))) ++*cursor;
            token.kind = (pn_token_kind)kind;
        } else if (is_digit(text[i]) || (text[i] == '.' && is_digit(text[i + 1]))) {
            token = lex_number(source, i);
            *cursor = token.end;
        } else if (is_letter(text[i])) {
            token = lex_name(source, i);
            *cursor = token.end;
        } else if (strncmp(text + i, "**", 2) == 0) {
            pn_source_report(source, i, "write \"^\" for a power", "\"**\" is not an operator");
            token.kind = PN_TOKEN_POWER;
            *cursor += 2;
        } else {
            token.kind = PN_TOKEN_BAD;
            for (size_t k = 0; k < sizeof operators / sizeof *operators && token.kind == PN_TOKEN_BAD; k++) {
                size_t length = strlen(operators[k].text);
                if (strncmp(text + i, operators[k].text, length) != 0 || strncmp(text + i, "<>", 2) == 0) continue;
                token.kind = operators[k].kind;
                *cursor += length;
            }
            if (token.kind == PN_TOKEN_BAD) *cursor += report_ascii(source, i);
        }
        token.end = (uint32_t)*cursor;
        return token;
    }
}
