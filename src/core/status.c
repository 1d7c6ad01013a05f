/* Status names and the thread's error message. */
#include "core/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Wide enough for fifty diagnostics with their source lines. */
static _Thread_local char message[32768];

const char *pinn_status_name(pinn_status status) {
    switch (status) {
#define X(name, meaning) \
    case PINN_##name: return "PINN_" #name;
        PINN_STATUS_TABLE(X)
#undef X
    }
    return "PINN_?";
}

const char *pinn_error_message(void) { return message; }

/* By strerror's text, which is all that HDF5 hands on of a failed system call. */
bool pinn_error_is_full(void) {
    static const int full[] = {ENOSPC, EDQUOT, EFBIG};
    for (size_t i = 0; i < sizeof full / sizeof full[0]; i++)
        if (strstr(message, strerror(full[i]))) return true;
    return false;
}

pinn_status pn_fail(pinn_status status, const char *format, ...) {
    /* Built aside: the arguments may point into the old message. */
    char text[sizeof message];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    memcpy(message, text, sizeof message);
    return status;
}

pinn_status pn_fail_within(pinn_status status, const char *format, ...) {
    char text[sizeof message];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text - 2, format, list);
    va_end(list);
    if (length >= 0 && (size_t)length < sizeof text - 2) {
        text[length++] = ':';
        text[length++] = ' ';
        size_t room = sizeof text - 1 - (size_t)length, rest = strnlen(message, room);
        memcpy(text + length, message, rest);
        text[(size_t)length + rest] = 0;
    }
    memcpy(message, text, sizeof message);
    return status;
}
