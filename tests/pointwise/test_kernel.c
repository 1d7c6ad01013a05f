/* The CUDA text of programs, without a GPU: compiled by NVRTC for real, and run on the host by emulation. The cache of compiled code. */
#include "emulate.h"
#include "operation_case.h"
#include "core/clock.h"
#include "pointwise/kernel.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

/* ---- emulation ------------------------------------------------------------------------------------------------------------------- */

static emulated_kernel *compile_on_host(const pn_section *section, size_t count, void **library) {
    const pn_program *program[8];
    pn_text source = {0};
    for (size_t i = 0; i < count; i++) program[i] = section[i].program;
    ck_assert_int_eq(pn_kernel_source("pointwise", program, count, &source), PINN_OK);
    emulated_kernel *kernel = emulate_compile(source.data, library);
    pn_text_free(&source);
    return kernel;
}

static void emulate(emulated_kernel *kernel, const pn_grid *grid, const void *const *in, void *const *out, void *const *partial_real,
                    double *const *partial_f64) {
    uint64_t word[PN_KERNEL_WORDS];
    pn_grid_fill(grid, in, out, partial_real, partial_f64, word);
    kernel(grid->blocks, word);
}

/* Five sections of four programs: two share their code, one has no points, widths with one and with several columns of blocks, and with one
 * and with several columns a thread. */
START_TEST(emulated_sections) {
    enum { SECTIONS = 5 };
    static const size_t width[SECTIONS] = {20, 700, 20, 1, 132}, points[SECTIONS] = {1000, 9, 77, 0, 61};
    program_case c[SECTIONS];
    pn_section section[SECTIONS];
    const void *in[SECTIONS * CASE_INPUTS];
    void *out[SECTIONS * CASE_OUTPUTS], *partial_real[SECTIONS], *library;
    double *partial_f64[SECTIONS];
    pn_grid grid;
    for (size_t s = 0; s < SECTIONS; s++) {
        case_create(&c[s], (pn_real)_i, width[s], points[s]);
        section[s] = (pn_section){c[s].program, points[s]};
        memcpy(in + s * CASE_INPUTS, c[s].in, sizeof c[s].in);
        memcpy(out + s * CASE_OUTPUTS, c[s].out, sizeof c[s].out);
    }
    emulated_kernel *kernel = compile_on_host(section, SECTIONS, &library);
    ck_assert_int_eq(pn_grid_create(section, SECTIONS, &grid), PINN_OK);
    for (size_t s = 0; s < SECTIONS; s++) {
        partial_real[s] = malloc(grid.rows[s] * 2 * width[s] * sizeof(double) + 1);
        partial_f64[s] = malloc(grid.rows[s] * width[s] * sizeof(double) + 1);
    }
    ck_assert_uint_eq(grid.rows[3], 0);
    if (kernel) {
        emulate(kernel, &grid, in, out, partial_real, partial_f64);
        dlclose(library);
    }
    for (size_t s = 0; s < SECTIONS; s++) {
        case_fold(&c[s], grid.rows[s], partial_real[s], partial_f64[s]);
        if (kernel) case_verify(&c[s]);
        free(partial_real[s]);
        free(partial_f64[s]);
        case_destroy(&c[s]);
    }
    pn_grid_free(&grid);
}
END_TEST

START_TEST(emulated_operations) {
    const pn_real real = (pn_real)_i;
    pn_program *program = operation_program(real);
    const pn_section section = {program, OPERATION_POINTS};
    void *in[3], *out[OPERATIONS], *library, *none = NULL;
    double *none_f64 = NULL;
    pn_grid grid;
    for (int k = 0; k < 3; k++) in[k] = malloc(OPERATION_POINTS * sizeof(double));
    for (int o = 0; o < OPERATIONS; o++) out[o] = malloc(OPERATION_POINTS * sizeof(double));
    operation_data(real, in);
    ck_assert_int_eq(pn_grid_create(&section, 1, &grid), PINN_OK);
    emulated_kernel *kernel = compile_on_host(&section, 1, &library);
    if (kernel) {
        emulate(kernel, &grid, (const void *const *)in, out, &none, &none_f64);
        operation_compare(program, (const void *const *)in, out);
        dlclose(library);
    }
    for (int k = 0; k < 3; k++) free(in[k]);
    for (int o = 0; o < OPERATIONS; o++) free(out[o]);
    pn_grid_free(&grid);
    pn_program_destroy(program);
}
END_TEST

