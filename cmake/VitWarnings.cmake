# vit_warnings(<target>): the project's warnings, private to the target.
function(vit_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                           -Wnon-virtual-dtor -Woverloaded-virtual)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms on std::string operator+ until g++ 13
  endif()
  if(VIT_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
