// Where tests find their files. Reference data next to a developer's checkout is optional: a case
// that needs it begins with SKIP_WITHOUT_SHARED; every essential case has a small twin in data/ that the
// project made itself.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace vit::test {

/// The path below the shared folder; empty if it does not exist. The folder is VIT_SHARED_DIR of the
/// environment, else ../shared next to the checkout.
std::optional<std::filesystem::path> find_shared_path(const std::string& relative);

/// The path below the shared folder. Throws std::runtime_error if it does not exist: for cases that
/// SKIP_WITHOUT_SHARED has let through.
std::filesystem::path shared_path(const std::string& relative);

/// Notes for tests/main.cpp that the running case ends because this path is missing.
void note_skipped(const std::string& relative);
/// The path of the last call of note_skipped, once.
std::optional<std::string> take_skipped();

/// A file or folder of the repository's data/.
std::filesystem::path data_path(const std::string& relative);

/// A file or folder of the repository.
std::filesystem::path source_path(const std::string& relative);

}  // namespace vit::test

/// Leaves a test case, as skipped, if the path below the shared folder does not exist. Only at the top of a
/// TEST_CASE: one that has checked something before is a failure, so a skip never hides a result.
#define SKIP_WITHOUT_SHARED(relative)               \
  do {                                              \
    if (!::vit::test::find_shared_path(relative)) { \
      ::vit::test::note_skipped(relative);          \
      return;                                       \
    }                                               \
  } while (false)
