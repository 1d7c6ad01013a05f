/* Every error of the expression language: its place, its words, its repair. The scope: coordinates x, y, t (time); fields u, v, p;
 * constants alpha, zero, k; definitions flux (line 20), wave, broken (lines 22 and 23), later. Texts begin at line 7, column 12. */
#include "support.h"

enum {
    NUMBER = PN_ALLOW_CONSTANTS,             /* a bound */
    FORMULA = NUMBER | PN_ALLOW_COORDINATES, /* a reference */
    NO_NORMAL = FORMULA | PN_ALLOW_FIELDS,   /* an equation */
    MOST = 6                                 /* errors of one case */
};

static const struct {
    unsigned allow;
    const char *text;
    struct {
        unsigned line, column;
        const char *message, *hint;
    } error[MOST];
} cases[] = {
    /* names */
    {ALL, "u_t - alhpa*u_xx", {{7, 18, "unknown name \"alhpa\"", "did you mean \"alpha\"?"}}},
    {ALL,
     "alhpa + alhpa*betta",
     {{7, 12, "unknown name \"alhpa\"", "did you mean \"alpha\"?"},
      {7, 26, "unknown name \"betta\"", "it must be a coordinate, a field, pi, or a name in [constants] or [define]"}}},
    {ALL,
     "Alpha + PI",
     {{7, 12, "unknown name \"Alpha\"", "did you mean \"alpha\"?"}, {7, 20, "unknown name \"PI\"", "did you mean \"pi\"?"}}},
    {ALL, "e^x", {{7, 12, "unknown name \"e\"", "for Euler's number write exp(1)"}}},
    {ALL, "sin x", {{7, 12, "\"sin\" is a function", "write sin(a)"}}},
    {ALL, "2*exp", {{7, 14, "\"exp\" is a function", "write exp(a)"}}},
    {ALL, "nt*u", {{7, 12, "unknown name \"nt\"", "time has no component of the normal"}}},
    {ALL,
     "w_x + w_y",
     {{7, 12, "unknown field \"w\" in \"w_x\"", "the fields are u, v, p"},
      {7, 18, "unknown field \"w\" in \"w_y\"", "the fields are u, v, p"}}},
    {ALL, "uv_x", {{7, 12, "unknown field \"uv\" in \"uv_x\"", "the fields are u, v, p"}}},
    {ALL, "alpha_x", {{7, 12, "\"alpha\" in \"alpha_x\" is a constant, not a field", "the derivative of a constant is 0"}}},
    {ALL, "x_t", {{7, 12, "\"x\" in \"x_t\" is a coordinate, not a field", "coordinates don't depend on each other"}}},
    {ALL, "flux_x", {{7, 12, "\"flux\" in \"flux_x\" is a definition, not a field", "write d(flux, ...)"}}},
    {ALL, "u_z", {{7, 14, "\"z\" in \"u_z\" is no coordinate", "the coordinates are x, y, t"}}},
    {ALL, "u_xz", {{7, 15, "\"z\" in \"u_xz\" is no coordinate", "the coordinates are x, y, t"}}},
    {ALL, "u_", {{7, 12, "\"u_\" ends without a coordinate", "the coordinates are x, y, t"}}},
    {ALL, "u_xxxxxxxxx", {{7, 12, "\"u_xxxxxxxxx\" is a derivative of order 9", "the highest order is 8"}}},
    {ALL,
     "frequency",
     {{7, 12, "unknown name \"frequency\"", "it must be a coordinate, a field, pi, or a name in [constants] or [define]"}}},
    {NUMBER, "2*betta", {{7, 14, "unknown name \"betta\"", "it must be pi or a name in [constants]; a constant may use those before it"}}},
    {NUMBER, "uu + xx + w_x", /* no field, coordinate or derivative is proposed where none may stand */
     {{7, 12, "unknown name \"uu\"", "it must be pi or a name in [constants]; a constant may use those before it"},
      {7, 17, "unknown name \"xx\"", "it must be pi or a name in [constants]; a constant may use those before it"},
      {7, 22, "unknown name \"w_x\"", "it must be pi or a name in [constants]; a constant may use those before it"}}},
    {NUMBER, "alhpa", {{7, 12, "unknown name \"alhpa\"", "did you mean \"alpha\"?"}}},
    {FORMULA, "betta + w_x",
     {{7, 12, "unknown name \"betta\"", "it must be a coordinate, pi, or a name in [constants] or [define]"},
      {7, 20, "unknown name \"w_x\"", "it must be a coordinate, pi, or a name in [constants] or [define]"}}},
    /* definitions */
    {ALL,
     "broken + broken",
     {{22, 12, "unknown name \"betta\"", "it must be a coordinate, a field, pi, or a name in [constants] or [define]"},
      {23, 4, "\"later\" is defined later", "a definition may use those before it in [define]"}}},
    {ALL,
     "broken + gamma",
     {{22, 12, "unknown name \"betta\"", "it must be a coordinate, a field, pi, or a name in [constants] or [define]"},
      {23, 4, "\"later\" is defined later", "a definition may use those before it in [define]"},
      {7, 21, "unknown name \"gamma\"", "it must be a coordinate, a field, pi, or a name in [constants] or [define]"}}},
    {FORMULA, "flux", {{7, 12, "\"flux\" is not allowed here", "its definition uses a field, which can't stand here"}}},
    {NUMBER, "wave", {{7, 12, "\"wave\" is not allowed here", "its definition uses a coordinate, which can't stand here"}}},
    /* derivatives */
    {ALL, "d(u, 3)", {{7, 17, "d differentiates by coordinates, and \"3\" is none", "the coordinates are x, y, t"}}},
    {ALL, "d(u, z)", {{7, 17, "d differentiates by coordinates, and \"z\" is none", "the coordinates are x, y, t"}}},
    {ALL, "d(u, alpha)", {{7, 17, "d differentiates by coordinates, and \"alpha\" is none", "the coordinates are x, y, t"}}},
    {ALL, "d(u, x + y)", {{7, 17, "d differentiates by coordinates, and \"x + y\" is none", "the coordinates are x, y, t"}}},
    {ALL,
     "d(u)",
     {{7, 12, "d takes an expression and the coordinates to differentiate by, not 1 argument",
       "write d(a, x), or more coordinates for higher orders"}}},
    {ALL,
     "d()",
     {{7, 12, "d takes an expression and the coordinates to differentiate by, not 0 arguments",
       "write d(a, x), or more coordinates for higher orders"}}},
    {ALL, "d(u, x, x, x, x, x, x, x, x, x)", {{7, 12, "a derivative of order 9", "the highest order is 8"}}},
    {ALL, "d(u_xxxxxxxx, x)", {{7, 12, "a field is differentiated more than 8 times", "the highest order is 8"}}},
    {ALL, "lap(lap(lap(lap(lap(u)))))", {{7, 12, "a field is differentiated more than 8 times", "the highest order is 8"}}},
    {ALL, "d(w, x)", {{7, 14, "unknown name \"w\"", "it must be a coordinate, a field, pi, or a name in [constants] or [define]"}}},
    /* calls */
    {ALL, "sinn(x)", {{7, 12, "unknown function \"sinn\"", "did you mean \"sin\"?"}}},
    {ALL, "ln(x)", {{7, 12, "unknown function \"ln\"", "write log(a)"}}},
    {ALL, "laplacian(u)", {{7, 12, "unknown function \"laplacian\"", "write lap(a)"}}},
    {ALL, "foo(x)", {{7, 12, "unknown function \"foo\"", "docs/expressions.md lists the functions"}}},
    {ALL, "sin(x, y)", {{7, 12, "sin takes 1 argument, not 2", "write sin(a)"}}},
    {ALL, "min(x)", {{7, 12, "min takes 2 arguments, not 1", "write min(a, b)"}}},
    {ALL, "sin()", {{7, 12, "sin takes 1 argument, not 0", "write sin(a)"}}},
    {ALL, "if(x < 1, u)", {{7, 12, "if takes 3 arguments, not 2", "write if(condition, a, b)"}}},
    {ALL,
     "u(x, t)",
     {{7, 12, "\"u\" is a field, not a function", "write u alone: fields depend on all coordinates; for a product write u*(...)"}}},
    {ALL,
     "u_x(0)",
     {{7, 12, "\"u_x\" is a derivative, not a function",
       "write u_x alone: fields depend on all coordinates; for a product write u_x*(...)"}}},
    {ALL, "k u (1-u)", {{7, 14, "an operator is missing between \"k\" and \"u\"", "write k*u"}}},
    {ALL, "alpha(x)", {{7, 12, "\"alpha\" is not a function", "for a product write alpha*(...)"}}},
    {ALL, "pi(x)", {{7, 12, "\"pi\" is not a function", "for a product write pi*(...)"}}},
    {ALL, "nx(u)", {{7, 12, "\"nx\" is not a function", "for a product write nx*(...)"}}},
    /* numbers */
    {ALL, "1e999", {{7, 12, "number \"1e999\" is out of range", "float64 numbers lie between about 1e-308 and 1e308"}}},
    {ALL, "1e-999", {{7, 12, "number \"1e-999\" is out of range", "float64 numbers lie between about 1e-308 and 1e308"}}},
    {ALL, "2e", {{7, 12, "number \"2e\" has an empty exponent", "write digits after the exponent's \"e\", as in 1e-4"}}},
    {ALL, "2e- x", {{7, 12, "number \"2e-\" has an empty exponent", "write digits after the exponent's \"e\", as in 1e-4"}}},
    {ALL, "1.2.3", {{7, 12, "number \"1.2.3\" has more than one point", "a number has one decimal point"}}},
    {ALL, ".", {{7, 12, "\".\" is not an operator", "a number needs a digit beside its point"}}},
    {ALL,
     "1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111",
     {{7, 12, "number \"111111111111111111111111111111111111111111111111111111111111...\" is too long",
       "16 digits are all a float64 holds"}}},
    {ALL, "1/0", {{7, 14, "division by zero", "divide by a number that is not 0"}}},
    {ALL, "1/0.0", {{7, 14, "division by zero", "divide by a number that is not 0"}}},
    {ALL, "u/zero", {{7, 14, "division by zero: \"zero\" is 0", "divide by something that is not 0"}}},
    {ALL, "1/(2-2)", {{7, 14, "division by zero: \"(2-2)\" is 0", "divide by something that is not 0"}}},
    {ALL, "1/(alpha - 0.4)", {{7, 14, "division by zero: \"(alpha - 0.4)\" is 0", "divide by something that is not 0"}}},
    {ALL, "log(0)", {{7, 12, "\"log(0)\" is not a finite number", "its value is minus infinity"}}},
    {ALL, "sqrt(-1)", {{7, 12, "\"sqrt(-1)\" is not a finite number", "its value is not a number"}}},
    {ALL, "0^-1", {{7, 12, "\"0^-1\" is not a finite number", "its value is infinite"}}},
    {ALL, "1e300*1e300", {{7, 12, "\"1e300*1e300\" is not a finite number", "its value is infinite"}}},
    /* operators */
    {ALL, "u**2", {{7, 13, "\"**\" is not an operator", "write \"^\" for a power"}}},
    {ALL,
     "u_t = alpha*u_xx",
     {{7, 16, "\"=\" inside an expression", "a residual is one expression that should be zero: write u_t - (alpha*u_xx)"}}},
    {ALL,
     "u_t = (u_xx)",
     {{7, 16, "\"=\" inside an expression", "a residual is one expression that should be zero: write u_t - (u_xx)"}}},
    {ALL,
     "u_t == u = v",
     {{7, 21, "\"=\" inside an expression", "a residual is one expression that should be zero: write u_t == u - (v)"}}},
    {ALL, "if(x = 1, u, v)", {{7, 17, "\"=\" inside an expression", "to compare write \"==\""}}},
    {ALL, "2x", {{7, 13, "an operator is missing between \"2\" and \"x\"", "write 2*x"}}},
    {ALL, "2 pi", {{7, 14, "an operator is missing between \"2\" and \"pi\"", "write 2*pi"}}},
    {ALL, "2(x + 1)", {{7, 13, "an operator is missing between \"2\" and \"(\"", "write 2*(...)"}}},
    {ALL, "(x)(y)", {{7, 15, "an operator is missing between \")\" and \"(\"", "write (...)*(...)"}}},
    {ALL, "u v", {{7, 14, "an operator is missing between \"u\" and \"v\"", "write u*v"}}},
    {ALL, "2exp(x)", {{7, 13, "an operator is missing between \"2\" and \"exp\"", "write 2*exp"}}},
    {ALL, "x < y < t", {{7, 18, "comparisons can't be chained", "write (a < b)*(b < c)"}}},
    {ALL, "x != y", {{7, 14, "\"!=\" is not an operator", "for \"not equal\" write 1 - (a == b)"}}},
    {ALL, "x <> y", {{7, 14, "\"<>\" is not an operator", "for \"not equal\" write 1 - (a == b)"}}},
    {ALL, "x && y", {{7, 14, "\"&&\" is not an operator", "for \"and\" multiply conditions: (a < b)*(c < d)"}}},
    {ALL, "x || y", {{7, 14, "\"||\" is not an operator", "for \"or\" write max(a < b, c < d)"}}},
    {ALL, "!x", {{7, 12, "\"!\" is not an operator", "for \"not\" write 1 - (a < b)"}}},
    {ALL, "x % 2", {{7, 14, "\"%\" is not an operator", "for a remainder write a - b*floor(a/b)"}}},
    {ALL, "u'", {{7, 13, "\"'\" is not an operator", "write a derivative as u_x or d(u, x)"}}},
    {ALL,
     "u[0]",
     {{7, 13, "\"[\" is not an operator", "group with \"(\" and \")\""},
      {7, 15, "\"]\" is not an operator", "group with \"(\" and \")\""}}},
    {ALL,
     "x ? 1 : 2",
     {{7, 14, "\"?\" is not an operator", "write if(condition, a, b)"},
      {7, 18, "\":\" is not an operator", "write if(condition, a, b)"}}},
    {ALL, "u;", {{7, 13, "\";\" is not an operator", "one text holds one expression"}}},
    {ALL,
     "\"u\"",
     {{7, 12, "character \"\"\" in an expression", "delete it"}, {7, 14, "character \"\"\" in an expression", "delete it"}}},
    {ALL, "u @ v", {{7, 14, "character \"@\" in an expression", "delete it"}}},
    /* what is missing */
    {ALL, "sin(x", {{7, 15, "the \"(\" of sin is never closed", "add \")\" where its arguments end"}}},
    {ALL, "(u + v", {{7, 12, "this \"(\" is never closed", "add \")\" where the group ends"}}},
    {ALL, "u + (v*(x + sin(t))", {{7, 16, "this \"(\" is never closed", "add \")\" where the group ends"}}},
    {ALL, "u + v)", {{7, 17, "\")\" without a \"(\"", "delete it, or add its \"(\""}}},
    {ALL,
     "u) + alhpa",
     {{7, 13, "\")\" without a \"(\"", "delete it, or add its \"(\""},
      {7, 17, "unknown name \"alhpa\"", "did you mean \"alpha\"?"}}},
    {ALL, "()", {{7, 12, "empty parentheses", "put an expression between them"}}},
    {ALL, "u +", {{7, 14, "nothing stands after \"+\"", "put a number, a name or parentheses there"}}},
    {ALL, "* u", {{7, 12, "nothing stands before \"*\"", "put a number, a name or parentheses there"}}},
    {ALL, "u * / v", {{7, 16, "nothing stands before \"/\"", "put a number, a name or parentheses there"}}},
    {ALL, "min(u,)", {{7, 17, "nothing stands after \",\"", "put a number, a name or parentheses there"}}},
    {ALL, "min(,u)", {{7, 16, "nothing stands before \",\"", "put a number, a name or parentheses there"}}},
    {ALL, "(u, v)", {{7, 14, "\",\" in plain parentheses", "a comma only parts the arguments of a function"}}},
    {ALL, "u, v", {{7, 13, "\",\" outside a function's arguments", "one text holds one expression"}}},
    {ALL, "-", {{7, 12, "nothing stands after \"-\"", "put a number, a name or parentheses there"}}},
    {ALL, "2^", {{7, 13, "nothing stands after \"^\"", "put a number, a name or parentheses there"}}},
    {ALL, "x <", {{7, 14, "nothing stands after \"<\"", "put a number, a name or parentheses there"}}},
    /* not ASCII */
    {ALL, "u \342\210\222 v", {{7, 14, "character \"\342\210\222\" (U+2212) in an expression", "write \"-\""}}},
    {ALL, "u\302\262", {{7, 13, "character \"\302\262\" (U+00B2) in an expression", "write ^2"}}},
    {ALL, "\316\261*u", {{7, 12, "character \"\316\261\" (U+03B1) in an expression", "write alpha"}}},
    {ALL, "u_\316\261 + v", {{7, 14, "character \"\316\261\" (U+03B1) in an expression", "write alpha"}}},
    {ALL, "\317\200*x", {{7, 12, "character \"\317\200\" (U+03C0) in an expression", "write pi"}}},
    {ALL,
     "x\302\267y \303\267 2",
     {{7, 13, "character \"\302\267\" (U+00B7) in an expression", "write \"*\""},
      {7, 17, "character \"\303\267\" (U+00F7) in an expression", "write \"/\""}}},
    {ALL,
     "\342\210\202u",
     {{7, 12, "character \"\342\210\202\" (U+2202) in an expression", "write a derivative as u_x or d(u, x)"}}},
    {ALL, "\316\224u", {{7, 12, "character \"\316\224\" (U+0394) in an expression", "write the Laplacian as lap(u)"}}},
    {ALL, "\342\210\232(x)", {{7, 12, "character \"\342\210\232\" (U+221A) in an expression", "write sqrt(...)"}}},
    {ALL, "u\342\211\244v", {{7, 13, "character \"\342\211\244\" (U+2264) in an expression", "write \"<=\""}}},
    {ALL, "u\302\240+ v", {{7, 13, "character U+00A0 in an expression", "this is a no-break space: write a plain space"}}},
    {ALL, "u\377", {{7, 13, "byte 0xff in an expression", "an expression is plain ASCII text"}}},
    {ALL, "\320\266", {{7, 12, "character \"\320\266\" (U+0436) in an expression", "names are ASCII letters, digits and \"_\""}}},
    {ALL, "u\001v", {{7, 13, "control character 0x01 in an expression", "delete it"}}},
    {ALL, "u\342\200\213", {{7, 13, "character U+200B in an expression", "this is an invisible space: delete it"}}},
    /* where things stand */
    {NUMBER, "x", {{7, 12, "coordinate \"x\" is not allowed here", "numbers, pi and constants stand here"}}},
    {NUMBER, "u_x + 2", {{7, 12, "field \"u_x\" is not allowed here", "numbers, pi and constants stand here"}}},
    {FORMULA, "u + x", {{7, 12, "field \"u\" is not allowed here", "a formula of coordinates and constants stands here"}}},
    {FORMULA, "lap(u)", {{7, 16, "field \"u\" is not allowed here", "a formula of coordinates and constants stands here"}}},
    {FORMULA, "d(x, u)", {{7, 17, "d differentiates by coordinates, and \"u\" is none", "the coordinates are x, y, t"}}},
    {NO_NORMAL, "dn(u)", {{7, 12, "\"dn\" is not allowed here", "the outward normal exists in conditions on faces only"}}},
    {NO_NORMAL, "u - nx", {{7, 16, "\"nx\" is not allowed here", "the outward normal exists in conditions on faces only"}}},
    {NUMBER, "lap(2)", {{7, 12, "\"lap\" is not allowed here", "numbers, pi and constants stand here"}}},
    {FORMULA,
     "u = sin(x)",
     {{7, 14, "\"=\" inside an expression", "write the right-hand side alone"},
      {7, 12, "field \"u\" is not allowed here", "a formula of coordinates and constants stands here"}}},
    {NUMBER,
     "x = 2",
     {{7, 14, "\"=\" inside an expression", "write the right-hand side alone"},
      {7, 12, "coordinate \"x\" is not allowed here", "numbers, pi and constants stand here"}}},
    /* several lines */
    {ALL,
     "u_t\n - alhpa*u_xx\n + betta",
     {{8, 4, "unknown name \"alhpa\"", "did you mean \"alpha\"?"},
      {9, 4, "unknown name \"betta\"", "it must be a coordinate, a field, pi, or a name in [constants] or [define]"}}},
    /* several errors */
    {FORMULA,
     "u_t + nx*x + lap(u)",
     {{7, 12, "field \"u_t\" is not allowed here", "a formula of coordinates and constants stands here"},
      {7, 18, "\"nx\" is not allowed here", "the outward normal exists in conditions on faces only"},
      {7, 29, "field \"u\" is not allowed here", "a formula of coordinates and constants stands here"}}},
    {ALL,
     "(alhpa + 2 * (betta",
     {{7, 25, "this \"(\" is never closed", "add \")\" where the group ends"},
      {7, 13, "unknown name \"alhpa\"", "did you mean \"alpha\"?"},
      {7, 26, "unknown name \"betta\"", "it must be a coordinate, a field, pi, or a name in [constants] or [define]"}}},
    {ALL,
     "alhpa*u_z + foo(w_x, 1/0) - 2y",
     {{7, 41, "an operator is missing between \"2\" and \"y\"", "write 2*y"},
      {7, 12, "unknown name \"alhpa\"", "did you mean \"alpha\"?"},
      {7, 20, "\"z\" in \"u_z\" is no coordinate", "the coordinates are x, y, t"},
      {7, 28, "unknown field \"w\" in \"w_x\"", "the fields are u, v, p"},
      {7, 35, "division by zero", "divide by a number that is not 0"},
      {7, 24, "unknown function \"foo\"", "docs/expressions.md lists the functions"}}},
};

