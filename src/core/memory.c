/* The library's heap, with a switch for tests that make allocations fail. */
#include "core/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_long failures = -1; /* allocations left before one fails; negative: none fails */

void pn_memory_fail_after(long n) { atomic_store(&failures, n); }

static int must_fail(void) {
    if (atomic_load_explicit(&failures, memory_order_relaxed) < 0) return 0;
    return atomic_fetch_sub(&failures, 1) == 0;
}

void *pn_allocate(size_t count, size_t size) {
    size_t bytes;
    if (must_fail() || __builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - 64) return NULL;
    bytes = (bytes + 63) / 64 * 64;
    if (bytes == 0) bytes = 64;
    void *block = aligned_alloc(64, bytes);
    if (block) memset(block, 0, bytes);
    return block;
}

void *pn_reallocate(void *block, size_t old_count, size_t count, size_t size) {
    void *grown = pn_allocate(count, size);
    if (!grown) return NULL;
    size_t kept = old_count < count ? old_count : count;
    if (block && kept) memcpy(grown, block, kept * size);
    free(block);
    return grown;
}

void pn_free(void *block) { free(block); }

char *pn_duplicate(const char *text, size_t length) {
    if (length == SIZE_MAX) return NULL;
    char *copy = pn_allocate(length + 1, 1);
    if (copy && length) memcpy(copy, text, length);
    return copy;
}
