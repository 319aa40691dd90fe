# Install rules: library, public headers, CMake package, pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS vit EXPORT vit-targets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/vit" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h"
        PATTERN "*-inl.h" EXCLUDE)
set(VIT_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/vit")
install(EXPORT vit-targets NAMESPACE vit:: DESTINATION "${VIT_CMAKE_DIR}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/vit-config.cmake.in" "${PROJECT_BINARY_DIR}/vit-config.cmake"
                              INSTALL_DESTINATION "${VIT_CMAKE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/vit-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/vit-config.cmake" "${PROJECT_BINARY_DIR}/vit-config-version.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/FindWebP.cmake"
        DESTINATION "${VIT_CMAKE_DIR}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/vit.pc.in" "${PROJECT_BINARY_DIR}/vit.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/vit.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/data/" DESTINATION "${CMAKE_INSTALL_DATADIR}/vit" PATTERN "golden" EXCLUDE)