/* ---- text and grid --------------------------------------------------------------------------------------------------------------- */

START_TEST(equal_programs_share_code) {
    program_case a, b, c;
    pn_text source = {0};
    case_create(&a, PN_FLOAT32, 20, 10);
    case_create(&b, PN_FLOAT32, 20, 999);
    case_create(&c, PN_FLOAT32, 21, 10);
    const pn_program *const program[] = {a.program, c.program, b.program};
    ck_assert_int_eq(pn_kernel_source("k", program, 3, &source), PINN_OK);
    ck_assert_ptr_nonnull(strstr(source.data, "operands0 group0[2];"));
    ck_assert_ptr_nonnull(strstr(source.data, "operands1 group1[1];"));
    ck_assert_ptr_null(strstr(source.data, "lane2"));
    pn_text_free(&source);
    case_destroy(&a);
    case_destroy(&b);
    case_destroy(&c);
}
END_TEST

START_TEST(impossible_kernels_are_refused) {
    program_case a, b;
    pn_text source = {0};
    case_create(&a, PN_FLOAT32, 20, 10);
    case_create(&b, PN_FLOAT64, 20, 10);
    const pn_program *const program[] = {a.program, b.program};
    ck_assert_int_eq(pn_kernel_source("k", program, 2, &source), PINN_BAD_ARGUMENT);
    ck_assert_int_eq(pn_kernel_source("a b", program, 1, &source), PINN_BAD_ARGUMENT);
    ck_assert_int_eq(pn_kernel_source("k", program, 0, &source), PINN_BAD_ARGUMENT);
    enum { MANY = PN_KERNEL_WORDS / 19 + 1 }; /* a case's section: 8 inputs, 6 stores, 2 arrays of sums, 3 sizes */
    pn_section *section = calloc(MANY, sizeof *section);
    for (size_t i = 0; i < MANY; i++) section[i] = (pn_section){a.program, 10};
    pn_grid grid;
    ck_assert_uint_eq(pn_section_words(a.program), 19);
    ck_assert_int_eq(pn_grid_create(section, MANY, &grid), PINN_UNSUPPORTED);
    ck_assert_int_eq(pn_grid_create(section, MANY - 1, &grid), PINN_OK);
    pn_grid_free(&grid);
    free(section);
    pn_text_free(&source);
    case_destroy(&a);
    case_destroy(&b);
}
END_TEST

/* Wide programs read and write vectors, which must be aligned; what has no vectors may lie anywhere. */
START_TEST(vectors_must_be_aligned) {
    const pn_real real = (pn_real)_i;
    const size_t bytes = pn_real_bytes(real);
    program_case c;
    pn_grid grid;
    case_create(&c, real, 132, 10);
    const pn_section section = {c.program, 10};
    ck_assert_uint_eq(pn_pack_choose(c.program), 16 / bytes);
    ck_assert_int_eq(pn_grid_create(&section, 1, &grid), PINN_OK);
    char *in[CASE_INPUTS], *out[CASE_OUTPUTS];
    memcpy(in, c.in, sizeof in);
    memcpy(out, c.out, sizeof out);
    ck_assert_int_eq(pn_grid_check(&grid, (const void *const *)in, (void *const *)out), PINN_OK);
    for (int i = 0; i < CASE_INPUTS; i++) {
        const bool vectors = c.in_stride[i].column == 1 && c.in_stride[i].row == 132;
        in[i] += bytes;
        ck_assert_int_eq(pn_grid_check(&grid, (const void *const *)in, (void *const *)out), vectors ? PINN_BAD_ARGUMENT : PINN_OK);
        in[i] -= bytes;
    }
    for (int o = 0; o < CASE_OUTPUTS; o++) {
        const bool vectors = c.kind[o] == PN_STORE && c.out_stride[o].column == 1 && c.out_stride[o].row == 132;
        out[o] += bytes;
        ck_assert_int_eq(pn_grid_check(&grid, (const void *const *)in, (void *const *)out), vectors ? PINN_BAD_ARGUMENT : PINN_OK);
        out[o] -= bytes;
    }
    pn_grid_free(&grid);
    case_destroy(&c);
    case_create(&c, real, 131, 10);
    ck_assert_uint_eq(pn_pack_choose(c.program), 1);
    case_destroy(&c);
}
END_TEST