static void open_with_definitions(world *w) {
    world_open(w);
    ck_assert_int_eq(pn_scope_define(w->scope, "flux", "alpha*u_x", (pn_position){20, 8}), PINN_OK);
    ck_assert_int_eq(pn_scope_define(w->scope, "wave", "sin(x)", (pn_position){21, 8}), PINN_OK);
    ck_assert_int_eq(pn_scope_define(w->scope, "broken", "1 + betta*x\n + later", (pn_position){22, 8}), PINN_OK);
    ck_assert_int_eq(pn_scope_define(w->scope, "later", "1", (pn_position){24, 1}), PINN_OK);
}

START_TEST(errors_say_what_where_and_how_to_repair) {
    world w;
    pn_value value = 4711;
    open_with_definitions(&w);
    pinn_status status = pn_expression_compile(w.scope, cases[_i].text, (pn_position){7, 12}, cases[_i].allow, &w.list, &value);
    ck_assert_msg(status == PINN_CONFIG, "\"%s\" gives %s", cases[_i].text, pinn_status_name(status));
    ck_assert_uint_eq(value, 4711); /* untouched */
    size_t count = 0;
    while (count < MOST && cases[_i].error[count].message) count++;
    for (size_t i = 0; i < w.list.count && i < count; i++) {
        const pn_diagnostic *item = &w.list.item[i];
        ck_assert_str_eq(item->message, cases[_i].error[i].message);
        ck_assert_ptr_nonnull(item->hint);
        ck_assert_str_eq(item->hint, cases[_i].error[i].hint);
        ck_assert_uint_eq(item->at.line, cases[_i].error[i].line);
        ck_assert_uint_eq(item->at.column, cases[_i].error[i].column);
    }
    ck_assert_msg(w.list.count == count, "\"%s\" gives %zu errors, not %zu", cases[_i].text, w.list.count, count);
    world_close(&w);
}
END_TEST

