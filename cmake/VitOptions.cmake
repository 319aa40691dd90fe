# Every switch of the build. As a subproject only the library target exists and nothing of the parent is touched; at the
# top level the program, the examples and the tests are built as well.
option(VIT_BUILD_APPS "Build the program vit, the examples and the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(VIT_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(VIT_BUILD_FUZZERS "Build the fuzz targets (libFuzzer with clang, otherwise plain replay programs)" OFF)
option(VIT_OPENCV "Build the examples and tests that need OpenCV, and pictures of vit show" ON)
option(VIT_OPENMP "Threads of OpenMP; without it the library starts its own" ON)
option(VIT_PRECOMPILED_HEADERS "Parse the standard headers once for each target; ccache then needs its sloppiness set" OFF)
option(VIT_FAISS "Let the program index and search with FAISS where it is installed" ON)
option(VIT_INSTALL "Add install rules" ${PROJECT_IS_TOP_LEVEL})
option(VIT_WERROR "Treat warnings as errors" OFF)
set(VIT_SANITIZE "" CACHE STRING "Sanitizers for everything: address, undefined, thread, or a list with commas")

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(VIT_CCACHE ccache)
  if(VIT_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${VIT_CCACHE}")
  endif()
  # An installed program finds a shared library of the same prefix, wherever the prefix is moved.
  include(GNUInstallDirs)
  file(RELATIVE_PATH vit_bin_to_lib "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix/${CMAKE_INSTALL_LIBDIR}")
  set(CMAKE_INSTALL_RPATH "$ORIGIN/${vit_bin_to_lib}")
elseif(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  message(WARNING "vit: the build type is empty; nothing will be optimised without -DCMAKE_BUILD_TYPE=Release")
endif()

# vit_precompile(TARGET [HEADER...]): with VIT_PRECOMPILED_HEADERS, the standard headers that most sources include, and those
# that are named, are parsed once. They take half the compile time of an ordinary source. Every source still includes what
# it uses.
function(vit_precompile target)
  if(VIT_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <charconv> <cmath> <cstdint> <filesystem> <fstream>
                              <functional> <iostream> <limits> <map> <memory> <optional> <set> <span> <sstream> <string>
                              <string_view> <system_error> <utility> <variant> <vector> ${ARGN})
  endif()
endfunction()
