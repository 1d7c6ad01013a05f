/* Nothing a text can hold makes the compiler crash, run away, leak or lie: deep nesting, long texts, no memory, random bytes. */
#include <time.h>

#include "support.h"

/* `head` n times, `middle`, `tail` n times; owned by the caller. */
static char *repeat(const char *head, size_t n, const char *middle, const char *tail) {
    size_t a = strlen(head), b = strlen(tail), m = strlen(middle);
    char *text = malloc(n * (a + b) + m + 1), *p = text;
    for (size_t i = 0; i < n; i++, p += a) memcpy(p, head, a);
    memcpy(p, middle, m);
    p += m;
    for (size_t i = 0; i < n; i++, p += b) memcpy(p, tail, b);
    *p = 0;
    return text;
}

static pinn_status compile(world *w, const char *text, pn_value *value) {
    return pn_expression_compile(w->scope, text, (pn_position){1, 1}, ALL, &w->list, value);
}

/* ---- Depth and length -------------------------------------------------------------------------------------------------- */

static const struct {
    const char *head, *middle, *tail;
} nests[] = {{"(", "u", ")"}, {"sin(", "u", ")"}, {"-(", "u", ")"}, {"u^", "u", ""}, {"if(x<1,", "u", ",2)"}, {"2*(u+", "v", ")"}};

START_TEST(nesting_is_limited) {
    world w;
    pn_value value = PN_NONE;
    world_open(&w);
    char *fits = repeat(nests[_i].head, 200, nests[_i].middle, nests[_i].tail);
    ck_assert_int_eq(compile(&w, fits, &value), PINN_OK);
    for (size_t n = 201; n <= 8000; n = n * 5 + 1) {
        char *deep = repeat(nests[_i].head, n, nests[_i].middle, nests[_i].tail);
        pn_diagnostics_free(&w.list);
        ck_assert_int_eq(compile(&w, deep, &value), PINN_CONFIG);
        ck_assert_uint_eq(w.list.count, 1);
        ck_assert_str_eq(w.list.item[0].message, "nested deeper than 200 levels");
        free(deep);
    }
    free(fits);
    world_close(&w);
}
END_TEST

START_TEST(long_chains_are_no_nesting) {
    static const struct {
        const char *head, *middle;
        size_t count;
        double value;
    } chains[] = {{"1+", "1", 32000, 32001}, {"1-", "1", 32000, 1 - 32000}, {"-", "1", 32000, 1},
                  {"+", "1", 32000, 1},      {"1*", "1", 32000, 1},         {"- + ", "2", 16000, 2}};
    world w;
    double value;
    world_open(&w);
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        char *text = repeat(chains[i].head, chains[i].count, chains[i].middle, "");
        ck_assert_int_eq(pn_expression_number(w.scope, text, (pn_position){1, 1}, &w.list, &value), PINN_OK);
        ck_assert_double_eq(value, chains[i].value);
        free(text);
    }
    char *sum = repeat("u*x+", 16000, "v", "");
    pn_value node;
    ck_assert_int_eq(compile(&w, sum, &node), PINN_OK);
    ck_assert_uint_ne(pn_expression_derivative(w.scope, node, 0), PN_NONE);
    free(sum);
    world_close(&w);
}
END_TEST

START_TEST(texts_end_at_64_kib) {
    world w;
    pn_value value;
    world_open(&w);
    char *text = repeat(" ", 64 * 1024 - 1, "u", "");
    ck_assert_int_eq(compile(&w, text, &value), PINN_OK);
    free(text);
    text = repeat(" ", 64 * 1024, "u", "");
    ck_assert_int_eq(compile(&w, text, &value), PINN_CONFIG);
    ck_assert_str_eq(w.list.item[0].message, "an expression longer than 65536 bytes");
    free(text);
    text = repeat("a", 64 * 1024, "", ""); /* one name */
    pn_diagnostics_free(&w.list);
    ck_assert_int_eq(compile(&w, text, &value), PINN_CONFIG);
    ck_assert_uint_eq(w.list.count, 1);
    free(text);
    text = repeat("u_", 32 * 1024, "", ""); /* one name full of underscores */
    pn_diagnostics_free(&w.list);
    ck_assert_int_eq(compile(&w, text, &value), PINN_CONFIG);
    free(text);
    world_close(&w);
}
END_TEST

