/* pinn-bench scaling: a step's time and memory over points, width, depth, order of derivatives and dimension. See docs/bench.md. */
#ifndef BENCH_SCALING_H
#define BENCH_SCALING_H

/* The subcommand, its own name as argument 0. Returns the program's exit status. */
int bench_scaling(int count, char **argument);

#endif
