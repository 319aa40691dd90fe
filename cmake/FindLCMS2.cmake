# Little CMS as LCMS2::lcms2; it brings no CMake files.
include("${CMAKE_CURRENT_LIST_DIR}/VitFindLibrary.cmake")
vit_find_library(LCMS2 lcms2.h lcms2 LCMS2::lcms2)
