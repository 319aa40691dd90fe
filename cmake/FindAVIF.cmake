# libavif as AVIF::avif: a module of one's own works with every release, the CMake files that the releases bring differ.
include("${CMAKE_CURRENT_LIST_DIR}/VitFindLibrary.cmake")
vit_find_library(AVIF avif/avif.h avif AVIF::avif)
