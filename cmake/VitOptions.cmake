# Every switch of the build. As a subproject only the library target exists; at the top level the program, the examples
# and the tests are built as well.
option(VIT_BUILD_APPS "Build the program vit, the examples and the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(VIT_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(VIT_BUILD_FUZZERS "Build the fuzz targets (libFuzzer with clang, otherwise plain replay programs)" OFF)
option(VIT_INSTALL "Add install rules" ${PROJECT_IS_TOP_LEVEL})
option(VIT_WERROR "Treat warnings as errors" OFF)
set(VIT_SANITIZE "" CACHE STRING "Sanitizers for everything: address, undefined, thread, or a list with commas")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(PROJECT_IS_TOP_LEVEL)
  find_program(VIT_CCACHE ccache)
  if(VIT_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${VIT_CCACHE}")
  endif()
endif()
