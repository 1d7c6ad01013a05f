/* Reading good configs: order, defaults, --set, the resolved text, comparison for --resume, and memory running out at every place. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "problem/problem.h"
#include "problem/schema.h"
#include "problem/toml_adapter.h"
#include "suite.h"

static const char small[] =
    "time = \"t\"\n"
    "[domain]\nz = [0, 1]\nt = [0, \"2*pi\"]\na = [-0.5, 1e-3]\n"
    "[constants]\nk = 2\nc = \"k/4\"\n"
    "[fields]\nv = {}\nu = {}\n"
    "[define]\nflux = \"k*u_z\"\n"
    "[[equation]]\nresidual = { mass = \"u_t + d(flux, z) + v\", energy = \"v_t + u_a\" }\npoints = 10\nweight = { energy = 2.5 }\n"
    "[[condition]]\nname = \"walls\"\non = [\"z=min\", \"z=max\"]\nresidual = \"dn(u)\"\npoints = 7\nresample = \"never\"\n"
    "[reference]\nu = \"sin(z)*exp(-t)*a\"\n"
    "[[train]]\nsteps = 30\n[[train]]\nsteps = 20\nlearning_rate = { decay = \"cosine\" }\npoints = { walls = 9 }\n"
    "[output]\nevaluate = { points = [3, 4, 5] }\n";

static pn_config *parse_with(const char *text, const char *const *set, size_t count) {
    pn_config *config = NULL;
    ck_assert_msg(pn_config_parse("runs/small.toml", text, strlen(text), set, count, &config) == PINN_OK, "%s", pinn_error_message());
    return config;
}

static pn_config *parse(const char *text) { return parse_with(text, NULL, 0); }

START_TEST(test_values) {
    pn_config *c = parse(small);
    ck_assert_str_eq(c->stem, "small");
    ck_assert_str_eq(c->coordinate[0].name.text, "z"); /* file order, not the alphabet's */
    ck_assert_str_eq(c->coordinate[1].name.text, "t");
    ck_assert_str_eq(c->coordinate[2].name.text, "a");
    ck_assert_str_eq(c->coordinate[1].bound[1].text, "2*pi");
    ck_assert_str_eq(c->coordinate[2].bound[1].text, "0.001");
    ck_assert_str_eq(c->field[0].name.text, "v");
    ck_assert_str_eq(c->constant[0].value.text, "2");
    ck_assert_str_eq(c->set[0].name.text, "equation1");
    ck_assert_uint_eq(c->set[0].residual_count, 2);
    ck_assert_str_eq(c->set[0].residual[0].name.text, "mass");
    ck_assert_double_eq(c->set[0].residual[0].weight, 1);
    ck_assert_double_eq(c->set[0].residual[1].weight, 2.5);
    ck_assert_int_eq(c->set[0].resample, PN_RESAMPLE_ALWAYS);
    ck_assert(!c->set[0].condition && c->set[1].condition);
    ck_assert_str_eq(c->set[1].residual->name.text, "walls");
    ck_assert_int_eq(c->set[1].resample, PN_RESAMPLE_NEVER);
    ck_assert_uint_eq(c->set[1].points, 7);
    ck_assert_uint_eq(c->set[1].residual->value.at.line, 21);
    ck_assert_uint_eq(c->set[1].residual->value.at.column, 13);
    ck_assert_uint_eq(c->phase_count, 2);
    ck_assert_int_eq(c->phase[1].learning_rate.decay, PN_DECAY_COSINE);
    ck_assert_str_eq(c->phase[1].points[0].set.text, "walls");
    ck_assert_uint_eq(c->phase[1].points[0].points, 9);
    ck_assert(c->output.evaluate_grid);
    ck_assert_uint_eq(c->output.evaluate_points[2], 5);
    pn_config_destroy(c);
}
END_TEST