/* Every column and no thread twice: columns * rows threads, tiles * columns >= width. */
START_TEST(shapes_cover_the_width) {
    for (size_t width = 1; width < 3000; width++) {
        const pn_shape shape = pn_shape_choose(width);
        ck_assert_uint_ge((size_t)shape.tiles * shape.columns, width);
        ck_assert_uint_lt((size_t)(shape.tiles - 1) * shape.columns, width);
        ck_assert_uint_ge(shape.rows, 1);
        ck_assert_uint_le(shape.rows * shape.columns, PN_BLOCK_THREADS);
        ck_assert_uint_ge(2 * width * shape.rows, (size_t)shape.tiles * PN_BLOCK_THREADS); /* half of the threads work, at least */
    }
}
END_TEST

/* ---- cache ------------------------------------------------------------------------------------------------------------------------ */

static char folder[64];

static void make_cache(void) {
    strcpy(folder, "/tmp/pinn-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("PINN_CACHE", folder, 1);
}

/* How many files the cache has, and the path of the last one found. */
static size_t cached_files(char path[400]) {
    DIR *list = opendir(folder);
    size_t count = 0;
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.') {
            snprintf(path, 400, "%s/%s", folder, entry->d_name);
            count++;
        }
    if (list) closedir(list);
    return count;
}

/* The only file in the cache, or none. */
static bool cached_file(char path[400]) {
    const size_t count = cached_files(path);
    ck_assert_uint_le(count, 1);
    return count == 1;
}

static void remove_cache(void) {
    char path[400];
    while (cached_files(path) > 0) ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(cache_keeps_and_checks) {
    char path[400], code[1000];
    void *found = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof code; i++) code[i] = (char)(i * 7);
    make_cache();
    ck_assert(!pn_cache_find("key", &found, &bytes));
    ck_assert(pn_cache_can_keep() && cached_files(path) == 0); /* it leaves nothing */
    pn_cache_keep("key", code, sizeof code);
    ck_assert(pn_cache_find("key", &found, &bytes));
    ck_assert_uint_eq(bytes, sizeof code);
    ck_assert_mem_eq(found, code, bytes);
    pn_free(found);

    ck_assert(cached_file(path));
    pn_text whole = {0};
    ck_assert_int_eq(pn_text_read_file(&whole, path, 1 << 20), PINN_OK);
    for (size_t damaged = 0; damaged < whole.length; damaged += 11) { /* one byte wrong, anywhere: header, key or code */
        whole.data[damaged] ^= 64;
        ck_assert_int_eq(pn_text_write_file(&whole, path), PINN_OK);
        ck_assert_msg(!pn_cache_find("key", &found, &bytes), "damage at byte %zu was not seen", damaged);
        whole.data[damaged] ^= 64;
    }
    for (size_t length = 0; length < whole.length; length += 97) { /* cut short */
        const pn_text part = {.data = whole.data, .length = length};
        ck_assert_int_eq(pn_text_write_file(&part, path), PINN_OK);
        ck_assert(!pn_cache_find("key", &found, &bytes));
    }
    ck_assert_int_eq(pn_text_write_file(&whole, path), PINN_OK);
    ck_assert(pn_cache_find("key", &found, &bytes));
    pn_free(found);
    pn_text_free(&whole);
    remove_cache();
}
END_TEST

static const struct {
    const char *folder, *reason;
} unusable[] = {{"/dev/null", "/dev/null/"}, {"/dev/null/nowhere", "Not a directory"}, {"/proc/nowhere", "/proc/nowhere/"}, {"", "HOME"}};

