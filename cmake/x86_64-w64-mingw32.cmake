# Debian's cross compiler for 64-bit Windows (MinGW-w64). Programs are linked statically and run in Wine.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32 "${CMAKE_CURRENT_LIST_DIR}/../build/windows-libraries/prefix")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# Of this machine's packages only the headers: not all of /usr/include, whose C library is another.
set(Eigen3_DIR /usr/share/eigen3/cmake)
set(vit_packages "${CMAKE_BINARY_DIR}/header_packages")
foreach(name hwy doctest)
  set(${name}_DIR "${vit_packages}")
  if(NOT EXISTS "${vit_packages}/include/${name}")
    file(MAKE_DIRECTORY "${vit_packages}/include")
    file(CREATE_LINK /usr/include/${name} "${vit_packages}/include/${name}" SYMBOLIC)
    file(WRITE "${vit_packages}/${name}Config.cmake"
         "add_library(${name}::${name} INTERFACE IMPORTED)\ntarget_include_directories(${name}::${name} SYSTEM INTERFACE \"${vit_packages}/include\")\n"
         "list(APPEND CMAKE_MODULE_PATH /usr/lib/cmake/doctest)\n")
    file(WRITE "${vit_packages}/${name}ConfigVersion.cmake" "set(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
  endif()
endforeach()
# Static, where a DLL would be found first.
set(ZLIB_LIBRARY /usr/x86_64-w64-mingw32/lib/libz.a CACHE FILEPATH "")
set(OpenMP_gomp_LIBRARY -lgomp CACHE STRING "")
