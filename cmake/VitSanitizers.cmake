# Applies VIT_SANITIZE to every target of the build.
if(VIT_SANITIZE)
  add_compile_options(-fsanitize=${VIT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${VIT_SANITIZE})
endif()
