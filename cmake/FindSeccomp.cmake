# libseccomp as Seccomp::seccomp; it brings no CMake files of its own.
include("${CMAKE_CURRENT_LIST_DIR}/VitFindLibrary.cmake")
vit_find_library(Seccomp seccomp.h seccomp Seccomp::seccomp)
