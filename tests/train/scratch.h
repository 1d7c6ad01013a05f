/* A directory for a test's files, that goes again. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include "training_tools.h"

static char scratch[] = "/tmp/pinn-test-XXXXXX";

static inline void make_scratch(void) { ck_assert_ptr_nonnull(mkdtemp(strcpy(scratch, "/tmp/pinn-test-XXXXXX"))); }
static inline void remove_scratch(void) { remove_tree(scratch); }

/* A path in it; the last 64 hold. */
static inline const char *in_scratch(const char *name) {
    static char path[64][300];
    static unsigned next;
    char *out = path[next++ % 64];
    snprintf(out, sizeof path[0], "%s/%s", scratch, name);
    return out;
}

#endif