START_TEST(test_defaults) {
    pn_config *c = parse("[domain]\nx = [0, 1]\n[fields]\nu = {}\n[[equation]]\nresidual = \"u_xx\"\npoints = 1\n[[train]]\nsteps = 1\n");
    ck_assert_ptr_null(c->title.text);
    ck_assert_ptr_null(c->time.text);
    ck_assert_str_eq(c->precision.text, "float32");
    ck_assert(c->real == PN_FLOAT32 && !c->tf32);
    ck_assert_uint_eq(c->seed, 0);
    ck_assert_str_eq(c->network.kind.text, "mlp");
    ck_assert_str_eq(c->network.activation.text, "tanh");
    ck_assert_uint_eq(c->network.width, 32);
    ck_assert_uint_eq(c->network.depth, 3);
    ck_assert(!c->network.fourier);
    ck_assert_str_eq(c->phase->optimizer.text, "adam");
    ck_assert_double_eq(c->phase->learning_rate.initial, 1e-3);
    ck_assert_int_eq(c->phase->learning_rate.decay, PN_DECAY_CONSTANT);
    ck_assert_double_eq(c->phase->beta1, 0.9);
    ck_assert_double_eq(c->phase->beta2, 0.999);
    ck_assert_double_eq(c->phase->epsilon, 1e-8);
    ck_assert_double_eq(c->phase->clip_norm, 0);
    ck_assert_double_eq(c->stop.loss, 0);
    ck_assert_uint_eq(c->stop.patience, 0);
    ck_assert_double_eq(c->stop.min_delta, 1e-3); /* the default, without the rule too */
    ck_assert_uint_eq(c->output.events, 100);
    ck_assert_uint_eq(c->output.checkpoint, 1000);
    ck_assert_uint_eq(c->output.evaluate_every, 100);
    ck_assert_uint_eq(c->output.evaluate_count, 1);
    ck_assert_uint_eq(c->output.evaluate_points[0], 1001);
    pn_config_destroy(c);
}
END_TEST

/* Every kind of assignment, then the errors of wrong ones. */
START_TEST(test_set) {
    const char *const set[] = {"train.0.steps=500",         "domain.z=[0,2]",        "title=A title",       "equation.0.weight.mass = 3",
                               "stop.loss=1e-5",            "precision=tf32",        "constants.c=2*k",     "train.1.learning_rate.final=1e-6",
                               "condition.0.residual=u - 1", "condition.0.on=z=max", "network.fourier={features=8}", "domain.b=[0,1]", "output.evaluate.points=5"};
    pn_config *c = parse_with(small, set, sizeof set / sizeof *set);
    ck_assert_uint_eq(c->phase[0].steps, 500);
    ck_assert_str_eq(c->coordinate[0].name.text, "z");
    ck_assert_str_eq(c->coordinate[0].bound[1].text, "2");
    ck_assert_str_eq(c->coordinate[3].name.text, "b");
    ck_assert_str_eq(c->title.text, "A title");
    ck_assert_double_eq(c->set[0].residual[0].weight, 3);
    ck_assert_double_eq(c->stop.loss, 1e-5);
    ck_assert(c->tf32 && c->real == PN_FLOAT32);
    ck_assert_str_eq(c->constant[1].value.text, "2*k");
    ck_assert_double_eq(c->phase[1].learning_rate.final, 1e-6);
    ck_assert_str_eq(c->set[1].residual->value.text, "u - 1");
    ck_assert_str_eq(c->set[1].on[0].text, "z=max");
    ck_assert_uint_eq(c->network.fourier_features, 8);
    pn_config_destroy(c);
}
END_TEST

