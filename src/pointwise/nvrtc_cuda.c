/* Compiles a kernel's text with NVRTC, or takes the result of an earlier compilation from the cache. Needs no GPU.
 *
 * Contraction is off: the text fuses multiply-adds itself. Division, square root and subnormal numbers are IEEE's (the defaults), and
 * elementary functions the accurate ones. */
#include <nvrtc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "pointwise/kernel.h"

#define NVRTC(call) PN_TRY(check((call), #call))

static pinn_status check(nvrtcResult result, const char *call) {
    if (result == NVRTC_SUCCESS) return PINN_OK;
    return pn_fail(result == NVRTC_ERROR_OUT_OF_MEMORY ? PINN_NO_MEMORY : PINN_DEVICE_FAILED, "%s: %s", call, nvrtcGetErrorString(result));
}

/* The compiler's log as this thread's error. */
static pinn_status fail_with_log(nvrtcProgram program, nvrtcResult result) {
    size_t bytes = 0;
    char *log = nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS ? pn_allocate(bytes + 1, 1) : NULL;
    if (log && nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS) *log = '\0';
    const pinn_status status = pn_fail(PINN_DEVICE_FAILED, "NVRTC: %s:\n%s", nvrtcGetErrorString(result), log ? log : "(no log)");
    pn_free(log);
    return status;
}

static pinn_status compile(const char *source, const char *const *option, int options, bool intermediate, void **code, size_t *bytes) {
    pinn_status status;
    nvrtcProgram program = NULL;
    void *result = NULL;
    size_t result_bytes = 0;
    NVRTC(nvrtcCreateProgram(&program, source, "pointwise.cu", 0, NULL, NULL));
    const nvrtcResult compiled = nvrtcCompileProgram(program, options, option);
    if (compiled != NVRTC_SUCCESS) {
        status = fail_with_log(program, compiled);
        goto fail;
    }
    if (intermediate)
        NVRTC(nvrtcGetPTXSize(program, &result_bytes));
    else
        NVRTC(nvrtcGetCUBINSize(program, &result_bytes));
    result = pn_allocate(result_bytes, 1);
    if (!result) {
        status = PN_NO_MEMORY("a compiled kernel");
        goto fail;
    }
    if (intermediate)
        NVRTC(nvrtcGetPTX(program, result));
    else
        NVRTC(nvrtcGetCUBIN(program, result));
    *code = result;
    *bytes = result_bytes;
    result = NULL;
fail:
    pn_free(result);
    if (program) nvrtcDestroyProgram(&program);
    return status;
}

/* Of GPUs from compute capability 8.0 on, which the kernels need. */
pinn_status pn_architecture_check(const char *name) {
    enum { MOST = 64, LEAST = 80 };
    pinn_status status;
    int known[MOST], count = 0;
    pn_text list = {0};
    char *end;
    const char *const number = strncmp(name, "sm_", 3) == 0 ? name + 3 : strncmp(name, "compute_", 8) == 0 ? name + 8 : "";
    const long asked = strtol(number, &end, 10);
    const bool plain = *number >= '1' && *number <= '9' && !*end;
    NVRTC(nvrtcGetNumSupportedArchs(&count));
    if (count < 1 || count > MOST) {
        status = pn_fail(PINN_DEVICE_FAILED, "NVRTC does not say which architectures it supports");
        goto fail;
    }
    NVRTC(nvrtcGetSupportedArchs(known));
    for (int i = 0; i < count; i++) {
        if (known[i] < LEAST) continue;
        if (plain && known[i] == asked) goto fail; /* status is OK */
        pn_text_printf(&list, "%ssm_%d", list.length ? ", " : "", known[i]);
    }
    PN_TRY(pn_text_check(&list));
    status = pn_fail(PINN_CONFIG, "\"%s\" is no GPU architecture that kernels can be compiled for; this NVRTC has %s, or compute_ and the number for "
                                  "intermediate code", name, pn_text_get(&list));
fail:
    pn_text_free(&list);
    return status;
}

static atomic_size_t compiled_kernels;
size_t pn_compiled_kernels(void) { return atomic_load(&compiled_kernels); }

/* The different kernels, by their keys' hashes. Beyond MOST_ASKED, far more than a process has, each counts. */
enum { MOST_ASKED = 4096 };
static pthread_mutex_t asked_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long asked[MOST_ASKED];
static size_t asked_kernels;

static void count_asked(const char *key) {
    const unsigned long long hash = pn_cache_hash(key);
    size_t i = 0;
    pthread_mutex_lock(&asked_lock);
    while (i < asked_kernels && i < MOST_ASKED && asked[i] != hash) i++;
    if (i < MOST_ASKED) asked[i] = hash;
    if (i == asked_kernels || i == MOST_ASKED) asked_kernels++;
    pthread_mutex_unlock(&asked_lock);
}

size_t pn_asked_kernels(void) {
    pthread_mutex_lock(&asked_lock);
    const size_t count = asked_kernels;
    pthread_mutex_unlock(&asked_lock);
    return count;
}

pinn_status pn_nvrtc_compile(const char *source, const char *architecture, void **image, size_t *bytes) {
    pinn_status status;
    pn_text target = {0}, key = {0};
    void *code = NULL;
    size_t code_bytes = 0;
    int major = 0, minor = 0;
    pn_text_printf(&target, "--gpu-architecture=%s", architecture);
    PN_TRY(pn_text_check(&target));
    const char *const option[] = {target.data, "--std=c++17", "--fmad=false"};
    enum { OPTIONS = sizeof option / sizeof option[0] };
    NVRTC(nvrtcVersion(&major, &minor));
    pn_text_printf(&key, "NVRTC %d.%d", major, minor);
    for (int i = 0; i < OPTIONS; i++) pn_text_printf(&key, " %s", option[i]);
    pn_text_printf(&key, "\n%s", source);
    PN_TRY(pn_text_check(&key));
    count_asked(key.data);
    if (!pn_cache_find(key.data, &code, &code_bytes)) {
        atomic_fetch_add(&compiled_kernels, 1);
        PN_TRY(compile(source, option, OPTIONS, strncmp(architecture, "compute_", 8) == 0, &code, &code_bytes));
        pn_cache_keep(key.data, code, code_bytes);
    }
    *bytes = code_bytes;
    *image = code;
    code = NULL;
fail:
    pn_free(code);
    pn_text_free(&target);
    pn_text_free(&key);
    return status;
}
