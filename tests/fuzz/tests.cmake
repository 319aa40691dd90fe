# Every reader of untrusted bytes is a target. ctest replays the corpus of each and mutates it for a moment; the preset "fuzz" builds
# one libFuzzer program with a name for each target: build/fuzz/tests/fuzz_json CORPUS_FOLDER
set(fuzz_dir "${PROJECT_SOURCE_DIR}/tests/fuzz")
set(fuzz_targets json safetensors safetensors_header shards pickle pickle_program npz head head_facts bank bank_facts class_vectors
                 timm_config hf_config box_config open_clip_config model_folder model_bytes tensor_names timm_preprocess hf_preprocess layout rope_scaling rope_identify dense_config dense_head
                 decode decode_rows jpeg png tiff webp bmp ico pnm gif jpeg2000 codestream avif heif metadata
                 tokenizer_json tokenizer_folder sentencepiece vocabulary merges token_list clean)
add_library(vit_fuzz_targets STATIC ${fuzz_dir}/fuzz_targets.cpp ${fuzz_dir}/fuzz_json.cpp ${fuzz_dir}/fuzz_weights.cpp ${fuzz_dir}/fuzz_model.cpp
                                    ${fuzz_dir}/fuzz_configs.cpp ${fuzz_dir}/fuzz_decode.cpp ${fuzz_dir}/fuzz_dense.cpp ${fuzz_dir}/fuzz_text.cpp
                                    ${fuzz_dir}/fuzz_rope.cpp ${fuzz_dir}/structures.cpp)
target_include_directories(vit_fuzz_targets PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(vit_fuzz_targets PUBLIC vit::vit PRIVATE ZLIB::ZLIB)
set_source_files_properties(${fuzz_dir}/fuzz_configs.cpp ${fuzz_dir}/fuzz_decode.cpp ${fuzz_dir}/fuzz_dense.cpp ${fuzz_dir}/fuzz_model.cpp ${fuzz_dir}/fuzz_text.cpp ${fuzz_dir}/fuzz_pixels.cpp
                            PROPERTIES COMPILE_DEFINITIONS "VIT_FUZZ_DATA_DIR=\"${PROJECT_SOURCE_DIR}/data\"")
if(TARGET vit_program_parts)  # what only the program reads
  list(APPEND fuzz_targets npy truth_map labels index_facts index_files index_vectors index_partial page_index page_index_partial jsonl_partial paths texts boxes prompts video_header run_facts)
  target_sources(vit_fuzz_targets PRIVATE ${fuzz_dir}/fuzz_program.cpp)
  target_compile_definitions(vit_fuzz_targets PRIVATE VIT_FUZZ_PROGRAM)
  target_link_libraries(vit_fuzz_targets PUBLIC vit_program_parts)
endif()
if(TARGET vit_program_parts AND fit IN_LIST VIT_RINGS)
  list(APPEND fuzz_targets pixel_labels pixel_head upsampler)
  target_sources(vit_fuzz_targets PRIVATE ${fuzz_dir}/fuzz_pixels.cpp)
  target_compile_definitions(vit_fuzz_targets PRIVATE VIT_FUZZ_PIXELS)
endif()
if(serve IN_LIST VIT_RINGS)
  list(APPEND fuzz_targets base64 form http_head openai_body openai_lines accept_encoding weaviate_body page_body immich_entries binary_tensors infer_body)
  target_sources(vit_fuzz_targets PRIVATE ${fuzz_dir}/fuzz_serve.cpp)
  target_compile_definitions(vit_fuzz_targets PRIVATE VIT_FUZZ_SERVE)
endif()
if(LibArchive_FOUND)
  list(APPEND fuzz_targets tar)
  target_sources(vit_fuzz_targets PRIVATE ${fuzz_dir}/fuzz_tar.cpp)
  target_compile_definitions(vit_fuzz_targets PRIVATE VIT_FUZZ_TAR)
endif()
vit_warnings(vit_fuzz_targets)

add_executable(vit_fuzz_smoke ${fuzz_dir}/smoke_main.cpp)
target_link_libraries(vit_fuzz_smoke PRIVATE vit_fuzz_targets)
vit_warnings(vit_fuzz_smoke)
# Prints the results of the readers for files, for tests/fuzz/differential/compare.py.
add_executable(vit_replay EXCLUDE_FROM_ALL ${fuzz_dir}/replay_main.cpp)
target_include_directories(vit_replay PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(vit_replay PRIVATE vit_inside ZLIB::ZLIB)
vit_warnings(vit_replay)
foreach(target ${fuzz_targets})
  add_test(NAME fuzz_${target} COMMAND vit_fuzz_smoke ${target} 0.5 "${fuzz_dir}/corpus/${target}")
  set_tests_properties(fuzz_${target} PROPERTIES TIMEOUT 120)
endforeach()

# Without libFuzzer, vit_fuzz_smoke replays what a fuzzer found elsewhere.
add_custom_target(vit_fuzz DEPENDS vit_fuzz_smoke)
if(VIT_BUILD_FUZZERS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(vit PRIVATE -fsanitize=fuzzer-no-link)
  if(TARGET vit_program_parts)
    target_compile_options(vit_program_parts PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  add_executable(vit_fuzzer ${fuzz_dir}/libfuzzer_main.cpp)
  target_link_libraries(vit_fuzzer PRIVATE vit_fuzz_targets)
  target_link_options(vit_fuzzer PRIVATE -fsanitize=fuzzer)
  vit_warnings(vit_fuzzer)
  add_dependencies(vit_fuzz vit_fuzzer)
  foreach(target ${fuzz_targets})
    set(program "${CMAKE_CURRENT_BINARY_DIR}/fuzz_${target}")
    add_custom_command(TARGET vit_fuzzer POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink vit_fuzzer "${program}")
    # From the seeds on: of an empty input libFuzzer finds nothing interesting where a target wants a name first.
    set(seeds "${CMAKE_CURRENT_BINARY_DIR}/fuzz_seeds/${target}")
    add_test(NAME fuzz_libfuzzer_${target} COMMAND sh -c
             "mkdir -p '${seeds}' && '${program}' --write-seeds '${seeds}' && '${program}' -max_total_time=2 '${seeds}'")
    set_tests_properties(fuzz_libfuzzer_${target} PROPERTIES TIMEOUT 120)
  endforeach()
endif()
