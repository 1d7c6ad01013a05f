# The vector interpreter is compiled once per instruction set and chosen at run time.
set(lanes_flags -O3)
set_source_files_properties(${folder}/lanes_sse2.c PROPERTIES COMPILE_OPTIONS "${lanes_flags}")
set_source_files_properties(${folder}/lanes_avx2.c PROPERTIES COMPILE_OPTIONS "${lanes_flags};-mavx2;-mfma")
set_source_files_properties(${folder}/lanes_avx512.c PROPERTIES COMPILE_OPTIONS
  "${lanes_flags};-mavx512f;-mavx512dq;-mavx512vl;-mfma;-mprefer-vector-width=512")
# A static SLEEF makes the calls direct; Debian has the shared one only.
find_library(PN_sleef_STATIC libsleef.a)
if(PN_sleef_STATIC)
  target_link_libraries(pn_pointwise PRIVATE ${PN_sleef_STATIC})
endif()
