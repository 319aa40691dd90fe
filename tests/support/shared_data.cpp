#include "tests/support/shared_data.h"

#include <cstdlib>
#include <iostream>

namespace vit::test {

std::optional<std::filesystem::path> shared_path(const std::string& relative) {
  const char* const from_environment = std::getenv("VIT_SHARED_DIR");
  const std::filesystem::path folder =
      from_environment ? std::filesystem::path(from_environment) : source_path("../shared");
  if (std::filesystem::exists(folder / relative)) return folder / relative;
  std::cout << "skipped: no shared data (" << relative << ")\n";
  return std::nullopt;
}

std::filesystem::path data_path(const std::string& relative) {
  return source_path("data") / relative;
}

std::filesystem::path source_path(const std::string& relative) {
  return std::filesystem::path(VIT_TEST_SOURCE_DIR) / relative;
}

}  // namespace vit::test
