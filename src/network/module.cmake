# Matrix products are compiled once per instruction set and chosen at run time.
set_source_files_properties(${folder}/product_sse2.c PROPERTIES COMPILE_OPTIONS "-O3")
set_source_files_properties(${folder}/product_avx2.c PROPERTIES COMPILE_OPTIONS "-O3;-mavx2;-mfma")
set_source_files_properties(${folder}/product_avx512.c PROPERTIES COMPILE_OPTIONS "-O3;-mavx512f;-mavx512dq;-mavx512vl;-mfma")
# Device text that is compiled at run time travels inside the library, as strings.
set(device_text ${CMAKE_BINARY_DIR}/device_text.c)
set(device_parts)
foreach(part lane_stages tile_products tile_halves tile_layout tile_stages tile_pass stream_instructions stream_products stream_layout stream_pass
             stream_gradient)
  list(APPEND device_parts ${PROJECT_SOURCE_DIR}/kernels/${part}.cuh)
endforeach()
add_custom_command(OUTPUT ${device_text} DEPENDS ${device_parts} ${PROJECT_SOURCE_DIR}/cmake/text_to_c.cmake
  COMMAND ${CMAKE_COMMAND} -DOUT=${device_text} "-DPARTS=${device_parts}" -P ${PROJECT_SOURCE_DIR}/cmake/text_to_c.cmake VERBATIM)
target_sources(pn_network PRIVATE ${device_text})
# -fmad=false is the twin of -ffp-contract=off.
target_compile_options(pn_network PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -Xcompiler=-Wall,-Wextra>)
if(PINN_HAVE_CUDA AND PINN_WERROR)
  target_compile_options(pn_network PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
endif()