START_TEST(cache_may_be_unusable) {
    void *found;
    size_t bytes;
    char line[PN_CACHE_TROUBLE_BYTES];
    setenv("PINN_CACHE", unusable[_i].folder, 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    ck_assert(!pn_cache_tell_trouble(line));
    if (_i % 2) ck_assert(!pn_cache_can_keep()); /* the first to find out, or not */
    pn_cache_keep("key", "code", 4);
    pn_cache_keep("other", "code", 4);
    ck_assert(!pn_cache_can_keep());
    ck_assert(!pn_cache_find("key", &found, &bytes));
    ck_assert(pn_cache_tell_trouble(line));
    ck_assert_msg(strstr(line, unusable[_i].reason) && strstr(line, "PINN_CACHE"), "%s", line);
    pn_cache_keep("key", "code", 4);
    ck_assert(!pn_cache_tell_trouble(line)); /* once */
}
END_TEST

/* A FIFO of a file's name is not waited for, and replaced. */
START_TEST(cache_reads_regular_files_only) {
    void *found = NULL;
    size_t bytes;
    char path[400], line[PN_CACHE_TROUBLE_BYTES];
    make_cache();
    pn_cache_keep("key", "code", 4);
    ck_assert(cached_file(path));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0666), 0);
    ck_assert(!pn_cache_find("key", &found, &bytes));
    pn_cache_keep("key", "code", 4);
    ck_assert(pn_cache_find("key", &found, &bytes));
    ck_assert(!pn_cache_tell_trouble(line));
    pn_free(found);
    remove_cache();
}
END_TEST

/* ---- NVRTC ------------------------------------------------------------------------------------------------------------------------- */

#ifdef PINN_HAVE_CUDA
static const char *const architectures[] = {"sm_80", "sm_90", "compute_90"};

START_TEST(nvrtc_compiles_everything) {
    const pn_real real = _i < 3 ? PN_FLOAT32 : PN_FLOAT64;
    const char *architecture = architectures[_i % 3];
    program_case c;
    pn_program *operations = operation_program(real);
    pn_text source = {0};
    void *code = NULL, *again = NULL;
    size_t bytes = 0, bytes_again = 0;
    make_cache();
    case_create(&c, real, 64, 10);
    const pn_program *const program[] = {operations, c.program, c.program};
    ck_assert_int_eq(pn_kernel_source("pointwise", program, 3, &source), PINN_OK);
    ck_assert_msg(pn_kernel_compile(source.data, architecture, &code, &bytes) == PINN_OK, "%s", pinn_error_message());
    ck_assert_uint_gt(bytes, 1000);
    char path[400];
    ck_assert(cached_file(path));
    ck_assert_int_eq(pn_kernel_compile(source.data, architecture, &again, &bytes_again), PINN_OK);
    ck_assert_uint_eq(bytes_again, bytes);
    ck_assert_mem_eq(again, code, bytes);
    pn_free(code);
    pn_free(again);
    pn_text_free(&source);
    pn_program_destroy(operations);
    case_destroy(&c);
    remove_cache();
}
END_TEST

START_TEST(nvrtc_says_what_is_wrong) {
    void *code = NULL;
    size_t bytes;
    make_cache();
    ck_assert_int_eq(pn_kernel_compile("int f() { return nonsense; }", "sm_90", &code, &bytes), PINN_DEVICE_FAILED);
    ck_assert_ptr_null(code);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "nonsense"));
    ck_assert_int_eq(pn_kernel_compile("", "sm_1", &code, &bytes), PINN_DEVICE_FAILED);
    remove_cache();
}
END_TEST

