# Matrix products are compiled once per instruction set and chosen at run time.
set_source_files_properties(${folder}/product_sse2.c PROPERTIES COMPILE_OPTIONS "-O3")
set_source_files_properties(${folder}/product_avx2.c PROPERTIES COMPILE_OPTIONS "-O3;-mavx2;-mfma")
set_source_files_properties(${folder}/product_avx512.c PROPERTIES COMPILE_OPTIONS "-O3;-mavx512f;-mavx512dq;-mavx512vl;-mfma")
# Device text that is compiled at run time travels inside the library, as strings.
set(tile_text ${CMAKE_BINARY_DIR}/tile_text.c)
set(tile_parts)
foreach(part products halves layout stages pass)
  list(APPEND tile_parts ${PROJECT_SOURCE_DIR}/kernels/tile_${part}.cuh)
endforeach()
add_custom_command(OUTPUT ${tile_text} DEPENDS ${tile_parts} ${PROJECT_SOURCE_DIR}/cmake/text_to_c.cmake
  COMMAND ${CMAKE_COMMAND} -DOUT=${tile_text} "-DPARTS=${tile_parts}" -P ${PROJECT_SOURCE_DIR}/cmake/text_to_c.cmake VERBATIM)
target_sources(pn_network PRIVATE ${tile_text})
set(stream_text ${CMAKE_BINARY_DIR}/stream_text.c)
set(stream_parts ${PROJECT_SOURCE_DIR}/kernels/stream_instructions.cuh ${PROJECT_SOURCE_DIR}/kernels/stream_products.cuh
  ${PROJECT_SOURCE_DIR}/kernels/stream_pass.cuh ${PROJECT_SOURCE_DIR}/kernels/stream_gradient.cuh)
add_custom_command(OUTPUT ${stream_text} DEPENDS ${stream_parts} ${PROJECT_SOURCE_DIR}/cmake/text_to_c.cmake
  COMMAND ${CMAKE_COMMAND} -DOUT=${stream_text} "-DPARTS=${stream_parts}" -P ${PROJECT_SOURCE_DIR}/cmake/text_to_c.cmake VERBATIM)
target_sources(pn_network PRIVATE ${stream_text})
# -fmad=false is the twin of -ffp-contract=off.
target_compile_options(pn_network PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -Xcompiler=-Wall,-Wextra>)
if(PINN_HAVE_CUDA AND PINN_WERROR)
  target_compile_options(pn_network PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
endif()