static void check_only_error(world *w, const char *text, const char *message, const char *hint, unsigned column) {
    pn_value value;
    ck_assert_int_eq(pn_expression_compile(w->scope, text, (pn_position){1, 1}, ALL, &w->list, &value), PINN_CONFIG);
    ck_assert_uint_eq(w->list.count, 1);
    ck_assert_str_eq(w->list.item[0].message, message);
    ck_assert_str_eq(w->list.item[0].hint, hint);
    ck_assert_uint_eq(w->list.item[0].at.column, column);
    pn_diagnostics_free(&w->list);
}

START_TEST(empty_texts) {
    world w;
    world_open(&w);
    check_only_error(&w, "", "the expression is empty", "write a formula, or 0", 1);
    check_only_error(&w, " \t\r\n ", "the expression is empty", "write a formula, or 0", 1);
    world_close(&w);
}
END_TEST

START_TEST(ambiguous_suffixes_show_the_d_form) {
    static const char *const coordinates[] = {"x", "x1", "xx1", "a", "aa"}, *const fields[] = {"u", "u_x"};
    world w;
    world_open_with(&w, coordinates, 5, -1, fields, 1);
    check_only_error(&w, "1 + u_xx1", "\"u_xx1\" can be read in more than one way", "write d(u, x, x1) or d(u, xx1)", 5);
    check_only_error(&w, "u_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                     "\"u_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" can be read in more than one way",
                     "write d(u, a, a, a, a, a, a, a, a) or d(u, a, a, a, a, a, a, a, a)", 1);
    world_compile(&w, "u_x1x + u_xx + u_x1x1"); /* these have one reading */
    world_close(&w);
    world_open_with(&w, (const char *const[]){"x", "x_x"}, 2, -1, fields, 2);
    check_only_error(&w, "u_x_x", "\"u_x_x\" can be read in more than one way", "write d(u, x_x) or d(u_x, x)", 1);
    world_close(&w);
}
END_TEST

