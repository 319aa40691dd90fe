# Compiles a program with only the flags of pkg-config and runs it.
# cmake -DCOMPILER=c++ -DFLAGS=... -DPREFIX=... -DSOURCE=x.cpp -DOUTPUT=x -DMODEL=... -P run.cmake
file(GLOB_RECURSE packages "${PREFIX}/vit.pc")
get_filename_component(folder "${packages}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${folder}")
execute_process(COMMAND pkg-config --cflags vit opencv4 OUTPUT_VARIABLE cflags OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND pkg-config --libs vit OUTPUT_VARIABLE libs OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND pkg-config --variable=libdir vit OUTPUT_VARIABLE libdir OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(arguments UNIX_COMMAND "-std=c++20 ${FLAGS} ${cflags} ${SOURCE} -o ${OUTPUT} ${libs} -lopencv_core")
get_filename_component(build "${OUTPUT}" DIRECTORY)
file(MAKE_DIRECTORY "${build}")
execute_process(COMMAND "${COMPILER}" ${arguments} COMMAND_ERROR_IS_FATAL ANY)
set(ENV{LD_LIBRARY_PATH} "${libdir}")
execute_process(COMMAND "${OUTPUT}" "${MODEL}" COMMAND_ERROR_IS_FATAL ANY)