/* More than there are processors, one of them wrong, some forgotten before they are done. */
START_TEST(several_compile_at_once) {
    enum { COUNT = 24, WRONG = 5, FORGOTTEN = 7 };
    pn_compilation *compilation[COUNT] = {NULL};
    char source[COUNT][128];
    make_cache();
    const size_t before = pn_compiled_kernels();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            snprintf(source[i], sizeof source[i], i == WRONG ? "int f() { return nonsense%d; }" : "extern \"C\" __global__ void kernel%d() {}", i);
            ck_assert_int_eq(pn_compilation_begin(source[i], "sm_90", &compilation[i]), PINN_OK);
        }
        for (int i = COUNT - 1; i >= 0; i--) { /* the last first: waiting does not depend on the order */
            void *code = NULL, *same = NULL;
            size_t bytes = 0, same_bytes = 0;
            if (i % FORGOTTEN == 1) {
                pn_compilation_drop(compilation[i]);
                continue;
            }
            const pinn_status status = pn_compilation_end(compilation[i], &code, &bytes);
            if (i == WRONG) {
                ck_assert_int_eq(status, PINN_DEVICE_FAILED);
                ck_assert_ptr_nonnull(strstr(pinn_error_message(), "nonsense5"));
                continue;
            }
            ck_assert_msg(status == PINN_OK, "%s", pinn_error_message());
            ck_assert_int_eq(pn_kernel_compile(source[i], "sm_90", &same, &same_bytes), PINN_OK); /* from the cache */
            ck_assert_uint_eq(bytes, same_bytes);
            ck_assert_mem_eq(code, same, bytes);
            pn_free(code);
            pn_free(same);
        }
    }
    const size_t compiled = pn_compiled_kernels() - before; /* the wrong one twice, the forgotten at most */
    ck_assert_uint_ge(compiled, COUNT - 4 + 1);
    ck_assert_uint_le(compiled, COUNT + 1);
    pn_compilation_drop(NULL);
    remove_cache();
}
END_TEST

static const char *shared_source; /* of askers in several threads */

static void *ask(void *out) {
    size_t bytes = 0;
    return pn_kernel_compile(shared_source, "sm_90", out, &bytes) == PINN_OK ? NULL : pn_duplicate(pinn_error_message(), strlen(pinn_error_message()));
}

/* One text, asked for again and again by one thread and at once by several, is compiled once though nothing can be kept; each asker has its own
 * code. A failure is each asker's. */
START_TEST(equal_texts_compile_once) {
    enum { ASKERS = 6 };
    static const char good[] = "extern \"C\" __global__ void kernel() {}", wrong[] = "int f() { return nonsense; }";
    pn_compilation *compilation[ASKERS];
    pthread_t thread[ASKERS];
    void *code[ASKERS] = {NULL}, *message = NULL;
    size_t bytes[ASKERS];
    setenv("PINN_CACHE", "/dev/null", 1);
    for (int i = 0; i < ASKERS; i++) ck_assert_int_eq(pn_compilation_begin(good, "sm_90", &compilation[i]), PINN_OK);
    shared_source = good;
    for (int i = 0; i < ASKERS; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, ask, &code[i]), 0);
    for (int i = 0; i < ASKERS; i++) {
        pthread_join(thread[i], &message);
        ck_assert_msg(!message, "%s", (char *)message);
        ck_assert_ptr_nonnull(code[i]);
    }
    for (int i = 0; i < ASKERS; i++) {
        for (int k = 0; k < i; k++) ck_assert_ptr_ne(code[i], code[k]);
        ((char *)code[i])[0]++; /* nobody else's */
    }
    for (int i = 0; i < ASKERS; i++) pn_free(code[i]);
    pn_compilation_drop(compilation[0]);
    for (int i = 1; i < ASKERS; i++) ck_assert_int_eq(pn_compilation_end(compilation[i], &code[i], &bytes[i]), PINN_OK);
    for (int i = 1; i < ASKERS; i++) {
        ck_assert_uint_eq(bytes[i], bytes[1]);
        ck_assert_mem_eq(code[i], code[1], bytes[1]);
    }
    for (int i = 1; i < ASKERS; i++) pn_free(code[i]);
    ck_assert_uint_eq(pn_compiled_kernels(), 1);

    for (int i = 0; i < ASKERS; i++) ck_assert_int_eq(pn_compilation_begin(wrong, "sm_90", &compilation[i]), PINN_OK);
    pn_compilation_drop(compilation[ASKERS - 1]);
    for (int i = 0; i < ASKERS - 1; i++) {
        ck_assert_int_eq(pn_compilation_end(compilation[i], &code[0], &bytes[0]), PINN_DEVICE_FAILED);
        ck_assert_ptr_nonnull(strstr(pinn_error_message(), "nonsense"));
    }
    ck_assert_uint_eq(pn_compiled_kernels(), 2);
    ck_assert_int_eq(pn_compilation_begin(good, "sm_80", &compilation[0]), PINN_OK); /* another architecture is another code */
    ck_assert_int_eq(pn_compilation_begin(good, "sm_90", &compilation[1]), PINN_OK);
    ck_assert_int_eq(pn_compilation_end(compilation[0], &code[0], &bytes[0]), PINN_OK);
    ck_assert_int_eq(pn_compilation_end(compilation[1], NULL, NULL), PINN_OK);
    ck_assert_uint_eq(pn_compiled_kernels(), 4);
    ck_assert_uint_eq(pn_asked_kernels(), 3); /* what is compiled anew is no other kernel */
    pn_free(code[0]);
}
END_TEST