START_TEST(misspelt_coordinates_and_fields_are_recognised) {
    static const char *const coordinates[] = {"theta", "radius"}, *const fields[] = {"pressure", "speed"};
    world w;
    world_open_with(&w, coordinates, 2, -1, fields, 2);
    ck_assert_int_eq(pn_scope_constant(w.scope, "speed_limit", 3), PINN_OK);
    check_only_error(&w, "d(speed, tetha)", "d differentiates by coordinates, and \"tetha\" is none", "did you mean \"theta\"?",
                     10);
    check_only_error(&w, "presure_theta", "unknown field \"presure\" in \"presure_theta\"", "did you mean \"pressure_theta\"?", 1);
    check_only_error(&w, "speed_limt", "unknown name \"speed_limt\"", "did you mean \"speed_limit\"?", 1);
    check_only_error(&w, "speed_max", "\"max\" in \"speed_max\" is no coordinate", "the coordinates are theta, radius", 7);
    world_close(&w);
}
END_TEST

START_TEST(long_lists_of_names_are_cut) {
    const char *names[100];
    char text[100][8];
    for (size_t i = 0; i < 100; i++) {
        snprintf(text[i], sizeof text[i], "x%zu", i);
        names[i] = text[i];
    }
    static const char *const fields[] = {"u"};
    world w;
    world_open_with(&w, names, 100, -1, fields, 1);
    check_only_error(&w, "d(u, z)", "d differentiates by coordinates, and \"z\" is none",
                     "the coordinates are x0, x1, x2, x3, x4, x5, x6, x7, ...", 6);
    world_close(&w);
    world_open_with(&w, NULL, 0, -1, NULL, 0);
    check_only_error(&w, "d(1, z)", "d differentiates by coordinates, and \"z\" is none", "there are no coordinates", 6);
    check_only_error(&w, "lap(1)", "lap without a space coordinate", "it sums over all coordinates but time", 1);
    world_close(&w);
}
END_TEST

