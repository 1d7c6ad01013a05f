# Without errno sqrt is one instruction and Adam's loop vectorises.
target_compile_options(pn_kernels PRIVATE $<$<COMPILE_LANGUAGE:C>:-fno-math-errno>)
# -fmad=false is the twin of -ffp-contract=off: the GPU fuses a multiply-add only where the source says fma, so both give the same bits.
target_compile_options(pn_kernels PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -Xcompiler=-Wall,-Wextra>)
if(PINN_HAVE_CUDA AND PINN_WERROR)
  target_compile_options(pn_kernels PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
endif()
