/* SHA-256 against FIPS 180-4's examples; whole files under a limit of file sizes, in a thread that SIGXFSZ would end. */
#include "io/file.h"
#include "io/sha256.h"
#include "io_test.h"

/* FIPS 180-4's examples (NIST, "SHA256.pdf" and "SHA2_Additional.pdf"), and lengths around a block's end. */
static const struct {
    const char *text;
    size_t repeats;
    const char *hex;
} examples[] = {
    {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    {"A", 119, "17d2f0f7197a6612e311d141781f2b9539c4aef7affd729246c401890e000dde"},
};

START_TEST(digests_are_right) {
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        char hex[PN_SHA256_HEX];
        pn_sha256 hash;
        pn_sha256_begin(&hash);
        for (size_t k = 0; k < examples[i].repeats; k++) pn_sha256_add(&hash, examples[i].text, strlen(examples[i].text));
        pn_sha256_end(&hash, hex);
        ck_assert_str_eq(hex, examples[i].hex);
    }
}
END_TEST

/* However the bytes are cut into parts. */
START_TEST(parts_make_no_difference) {
    char bytes[300], whole[PN_SHA256_HEX], parts[PN_SHA256_HEX];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(7 * i);
    for (size_t length = 0; length < sizeof bytes; length++) {
        pn_sha256 hash;
        pn_sha256_begin(&hash);
        pn_sha256_add(&hash, bytes, length);
        pn_sha256_end(&hash, whole);
        pn_sha256_begin(&hash);
        for (size_t done = 0, part = 1; done < length; done += part, part = part * 3 % 101) {
            if (part > length - done) part = length - done;
            pn_sha256_add(&hash, bytes + done, part);
        }
        pn_sha256_end(&hash, parts);
        ck_assert_str_eq(whole, parts);
    }
}
END_TEST

/* Not limit_file_size: that ignores the signal, as the tests of the writer thread may. No assertion before the limit is lifted. */
START_TEST(file_size_limits_are_errors_not_signals) {
    const char *path = in_directory("file");
    static const char bytes[5000];
    struct rlimit before, limit;
    sigset_t mask;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){1000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    pinn_status status = pn_file_write(path, bytes, sizeof bytes);
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_int_eq(status, PINN_IO);
    ck_assert_msg(strstr(pinn_error_message(), "File too large") != NULL, "%s", pinn_error_message());
    ck_assert(!is_there(path) && !is_there(in_directory("file.tmp")));
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ck_assert(!sigismember(&mask, SIGXFSZ)); /* as it was */
    ck_ok(pn_file_write(path, bytes, sizeof bytes));
}
END_TEST

/* What the caller has blocked stays pending for him. */
START_TEST(a_blocked_signal_is_the_callers) {
    sigset_t limit, before, pending;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, NULL);
    raise(SIGXFSZ);
    pn_file_guard(&before);
    pn_file_unguard(&before);
    sigpending(&pending);
    ck_assert(sigismember(&pending, SIGXFSZ));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("file");
    TCase *test = tcase_create("file");
    tcase_add_checked_fixture(test, make_test_directory, remove_test_directory);
    tcase_add_test(test, digests_are_right);
    tcase_add_test(test, parts_make_no_difference);
    tcase_add_test(test, file_size_limits_are_errors_not_signals);
    tcase_add_test(test, a_blocked_signal_is_the_callers);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
