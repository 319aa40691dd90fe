# An overlay port: vcpkg install vit --overlay-ports=cmake/packaging/vcpkg/ports
# The sources are those of the checkout that the port lies in. Not run: the dependencies come from vcpkg's registry.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../../.." ABSOLUTE)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DVIT_BUILD_APPS=OFF -DVIT_BUILD_TESTS=OFF -DVIT_OPENCV=OFF -DVIT_INSTALL=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME vit CONFIG_PATH lib/cmake/vit)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