static const struct {
    const char *set, *message;
} wrong_set[] = {
    {"train.0.steps=-5", "--set train.0.steps=-5: \"steps\" must be from 1 to 1000000000000, not -5"},
    {"train.0.steps=many",
     "--set train.0.steps=many: the value is no TOML value; it must be an integer from 1 to 1000000000000\n  strings inside arrays and tables need quotes"},
    {"train.2.steps=5", "--set train.2.steps=5: \"train\" has 2 elements; there is no element 2\n  elements are counted from 0"},
    {"train.x.steps=5", "--set train.x.steps=5: \"train\" is an array: \"x\" must be the number of an element\n  elements are counted from 0"},
    {"train.0.stpes=5", "--set train.0.stpes=5: unknown key \"stpes\" in [[train]]\n  did you mean \"steps\"?"},
    {"network.layers=5", "--set network.layers=5: unknown key \"layers\" in [network]\n  it is called depth: the number of hidden layers"},
    {"foo=1", "--set foo=1: unknown key \"foo\" in the top level\n"
              "  its keys: title, time, precision, seed, tiles, domain, constants, fields, define, equation, condition, reference, network, train, stop, "
              "output; docs/configuration.md explains them"},
    {"title", "--set title: an assignment is written KEY=VALUE, as train.0.steps=500"},
    {"=5", "--set =5: an assignment is written KEY=VALUE, as train.0.steps=500"},
    {"title.x=5", "--set title.x=5: there is no \"title\" in the file"},
    {"time.x=5", "--set time.x=5: \"time\" is a string in the file; it has no \"x\""},
    {"title=5", "--set title=5: \"title\" must be a string, not an integer"},
    {"domain.z=[0,2*pi]",
     "--set domain.z=[0,2*pi]: the value is no TOML value; it must be an array\n  strings inside arrays and tables need quotes"},
    {"seed=1\nx=2", "--set seed=1\nx=2: the value is no TOML value; it must be an integer from 0 to 2^63 - 1\n  strings inside arrays and tables need quotes"},
    {"seed=9223372036854775808", "--set seed=9223372036854775808: the number is too large for 64 bits; the value must be an integer from 0 to 2^63 - 1"},
    {"network.width=-99999999999999999999999",
     "--set network.width=-99999999999999999999999: the number is too large for 64 bits; the value must be an integer from 1 to 65536"},
    {"domain.z=[0, 99999999999999999999999]", "--set domain.z=[0, 99999999999999999999999]: the number is too large for 64 bits; the value must be an array"},
    {"title=a\xff", "--set title=a\xff: the assignment is not UTF-8 text"},
    {"title=\"a\xc0\x80\"", "--set title=\"a\xc0\x80\": the assignment is not UTF-8 text"},
    {"constants.\xed\xa0\x80=1", "--set constants.\xed\xa0\x80=1: the assignment is not UTF-8 text"},
    {"title=a\x1b[0m", "--set title=a\x1b[0m: the value holds the control character U+001B\n"
                        "  write the value in quotes, with \\n, \\t or \\u001b for such characters"},
    {"title=a\nb", "--set title=a\nb: the value holds the control character U+000A\n"
                    "  write the value in quotes, with \\n, \\t or \\u001b for such characters"},
    {"equation.0.residual.mass=u_t - alhpa", "--set equation.0.residual.mass=u_t - alhpa: unknown name \"alhpa\"\n"
                                        "  it must be a coordinate, a field, pi, or a name in [constants] or [define]"},
};

START_TEST(test_wrong_set) {
    const char *set = wrong_set[_i].set;
    pn_config *config = NULL;
    pn_problem *problem = NULL;
    pinn_status status = pn_config_parse("small.toml", small, strlen(small), &set, 1, &config);
    if (status == PINN_OK) status = pn_problem_create(config, &problem);
    ck_assert_int_eq(status, PINN_CONFIG);
    ck_assert_str_eq(pinn_error_message(), wrong_set[_i].message);
    pn_config_destroy(config);
}
END_TEST

/* A message shows the beginning of a long assignment, cut before a character (here: of 2 bytes) that would be cut in two. */
START_TEST(test_long_set) {
    enum { VALUE = 100001 };
    static char set[VALUE + 16] = "seed=";
    const char *assignment = set;
    pn_config *config = NULL;
    for (size_t i = 5; i + 1 < VALUE; i += 2) memcpy(&set[i], "\xc3\xa9", 2);
    ck_assert_int_eq(pn_config_parse("small.toml", small, strlen(small), &assignment, 1, &config), PINN_CONFIG);
    const char *message = pinn_error_message(), *end = strstr(message, "...: the value is no TOML value");
    ck_assert_msg(end && end - message == (long)strlen("--set ") + 199, "%.300s", message);
    ck_assert_int_eq(strncmp(message + 6, set, 199), 0);
    pn_config_destroy(config);
}
END_TEST

