# libavif as AVIF::avif: a module of one's own works with every release, the CMake files that the releases bring differ.
find_path(AVIF_INCLUDE_DIR avif/avif.h)
find_library(AVIF_LIBRARY avif)
mark_as_advanced(AVIF_INCLUDE_DIR AVIF_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(AVIF REQUIRED_VARS AVIF_LIBRARY AVIF_INCLUDE_DIR)

if(AVIF_FOUND AND NOT TARGET AVIF::avif)
  add_library(AVIF::avif UNKNOWN IMPORTED)
  set_target_properties(AVIF::avif PROPERTIES IMPORTED_LOCATION "${AVIF_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${AVIF_INCLUDE_DIR}")
endif()
