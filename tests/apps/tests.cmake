# The examples run on the model and a picture that ship with the project.
if(TARGET example_classify)
  set(model "${PROJECT_SOURCE_DIR}/data/model")
  set(picture "${PROJECT_SOURCE_DIR}/data/images/cat_tabby.jpg")
  add_test(NAME example_attention_distance COMMAND example_attention_distance "${model}" "${picture}")
  add_test(NAME example_classify COMMAND example_classify "${model}" "${picture}")
  # five heads of one of nine blocks, no mean distance beyond the diagonal of 8 x 8 patches
  set_tests_properties(example_attention_distance PROPERTIES PASS_REGULAR_EXPRESSION "block 6:( [0-9]\\.[0-9][0-9][0-9])+\n")
  set_tests_properties(example_classify PROPERTIES PASS_REGULAR_EXPRESSION "[0-9]+\\.[0-9]+ %  [a-z]+")
  add_test(NAME example_embed COMMAND example_embed "${model}" "${picture}" "${PROJECT_SOURCE_DIR}/data/images/deer_fawn.png")
  set_tests_properties(example_embed PROPERTIES PASS_REGULAR_EXPRESSION "1\\.0000  .*cat_tabby.jpg\n-?0\\.[0-9]+  .*deer_fawn.png")
  if(VIT_OPENCV)
    add_test(NAME example_patch_embeddings COMMAND example_patch_embeddings "${model}" "${PROJECT_SOURCE_DIR}/data/images/deer_fawn.png")
    add_test(NAME example_video_loop COMMAND example_video_loop "${model}")
    set_tests_properties(example_patch_embeddings PROPERTIES PASS_REGULAR_EXPRESSION "patches, [0-9]+ numbers each\n.* 1\\.00")
    set_tests_properties(example_video_loop PROPERTIES PASS_REGULAR_EXPRESSION "100 frames, [0-9.]+ frames/s")
  endif()
endif()

# Completion, asked of the shells themselves; bash runs the tests of the pages as well.
if(TARGET vit_completion)
  set(manual "$<TARGET_FILE_DIR:vit_completion>/manual")
  add_test(NAME completion.bash COMMAND bash "${CMAKE_CURRENT_LIST_DIR}/completion_test.bash" "${manual}/vit.bash")
  set_tests_properties(completion.bash PROPERTIES LABELS contrib)
  find_program(VIT_ZSH zsh)
  mark_as_advanced(VIT_ZSH)
  if(VIT_ZSH)
    add_test(NAME completion.zsh COMMAND ${VIT_ZSH} -f "${CMAKE_CURRENT_LIST_DIR}/completion_test.zsh" "${manual}")
    set_tests_properties(completion.zsh PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77 LABELS contrib)
  endif()
endif()

# Pages in a browser, where there is one: of results, and of vit serve.
set(serves FALSE)
if(TARGET vit_program AND VIT_SERVE AND Boost_FOUND AND VIT_PYTHON3)
  set(serves TRUE)
endif()
if(TARGET vit_program)
  find_program(VIT_CHROMIUM NAMES chromium chromium-browser google-chrome)
  mark_as_advanced(VIT_CHROMIUM)
  set(pages browser)
  set(page_browser_command ${CMAKE_COMMAND} "-DVIT=$<TARGET_FILE:vit_program>" "-DCHROMIUM=${VIT_CHROMIUM}" "-DROOT=${PROJECT_SOURCE_DIR}"
                           "-DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/page" -P "${CMAKE_CURRENT_LIST_DIR}/page_test.cmake")
  if(serves)
    list(APPEND pages serve)
    set(page_serve_command "${VIT_PYTHON3}" "${CMAKE_CURRENT_LIST_DIR}/serve/page_test.py" $<TARGET_FILE:vit_program> "${VIT_CHROMIUM}"
                           "${PROJECT_SOURCE_DIR}")
  endif()
  foreach(page ${pages})
    if(NOT VIT_CHROMIUM)
      set(page_${page}_command sh -c "echo 'skipped: no Chromium'; exit 77")
    endif()
    add_test(NAME page.${page} COMMAND ${page_${page}_command})
    set_tests_properties(page.${page} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS contrib)
  endforeach()
endif()

# The client library of OpenAI, installed here or from PyPI.
if(serves)
  add_test(NAME serve.openai_client COMMAND "${VIT_PYTHON3}" "${CMAKE_CURRENT_LIST_DIR}/serve/openai_client.py" $<TARGET_FILE:vit_program>
                                            "${PROJECT_SOURCE_DIR}/data/model" "${PROJECT_SOURCE_DIR}/data/images/cat_tabby.jpg"
                                            "${CMAKE_CURRENT_BINARY_DIR}/openai_venv")
  set_tests_properties(serve.openai_client PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
endif()
