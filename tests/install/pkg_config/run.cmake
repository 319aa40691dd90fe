# Compiles a program with only the flags of pkg-config and runs it. One in C gets an image, too.
# cmake -DCOMPILER=c++ -DFLAGS=... -DPREFIX=... -DSOURCE=x.cpp -DOUTPUT=x -DMODEL=... [-DIMAGE=...] [-DINCLUDES=A,B] -P run.cmake
set(standard -std=c++20)
set(other_libs -lopencv_core)  # of whose packages only libopencv-dev has a file for pkg-config
if(INCLUDES)
  string(REPLACE "," " -isystem" other_flags "-isystem${INCLUDES}")
endif()
if(SOURCE MATCHES "[.]c$")
  set(standard -std=c99)
  set(other_libs "")
endif()
file(GLOB_RECURSE packages "${PREFIX}/vit.pc")
get_filename_component(folder "${packages}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${folder}")
execute_process(COMMAND pkg-config --cflags vit OUTPUT_VARIABLE cflags OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND pkg-config --libs vit OUTPUT_VARIABLE libs OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND pkg-config --variable=libdir vit OUTPUT_VARIABLE libdir OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(arguments UNIX_COMMAND "${standard} ${FLAGS} ${cflags} ${other_flags} ${SOURCE} -o ${OUTPUT} ${libs} ${other_libs}")
get_filename_component(build "${OUTPUT}" DIRECTORY)
file(MAKE_DIRECTORY "${build}")
execute_process(COMMAND "${COMPILER}" ${arguments} COMMAND_ERROR_IS_FATAL ANY)
set(ENV{LD_LIBRARY_PATH} "${libdir}")
execute_process(COMMAND "${OUTPUT}" "${MODEL}" ${IMAGE} COMMAND_ERROR_IS_FATAL ANY)
