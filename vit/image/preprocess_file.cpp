// Preprocessing of files: rows as they are decoded where rules and format allow it, else the whole image.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/image/convert.h"
#include "vit/image/image_file.h"
#include "vit/image/preprocess.h"
#include "vit/image/preprocess_memory.h"
#include "vit/image/preprocess_steps.h"
#include "vit/image/resample_rows.h"
#include "vit/image/row_source.h"

namespace vit {

namespace {

constexpr Where kWhere{"preprocess", ErrorKind::argument};

/// Rows of another source in gray.
class GrayRows final : public internal::RowSource {
 public:
  explicit GrayRows(std::unique_ptr<internal::RowSource> rows) : rows_(std::move(rows)) {}
  ImageSize size() const override { return rows_->size(); }
  int orientation() const override { return rows_->orientation(); }
  internal::ColumnRange start(internal::ColumnRange wanted) override {
    const internal::ColumnRange held = rows_->start(wanted);
    width_ = held.count();
    return held;
  }
  void read(std::uint8_t* rows, std::size_t count) override {
    rows_->read(rows, count);
    internal::make_gray(rows, count * width_);
  }
  void skip(std::size_t count) override { rows_->skip(count); }
  void finish() override { rows_->finish(); }

 private:
  std::unique_ptr<internal::RowSource> rows_;
  std::size_t width_ = 0;  // of the columns in the rows
};

}  // namespace

/// Nothing if the decoder delivers no rows or the rules need the whole image.
std::optional<FilePixels> Preprocessor::Steps::run_rows(std::span<const std::byte> file,
                                                        const std::string& name,
                                                        PreprocessMemory& memory) const {
  std::unique_ptr<internal::RowSource> source = internal::open_rows(file, of_.decode_options(), name);
  if (source == nullptr) return std::nullopt;
  if (is_gray()) source = std::make_unique<GrayRows>(std::move(source));
  const int orientation = config_.apply_orientation ? source->orientation() : 1;
  const ImageSize in = internal::upright_size(source->size(), orientation);
  const bool in_float = config_.normalize == NormalizeRule::rescale_first;
  const bool takes_rotated = !in_float && config_.filter != ResizeFilter::nearest;
  if (config_.opencv_longest_edge != 0 || config_.resize == ResizeRule::box ||
      config_.resize == ResizeRule::tiles)
    return std::nullopt;
  if (config_.pad_to_square && in.height != in.width) return std::nullopt;
  if (orientation != 1 && !takes_rotated) return std::nullopt;
  PreprocessMemory::Buffers& buffers = memory.buffers();
  Plan edges;
  std::optional<internal::RowResize> resize;
  std::optional<internal::FloatRowResize> float_resize;
  try {
    edges = plan(in);
    const ImageSize target{edges.rows.resized, edges.columns.resized};
    const internal::ResizeWindow window{.top = edges.rows.begin,
                                        .left = edges.columns.begin,
                                        .height = edges.rows.count,
                                        .width = edges.columns.count};
    if (in_float) {
      float_resize.emplace(in, static_cast<float>(config_.rescale_factor), target, window, config_.filter,
                           buffers.resize);
    } else {
      resize.emplace(in, target, window,
                     internal::ResampleOptions{
                         .resampler = config_.resampler, .filter = config_.filter, .pillow = config_.pillow},
                     orientation, buffers.resize);
    }
  } catch (const Error&) {
    return std::nullopt;  // run() throws it again, unless the file is damaged, which is reported first
  }
  FilePixels out{.pixels = Tensor<float>(Shape{num_channels(), edges.rows.out, edges.columns.out}),
                 .image_size = in};
  const std::size_t num_values =
      checked_mul(checked_mul(edges.rows.count, edges.columns.count, kWhere), 3, kWhere);
  if (in_float) {
    const TensorView<float> part(buffers.planes.take(num_values),
                                 Shape{3, edges.rows.count, edges.columns.count});
    float_resize->run(*source, part);
    write_floats(part, PixelFormat::rgb, edges, out.pixels);
  } else {
    std::uint8_t* part = buffers.resized.take(num_values);
    resize->run(*source, part);
    if (orientation != 1) {
      std::uint8_t* const upright = buffers.rgb.take(num_values);
      const ImageSize size{edges.rows.count, edges.columns.count};
      const ImageSize stored = internal::upright_size(size, orientation);  // rows and columns swap back
      internal::rotate_upright(part, stored, orientation, upright);
      part = upright;
    }
    write_bytes({part, edges.rows.count, edges.columns.count}, edges, out.pixels);
  }
  buffers.give_back();
  return out;
}

FilePixels Preprocessor::run_bytes(std::span<const std::byte> file, const std::string& name,
                                   PreprocessMemory& memory, int threads) const {
  if (num_channels() != 3) {
    if (const auto bands = internal::decode_bands(file, decode_options(), name, num_channels()))
      return steps().run_bands(*bands, memory, threads);
  }
  if (std::optional<FilePixels> done = steps().run_rows(file, name, memory)) return std::move(*done);
  const Image image = decode_bytes(file, decode_options(), name);
  FilePixels out{.pixels = Tensor<float>(steps().shape_of(steps().plan(image.size()))),
                 .image_size = image.size()};
  run(image, out.pixels, memory, threads);
  return out;
}

/// Bands unchanged, except bytes, which are rescaled.
FilePixels Preprocessor::Steps::run_bands(const internal::Bands& bands, PreprocessMemory& memory,
                                          int threads) const {
  VIT_CHECK(!config_.pad_to_square && config_.resize != ResizeRule::tiles,
            kWhere.with(ErrorKind::unsupported), config_.source,
            ": bands can neither be padded to a square with a color nor cut into tiles");
  const Plan edges = plan(bands.size());
  PreprocessMemory::Buffers& buffers = memory.buffers();
  const std::size_t plane = checked_mul(edges.rows.count, edges.columns.count, kWhere);
  const TensorView<float> part(buffers.planes.take(checked_mul(plane, num_channels(), kWhere)),
                               Shape{num_channels(), edges.rows.count, edges.columns.count});
  internal::resize_planes(bands.planes, {.height = edges.rows.resized, .width = edges.columns.resized},
                          {.top = edges.rows.begin,
                           .left = edges.columns.begin,
                           .height = edges.rows.count,
                           .width = edges.columns.count},
                          config_.filter, threads, buffers.resize, part);
  if (bands.are_bytes && config_.rescale) {
    for (float& value : part.flat()) value *= static_cast<float>(config_.rescale_factor);
  }
  FilePixels out{.pixels = Tensor<float>(Shape{num_channels(), edges.rows.out, edges.columns.out}),
                 .image_size = bands.size()};
  write_floats(part, PixelFormat::rgb, edges, out.pixels);
  buffers.give_back();
  return out;
}

FilePixels Preprocessor::run_file(const std::filesystem::path& file, PreprocessMemory& memory,
                                  int threads) const {
  std::vector<std::byte> bytes = std::move(memory.buffers().file);
  internal::read_image_file(file, decode_options(), bytes);
  FilePixels out = run_bytes(bytes, file.string(), memory, threads);
  memory.buffers().file = std::move(bytes);
  memory.buffers().give_back();
  return out;
}

}  // namespace vit
