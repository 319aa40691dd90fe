# The examples run on the model and a picture that ship with the project.
if(TARGET example_classify)
  set(model "${PROJECT_SOURCE_DIR}/data/model")
  set(picture "${PROJECT_SOURCE_DIR}/data/images/cat_tabby.jpg")
  add_test(NAME example_attention_distance COMMAND example_attention_distance "${model}" "${picture}")
  add_test(NAME example_classify COMMAND example_classify "${model}" "${picture}")
  add_test(NAME example_patch_embeddings COMMAND example_patch_embeddings "${model}" "${picture}")
  add_test(NAME example_video_loop COMMAND example_video_loop "${model}")
  # five heads of one of nine blocks, no mean distance beyond the diagonal of 8 x 8 patches
  set_tests_properties(example_attention_distance PROPERTIES PASS_REGULAR_EXPRESSION "block 6:( [0-9]\\.[0-9][0-9][0-9])+\n")
  set_tests_properties(example_classify PROPERTIES PASS_REGULAR_EXPRESSION "[0-9]+\\.[0-9]+ %  [a-z]+")
  set_tests_properties(example_patch_embeddings PROPERTIES PASS_REGULAR_EXPRESSION "patches, [0-9]+ numbers each\n.* 1\\.00")
  set_tests_properties(example_video_loop PROPERTIES PASS_REGULAR_EXPRESSION "100 frames, [0-9.]+ frames/s")
endif()
