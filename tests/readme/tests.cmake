# The blocks of the pages: `cpp` becomes a test program, `sh` and `python` a script each, `cmake` must quote the projects in
# tests/install. vit/position has a test of its own; the scripts of apps/bench and tests/README are no examples for users.
set(readme_pages "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/vit/README.md" "${PROJECT_SOURCE_DIR}/apps/vit/README.md"
    "${PROJECT_SOURCE_DIR}/apps/tutorials/README.md" "${PROJECT_SOURCE_DIR}/apps/python/README.md"
    "${PROJECT_SOURCE_DIR}/vit/text/README.md" "${PROJECT_SOURCE_DIR}/vit/weights/README.md")
# ... and the examples in the comments of the public headers.
file(READ "${PROJECT_SOURCE_DIR}/cmake/VitInstall.cmake" readme_headers)
string(REGEX MATCH "set\\(vit_headers([^)]*)\\)" readme_headers "${readme_headers}")
string(REGEX MATCHALL "[a-z_/]+[.]h" readme_headers "${CMAKE_MATCH_1}")
list(TRANSFORM readme_headers PREPEND "${PROJECT_SOURCE_DIR}/vit/")
list(APPEND readme_pages ${readme_headers})
set(readme_build "${CMAKE_CURRENT_BINARY_DIR}/readme")
set(readme_folder "${readme_build}/folder")
file(MAKE_DIRECTORY "${readme_folder}")

add_executable(readme_extract readme/extract.cpp)
target_compile_features(readme_extract PRIVATE cxx_std_20)
vit_warnings(readme_extract)
add_custom_command(
  OUTPUT "${readme_build}/snippets.cpp" "${readme_build}/commands.sh" "${readme_build}/snippets.py"
  COMMAND readme_extract "${readme_build}/snippets.cpp" "${readme_build}/commands.sh" "${readme_build}/snippets.py" ${readme_pages}
  DEPENDS readme_extract ${readme_pages} VERBATIM)

add_executable(readme_snippets readme/main.cpp "${readme_build}/snippets.cpp")
target_include_directories(readme_snippets PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(readme_snippets PRIVATE vit::vit doctest::doctest opencv_core opencv_imgcodecs opencv_imgproc
                                              opencv_videoio Eigen3::Eigen)

# What the blocks use: a model, an image, and a folder of images.
add_test(NAME readme.folder COMMAND ${CMAKE_COMMAND} "-DROOT=${PROJECT_SOURCE_DIR}" "-DFOLDER=${readme_folder}"
                                    -P "${CMAKE_CURRENT_LIST_DIR}/make_folder.cmake")
set_tests_properties(readme.folder PROPERTIES FIXTURES_SETUP readme_folder)
add_test(NAME readme.snippets COMMAND readme_snippets WORKING_DIRECTORY "${readme_folder}")
set_tests_properties(readme.snippets PROPERTIES FIXTURES_REQUIRED readme_folder TIMEOUT 900
                                                ENVIRONMENT "OMP_WAIT_POLICY=passive")
add_test(NAME readme.quotes COMMAND ${CMAKE_COMMAND} "-DROOT=${PROJECT_SOURCE_DIR}"
                                    -P "${CMAKE_CURRENT_LIST_DIR}/check_quotes.cmake")
add_test(NAME readme.links COMMAND ${CMAKE_COMMAND} "-DROOT=${PROJECT_SOURCE_DIR}" -P "${CMAKE_CURRENT_LIST_DIR}/check_links.cmake")
if(TARGET vit_program)
  add_test(NAME readme.commands COMMAND bash "${readme_build}/commands.sh" WORKING_DIRECTORY "${readme_folder}")
  set_tests_properties(readme.commands PROPERTIES
    FIXTURES_REQUIRED readme_folder TIMEOUT 900
    # LeakSanitizer looks at a process by ptrace, which a sandbox forbids
    ENVIRONMENT "OMP_WAIT_POLICY=passive;ASAN_OPTIONS=detect_leaks=0;PATH=$<TARGET_FILE_DIR:vit_program>:$ENV{PATH}")
endif()
if(python_ready)  # tests/python
  add_test(NAME readme.python COMMAND "${Python3_EXECUTABLE}" "${readme_build}/snippets.py" WORKING_DIRECTORY "${readme_folder}")
  set_tests_properties(readme.python PROPERTIES FIXTURES_REQUIRED readme_folder TIMEOUT 900 ENVIRONMENT "${python_environment}")
endif()
