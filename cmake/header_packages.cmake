# For toolchains of another C library: packages of this machine that are headers only, without all of /usr/include next to them.
set(Eigen3_DIR /usr/share/eigen3/cmake)
set(vit_header_packages "${CMAKE_BINARY_DIR}/header_packages")
foreach(package hwy/hwy::hwy doctest/doctest::doctest CLI/CLI11::CLI11 boost/Boost::headers)
  string(REGEX MATCH "^([^/]+)/(([^:]+)::.+)$" package "${package}")
  set(name ${CMAKE_MATCH_3})
  set(${name}_DIR "${vit_header_packages}")
  if(NOT EXISTS "${vit_header_packages}/include/${CMAKE_MATCH_1}")
    file(MAKE_DIRECTORY "${vit_header_packages}/include")
    file(CREATE_LINK "/usr/include/${CMAKE_MATCH_1}" "${vit_header_packages}/include/${CMAKE_MATCH_1}" SYMBOLIC)
    file(WRITE "${vit_header_packages}/${name}Config.cmake"
         "add_library(${CMAKE_MATCH_2} INTERFACE IMPORTED)\ntarget_include_directories(${CMAKE_MATCH_2} SYSTEM INTERFACE \"${vit_header_packages}/include\")\n"
         "list(APPEND CMAKE_MODULE_PATH /usr/lib/cmake/doctest)\n")
    file(WRITE "${vit_header_packages}/${name}ConfigVersion.cmake" "set(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
  endif()
endforeach()
