# Matrix products are compiled once per instruction set and chosen at run time.
set_source_files_properties(${folder}/product_sse2.c PROPERTIES COMPILE_OPTIONS "-O3")
set_source_files_properties(${folder}/product_avx2.c PROPERTIES COMPILE_OPTIONS "-O3;-mavx2;-mfma")
set_source_files_properties(${folder}/product_avx512.c PROPERTIES COMPILE_OPTIONS "-O3;-mavx512f;-mavx512dq;-mavx512vl;-mfma")
