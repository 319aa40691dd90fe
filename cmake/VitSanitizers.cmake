# Applies VIT_SANITIZE to every target of the build.
if(VIT_SANITIZE)
  add_compile_options(-fsanitize=${VIT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # In instrumented code GCC takes members of the standard library's regular expressions for uninitialized.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=${VIT_SANITIZE})
endif()
