#include "tests/support/shared_data.h"

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace vit::test {

namespace {

std::optional<std::string> skipped_for;

}  // namespace

std::optional<std::filesystem::path> find_shared_path(const std::string& relative) {
  const char* const from_environment = std::getenv("VIT_SHARED_DIR");
  const std::filesystem::path folder =
      from_environment ? std::filesystem::path(from_environment) : source_path("../shared");
  if (!std::filesystem::exists(folder / relative)) return std::nullopt;
  return folder / relative;
}

std::filesystem::path shared_path(const std::string& relative) {
  if (const auto path = find_shared_path(relative)) return *path;
  throw std::runtime_error("no shared data: " + relative);
}

void note_skipped(const std::string& relative) {
  skipped_for = relative;
}

std::optional<std::string> take_skipped() {
  return std::exchange(skipped_for, std::nullopt);
}

std::filesystem::path data_path(const std::string& relative) {
  return source_path("data") / relative;
}

std::filesystem::path source_path(const std::string& relative) {
  return std::filesystem::path(VIT_TEST_SOURCE_DIR) / relative;
}

}  // namespace vit::test
