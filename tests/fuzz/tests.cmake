# Every reader of untrusted bytes is a target. ctest mutates the seeds of each for a moment; the preset "fuzz" builds
# one libFuzzer program per target: build/fuzz/tests/fuzz_json CORPUS_FOLDER
set(fuzz_dir "${PROJECT_SOURCE_DIR}/tests/fuzz")
set(fuzz_targets json safetensors safetensors_header pickle pickle_program timm_config hf_config open_clip_config
                 timm_preprocess hf_preprocess layout decode decode_rows tokenizer_json sentencepiece merges clean)
if(LibArchive_FOUND)
  list(APPEND fuzz_targets tar)
endif()
add_library(vit_fuzz_targets STATIC ${fuzz_dir}/fuzz_targets.cpp ${fuzz_dir}/fuzz_json.cpp ${fuzz_dir}/fuzz_weights.cpp
                                    ${fuzz_dir}/fuzz_configs.cpp ${fuzz_dir}/fuzz_decode.cpp ${fuzz_dir}/fuzz_text.cpp)
target_include_directories(vit_fuzz_targets PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(vit_fuzz_targets PUBLIC vit::vit)
set_source_files_properties(${fuzz_dir}/fuzz_configs.cpp ${fuzz_dir}/fuzz_decode.cpp ${fuzz_dir}/fuzz_text.cpp
                            PROPERTIES COMPILE_DEFINITIONS "VIT_FUZZ_DATA_DIR=\"${PROJECT_SOURCE_DIR}/data\"")
if(LibArchive_FOUND)  # the program alone reads archives
  target_sources(vit_fuzz_targets PRIVATE ${fuzz_dir}/fuzz_tar.cpp)
  target_compile_definitions(vit_fuzz_targets PRIVATE VIT_FUZZ_TAR)
  target_link_libraries(vit_fuzz_targets PUBLIC vit_program_parts)
endif()
vit_warnings(vit_fuzz_targets)


add_executable(vit_fuzz_smoke ${fuzz_dir}/smoke_main.cpp)
target_link_libraries(vit_fuzz_smoke PRIVATE vit_fuzz_targets)
vit_warnings(vit_fuzz_smoke)
foreach(target ${fuzz_targets})
  add_test(NAME fuzz_${target} COMMAND vit_fuzz_smoke ${target} 2)
  set_tests_properties(fuzz_${target} PROPERTIES TIMEOUT 120)
endforeach()

# Without libFuzzer, vit_fuzz_smoke replays what a fuzzer found elsewhere.
add_custom_target(vit_fuzz DEPENDS vit_fuzz_smoke)
if(VIT_BUILD_FUZZERS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(vit PRIVATE -fsanitize=fuzzer-no-link)
  if(TARGET vit_program_parts)
    target_compile_options(vit_program_parts PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  foreach(target ${fuzz_targets})
    add_executable(fuzz_program_${target} ${fuzz_dir}/libfuzzer_main.cpp)
    target_link_libraries(fuzz_program_${target} PRIVATE vit_fuzz_targets)
    vit_warnings(fuzz_program_${target})
    set_target_properties(fuzz_program_${target} PROPERTIES OUTPUT_NAME fuzz_${target})
    target_compile_definitions(fuzz_program_${target} PRIVATE VIT_FUZZ_TARGET="${target}")
    target_link_options(fuzz_program_${target} PRIVATE -fsanitize=fuzzer)
    add_dependencies(vit_fuzz fuzz_program_${target})
    add_test(NAME fuzz_libfuzzer_${target} COMMAND fuzz_program_${target} -max_total_time=10)
    set_tests_properties(fuzz_libfuzzer_${target} PROPERTIES TIMEOUT 120)
  endforeach()
endif()
