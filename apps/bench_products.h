/* pinn-bench products: matrix products of network layers on a GPU. See docs/bench.md. */
#ifndef BENCH_PRODUCTS_H
#define BENCH_PRODUCTS_H

/* The subcommand, its own name as argument 0. Returns the program's exit status. */
int bench_products(int count, char **argument);

#endif
