// Writes named arrays of several types and shapes to a .npz file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace vit::app {

class NumberFile {
 public:
  /// "" = nothing is kept. Throws UsageError for another extension than .npz, Error if no file can be created
  /// there.
  explicit NumberFile(std::filesystem::path path);

  void add(std::string name, std::vector<std::size_t> shape, std::span<const float> numbers);
  void add(std::string name, std::vector<std::size_t> shape, std::span<const std::uint8_t> numbers);
  /// Writes the arrays and `files`, an array of strings.
  void write(std::span<const std::string> files) const;

 private:
  struct Array {
    std::string name;
    std::string descr;
    std::vector<std::size_t> shape;
    std::vector<std::byte> bytes;
  };
  void add_bytes(std::string name, std::string descr, std::vector<std::size_t> shape,
                 std::span<const std::byte> bytes);

  std::filesystem::path path_;
  std::vector<Array> arrays_;
};

}  // namespace vit::app
