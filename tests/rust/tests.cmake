# The Rust crate over the C interface: its tests and examples with the library of this build, where cargo is. Nothing is downloaded.
find_program(VIT_CARGO cargo)
mark_as_advanced(VIT_CARGO)
if(VIT_CARGO AND NOT VIT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(rust_library vit)
  get_target_property(rust_type vit TYPE)
  if(NOT rust_type STREQUAL "SHARED_LIBRARY")  # the objects of the static library, as a shared one
    set(rust_library vit_for_rust)
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/rust/empty.cpp" "")
    add_library(vit_for_rust SHARED "${CMAKE_CURRENT_BINARY_DIR}/rust/empty.cpp")
    target_link_libraries(vit_for_rust PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,vit>")
    target_link_options(vit_for_rust PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/vit/exports.map")
  endif()
  set(rust_environment "VIT_LIBRARY=$<TARGET_FILE:${rust_library}>" "CARGO_TARGET_DIR=${CMAKE_CURRENT_BINARY_DIR}/rust" "CARGO_NET_OFFLINE=true"
      "OMP_WAIT_POLICY=passive")
  set(rust_manifest --offline --quiet --manifest-path "${PROJECT_SOURCE_DIR}/apps/rust/Cargo.toml")
  add_test(NAME rust.calls COMMAND "${VIT_CARGO}" test ${rust_manifest})
  set(rust_model "${PROJECT_SOURCE_DIR}/data/model")
  set(rust_images "${PROJECT_SOURCE_DIR}/data/images/cat_tabby.jpg" "${PROJECT_SOURCE_DIR}/data/images/deer_fawn.png")
  add_test(NAME rust.embed COMMAND "${VIT_CARGO}" run ${rust_manifest} --example embed -- "${rust_model}" ${rust_images})
  add_test(NAME rust.classify COMMAND "${VIT_CARGO}" run ${rust_manifest} --example classify -- "${rust_model}" ${rust_images})
  add_test(NAME rust.rope_attention COMMAND "${VIT_CARGO}" run ${rust_manifest} --example rope_attention)
  # the same numbers as those of apps/examples/embed.c
  set_tests_properties(rust.embed PROPERTIES PASS_REGULAR_EXPRESSION "1\\.0000  .*cat_tabby.jpg\n-?0\\.[0-9]+  .*deer_fawn.png")
  set_tests_properties(rust.classify PROPERTIES PASS_REGULAR_EXPRESSION "[0-9]+\\.[0-9] %  cat  .*cat_tabby.jpg")
  # a query attends most to its own patch, the middle one, and alike to both sides
  set_tests_properties(rust.rope_attention PROPERTIES PASS_REGULAR_EXPRESSION "\n0\\.039 0\\.056 0\\.066 0\\.056 0\\.039\n")
  set_tests_properties(rust.calls rust.embed rust.classify rust.rope_attention PROPERTIES ENVIRONMENT "${rust_environment}" TIMEOUT 600
                       RESOURCE_LOCK rust)
endif()
