# Three programs of users, built outside this project: against an installed copy by find_package and by pkg-config, and
# with the sources as a subproject.
set(install_dir "${CMAKE_CURRENT_LIST_DIR}")
set(install_build "${CMAKE_CURRENT_BINARY_DIR}/install")
set(install_prefix "${install_build}/prefix")
set(install_model "${PROJECT_SOURCE_DIR}/data/model")
set(install_flags "")
if(VIT_SANITIZE)
  set(install_flags "-fsanitize=${VIT_SANITIZE}")
endif()
string(REPLACE ";" "\\;" install_launcher "${CMAKE_CXX_COMPILER_LAUNCHER}")
set(patch_shape "patches \\([0-9]+, [0-9]+, [0-9]+\\)")

# What an earlier build installed there must not be found next to it.
add_test(NAME install.empty COMMAND ${CMAKE_COMMAND} -E rm -rf "${install_prefix}" "${install_build}/headers")
set_tests_properties(install.empty PROPERTIES FIXTURES_SETUP installed)
add_test(NAME install.prefix COMMAND ${CMAKE_COMMAND} --install "${PROJECT_BINARY_DIR}" --prefix "${install_prefix}")
set_tests_properties(install.prefix PROPERTIES FIXTURES_SETUP installed DEPENDS install.empty TIMEOUT 120)

# Each installed header compiles by itself, from what is installed.
get_target_property(install_eigen Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
string(REPLACE ";" "," install_includes "${OpenCV_INCLUDE_DIRS};${install_eigen}")
add_test(NAME install.headers COMMAND ${CMAKE_COMMAND} "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DPREFIX=${install_prefix}"
                                      "-DINCLUDES=${install_includes}"
                                      "-DOUTPUT=${install_build}/headers" -P "${install_dir}/check_headers.cmake")
set_tests_properties(install.headers PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 300)

# A shared library exports what users call and nothing else.
get_target_property(install_type vit TYPE)
if(install_type STREQUAL "SHARED_LIBRARY")
  add_test(NAME install.exports COMMAND ${CMAKE_COMMAND} "-DNM=${CMAKE_NM}" "-DLIBRARY=$<TARGET_FILE:vit>"
                                        -P "${install_dir}/check_exports.cmake")
endif()

# install_consumer(<name> <folder> [<cache entry>...]): configures, builds and runs the project in the folder.
function(install_consumer name folder)
  add_test(NAME install.${name}
           COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test "${install_dir}/${folder}" "${install_build}/${name}"
                   --build-generator ${CMAKE_GENERATOR} --build-project images --build-noclean
                   --build-options "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_CXX_FLAGS=${install_flags}" ${ARGN}
                   --test-command images "${install_model}")
  set_tests_properties(install.${name} PROPERTIES PASS_REGULAR_EXPRESSION "${patch_shape}" TIMEOUT 900 PROCESSORS 2)
endfunction()

install_consumer(find_package find_package -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=${install_prefix}")
set_tests_properties(install.find_package PROPERTIES FIXTURES_REQUIRED installed)
# As with OpenCV's single packages, which have no CMake files: those of this machine are not looked at, by either name of their
# folder. -U: what CMake says of a package it says once.
if(OpenCV_DIR)
  string(REGEX REPLACE "^/usr/lib" "/lib" install_ignored "${OpenCV_DIR}")
  install_consumer(opencv_modules find_package -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=${install_prefix}"
                   "-DCMAKE_IGNORE_PATH=${OpenCV_DIR}\\;${install_ignored}" -UFIND_PACKAGE_MESSAGE_DETAILS_OpenCV -UOpenCV_DIR)
  set_tests_properties(install.opencv_modules PROPERTIES FIXTURES_REQUIRED installed
                       PASS_REGULAR_EXPRESSION "Found OpenCV: [^\n]*components: core.*${patch_shape}")
endif()

# Compiled together, neither optimized nor with symbols, and without a compiler cache only the core: this is about targets and
# headers, and should not take as long as the build itself.
set(install_core "")
if(NOT VIT_CCACHE)
  set(install_core ${VIT_CORE_OPTIONS} -DVIT_ANALYSIS=OFF)
endif()
install_consumer(fetch_content fetch_content ${install_core} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= -DVIT_UNITY=ON -DVIT_PRECOMPILED_HEADERS=ON
                 "-DFETCHCONTENT_SOURCE_DIR_VIT=${PROJECT_SOURCE_DIR}"
                 "-DCMAKE_CXX_COMPILER_LAUNCHER=${install_launcher}")

# The library without codecs, texts and rings: its size and what it loads.
if(NOT VIT_SANITIZE)  # which makes it larger
  install_consumer(slim slim -DCMAKE_BUILD_TYPE=Release -DVIT_UNITY=ON -DVIT_PRECOMPILED_HEADERS=ON "-DFETCHCONTENT_SOURCE_DIR_VIT=${PROJECT_SOURCE_DIR}"
                   "-DCMAKE_CXX_COMPILER_LAUNCHER=${install_launcher}")
endif()

add_test(NAME install.pkg_config
         COMMAND ${CMAKE_COMMAND} "-DCOMPILER=${CMAKE_CXX_COMPILER}" "-DFLAGS=${install_flags}" "-DPREFIX=${install_prefix}"
                 "-DINCLUDES=${install_includes}" "-DSOURCE=${install_dir}/images.cpp" "-DOUTPUT=${install_build}/pkg_config/images"
                 "-DMODEL=${install_model}" -P "${install_dir}/pkg_config/run.cmake")
set_tests_properties(install.pkg_config PROPERTIES PASS_REGULAR_EXPRESSION "${patch_shape}" FIXTURES_REQUIRED installed
                                                   TIMEOUT 300)

# A program in C, linked by the C compiler.
add_test(NAME install.pkg_config_c
         COMMAND ${CMAKE_COMMAND} "-DCOMPILER=${CMAKE_C_COMPILER}" "-DFLAGS=${install_flags}" "-DPREFIX=${install_prefix}"
                 "-DSOURCE=${PROJECT_SOURCE_DIR}/apps/examples/embed.c" "-DOUTPUT=${install_build}/pkg_config/embed" "-DMODEL=${install_model}"
                 "-DIMAGE=${PROJECT_SOURCE_DIR}/data/images/cat_tabby.jpg" -P "${install_dir}/pkg_config/run.cmake")
set_tests_properties(install.pkg_config_c PROPERTIES PASS_REGULAR_EXPRESSION "1.0000 .*cat_tabby" FIXTURES_REQUIRED installed TIMEOUT 300)

if(TARGET vit_program)
  add_test(NAME install.program COMMAND ${CMAKE_COMMAND} "-DPREFIX=${install_prefix}" "-DBIN=${CMAKE_INSTALL_BINDIR}"
                                        "-DMOVED=${install_build}/moved" -P "${install_dir}/run_moved.cmake")
  set_tests_properties(install.program PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 120)
endif()
