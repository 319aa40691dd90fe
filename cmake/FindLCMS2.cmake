# Little CMS as LCMS2::lcms2; it brings no CMake files.
find_path(LCMS2_INCLUDE_DIR lcms2.h)
find_library(LCMS2_LIBRARY lcms2)
mark_as_advanced(LCMS2_INCLUDE_DIR LCMS2_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LCMS2 REQUIRED_VARS LCMS2_LIBRARY LCMS2_INCLUDE_DIR)

if(LCMS2_FOUND AND NOT TARGET LCMS2::lcms2)
  add_library(LCMS2::lcms2 UNKNOWN IMPORTED)
  set_target_properties(LCMS2::lcms2 PROPERTIES IMPORTED_LOCATION "${LCMS2_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${LCMS2_INCLUDE_DIR}")
endif()
