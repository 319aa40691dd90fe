// Reference data that lies beside a developer's checkout. Tests that need it say so and skip where it is absent; every
// essential case has a small twin in data/ that the project made itself.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

namespace vit::test {

/// The path below the shared folder, or nothing (after printing "skipped: no shared data") where it does not exist.
/// The folder is VIT_SHARED_DIR of the environment, else ../shared beside the checkout.
inline std::optional<std::filesystem::path> shared_path(const std::string& relative) {
  const char* const from_environment = std::getenv("VIT_SHARED_DIR");
  const std::filesystem::path path =
      std::filesystem::path(from_environment ? from_environment : VIT_TEST_SHARED_DIR) / relative;
  if (std::filesystem::exists(path)) return path;
  std::cout << "skipped: no shared data (" << relative << ")\n";
  return std::nullopt;
}

/// A file or folder of the repository's data/.
inline std::filesystem::path data_path(const std::string& relative) {
  return std::filesystem::path(VIT_TEST_DATA_DIR) / relative;
}

}  // namespace vit::test
