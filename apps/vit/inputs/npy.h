// The .npy format of NumPy: strict reading of float32 pixels, and the headers that the writers need.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/tensor.h"

namespace vit::app {

/// Preprocessed pixels in a .npy file: float32, little-endian, C order, (B, K, H, W) or (K, H, W), where
/// K is the number of channels of the model. Reads images one at a time; safe to share between threads.
class PixelFile {
 public:
  /// Reads and checks the header against the length of the file. Throws Error naming what is wrong.
  explicit PixelFile(const std::filesystem::path& path);

  std::size_t num_images() const noexcept { return num_images_; }
  /// Image `index` (K, H, W). Throws Error if the file cannot be read.
  Tensor<float> load(std::size_t index) const;

 private:
  std::filesystem::path path_;
  std::size_t data_offset_ = 0;
  std::size_t num_images_ = 0;
  std::size_t num_channels_ = 0;
  std::size_t height_ = 0;
  std::size_t width_ = 0;
};

/// What `read` gives of a file of arrays; its Error names the file.
template <typename Read>
auto of_file(const std::filesystem::path& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    fail(Where("npy", error.kind()), path.string(), ": ", error.message());
  }
}

/// The numbers of a .npy file of one to four dimensions, float16, float32 or float64, C order; with `unit`
/// also unsigned 16 bits, divided by it. Throws Error naming what is wrong.
Tensor<float> load_npy_floats(const std::filesystem::path& path, std::optional<double> unit = std::nullopt);

/// The same of the bytes of such a file.
Tensor<float> npy_floats(std::string_view file);

/// The contents of the header of a .npy file.
struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<std::size_t> shape;
};

/// Parses the dictionary of a header: exactly the keys descr, fortran_order and shape. Throws Error.
NpyHeader parse_npy_header(std::string_view dictionary);

/// Magic, version 1.0 and the dictionary, padded so that the data start at a multiple of 64 bytes.
std::string npy_header(std::string_view descr, std::span<const std::size_t> shape);

/// A one-dimensional array of strings (dtype <U, UTF-32) as a complete .npy file.
std::string npy_strings(std::span<const std::string> values);

}  // namespace vit::app