START_TEST(numbers_refuse_what_is_not_constant) {
    double value = 5;
    pn_diagnostics list;
    pn_diagnostics_init(&list, "test.toml", NULL);
    ck_assert_int_eq(pn_expression_number(NULL, "2*pi + x", (pn_position){3, 9}, &list, &value), PINN_CONFIG);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_str_eq(list.item[0].message, "unknown name \"x\"");
    ck_assert_uint_eq(list.item[0].at.line, 3);
    ck_assert_uint_eq(list.item[0].at.column, 16);
    ck_assert_double_eq(value, 5);
    pn_diagnostics_free(&list);
}
END_TEST

START_TEST(a_definition_is_checked_against_the_place_of_use) {
    world w;
    pn_value value;
    open_with_definitions(&w);
    ck_assert_int_eq(pn_scope_define(w.scope, "outflow", "dn(flux)", (pn_position){30, 1}), PINN_OK);
    world_compile(&w, "outflow - 1");
    ck_assert_int_eq(pn_expression_compile(w.scope, "outflow", (pn_position){1, 1}, NO_NORMAL, &w.list, &value), PINN_CONFIG);
    ck_assert_str_eq(w.list.item[0].message, "\"outflow\" is not allowed here");
    ck_assert_str_eq(w.list.item[0].hint, "its definition uses the outward normal, which can't stand here");
    world_close(&w);
}
END_TEST

