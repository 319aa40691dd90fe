# What makes a defect harder to use: vit_harden(TARGET) for the library, the program and its parts, which read what others
# wrote; with VIT_HARDEN=OFF nothing is added. Kernels for an instruction set read only numbers and go without the stack
# protector.
include(CheckCXXCompilerFlag)
option(VIT_HARDEN "Protect the stack, the relocations and the calls of the C library" ON)
check_cxx_compiler_flag("-Werror -fstack-clash-protection" VIT_HAS_STACK_CLASH_PROTECTION)

function(vit_harden target)
  if(NOT VIT_HARDEN OR VIT_SANITIZE OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    return()
  endif()
  target_compile_options(${target} PRIVATE -fstack-protector-strong
                         $<$<BOOL:${VIT_HAS_STACK_CLASH_PROTECTION}>:-fstack-clash-protection>)
  # Fortified calls need an optimizing compiler.
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  get_target_property(is_shareable ${target} POSITION_INDEPENDENT_CODE)
  get_target_property(type ${target} TYPE)
  if(NOT is_shareable AND NOT type STREQUAL "MODULE_LIBRARY")
    target_compile_options(${target} PRIVATE -fPIE)
  endif()
  if(type MATCHES "^(SHARED|MODULE)_LIBRARY$")
    target_link_options(${target} PRIVATE "LINKER:-z,relro,-z,now,-z,noexecstack")
  elseif(type STREQUAL "EXECUTABLE")
    target_link_options(${target} PRIVATE -pie "LINKER:-z,relro,-z,now,-z,noexecstack")
    # It links no library of the build tree. CMake would pad the place of the installed path with colons, and to the
    # loader an empty path is the folder in which the program is started.
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()
endfunction()
