# libheif as HEIF::heif: a module of one's own works with every release, the CMake files that the releases bring differ.
include("${CMAKE_CURRENT_LIST_DIR}/VitFindLibrary.cmake")
vit_find_library(HEIF libheif/heif.h heif HEIF::heif)
