// A file or folder with given contents that is gone at the end of the scope.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace vit::test {

/// An empty folder of its own below the system's temporary folder.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> serial{0};
    path_ = std::filesystem::temp_directory_path() /
            ("vit_tests_" + std::to_string(::getpid()) + "_" + std::to_string(serial.fetch_add(1)));
    std::filesystem::create_directory(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into the folder and returns its path.
  std::filesystem::path write(std::string_view name, std::string_view contents) const {
    const std::filesystem::path path = path_ / name;
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The message of the vit::Error that `function` throws; "no Error" where it throws none.
template <typename Error, typename Function>
std::string error_text(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no Error";
}

}  // namespace vit::test
