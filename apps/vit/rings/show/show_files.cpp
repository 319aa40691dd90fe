#include "apps/vit/rings/show/show_files.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/outputs/drawing.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/outputs/zip_writer.h"
#include "vit/base/check.h"
#include "vit/io/atomic_file.h"

namespace vit::app {
namespace {

constexpr std::size_t kMaxSheetPictures = 2500;  // 50 x 50

/// Panels of 1536 pixels for a single picture, smaller ones for several.
std::size_t edge_for(std::size_t num_pictures) {
  if (num_pictures <= 1) return 1536;
  return num_pictures <= 16 ? 384 : 192;
}

}  // namespace

PictureSink::PictureSink(std::filesystem::path path, std::size_t num_pictures, std::span<const Input> inputs)
    : path_(std::move(path)), num_expected_(num_pictures) {
  if (!is_used()) return;
  check_can_draw();
  std::error_code error;
  is_folder_ = std::filesystem::is_directory(path_, error) || path_.extension() != ".png";
  max_edge_ = edge_for(is_folder_ ? 1 : num_pictures);
  if (!is_folder_) {
    VIT_CHECK(num_pictures <= kMaxSheetPictures, "draw", num_pictures,
              " images are too many for one picture, which holds ", kMaxSheetPictures,
              "; give a folder as --output");
    check_output_place(path_);
    return;
  }
  if (has_image_extension(path_))
    fail_usage("--output: expected a file that ends in .png or a folder, found ", path_.string());
  std::filesystem::create_directories(path_, error);
  VIT_CHECK(!error, "write", path_.string(), ": the folder cannot be created: ", error.message());
  check_output_place(path_ / "picture.png");
  inputs_.emplace(inputs);
}

std::filesystem::path PictureSink::file_for(const std::string& input_name) {
  std::string stem = std::filesystem::path(input_name).filename().string();
  if (const std::size_t bracket = stem.rfind('['); stem.ends_with(']') && bracket != std::string::npos) {
    stem.pop_back();  // x.npy[3] -> x.npy-3
    stem[bracket] = '-';
  } else {
    stem = std::filesystem::path(stem).stem().string();
  }
  std::string name = stem;
  for (std::size_t i = 1; !names_.insert(name).second; ++i) name = text(stem, "-", i);
  return path_ / (name + ".png");
}

void PictureSink::add(const std::string& input_name, Image picture) {
  ++num_pictures_;
  if (is_folder_) {
    const std::filesystem::path path = file_for(input_name);
    inputs_->check_kept(path);
    return write_png(path, picture);
  }
  sheet_.push_back(std::move(picture));
}

void PictureSink::finish() {
  if (sheet_.empty()) return;
  if (sheet_.size() > 1) {
    write_png(path_, draw_sheet(sheet_, caption_));
  } else {
    write_png(path_, sheet_.front());
  }
}

std::string PictureSink::summary() const {
  return text(num_pictures_, num_pictures_ == 1 ? " picture" : " pictures", is_folder_ ? " in " : ": ",
              path_.string());
}

NumberFile::NumberFile(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.empty()) return;
  if (path_.extension() != ".npz")
    fail_usage("--data: expected a file that ends in .npz, found ", path_.string());
  check_output_place(path_);
}

void NumberFile::add(std::string name, std::vector<std::size_t> shape, std::span<const float> numbers) {
  add_bytes(std::move(name), "<f4", std::move(shape), std::as_bytes(numbers));
}

void NumberFile::add(std::string name, std::vector<std::size_t> shape,
                     std::span<const std::uint8_t> numbers) {
  add_bytes(std::move(name), "|u1", std::move(shape), std::as_bytes(numbers));
}

void NumberFile::add(std::string name, std::vector<std::size_t> shape,
                     std::span<const std::int32_t> numbers) {
  add_bytes(std::move(name), "<i4", std::move(shape), std::as_bytes(numbers));
}

void NumberFile::add_bytes(std::string name, std::string descr, std::vector<std::size_t> shape,
                           std::span<const std::byte> bytes) {
  if (path_.empty()) return;
  arrays_.push_back({std::move(name), std::move(descr), std::move(shape), {bytes.begin(), bytes.end()}});
}

void NumberFile::write(std::span<const std::string> files) const {
  if (path_.empty()) return;
  internal::AtomicFile file(path_, "write");
  ZipWriter archive(file);
  const auto add_member = [&](const std::string& name, const std::string& header,
                              std::span<const std::byte> bytes) {
    archive.add(name + ".npy", std::array{std::as_bytes(std::span(header)), bytes});
  };
  for (const Array& array : arrays_)
    add_member(array.name, npy_header(array.descr, array.shape), array.bytes);
  add_member("files", npy_strings(files), {});
  archive.finish();
  file.commit();
}

}  // namespace vit::app
