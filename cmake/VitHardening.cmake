# What makes a defect harder to use: vit_harden(TARGET) for the program and its parts, which read what others wrote. The
# kernels need none of it; with VIT_HARDEN=OFF nothing is added.
option(VIT_HARDEN "Protect the stack, the relocations and the C library's calls of the program" ON)

function(vit_harden target)
  if(NOT VIT_HARDEN OR VIT_SANITIZE OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    return()
  endif()
  # Fortified calls need an optimizing compiler; distributions that define it themselves are left alone.
  target_compile_options(${target} PRIVATE -fPIE -fstack-protector-strong
                         $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_link_options(${target} PRIVATE -pie "LINKER:-z,relro,-z,now,-z,noexecstack")
    # It links no library of the build tree. CMake would pad the place of the installed path with colons, and to the
    # loader an empty path is the folder in which the program is started.
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()
endfunction()
