/* Runs the generated CUDA text on the host: a preamble gives the CUDA words a meaning, the system's C++ compiler makes a shared object
 * of it, and the threads of a block are coroutines that change at __syncthreads(). Slow, exact about who reads and writes what. */
#ifndef EMULATE_H
#define EMULATE_H

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void emulated_kernel(unsigned blocks, const void *parameter);

static const char emulate_preamble[] =
    "#include <math.h>\n#include <string.h>\n#include <ucontext.h>\n"
    "#define __device__\n#define __global__\n#define __forceinline__ inline\n#define __grid_constant__\n#define __launch_bounds__(...)\n"
    "#define __shared__ static\n"
    "static struct { unsigned x; } threadIdx, blockIdx;\n"
    "static ucontext_t scheduler, thread[256];\nstatic bool done[256];\nstatic char stack[256][16384];\n"
    "static void __syncthreads() { swapcontext(&thread[threadIdx.x], &scheduler); }\n"
    "static inline float __int_as_float(int i) { float f; memcpy(&f, &i, 4); return f; }\n"
    "static inline double __longlong_as_double(long long i) { double f; memcpy(&f, &i, 8); return f; }\n";
/* The kernel's name is pointwise. */
static const char emulate_launcher[] =
    "static const arguments *parameter;\n"
    "static void run_thread() { pointwise(*parameter); done[threadIdx.x] = true; }\n"
    "extern \"C\" void emulate(unsigned blocks, const void *given) {\n"
    "    parameter = (const arguments *)given;\n"
    "    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {\n"
    "        for (unsigned t = 0; t < 256; t++) {\n"
    "            getcontext(&thread[t]);\n"
    "            thread[t].uc_stack.ss_sp = stack[t];\n"
    "            thread[t].uc_stack.ss_size = sizeof stack[t];\n"
    "            thread[t].uc_link = &scheduler;\n"
    "            makecontext(&thread[t], run_thread, 0);\n"
    "            done[t] = false;\n"
    "        }\n"
    "        for (bool all = false; !all;) {\n"
    "            all = true;\n"
    "            for (unsigned t = 0; t < 256; t++) {\n"
    "                if (done[t]) continue;\n"
    "                threadIdx.x = t;\n"
    "                swapcontext(&scheduler, &thread[t]);\n"
    "                all = all && done[t];\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n";

/* Function `name` of preamble, text and end, or NULL without a C++ compiler; `library` is the caller's (dlclose). */
static inline void *emulate_function(const char *source, const char *end, const char *name, void **library) {
    char folder[] = "/tmp/pinn-emulate-XXXXXX", path[80], object[80], command[256];
    if (system("c++ --version >/dev/null 2>&1") != 0) return NULL;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/kernel.cpp", folder);
    snprintf(object, sizeof object, "%s/kernel.so", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%s%s%s", emulate_preamble, source, end);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(command, sizeof command, "c++ -std=c++17 -O1 -march=native -ffp-contract=off -shared -fPIC -o %s %s", object, path);
    ck_assert_msg(system(command) == 0, "the generated text does not compile");
    *library = dlopen(object, RTLD_NOW);
    ck_assert_msg(*library != NULL, "%s", dlerror());
    unlink(path);
    unlink(object);
    rmdir(folder);
    void *function = dlsym(*library, name);
    ck_assert(function != NULL);
    return function;
}

/* The text's kernel, or NULL; as above. */
static inline emulated_kernel *emulate_compile(const char *source, void **library) {
    emulated_kernel *kernel;
    *(void **)&kernel = emulate_function(source, emulate_launcher, "emulate", library);
    return kernel;
}

#endif
