# The C interface: a program in C99 that uses all of it, its headers under each compiler at hand, and its binary
# interface compared with the published one.
file(GLOB c_tests CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.c")
add_executable(vit_c_tests ${c_tests})
target_include_directories(vit_c_tests PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(vit_c_tests PRIVATE vit::vit m)
vit_c99(vit_c_tests)
add_test(NAME c.calls COMMAND vit_c_tests "${PROJECT_SOURCE_DIR}/data/model" "${PROJECT_SOURCE_DIR}/data/golden/text/openclip-siglip"
                              "${PROJECT_SOURCE_DIR}/data/images/cat_tabby.jpg" "${CMAKE_CURRENT_BINARY_DIR}/classes.safetensors"
                              "${PROJECT_SOURCE_DIR}/data/golden")
set_tests_properties(c.calls PROPERTIES ENVIRONMENT "OMP_WAIT_POLICY=passive" TIMEOUT 300)

foreach(compiler gcc clang)
  find_program(VIT_C_${compiler} ${compiler})
  mark_as_advanced(VIT_C_${compiler})
  if(VIT_C_${compiler})
    set(c_flags -I "${PROJECT_SOURCE_DIR}" -fsyntax-only -Wall -Wextra -pedantic -Werror)
    add_test(NAME c.${compiler}.c99 COMMAND "${VIT_C_${compiler}}" -std=c99 ${c_flags} ${c_tests})
    add_test(NAME c.${compiler}.cpp COMMAND "${VIT_C_${compiler}}" -x c++ -std=c++11 ${c_flags} "${PROJECT_SOURCE_DIR}/vit/c_prompts.h")
    foreach(part pages positions)
      add_test(NAME c.${compiler}.${part} COMMAND "${VIT_C_${compiler}}" -x c++ -std=c++11 ${c_flags} "${PROJECT_SOURCE_DIR}/vit/c_${part}.h")
    endforeach()
  endif()
endforeach()

find_program(VIT_ABIDW abidw)
find_program(VIT_ABIDIFF abidiff)
mark_as_advanced(VIT_ABIDW VIT_ABIDIFF)
if(VIT_ABIDW AND VIT_ABIDIFF)
  add_test(NAME c.abi COMMAND ${CMAKE_COMMAND} "-DCOMPILER=${CMAKE_C_COMPILER}" "-DABIDW=${VIT_ABIDW}" "-DABIDIFF=${VIT_ABIDIFF}"
                              "-DROOT=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/abi"
                              -P "${CMAKE_CURRENT_LIST_DIR}/check_abi.cmake")
endif()
