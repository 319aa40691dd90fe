# vit_find_library(NAME HEADER LIBRARY TARGET): what a find module does for a library without CMake files of its own, or whose
# files differ from release to release: NAME_FOUND, and the imported TARGET. A macro, for find_package() reads the
# variables.
include(FindPackageHandleStandardArgs)

macro(vit_find_library name header library target)
  find_path(${name}_INCLUDE_DIR ${header})
  find_library(${name}_LIBRARY ${library})
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY)
  find_package_handle_standard_args(${name} REQUIRED_VARS ${name}_LIBRARY ${name}_INCLUDE_DIR)
  if(${name}_FOUND AND NOT TARGET ${target})
    add_library(${target} UNKNOWN IMPORTED)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${${name}_LIBRARY}"
                                               INTERFACE_INCLUDE_DIRECTORIES "${${name}_INCLUDE_DIR}")
  endif()
endmacro()
