# The Python package over the C interface: its tests run where Python with numpy and pytest is found, its types are checked
# where mypy is. PIL, torch and timm add tests. The library and the program are those of this build.
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
set(python_ready FALSE)
if(Python3_FOUND AND TARGET vit_program AND NOT VIT_SANITIZE)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import numpy, pytest" RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(python_ready TRUE)
  endif()
endif()
if(python_ready)
  set(python_library vit)
  get_target_property(python_type vit TYPE)
  if(NOT python_type STREQUAL "SHARED_LIBRARY")  # the objects of the static library, as a shared one
    set(python_library vit_for_python)
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/python/empty.cpp" "")
    add_library(vit_for_python SHARED "${CMAKE_CURRENT_BINARY_DIR}/python/empty.cpp")
    target_link_libraries(vit_for_python PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,vit>")
    target_link_options(vit_for_python PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/vit/exports.map")
  endif()
  set(python_environment "VITCPP_LIBRARY=$<TARGET_FILE:${python_library}>" "VITCPP_PROGRAM=$<TARGET_FILE:vit_program>"
      "PYTHONPATH=${PROJECT_SOURCE_DIR}/apps/python" "PYTHONDONTWRITEBYTECODE=1" "OMP_WAIT_POLICY=passive")
  foreach(part inputs columns clips model anomaly dense pixels prompts pages errors wrong_calls threads processes position parts names timm rope2d)
    add_test(NAME python.${part} COMMAND "${Python3_EXECUTABLE}" -m pytest -q -p no:cacheprovider test_${part}.py
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/tests/python")
    # 5: nothing collected, because torch or timm is not there
    set_tests_properties(python.${part} PROPERTIES ENVIRONMENT "${python_environment}" TIMEOUT 600 SKIP_RETURN_CODE 5)
  endforeach()
  add_test(NAME python.example_people COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/apps/python/examples/people.py"
           "${PROJECT_SOURCE_DIR}/data/golden/boxes/yolos" "${PROJECT_SOURCE_DIR}/data/golden/boxes/vitpose" "${PROJECT_SOURCE_DIR}/data/golden/boxes/yolos/high.png")
  set_tests_properties(python.example_people PROPERTIES ENVIRONMENT "${python_environment}" TIMEOUT 120)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import mypy" RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    add_test(NAME python.types COMMAND "${Python3_EXECUTABLE}" -m mypy --cache-dir=/dev/null
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/apps/python")
    add_test(NAME python.types_of_rope2d COMMAND "${Python3_EXECUTABLE}" -m mypy --cache-dir=/dev/null
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/apps/python/rope2d")
    add_test(NAME python.types_of_users COMMAND "${Python3_EXECUTABLE}" -m mypy --strict --cache-dir=/dev/null every_name.py wrong_types.py
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/tests/python")
    set_tests_properties(python.types_of_users PROPERTIES ENVIRONMENT "MYPYPATH=${PROJECT_SOURCE_DIR}/apps/python")
  endif()
endif()