/* write -> parse -> write gives the same text, and the comparison finds nothing. */
static void check_round_trip(const pn_config *config) {
    pn_text first = {0}, second = {0}, differences = {0};
    pn_config *again = NULL;
    ck_assert_int_eq(pn_config_write(config, &first), PINN_OK);
    ck_assert_msg(pn_config_parse(config->path, first.data, first.length, NULL, 0, &again) == PINN_OK, "%s\n%s", pinn_error_message(), first.data);
    ck_assert_int_eq(pn_config_write(again, &second), PINN_OK);
    ck_assert_str_eq(first.data, second.data);
    ck_assert_int_eq(pn_config_compare(first.data, second.data, 0, &differences), PINN_OK);
    ck_assert_str_eq(pn_text_get(&differences), "");
    ck_assert_uint_eq(config->set_count, again->set_count);
    ck_assert_uint_eq(config->coordinate_count, again->coordinate_count);
    pn_text_free(&first);
    pn_text_free(&second);
    pn_text_free(&differences);
    pn_config_destroy(again);
}

START_TEST(test_round_trip_small) {
    const char *const set[] = {"title=\"quote \\\" backslash \\\\ tab \\t bell \\u0007 \xc3\xa9\"", "network.fourier={}", "stop.seconds=5",
                               "stop.step=7", "domain.a=['-0', 1e22]", "train.0.clip_norm=0.3333333333333333", "seed=9223372036854775807",
                               "train.0.learning_rate={decay='exponential', warmup=3}", "output.evaluate.points=50",
                               "stop.plateau={patience=70, min_delta=0.02}"};
    pn_config *config = parse_with(small, set, sizeof set / sizeof *set);
    ck_assert_str_eq(config->coordinate[2].bound[0].text, "-0");
    ck_assert_uint_eq(config->stop.patience, 70);
    ck_assert_double_eq(config->stop.min_delta, 0.02);
    check_round_trip(config);
    pn_config_destroy(config);
}
END_TEST

static void append_utf8(pn_text *text, unsigned code) {
    const unsigned char bytes[4] = {(unsigned char)(code < 0x80      ? code
                                                    : code < 0x800   ? 0xc0 | code >> 6
                                                    : code < 0x10000 ? 0xe0 | code >> 12
                                                                     : 0xf0 | code >> 18),
                                    (unsigned char)(0x80 | ((code < 0x800 ? code : code < 0x10000 ? code >> 6 : code >> 12) & 0x3f)),
                                    (unsigned char)(0x80 | ((code < 0x10000 ? code : code >> 6) & 0x3f)), (unsigned char)(0x80 | (code & 0x3f))};
    pn_text_append(text, (const char *)bytes, code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);
}

/* Every character there is, as a title: the resolved config must be readable. */
START_TEST(test_round_trip_all_characters) {
    for (unsigned first = 1; first < 0x110000; first += 0x8000) {
        pn_text title = {0}, quoted = {0}, set = {0};
        for (unsigned code = first; code < first + 0x8000 && code < 0x110000; code++)
            if (code < 0xd800 || code >= 0xe000) append_utf8(&title, code);
        pn_text_quoted(&quoted, pn_text_get(&title));
        pn_text_printf(&set, "title=%s", pn_text_get(&quoted));
        pn_config *config = parse_with(small, (const char *const[]){set.data}, 1);
        ck_assert_str_eq(config->title.text, pn_text_get(&title));
        check_round_trip(config);
        pn_config_destroy(config);
        pn_text_free(&title);
        pn_text_free(&quoted);
        pn_text_free(&set);
    }
}
END_TEST

