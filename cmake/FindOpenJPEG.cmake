# libopenjp2 as OpenJPEG::openjp2. The CMake files of Debian's package also ask for its programs and servers, which other
# packages bring. Headers lie in a folder named after the release; 2.3 is the oldest whose interface is used.
file(GLOB openjpeg_folders LIST_DIRECTORIES true /usr/include/openjpeg-2.* /usr/local/include/openjpeg-2.*)
list(SORT openjpeg_folders COMPARE NATURAL ORDER DESCENDING)
find_path(OpenJPEG_INCLUDE_DIR openjpeg.h HINTS ${openjpeg_folders}
          PATH_SUFFIXES openjpeg-2.5 openjpeg-2.4 openjpeg-2.3)
find_library(OpenJPEG_LIBRARY openjp2)
mark_as_advanced(OpenJPEG_INCLUDE_DIR OpenJPEG_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenJPEG REQUIRED_VARS OpenJPEG_LIBRARY OpenJPEG_INCLUDE_DIR)

if(OpenJPEG_FOUND AND NOT TARGET OpenJPEG::openjp2)
  add_library(OpenJPEG::openjp2 UNKNOWN IMPORTED)
  set_target_properties(OpenJPEG::openjp2 PROPERTIES IMPORTED_LOCATION "${OpenJPEG_LIBRARY}"
                                                     INTERFACE_INCLUDE_DIRECTORIES "${OpenJPEG_INCLUDE_DIR}")
endif()
