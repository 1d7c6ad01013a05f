/* Where trainings stop, on the CPU. */
#include "stop_suite.h"

int main(void) { return run_stop_suite("cpu", NULL); }
