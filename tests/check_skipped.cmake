# Runs the test program without shared data: no case may fail, and the cases that are skipped must be those of a
# committed list, so that no test leaves a bare clone unnoticed.
#   cmake -DTESTS=PROGRAM [-DARGUMENT=OPTION] -DLIST=FILE -DFOUND=FILE -P check_skipped.cmake
set(ENV{VIT_SHARED_DIR} /nonexistent)
set(ENV{VIT_SKIPPED_CASES} ${FOUND})
file(REMOVE ${FOUND})
execute_process(COMMAND ${TESTS} ${ARGUMENT} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${output}\nThe tests fail without shared data: status ${status}")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files --ignore-eol ${LIST} ${FOUND} RESULT_VARIABLE differs OUTPUT_QUIET ERROR_QUIET)
if(differs)
  execute_process(COMMAND diff -u ${LIST} ${FOUND} OUTPUT_VARIABLE difference)
  message(FATAL_ERROR "Other cases than those of ${LIST} are skipped without shared data:\n${difference}\n"
                      "A case that checks golden data must not be here. If the list is to change:\n"
                      "  cp ${FOUND} ${LIST}")
endif()
