# libheif as HEIF::heif: a module of one's own works with every release, the CMake files that the releases bring differ.
find_path(HEIF_INCLUDE_DIR libheif/heif.h)
find_library(HEIF_LIBRARY heif)
mark_as_advanced(HEIF_INCLUDE_DIR HEIF_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HEIF REQUIRED_VARS HEIF_LIBRARY HEIF_INCLUDE_DIR)

if(HEIF_FOUND AND NOT TARGET HEIF::heif)
  add_library(HEIF::heif UNKNOWN IMPORTED)
  set_target_properties(HEIF::heif PROPERTIES IMPORTED_LOCATION "${HEIF_LIBRARY}"
                                            INTERFACE_INCLUDE_DIRECTORIES "${HEIF_INCLUDE_DIR}")
endif()
