# The slim library: bytes when stripped, and the libraries that it loads.
# cmake -DLIBRARY=libvit.so -DSTRIP=strip -DCOPY=file -DCOMPILER=GNU -P check_size.cmake
set(most_bytes 2621440)  # 2.5 MiB
if(NOT COMPILER STREQUAL "GNU")
  set(most_bytes 3145728)  # clang's is larger, 3 MiB
endif()
set(most_libraries 12)
execute_process(COMMAND "${STRIP}" -o "${COPY}" "${LIBRARY}" COMMAND_ERROR_IS_FATAL ANY)
file(SIZE "${COPY}" bytes)
execute_process(COMMAND ldd "${LIBRARY}" OUTPUT_VARIABLE loaded COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+\n" loaded "${loaded}")
list(LENGTH loaded num_libraries)
message(STATUS "slim: ${bytes} bytes, ${num_libraries} libraries")
if(bytes GREATER most_bytes OR num_libraries GREATER most_libraries)
  message(FATAL_ERROR "the slim library has ${bytes} bytes and ${num_libraries} libraries; at most ${most_bytes} and ${most_libraries} are promised")
endif()