static size_t told[8], times_told;

static void tell(void *user, size_t kernels) {
    ck_assert_ptr_eq(user, told);
    told[times_told++ % 8] = kernels;
}

/* Who waits too long is told so once; who does not, never. */
START_TEST(a_long_wait_is_told) {
    enum { KERNELS = 3 };
    const double until[] = {0, pn_clock() + 0.01, pn_clock() + 3600, 0}; /* the last for what is there already */
    setenv("PINN_CACHE", "/dev/null", 1);
    for (int k = 0; k < 4; k++) {
        const pn_patience patience = {until[k], tell, told};
        pn_compilation *compilation[KERNELS];
        char source[KERNELS][100];
        times_told = 0;
        for (int i = 0; i < KERNELS; i++) {
            snprintf(source[i], sizeof source[i], "extern \"C\" __global__ void kernel_%d_%d(float *x) { x[0] = sin(x[0]); }", k, i);
            ck_assert_int_eq(pn_compilation_begin(source[i], "sm_90", &compilation[i]), PINN_OK);
        }
        for (int i = 0; k == 3 && i < KERNELS; i++) { /* another asker has waited for it */
            pn_compilation *other = NULL;
            ck_assert_int_eq(pn_compilation_begin(source[i], "sm_90", &other), PINN_OK);
            ck_assert_int_eq(pn_compilation_end(other, NULL, NULL), PINN_OK);
        }
        pn_compilation_patience(&patience);
        for (int i = 0; i < KERNELS; i++) ck_assert_int_eq(pn_compilation_end(compilation[i], NULL, NULL), PINN_OK);
        pn_compilation_patience(NULL);
        ck_assert_uint_eq(times_told, k < 2);
        if (k < 2) ck_assert(told[0] >= 1 && told[0] <= KERNELS);
    }
}
END_TEST
#else
START_TEST(nothing_compiles_without_cuda) {
    void *code = NULL;
    size_t bytes;
    ck_assert_int_eq(pn_kernel_compile("", "sm_90", &code, &bytes), PINN_UNSUPPORTED);
    ck_assert_ptr_null(code);
}
END_TEST
#endif

int main(void) {
    Suite *suite = suite_create("kernel");
    TCase *text = tcase_create("text"), *cache = tcase_create("cache"), *compiler = tcase_create("compiler");
    tcase_set_timeout(text, 120);
    tcase_set_timeout(compiler, 120);
    tcase_add_loop_test(text, emulated_sections, 0, 2);
    tcase_add_loop_test(text, emulated_operations, 0, 2);
    tcase_add_test(text, equal_programs_share_code);
    tcase_add_test(text, impossible_kernels_are_refused);
    tcase_add_loop_test(text, vectors_must_be_aligned, 0, 2);
    tcase_add_test(text, shapes_cover_the_width);
    tcase_add_test(cache, cache_keeps_and_checks);
    tcase_add_loop_test(cache, cache_may_be_unusable, 0, sizeof unusable / sizeof *unusable);
    tcase_add_test(cache, cache_reads_regular_files_only);
#ifdef PINN_HAVE_CUDA
    tcase_add_loop_test(compiler, nvrtc_compiles_everything, 0, 6);
    tcase_add_test(compiler, nvrtc_says_what_is_wrong);
    tcase_add_test(compiler, several_compile_at_once);
    tcase_add_test(compiler, equal_texts_compile_once);
    tcase_add_test(compiler, a_long_wait_is_told);
#else
    tcase_add_test(compiler, nothing_compiles_without_cuda);
#endif
    suite_add_tcase(suite, text);
    suite_add_tcase(suite, cache);
    suite_add_tcase(suite, compiler);
    return suite_run(suite);
}
