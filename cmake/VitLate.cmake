# Libraries that are opened when they are first needed (vit/base/late_library.h): few files are AVIF, HEIF or tar, and the
# libraries of these three are half of all that the program would load at each start.
option(VIT_LATE_LIBRARIES "Open libavif, libheif and libarchive when a file needs them, if they are shared; OFF links them" ON)

# vit_late(NAME TARGET SOURCE): compiles SOURCE of this folder, the only one that calls the imported library, so that it opens it.
# Sets vit_link_NAME to what is left to link: nothing, or TARGET if the library is static or there is no such library. The global
# properties vit_late_names, vit_late_sonames and vit_late_files list the libraries that are opened.
function(vit_late name target source)
  set(vit_link_${name} ${target} PARENT_SCOPE)
  if(NOT VIT_LATE_LIBRARIES OR NOT TARGET ${target} OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_READELF)
    return()
  endif()
  get_target_property(file ${target} IMPORTED_LOCATION)
  execute_process(COMMAND ${CMAKE_READELF} --dynamic "${file}" OUTPUT_VARIABLE found ERROR_QUIET)
  if(NOT found MATCHES "SONAME[^\n]*\\[([^]]+)\\]")
    return()
  endif()
  set(soname "${CMAKE_MATCH_1}")
  get_target_property(includes ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS "VIT_LATE_LIBRARY=\"${soname}\"")
  list(REMOVE_ITEM includes ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  set_property(SOURCE ${source} APPEND PROPERTY INCLUDE_DIRECTORIES ${includes})
  set_property(SOURCE ${source} PROPERTY VIT_ALONE ON)
  set_property(GLOBAL APPEND PROPERTY vit_late_files "${file}")
  set_property(GLOBAL APPEND PROPERTY vit_late_sonames "${soname}")
  set_property(GLOBAL APPEND PROPERTY vit_late_names ${name})
  set(vit_link_${name} "" PARENT_SCOPE)
endfunction()