START_TEST(errors_are_counted_not_collected_without_end) {
    world w;
    pn_value value;
    world_open(&w);
    char *text = repeat("@ ", 30000, "", "");
    ck_assert_int_eq(compile(&w, text, &value), PINN_CONFIG);
    ck_assert_uint_eq(w.list.count, 50);
    free(text);
    world_close(&w);
}
END_TEST

START_TEST(chains_of_definitions_are_limited) {
    world w;
    char name[2][16], text[32];
    pn_value value;
    world_open(&w);
    ck_assert_int_eq(pn_scope_define(w.scope, "f0", "u", (pn_position){1, 1}), PINN_OK);
    for (unsigned i = 1; i < 1000; i++) {
        snprintf(name[0], sizeof name[0], "f%u", i - 1);
        snprintf(name[1], sizeof name[1], "f%u", i);
        snprintf(text, sizeof text, "x + %s", name[0]);
        ck_assert_int_eq(pn_scope_define(w.scope, name[1], text, (pn_position){i + 1, 1}), PINN_OK);
    }
    ck_assert_int_eq(compile(&w, "f999", &value), PINN_CONFIG);
    ck_assert_uint_eq(w.list.count, 1);
    ck_assert_str_eq(w.list.item[0].message, "definitions within definitions, deeper than 200 levels");
    pn_diagnostics_free(&w.list);
    ck_assert_int_eq(compile(&w, "f100", &value), PINN_OK);
    world_close(&w);
}
END_TEST

START_TEST(derivatives_that_explode_are_refused) {
    world w;
    pn_value value;
    world_open(&w);
    char *text = malloc(60000), *end = text + sprintf(text, "d(");
    for (unsigned i = 0; i < 2500; i++) end += sprintf(end, "sin(x*exp(x*%u))+", i + 2);
    sprintf(end, "x, x, x, x, x, x, x, x, x)");
    clock_t begin = clock();
    pinn_status status = compile(&w, text, &value);
    ck_assert_int_eq(status, PINN_CONFIG);
    ck_assert_str_eq(w.list.item[0].message, "this derivative grows to more than 262144 operations");
    ck_assert_double_lt((double)(clock() - begin) / CLOCKS_PER_SEC, 20); /* a second or so */
    free(text);
    world_close(&w);
}
END_TEST

/* ---- Memory ------------------------------------------------------------------------------------------------------------ */

static const char *const memory_texts[] = {
    "u_t - alpha*u_xx",
    "d(wave*u_x, x) + lap(u*v) - dn(p)",
    "if(x < 0.5, sin(pi*x), exp(-t)) + wave^2",
};

START_TEST(memory_may_run_out_anywhere) {
    int quiet = 0;
    size_t nodes = 0; /* of the IR, when nothing fails */
    for (long n = 0; quiet < 40; n++) {
        static const char *const coordinates[] = {"x", "y", "t"}, *const fields[] = {"u", "v", "p"};
        pn_ir *ir = NULL;
        pn_scope *scope = NULL;
        pn_diagnostics list;
        pn_value value = 4711;
        pn_diagnostics_init(&list, "test.toml", NULL);
        pn_memory_fail_after(n);
        pinn_status status = pn_ir_create(&ir);
        if (status == PINN_OK) status = pn_scope_create(ir, coordinates, 3, 2, fields, 3, &scope);
        if (status == PINN_OK) status = pn_scope_constant(scope, "alpha", 0.4);
        if (status == PINN_OK) status = pn_scope_define(scope, "wave", "cos(alpha*x)*u_xxt", (pn_position){9, 1});
        if (status == PINN_OK) status = pn_expression_compile(scope, memory_texts[_i], (pn_position){1, 1}, ALL, &list, &value);
        pn_memory_fail_after(-1);
        if (status != PINN_OK) {
            ck_assert_int_eq(status, PINN_NO_MEMORY);
            ck_assert_uint_eq(value, 4711);
            ck_assert_uint_eq(list.count, 0);
            quiet = 0;
        } else {
            if (quiet++ == 0) nodes = pn_ir_count(ir);
            ck_assert_uint_eq(pn_ir_count(ir), nodes);
        }
        pn_diagnostics_free(&list);
        pn_scope_destroy(scope);
        pn_ir_destroy(ir);
    }
}
END_TEST

START_TEST(numbers_without_memory) {
    for (long n = 0;; n++) {
        pn_diagnostics list;
        double value = 5;
        pn_diagnostics_init(&list, "test.toml", NULL);
        pn_memory_fail_after(n);
        pinn_status status = pn_expression_number(NULL, "2*pi", (pn_position){1, 1}, &list, &value);
        pn_memory_fail_after(-1);
        pn_diagnostics_free(&list);
        ck_assert_double_eq_tol(value, status == PINN_OK ? 2 * M_PI : 5, 1e-15);
        if (status == PINN_OK) break;
        ck_assert_int_eq(status, PINN_NO_MEMORY);
    }
}
END_TEST

