/* Fuzzes problem files: reader, writer, comparison and compiler, on whatever bytes. Configs that would read other files or take long
 * by right (many points, coordinates or characters) are read but not compiled. */
#include <stdlib.h>
#include <string.h>

#include "problem/problem.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool small(const pn_config *config) {
    double points = 1;
    for (size_t i = 0; i < config->output.evaluate_count; i++) points *= (double)config->output.evaluate_points[i];
    return points <= 20000 && config->coordinate_count <= 4 && config->field_count <= 4;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    /* "file" inside the bytes: a reference file might be opened even to report errors. */
    if (size > 4096 || memmem(data, size, "file", 4)) return 0;
    pn_config *config = NULL;
    pn_problem *problem = NULL;
    pn_text written = {0}, differences = {0};
    if (pn_config_parse("fuzz.toml", (const char *)data, size, NULL, 0, &config) != PINN_OK) return 0;
    pn_config *again = NULL;
    if (pn_config_write(config, &written) != PINN_OK || pn_config_parse("fuzz.toml", written.data, written.length, NULL, 0, &again) != PINN_OK)
        abort(); /* what was read can be written and read again */
    if (pn_config_compare(written.data, written.data, 0, &differences) != PINN_OK || differences.length) abort();
    if (small(config) && !config->reference_file.text && pn_problem_create(config, &problem) == PINN_OK) pn_problem_destroy(problem);
    pn_config_destroy(again);
    pn_config_destroy(config);
    pn_text_free(&written);
    pn_text_free(&differences);
    return 0;
}
