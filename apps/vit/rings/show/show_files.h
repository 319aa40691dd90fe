// The files of vit show: its pictures, and the arrays of --data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/inputs/inputs.h"
#include "vit/image/image.h"

namespace vit::app {

/// Pictures: one sheet in a .png file, or one file per picture in a folder.
class PictureSink {
 public:
  /// A path that ends in .png is one file for all of `num_pictures`, any other a folder, which is created;
  /// "" = nothing is drawn. Throws UsageError for the extension of another image format, Error if nothing
  /// can be written there. `inputs` must outlive this.
  PictureSink(std::filesystem::path path, std::size_t num_pictures, std::span<const Input> inputs);

  bool is_used() const { return !path_.empty(); }
  /// Longest edge of a panel that suits the number of pictures.
  std::size_t max_edge() const { return max_edge_; }
  /// Whether pictures share a file, and with it the caption.
  bool is_sheet() const { return !is_folder_ && num_expected_ > 1; }
  void set_sheet_caption(std::vector<std::string> lines) { caption_ = std::move(lines); }
  /// Takes the picture of an input; in a folder the file is named after it. Throws Error if that is the
  /// file of an input.
  void add(const std::string& input_name, Image picture);
  /// Writes the sheet.
  void finish();
  /// "4 pictures in out/".
  std::string summary() const;

 private:
  /// STEM.png, or STEM-1.png if an earlier input had that name.
  std::filesystem::path file_for(const std::string& input_name);

  std::filesystem::path path_;
  std::optional<InputFiles> inputs_;  // of a folder
  bool is_folder_ = false;
  std::size_t num_expected_ = 0;
  std::size_t max_edge_ = 0;
  std::size_t num_pictures_ = 0;
  std::vector<Image> sheet_;
  std::vector<std::string> caption_;
  std::set<std::string> names_;
};

/// Named arrays of several types and shapes in a .npz file.
class NumberFile {
 public:
  /// "" = nothing is kept. Throws UsageError for another extension than .npz, Error if no file can be created
  /// there.
  explicit NumberFile(std::filesystem::path path);

  void add(std::string name, std::vector<std::size_t> shape, std::span<const float> numbers);
  void add(std::string name, std::vector<std::size_t> shape, std::span<const std::uint8_t> numbers);
  void add(std::string name, std::vector<std::size_t> shape, std::span<const std::int32_t> numbers);
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