/* ---- Random texts ------------------------------------------------------------------------------------------------------ */

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static unsigned next(unsigned below) { /* xorshift64 */
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % below;
}

static const char *const words[] = {
    "u",       "v_x",          "u_xyt",    "u_xxxxxxxx", "x",    "t",    "alpha", "wave",  "wrong", "nx", "pi", "d(", "lap(", "dn(",
    "if(",     "sin(",         "min(",     "(",          ")",    ")",    ",",     ",",     "+",     "-",  "*",  "/",  "^",    "**",
    "<",       "==",           "=",        " ",          "\n",   "1",    "0",     "2.5",   "1e-3",  "1e", ".",  "-",  "u_z",  "w_x",
    "alpha_x", "\xe2\x88\x92", "\xc2\xb2", "\xce\xb1",   "\xff", "zero", "foo(",  "x, x)",
};

/* Compiles one random text in a scope shared by many; whatever happens must be consistent. */
static void compile_random(world *w, const char *text) {
    pn_value value = 4711;
    size_t before = w->list.count + w->list.dropped;
    pinn_status status = compile(w, text, &value);
    size_t added = w->list.count + w->list.dropped - before;
    const char *wrong = NULL; /* one assertion a text: Check logs every single one */
    if (status == PINN_OK && (added > 0 || value >= pn_ir_count(w->ir))) wrong = "compiles with errors";
    if (status != PINN_OK && (status != PINN_CONFIG || value != 4711)) wrong = "fails in a wrong way";
    if (status != PINN_OK && added == 0 && !strstr(text, "wrong")) wrong = "fails without an error"; /* "wrong" is told once */
    for (size_t i = 0; i < w->list.count; i++) {
        const pn_diagnostic *item = &w->list.item[i];
        if (!item->hint || item->at.line < 1 || item->at.column < 1 || item->at.column > strlen(text) + 30)
            wrong = "has an error without hint or place";
    }
    ck_assert_msg(!wrong, "\"%s\" %s", text, wrong);
    pn_diagnostics_free(&w->list);
    w->list.dropped = 0;
}

static void open_random(world *w) {
    world_open(w);
    ck_assert_int_eq(pn_scope_define(w->scope, "wave", "cos(x)*u_x", (pn_position){1, 1}), PINN_OK);
    ck_assert_int_eq(pn_scope_define(w->scope, "wrong", "1 + unknown", (pn_position){2, 1}), PINN_OK);
}

START_TEST(random_words_do_no_harm) {
    world w;
    char text[400];
    open_random(&w);
    for (int n = 0; n < 12000; n++) {
        if (n % 1000 == 999) { /* a fresh one now and then, for the IR only grows */
            world_close(&w);
            open_random(&w);
        }
        text[0] = 0;
        for (unsigned k = next(24) + 1; k > 0; k--) strcat(text, words[next(sizeof words / sizeof *words)]);
        compile_random(&w, text);
    }
    world_close(&w);
}
END_TEST

START_TEST(random_bytes_do_no_harm) {
    world w;
    char text[64];
    open_random(&w);
    for (int n = 0; n < 8000; n++) {
        unsigned length = next(sizeof text - 1);
        for (unsigned i = 0; i < length; i++) text[i] = (char)(next(4) ? 32 + next(96) : 1 + next(255));
        text[length] = 0;
        compile_random(&w, text);
    }
    world_close(&w);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("expression limits");
    TCase *c = tcase_create("limits");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, nesting_is_limited, 0, sizeof nests / sizeof *nests);
    tcase_add_test(c, long_chains_are_no_nesting);
    tcase_add_test(c, texts_end_at_64_kib);
    tcase_add_test(c, errors_are_counted_not_collected_without_end);
    tcase_add_test(c, chains_of_definitions_are_limited);
    tcase_add_test(c, derivatives_that_explode_are_refused);
    tcase_add_loop_test(c, memory_may_run_out_anywhere, 0, sizeof memory_texts / sizeof *memory_texts);
    tcase_add_test(c, numbers_without_memory);
    tcase_add_test(c, random_words_do_no_harm);
    tcase_add_test(c, random_bytes_do_no_harm);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
