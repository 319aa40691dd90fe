#include <doctest/doctest.h>

#include <string>

#include "vit/version.h"

TEST_CASE("version: the library answers with the number of the build") {
  CHECK(vit::version() == std::string(VIT_TEST_VERSION));
}
