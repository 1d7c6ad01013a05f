/* Status codes shared by the trainer (pinn.h) and the graph layer (pinn_graph.h).
 *
 * Every function that can fail returns a pinn_status and leaves its outputs untouched unless it returns PINN_OK. The text that
 * belongs to the last failure of the calling thread is kept until that thread's next failure; it says what went wrong, where,
 * and how to repair it.
 */
#ifndef PINN_STATUS_H
#define PINN_STATUS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, short meaning. The one table of errors: the enumerators and pinn_status_name() are generated from it. */
#define PINN_STATUS_TABLE(X)                                                  \
    X(OK, "success")                                                          \
    X(BAD_ARGUMENT, "a caller passed an argument outside its documented range") \
    X(NO_MEMORY, "out of memory")                                             \
    X(CONFIG, "the configuration is wrong; its diagnostics say where")        \
    X(IO, "a file could not be read or written")                              \
    X(DEVICE_FAILED, "the CUDA driver, runtime or a CUDA library failed")            \
    X(UNSUPPORTED, "asked for something this build or machine cannot do")     \
    X(REFUSED, "a recorded graph breaks one of the graph layer's rules")      \
    X(STALE, "a plane used by a built graph was freed or re-allocated")       \
    X(HOST_FAILED, "a host function recorded in a graph failed")                     \
    X(NUMERIC, "a loss became NaN or infinite")                               \
    X(INTERRUPTED, "stopped by a signal")                                     \
    X(INTERNAL, "a broken invariant: please report it")

typedef enum pinn_status {
#define X(name, meaning) PINN_##name,
    PINN_STATUS_TABLE(X)
#undef X
} pinn_status;

/* The enumerator's name ("PINN_OK"); "PINN_?" for a value outside the table. Static storage. */
const char *pinn_status_name(pinn_status status);

/* The calling thread's last failure as text; "" when there was none. Borrowed: valid until this thread's next failure. */
const char *pinn_error_message(void);

/* Whether that text tells of a disk without room (or of a limit of file sizes): the same may go well once there is some. */
bool pinn_error_is_full(void);

#ifdef __cplusplus
}
#endif
#endif