/* ---- Names ------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *error;
} name_cases[] = {
    {"nu", NULL},
    {"alpha_x", NULL}, /* alpha is no field */
    {"u_ref", NULL},
    {"nt", NULL}, /* time has no normal component */
    {"K2", NULL},
    {"", "\"\" is no name: names are ASCII letters, digits and \"_\", a letter first"},
    {"2x", "\"2x\" is no name: names are ASCII letters, digits and \"_\", a letter first"},
    {"_a", "\"_a\" is no name: names are ASCII letters, digits and \"_\", a letter first"},
    {"a-b", "\"a-b\" is no name: names are ASCII letters, digits and \"_\", a letter first"},
    {"\316\261", "\"\316\261\" is no name: names are ASCII letters, digits and \"_\", a letter first"},
    {"pi", "\"pi\" is reserved for the number 3.14159..."},
    {"sin", "\"sin\" is reserved for the function sin(a)"},
    {"d", "\"d\" is reserved for the function d(a, x) or d(a, x, y, ...)"},
    {"lap", "\"lap\" is reserved for the function lap(a)"},
    {"x", "\"x\" is already a coordinate"},
    {"u", "\"u\" is already a field"},
    {"k", "\"k\" is already a constant"},
    {"wave", "\"wave\" is already a definition"},
    {"nx", "\"nx\" is reserved for the normal's component along x"},
    {"u_x", "\"u_x\" would read as a derivative of the field \"u\""},
    {"v_xyt", "\"v_xyt\" would read as a derivative of the field \"v\""},
    {"abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijk",
     "\"abcdefghijabcdefghijabcdefghijabcdefghij...\" is longer than 60 characters"},
};

