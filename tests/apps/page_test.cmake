# Opens pages of `vit classify`, `duplicates` and `search --html` in Chromium: one as it is, to see that its own policy
# allows it, and all with the steps of page_test.js and page_sections_test.js, which need another policy.
#   cmake -DVIT=PROGRAM -DCHROMIUM=PROGRAM -DROOT=<source dir> -DFOLDER=<scratch> -P page_test.cmake
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
# Makes `file` by a command of the program.
function(make_page file)
  execute_process(COMMAND "${VIT}" ${ARGN} --html "${file}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "vit ${ARGN} --html: ${errors}")
  endif()
endfunction()

function(open_page file out)
  execute_process(COMMAND "${CHROMIUM}" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1200,900
                          --virtual-time-budget=20000 "--user-data-dir=${FOLDER}/profile" --dump-dom "file://${file}"
                  RESULT_VARIABLE status OUTPUT_VARIABLE dom ERROR_VARIABLE errors TIMEOUT 120)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${CHROMIUM}: ${status}\n${errors}")
  endif()
  set(${out} "${dom}" PARENT_SCOPE)
endfunction()

make_page("${FOLDER}/page.html" classify "${ROOT}/data/images")
open_page("${FOLDER}/page.html" dom)
if(NOT dom MATCHES "class=\"card\"[^>]*title=\"[^\"]*cat_tabby.jpg\"")
  message(FATAL_ERROR "The script of the page did not run under its policy.")
endif()

# Opens the page with the script `steps` after its own.
function(use_page file steps)
  file(READ "${file}" page)
  file(READ "${ROOT}/tests/apps/page_steps.js" tools)
  file(READ "${ROOT}/tests/apps/${steps}" script)
  string(REGEX REPLACE "<meta http-equiv=[^>]*>" "" page "${page}")
  string(REPLACE "</body>" "<script>${tools}${script}</script></body>" page "${page}")
  file(WRITE "${FOLDER}/steps.html" "${page}")
  open_page("${FOLDER}/steps.html" dom)
  string(REGEX MATCH "<body>.*" found "${dom}")
  if(found MATCHES "FAILS" OR NOT found MATCHES "end of the page test")
    message(FATAL_ERROR "${file}: ${found}")
  endif()
  message(STATUS "${file}: ${found}")
endfunction()

use_page("${FOLDER}/page.html" page_test.js)

make_page("${FOLDER}/duplicates.html" duplicates "${ROOT}/data/images" --threshold 0.8)
use_page("${FOLDER}/duplicates.html" page_sections_test.js)

execute_process(COMMAND "${VIT}" index "${ROOT}/data/images" --output "${FOLDER}/index"
                RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
if(errors MATCHES "has no FAISS")
  message(STATUS "no page of vit search: ${errors}")
  return()
endif()
make_page("${FOLDER}/search.html" search "${FOLDER}/index" "${ROOT}/data/images/frog_brown.png"
          "${ROOT}/data/images/ship_cargo.jpg" --each)
use_page("${FOLDER}/search.html" page_sections_test.js)
