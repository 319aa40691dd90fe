# The compiler's options for VIT_SLIM: VIT_SMALLEST, and vit_shrink_linked().
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)
include(CheckIPOSupported)
include(CheckLinkerFlag)

set(VIT_SMALLEST -Os)
if(VIT_SLIM)
  check_cxx_compiler_flag(-Oz VIT_HAS_OZ)  # g++ 12, clang
  if(VIT_HAS_OZ)
    set(VIT_SMALLEST -Oz)
  endif()
endif()

# vit_shrink_linked(TARGET): what makes a shared library of VIT_SLIM small when it is linked. Functions of all sources are seen
# together, and addresses that the loader adjusts take a bit instead of 24 bytes each, with binutils 2.38 and the loader of glibc 2.36.
function(vit_shrink_linked target)
  check_ipo_supported(RESULT VIT_HAS_IPO OUTPUT ignored LANGUAGES CXX)
  set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION ${VIT_HAS_IPO})
  check_linker_flag(CXX "LINKER:-z,pack-relative-relocs" VIT_HAS_PACKED_RELOCATIONS)
  check_cxx_source_compiles("#include <cstdlib>
    #if !__GLIBC_PREREQ(2, 36)
    #error its loader does not read them
    #endif
    int main() {}" VIT_LOADS_PACKED_RELOCATIONS)
  if(VIT_HAS_PACKED_RELOCATIONS AND VIT_LOADS_PACKED_RELOCATIONS)
    target_link_options(${target} PRIVATE LINKER:-z,pack-relative-relocs)
  endif()
endfunction()
