#include <doctest/doctest.h>

#include <string>

#include "vit/version.h"

TEST_CASE("version: the library answers with the number of the build") {
  CHECK(vit::version() == std::string(VIT_TEST_VERSION));
}

TEST_CASE("version: the macros of the headers are the number of the build") {
  CHECK(std::to_string(VIT_VERSION_MAJOR) + "." + std::to_string(VIT_VERSION_MINOR) + "." +
            std::to_string(VIT_VERSION_PATCH) ==
        VIT_TEST_VERSION);
}