START_TEST(names_are_refused_with_a_reason) {
    world w;
    open_with_definitions(&w);
    const char *error = pn_scope_name_error(w.scope, name_cases[_i].name);
    if (name_cases[_i].error)
        ck_assert_pstr_eq(error, name_cases[_i].error);
    else
        ck_assert_msg(!error, "%s", error);
    world_close(&w);
}
END_TEST

START_TEST(scopes_refuse_bad_arguments) {
    const char *names[PN_MAX_COORDINATES + 1];
    for (size_t i = 0; i <= PN_MAX_COORDINATES; i++) names[i] = "x";
    world w;
    pn_scope *scope = NULL;
    world_open(&w);
    ck_assert_int_eq(pn_scope_create(w.ir, names, PN_MAX_COORDINATES + 1, -1, NULL, 0, &scope), PINN_BAD_ARGUMENT);
    ck_assert_int_eq(pn_scope_create(w.ir, names, 1, 1, NULL, 0, &scope), PINN_BAD_ARGUMENT);
    ck_assert_ptr_null(scope);
    ck_assert_int_eq(pn_scope_constant(w.scope, "big", INFINITY), PINN_BAD_ARGUMENT);
    world_close(&w);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("expression errors");
    TCase *c = tcase_create("errors");
    tcase_add_loop_test(c, errors_say_what_where_and_how_to_repair, 0, sizeof cases / sizeof *cases);
    tcase_add_test(c, empty_texts);
    tcase_add_test(c, ambiguous_suffixes_show_the_d_form);
    tcase_add_test(c, misspelt_coordinates_and_fields_are_recognised);
    tcase_add_test(c, long_lists_of_names_are_cut);
    tcase_add_test(c, numbers_refuse_what_is_not_constant);
    tcase_add_test(c, a_definition_is_checked_against_the_place_of_use);
    tcase_add_loop_test(c, names_are_refused_with_a_reason, 0, sizeof name_cases / sizeof *name_cases);
    tcase_add_test(c, scopes_refuse_bad_arguments);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
