// Text of files, and a folder for files of one test that is gone at the end of the scope.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/system.h"

namespace vit::test {

/// The bytes of a file; empty if it cannot be read.
inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Writes a file, and the folders that lead to it. Throws std::runtime_error if that fails.
inline void write_text(const std::filesystem::path& path, std::string_view text) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file.good()) throw std::runtime_error("cannot write " + path.string());
}

/// `text` with the first `from` replaced. Throws std::runtime_error if it has none.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == text.npos) throw std::runtime_error("not in the text: " + std::string(from));
  return text.replace(at, from.size(), to);
}

/// An empty folder of its own, removed with everything in it.
class TemporaryFolder {
 public:
  enum class Place {
    disk,    // below the system's temporary folder
    memory,  // in memory if the system has such a thing: for tests that write thousands of small files
  };

  explicit TemporaryFolder(Place place = Place::disk) {
    static std::atomic<int> serial{0};
    const std::filesystem::path memory = "/dev/shm";
    const bool in_memory = place == Place::memory && std::filesystem::is_directory(memory);
    path_ = (in_memory ? memory : std::filesystem::temp_directory_path()) /
            ("vit_tests_" + std::to_string(internal::system::process_id()) + "_" +
             std::to_string(serial.fetch_add(1)));
    std::filesystem::create_directory(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  /// Writes a file into the folder and returns its path.
  std::filesystem::path write(std::string_view name, std::string_view contents) const {
    write_text(path_ / name, contents);
    return path_ / name;
  }
  /// Names of the entries of the folder, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      out.push_back(entry.path().filename().string());
    std::ranges::sort(out);
    return out;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace vit::test
