/* Keeps a library without sources linkable: a folder whose every file is for CUDA, in a CPU-only build. */
typedef int pn_empty;