/* A folder whose name is not UTF-8 can't stand in TOML: the reference's path stays as the user wrote it. */
START_TEST(test_reference_in_foreign_folder) {
    char folder[] = "/tmp/pinn_\xff_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    pn_text path = {0}, written = {0};
    const char text[] = "[domain]\nx = [0, 1]\n[fields]\nu = {}\n[[equation]]\nresidual = \"u_xx\"\npoints = 1\n[[train]]\nsteps = 1\n"
                        "[reference]\nfile = \"u.h5\"\n";
    pn_config *config = NULL;
    pn_text_printf(&path, "%s/u.h5", folder);
    FILE *file = fopen(path.data, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    pn_text_free(&path);
    pn_text_printf(&path, "%s/c.toml", folder);
    ck_assert_int_eq(pn_config_parse(path.data, text, strlen(text), NULL, 0, &config), PINN_OK);
    ck_assert_int_eq(pn_config_write(config, &written), PINN_OK);
    ck_assert_ptr_nonnull(strstr(written.data, "file = \"u.h5\""));
    check_round_trip(config);
    pn_config_destroy(config);
    pn_text_free(&path);
    pn_text_printf(&path, "%s/u.h5", folder);
    ck_assert_int_eq(unlink(path.data), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    pn_text_free(&path);
    pn_text_free(&written);
}
END_TEST

/* The run directory's name: never hidden by accident, never a folder above. */
START_TEST(test_stems) {
    static const char *const name[][2] = {{"a/heat.toml", "heat"}, {"heat.v2.toml", "heat.v2"}, {"heat.cfg", "heat.cfg"}, {"x.y/heat", "heat"},
                                          {".toml", ""},           {"..toml", ""},              {"a/...toml", ""},        {"....toml", "..."},
                                          {"-", "-"},              {".", ""},                   {"a/..", ""}};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        pn_config *config = NULL;
        ck_assert_int_eq(pn_config_parse(name[i][0], small, strlen(small), NULL, 0, &config), PINN_OK);
        ck_assert_str_eq(config->stem, name[i][1]);
        pn_config_destroy(config);
    }
}
END_TEST

static int is_toml(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".toml") == 0;
}

/* All configs of the repository: read, round trip, compile. */
static void check_folder(const char *folder) {
    struct dirent **entry;
    int count = scandir(folder, &entry, is_toml, alphasort);
    ck_assert_int_gt(count, 0);
    for (int i = 0; i < count; i++) {
        char path[1024];
        pn_config *config = NULL;
        pn_problem *problem = NULL;
        snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        ck_assert_msg(pn_config_read(path, NULL, 0, &config) == PINN_OK, "%s", pinn_error_message());
        check_round_trip(config);
        ck_assert_msg(pn_problem_create(config, &problem) == PINN_OK, "%s", pinn_error_message());
        pn_problem_destroy(problem);
        pn_config_destroy(config);
        free(entry[i]);
    }
    free(entry);
}

START_TEST(test_all_configs) {
    check_folder(PINN_SOURCE_DIR "/configs");
    check_folder(PINN_SOURCE_DIR "/configs/bench");
}
END_TEST

static void check_compare_in(uint64_t phase, const char *const *set, size_t count, const char *expected) {
    pn_config *a = parse(small), *b = parse_with(small, set, count);
    pn_text old = {0}, new = {0}, out = {0};
    ck_assert_int_eq(pn_config_write(a, &old), PINN_OK);
    ck_assert_int_eq(pn_config_write(b, &new), PINN_OK);
    ck_assert_int_eq(pn_config_compare(old.data, new.data, phase, &out), PINN_OK);
    ck_assert_str_eq(pn_text_get(&out), expected);
    pn_text_free(&old);
    pn_text_free(&new);
    pn_text_free(&out);
    pn_config_destroy(a);
    pn_config_destroy(b);
}

static void check_compare(const char *const *set, size_t count, const char *expected) { check_compare_in(0, set, count, expected); }

