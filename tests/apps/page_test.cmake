# Opens a page of `vit classify --html` in Chromium: as it is, to see that its own policy lets it run, and with the steps
# of page_test.js, which need another policy.
#   cmake -DVIT=PROGRAM -DCHROMIUM=PROGRAM -DROOT=<source dir> -DFOLDER=<scratch> -P page_test.cmake
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(COMMAND "${VIT}" classify "${ROOT}/data/images" --html "${FOLDER}/page.html"
                RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "vit classify --html: ${errors}")
endif()

function(open_page file out)
  execute_process(COMMAND "${CHROMIUM}" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1200,900
                          --virtual-time-budget=20000 "--user-data-dir=${FOLDER}/profile" --dump-dom "file://${file}"
                  RESULT_VARIABLE status OUTPUT_VARIABLE dom ERROR_VARIABLE errors TIMEOUT 120)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${CHROMIUM}: ${status}\n${errors}")
  endif()
  set(${out} "${dom}" PARENT_SCOPE)
endfunction()

open_page("${FOLDER}/page.html" dom)
if(NOT dom MATCHES "class=\"card\"[^>]*title=\"[^\"]*cat_tabby.jpg\"")
  message(FATAL_ERROR "The script of the page did not run under its policy.")
endif()

file(READ "${FOLDER}/page.html" page)
file(READ "${ROOT}/tests/apps/page_test.js" steps)
string(REGEX REPLACE "<meta http-equiv=[^>]*>" "" page "${page}")
string(REPLACE "</body>" "<script>${steps}</script></body>" page "${page}")
file(WRITE "${FOLDER}/steps.html" "${page}")
open_page("${FOLDER}/steps.html" dom)
string(REGEX MATCH "<body>.*" found "${dom}")
if(found MATCHES "FAILS" OR NOT found MATCHES "end of the page test")
  message(FATAL_ERROR "${found}")
endif()
message(STATUS "${found}")
