# The cases of this folder as a program of its own under ThreadSanitizer. The library's threads are OpenMP's: LLVM's libomp
# reports through archer what its barriers order, libgomp reports nothing. What tasks order is in atomics that it sees.
if(NOT VIT_SANITIZE MATCHES "thread")
  return()
endif()
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "ThreadSanitizer needs clang: only its OpenMP library reports what it synchronizes")
endif()
get_filename_component(openmp_folder "${OpenMP_omp_LIBRARY}" REALPATH)
get_filename_component(openmp_folder "${openmp_folder}" DIRECTORY)
find_library(VIT_ARCHER archer HINTS "${openmp_folder}" REQUIRED)
mark_as_advanced(VIT_ARCHER)

add_executable(vit_thread_tests ${CMAKE_CURRENT_LIST_DIR}/threads_tests.cpp main.cpp support/amx_emulator.cpp support/shared_data.cpp)
target_include_directories(vit_thread_tests PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(vit_thread_tests PRIVATE vit::vit doctest::doctest)
vit_warnings(vit_thread_tests)
doctest_discover_tests(vit_thread_tests TEST_PREFIX "tsan." PROPERTIES TIMEOUT 600
  ENVIRONMENT "TSAN_OPTIONS=ignore_noninstrumented_modules=1 halt_on_error=1;OMP_TOOL_LIBRARIES=${VIT_ARCHER}")
