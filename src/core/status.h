/* How the library raises an error: set the thread's message, return the status. */
#ifndef PN_CORE_STATUS_H
#define PN_CORE_STATUS_H

#include "pinn_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Formats the message of this thread's last error and returns `status`. Long messages are cut at 32 KiB. */
pinn_status pn_fail(pinn_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Puts "context: " before the message already set, for callers that know more than the place that failed. Returns `status`. */
pinn_status pn_fail_within(pinn_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Runs a fallible call; on failure keeps its status in the local variable `status` and goes to `fail`. */
#define PN_TRY(call)                          \
    do {                                      \
        status = (call);                      \
        if (status != PINN_OK) goto fail;     \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
