// Where tests find their files. Reference data that lies beside a developer's checkout is optional: tests
// that need it say so and skip where it is absent; every essential case has a small twin in data/ that the
// project made itself.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace vit::test {

/// The path below the shared folder, or nothing (after printing "skipped: no shared data") where it does not
/// exist. The folder is VIT_SHARED_DIR of the environment, else ../shared beside the checkout.
std::optional<std::filesystem::path> shared_path(const std::string& relative);

/// A file or folder of the repository's data/.
std::filesystem::path data_path(const std::string& relative);

/// A file or folder of the repository.
std::filesystem::path source_path(const std::string& relative);

}  // namespace vit::test
