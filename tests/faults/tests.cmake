# How the program is linked.
find_program(VIT_READELF readelf)
mark_as_advanced(VIT_READELF)
if(TARGET vit_program AND VIT_READELF AND VIT_HARDEN AND NOT VIT_SANITIZE)
  get_property(vit_late_names GLOBAL PROPERTY vit_late_names)
  list(JOIN vit_late_names "|" late)
  add_test(NAME hardening COMMAND ${CMAKE_COMMAND} "-DPROGRAM=$<TARGET_FILE:vit_program>" "-DREADELF=${VIT_READELF}"
                                  -DROOT=${PROJECT_SOURCE_DIR} -DBUILD_TYPE=${CMAKE_BUILD_TYPE} "-DLATE=${late}"
                                  -P "${PROJECT_SOURCE_DIR}/cmake/check_hardening.cmake")
endif()

# Failing calls of the system, by a library that is loaded before the others. Sanitizers want to be first themselves.
if(NOT TARGET vit_program OR VIT_SANITIZE)
  return()
endif()
add_library(vit_test_faults MODULE ${CMAKE_CURRENT_LIST_DIR}/faults.c)
set_target_properties(vit_test_faults PROPERTIES C_STANDARD 11 PREFIX "")
target_compile_options(vit_test_faults PRIVATE -Wall -Wextra $<$<BOOL:${VIT_WERROR}>:-Werror>)
target_link_libraries(vit_test_faults PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(vit_tests vit_test_faults)
