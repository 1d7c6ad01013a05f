# Matrix products are compiled once per instruction set and chosen at run time.
set_source_files_properties(${folder}/product_sse2.c PROPERTIES COMPILE_OPTIONS "-O3")
set_source_files_properties(${folder}/product_avx2.c PROPERTIES COMPILE_OPTIONS "-O3;-mavx2;-mfma")
set_source_files_properties(${folder}/product_avx512.c PROPERTIES COMPILE_OPTIONS "-O3;-mavx512f;-mavx512dq;-mavx512vl;-mfma")
# -fmad=false is the twin of -ffp-contract=off.
target_compile_options(pn_network PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -Xcompiler=-Wall,-Wextra>)
if(PINN_HAVE_CUDA AND PINN_WERROR)
  target_compile_options(pn_network PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
endif()