START_TEST(test_compare) {
    const char *const allowed[] = {"stop.loss=1e-9", "stop.plateau.patience=7", "output.events=7", "output.evaluate.every=3", "title=new", "train.1.steps=21"};
    check_compare(allowed, 6, "");
    check_compare((const char *const[]){"constants.k=3"}, 1, "constants.k: 2 -> 3\n");
    check_compare((const char *const[]){"train.1.steps=19"}, 1, "train.1.steps: 20 -> 19\n");
    check_compare((const char *const[]){"train.0.steps=31"}, 1, "train.0.steps: 30 -> 31\n");
    check_compare((const char *const[]){"network.width=33", "seed=1"}, 2, "seed: 0 -> 1\nnetwork.width: 32 -> 33\n");
    check_compare((const char *const[]){"constants.q=1"}, 1, "constants.q: (absent) -> 1\n");
    check_compare((const char *const[]){"domain.q=[0,1]", "output.evaluate.points=5"}, 2,
                  "domain (order): z, t, a -> z, t, a, q\ndomain.q.0: (absent) -> 0\ndomain.q.1: (absent) -> 1\n");
    const char *const later[] = {"train.1.points={walls=10, equation1=4}"};
    check_compare_in(0, later, 1, "");
    check_compare_in(1, later, 1, "train.1.points.walls: 9 -> 10\ntrain.1.points.equation1: (absent) -> 4\n");
    check_compare_in(UINT64_MAX, later, 1, "train.1.points.walls: 9 -> 10\ntrain.1.points.equation1: (absent) -> 4\n");
    check_compare_in(0, (const char *const[]){"train.1.points={}"}, 1, "");
    check_compare_in(0, (const char *const[]){"train.0.points={walls=8}"}, 1, "train.0.points.walls: (absent) -> 8\n");
    check_compare_in(0, (const char *const[]){"train.1.beta1=0.5"}, 1, "train.1.beta1: 0.9 -> 0.5\n");
    pn_text out = {0};
    ck_assert_int_eq(pn_config_compare("a = ", "", 0, &out), PINN_CONFIG);
    pn_text_free(&out);
}
END_TEST

/* docs/configuration.md holds exactly what the schema says. */
START_TEST(test_manual_is_up_to_date) {
    pn_text manual = {0}, table = {0};
    ck_assert_msg(pn_text_read_file(&manual, PINN_SOURCE_DIR "/docs/configuration.md", 1 << 20) == PINN_OK, "%s", pinn_error_message());
    pn_config_describe(&table);
    if (getenv("PINN_WRITE_EXPECTED")) { /* the generated part is the file's end, from the first "## " of the schema */
        char *begin = strstr(manual.data, "## File");
        ck_assert_ptr_nonnull(begin);
        pn_text new = {0};
        pn_text_append(&new, manual.data, (size_t)(begin - manual.data));
        pn_text_string(&new, table.data);
        ck_assert_int_eq(pn_text_write_file(&new, PINN_SOURCE_DIR "/docs/configuration.md"), PINN_OK);
        pn_text_free(&new);
    } else
        ck_assert_msg(strstr(manual.data, table.data) != NULL, "docs/configuration.md is old: run test_config with PINN_WRITE_EXPECTED=1");
    pn_text_free(&manual);
    pn_text_free(&table);
}
END_TEST

/* The schema's own rules: parents exist and come first, defaults fit their ranges and choices. */
START_TEST(test_schema) {
    for (size_t i = 0; i < pn_schema_count; i++) {
        const pn_key *key = &pn_schema[i];
        char parent[128] = "";
        const char *dot = strrchr(key->pattern, '.');
        if (dot) memcpy(parent, key->pattern, (size_t)(dot - key->pattern));
        const pn_key *above = pn_schema_find(parent);
        ck_assert_msg(above != NULL, "%s has no parent", key->pattern);
        ck_assert_msg(*parent == 0 || above < key, "%s stands before its parent", key->pattern);
        ck_assert_ptr_eq(pn_schema_child(above, pn_schema_name(key)), key);
        ck_assert(key->low <= key->high);
        if (key->fallback && key->accepts & (PN_ACCEPT_NUMBER | PN_ACCEPT_INTEGER)) {
            double value = strtod(key->fallback, NULL);
            ck_assert_msg(value >= key->low && value <= key->high, "%s", key->pattern);
        }
        bool found = !key->fallback || !key->choices;
        for (size_t k = 0; key->choices && key->choices[k] && !found; k++) found = strcmp(key->choices[k], key->fallback) == 0;
        ck_assert_msg(found, "%s", key->pattern);
    }
}
END_TEST

