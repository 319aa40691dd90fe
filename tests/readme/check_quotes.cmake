# Fails if vit/README.md does not quote the first lines of the projects in tests/install (up to their first comment line).
file(READ "${ROOT}/vit/README.md" readme)
foreach(project find_package fetch_content)
  file(READ "${ROOT}/tests/install/${project}/CMakeLists.txt" text)
  string(REGEX REPLACE "\n\n#.*" "\n" text "${text}")
  string(REPLACE "../images.cpp" "images.cpp" text "${text}")
  string(FIND "${readme}" "```cmake\n${text}```" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "vit/README.md does not quote tests/install/${project}/CMakeLists.txt:\n${text}")
  endif()
endforeach()

# The version has one place, project() in CMakeLists.txt; what cannot read it there repeats it.
file(READ "${ROOT}/CMakeLists.txt" text)
string(REGEX MATCH "project\\(vit VERSION (([0-9]+)\\.([0-9]+)\\.([0-9]+)) " unused "${text}")
set(version "${CMAKE_MATCH_1}")
set(minor "${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
foreach(copy
    "vit/version.h:VIT_VERSION_MAJOR ${CMAKE_MATCH_2} "
    "vit/version.h:VIT_VERSION_MINOR ${CMAKE_MATCH_3} "
    "vit/version.h:VIT_VERSION_PATCH ${CMAKE_MATCH_4} "
    "vit/README.md:GIT_TAG v${version})"
    "vit/README.md:find_package(vit ${minor} REQUIRED)"
    "tests/packages:find_package(vit ${minor} REQUIRED)"
    "tests/install/find_package/CMakeLists.txt:find_package(vit ${minor} REQUIRED)"
    "tests/install/fetch_content/CMakeLists.txt:GIT_TAG v${version})"
    "cmake/packaging/README.md:`libvit${minor}`"
    "cmake/packaging/conda/recipe.yaml:version: \"${version}\""
    "cmake/packaging/vcpkg/ports/vit/vcpkg.json:\"version\": \"${version}\""
    "apps/python/rope2d/rope2d/__init__.py:__version__ = \"${version}\""
    "apps/rust/Cargo.toml:version = \"${version}\""
    "CHANGELOG.md:${minor}")
  string(REGEX MATCH "^([^:]*):(.*)$" unused "${copy}")
  set(words "${CMAKE_MATCH_2}")
  file(READ "${ROOT}/${CMAKE_MATCH_1}" text)
  string(FIND "${text}" "${words}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${CMAKE_MATCH_1} lacks \"${words}\": the version of CMakeLists.txt is ${version}")
  endif()
endforeach()
