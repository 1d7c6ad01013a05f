/* The generator against its published vectors and against Random123; words to numbers in (0,1]. */
#include <Random123/philox.h>

#include "kernels/philox.h"
#include "operation.h"

/* Random123 1.09, kat_vectors, "philox4x32 10". */
static const struct {
    uint32_t counter[4], key[2], word[4];
} vectors[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void philox(const uint32_t c[4], const uint32_t k[2], uint32_t word[4]) {
    const pn_philox_block block = pn_philox(c[0], c[1], c[2], c[3], k[0], k[1]);
    memcpy(word, block.word, sizeof block.word);
}

START_TEST(published_vectors) {
    uint32_t word[4];
    philox(vectors[_i].counter, vectors[_i].key, word);
    ck_assert_mem_eq(word, vectors[_i].word, sizeof word);
}
END_TEST

START_TEST(equals_random123) {
    uint64_t state = 1;
    for (int n = 0; n < 100000; n++) {
        uint32_t in[6], word[4];
        for (int i = 0; i < 6; i++) in[i] = (uint32_t)(int32_t)(test_number(&state) * 0x1p31);
        philox4x32_ctr_t counter = {{in[0], in[1], in[2], in[3]}};
        philox4x32_key_t key = {{in[4], in[5]}};
        counter = philox4x32(counter, key);
        philox(in, in + 4, word);
        ck_assert_mem_eq(word, counter.v, sizeof word);
    }
}
END_TEST

START_TEST(uniform_ends) {
    ck_assert(pn_uniform_float(0) == 0x1p-25f);
    ck_assert(pn_uniform_float(0xff) == 0x1p-25f); /* the low 8 bits are not used */
    ck_assert(pn_uniform_float(0x100) == 0x3p-25f);
    ck_assert(pn_uniform_float(0xffffffff) == 1);
    ck_assert(pn_uniform_double(0, 0) == 0x1p-54);
    ck_assert(pn_uniform_double(0, 0x7ff) == 0x1p-54); /* the low 11 bits are not used */
    ck_assert(pn_uniform_double(0, 0x800) == 0x3p-54);
    ck_assert(pn_uniform_double(0x80000000, 0) == 0.5); /* 1/2 + 2^-54: a tie, to even */
    ck_assert(pn_uniform_double(0xffffffff, 0xffffffff) == 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("philox");
    TCase *tests = tcase_create("philox");
    tcase_set_timeout(tests, 60); /* sanitizers on a busy machine */
    tcase_add_loop_test(tests, published_vectors, 0, sizeof vectors / sizeof vectors[0]);
    tcase_add_test(tests, equals_random123);
    tcase_add_test(tests, uniform_ends);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