/* The first byte inside the quotes, for each kind of string, behind multi-byte characters and a byte order mark. */
START_TEST(test_string_positions) {
    static const struct {
        const char *text;
        unsigned line, column;
    } example[] = {{"a = \"x\"", 1, 6},         {"a = 'x'", 1, 6},          {"a = \"\"\"x\"\"\"", 1, 8},   {"a = '''x'''", 1, 8},
                   {"a = \"\"\"\nx\"\"\"", 2, 1}, {"a = '''\r\nx'''", 2, 1}, {"\"\xc3\xa9\" = \"x\"", 1, 9}, {"\xef\xbb\xbf" "a = \"x\"", 1, 9},
                   {"a = \"\"", 1, 6},           {"\n\na = \"x\"", 3, 6}};
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        pn_toml *root = NULL;
        pn_toml_error error;
        ck_assert_int_eq(pn_toml_parse(example[i].text, strlen(example[i].text), &error, &root), PINN_OK);
        ck_assert_msg(root->child->at.line == example[i].line && root->child->at.column == example[i].column, "%s: %u:%u", example[i].text,
                      root->child->at.line, root->child->at.column);
        pn_toml_destroy(root);
    }
}
END_TEST

/* Memory fails at the n-th allocation, for every n: an error (NO_MEMORY, or CONFIG when a diagnostic could not be kept), no leak. */
START_TEST(test_no_memory) {
    const char *const set[] = {"train.0.steps=5", "stop.loss=1e-5"};
    const char *text = _i ? "[domain]\nx = [1, 0]\n[fields]\nu = {}\n[netwrok]\n" : small;
    bool done = false;
    for (long n = 0; !done; n++) {
        pn_config *config = NULL;
        pn_problem *problem = NULL;
        pn_text written = {0};
        pn_memory_fail_after(n);
        pinn_status status = pn_config_parse("small.toml", text, strlen(text), set, _i ? 0 : 2, &config);
        if (status == PINN_OK) status = pn_config_write(config, &written);
        if (status == PINN_OK) status = pn_problem_create(config, &problem);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK ? problem != NULL : problem == NULL);
        if (_i == 0)
            ck_assert_msg(status == PINN_OK || status == PINN_NO_MEMORY, "allocation %ld: %s", n, pinn_error_message());
        else
            ck_assert(status == PINN_CONFIG || status == PINN_NO_MEMORY);
        done = _i == 0 ? status == PINN_OK : n > 2000;
        pn_problem_destroy(problem);
        pn_config_destroy(config);
        pn_text_free(&written);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("config");
    TCase *tests = tcase_create("config");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, test_values);
    tcase_add_test(tests, test_defaults);
    tcase_add_test(tests, test_set);
    tcase_add_loop_test(tests, test_wrong_set, 0, sizeof wrong_set / sizeof *wrong_set);
    tcase_add_test(tests, test_long_set);
    tcase_add_test(tests, test_round_trip_small);
    tcase_add_test(tests, test_round_trip_all_characters);
    tcase_add_test(tests, test_reference_in_foreign_folder);
    tcase_add_test(tests, test_stems);
    tcase_add_test(tests, test_all_configs);
    tcase_add_test(tests, test_compare);
    tcase_add_test(tests, test_manual_is_up_to_date);
    tcase_add_test(tests, test_schema);
    tcase_add_test(tests, test_string_positions);
    tcase_add_loop_test(tests, test_no_memory, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
