# vit_warnings(<target>): the project's warnings, private to the target.
function(vit_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                           -Wnon-virtual-dtor -Woverloaded-virtual)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False alarms on std::string operator+ until g++ 13; the last two only if -O3 inlines it, in builds of users, in shared
    # libraries and in sources that are compiled together.
    target_compile_options(${target} PRIVATE -Wno-restrict)
    if(NOT VIT_WERROR OR BUILD_SHARED_LIBS OR VIT_UNITY)
      target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-array-bounds)
    endif()
  endif()
  if(VIT_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# vit_c99(<target>): sources in C99 and nothing beyond it, linked as C++ because the library may be static.
function(vit_c99 target)
  set_target_properties(${target} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF LINKER_LANGUAGE CXX)
  target_compile_options(${target} PRIVATE -Wall -Wextra -pedantic $<$<BOOL:${VIT_WERROR}>:-Werror>)
endfunction()
