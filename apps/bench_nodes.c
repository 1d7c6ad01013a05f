/* The shares of a step's nodes; see bench_steps.h. */
#include <stdio.h>

#include "bench_steps.h"
#include "core/memory.h"
#include "train/profile.h"

static const double seconds = 0.05; /* a repetition of a node */

/* `begin`: two characters, "# " where it is no row. */
static void print_row(const char *begin, const char *label, double microseconds, double step, const char *name) {
    printf("%s%s%11.2f %7.1f %%  %s", begin, label, microseconds, 100 * microseconds / step, name);
}

pinn_status bench_nodes(pinn_training *training, const char *label, double best, double peak, int repeats) {
    pn_node_time *node = NULL;
    size_t count = 0, passes = 0;
    double sum = 0, pass = 0;
    pinn_result r;
    pinn_status status = pn_training_profile(training, seconds, repeats, &node, &count);
    if (status != PINN_OK) return status;
    pinn_training_result(training, &r);
    for (size_t i = 0; i < count; i++) {
        const double microseconds = 1e6 * node[i].seconds;
        print_row("  ", label, microseconds, best, node[i].name);
        putchar('\n');
        sum += microseconds;
        if (node[i].part != PN_PART_PASS) continue;
        pass += microseconds;
        passes++;
    }
    print_row("# ", label, pass, best, "the network pass");
    printf(": %zu node%s, %.1f %% of the product peak\n", passes, passes == 1 ? "" : "s", 100 * r.product_operations / (1e-6 * pass * peak));
    print_row("# ", label, best - sum, best, "of the step beside its nodes\n");
    fflush(stdout);
    pn_free(node);
    return PINN_OK;
}
