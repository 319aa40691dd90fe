// The two paths from pixels to floats: 8-bit with a table, or float resizing. Sizes and
// offsets are computed in preprocess_plan.cpp.
#include "vit/image/preprocess.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/dtype.h"
#include "vit/base/moved.h"
#include "vit/base/written_rows.h"
#include "vit/image/convert.h"
#include "vit/image/preprocess_memory.h"
#include "vit/image/preprocess_steps.h"
#include "vit/image/resample.h"
#include "vit/image/token_sizes.h"
#include "vit/image/warp_box.h"

namespace vit {

namespace {

using internal::Buffer;

constexpr Where kWhere{"preprocess", ErrorKind::argument};

/// Three channels in either order, for the resampler; other formats are converted to RGB in
/// `buffer` first.
ImageView three_channels(ImageView image, Alpha alpha, Buffer<std::uint8_t>& buffer) {
  if (image.format() == PixelFormat::rgb || image.format() == PixelFormat::bgr) return image;
  const std::size_t row_bytes = checked_mul(image.width(), 3, kWhere);
  std::uint8_t* const rgb = buffer.take(checked_mul(image.height(), row_bytes, kWhere));
  internal::convert_to_rgb(image, alpha, rgb);
  return {rgb, image.height(), image.width()};
}

/// `image`, rgb or bgr, as R, G, B in `buffer`.
std::uint8_t* copied_rgb(ImageView image, Buffer<std::uint8_t>& buffer) {
  const std::size_t row_bytes = checked_mul(image.width(), 3, kWhere);
  std::uint8_t* const rgb = buffer.take(checked_mul(image.height(), row_bytes, kWhere));
  internal::convert_to_rgb(image, Alpha::drop, rgb);
  return rgb;
}

internal::PixelRows rows_of(ImageView image) {
  return {.data = image.data(),
          .height = image.height(),
          .width = image.width(),
          .channels = 3,
          .row_stride = image.row_stride()};
}

/// `image`, of three channels, in the middle of a square of its longer edge, or in its corner; in `buffer`,
/// in the same order.
ImageView square(ImageView image, const std::array<unsigned char, 3>& color, bool at_corner,
                 Buffer<std::uint8_t>& buffer) {
  const std::size_t edge = std::max(image.height(), image.width());
  const std::size_t row_bytes = checked_mul(edge, 3, kWhere);
  std::uint8_t* const out = buffer.take(checked_mul(edge, row_bytes, kWhere));
  const bool is_bgr = image.format() == PixelFormat::bgr;
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < edge; ++i) out[3 * i + c] = color[is_bgr ? 2 - c : c];
  }
  for (std::size_t y = 1; y < edge; ++y) std::copy_n(out, row_bytes, out + y * row_bytes);
  std::uint8_t* const corner =
      at_corner ? out : out + (edge - image.height()) / 2 * row_bytes + 3 * ((edge - image.width()) / 2);
  for (std::size_t y = 0; y < image.height(); ++y)
    std::copy_n(image.row(y), 3 * image.width(), corner + y * row_bytes);
  return {out, edge, edge, {.format = image.format()}};
}

/// (v * factor - mean) / std, every number on the way and those that are given rounded to bfloat16.
float level_in_bfloat16(std::size_t v, float factor, float mean, float std) {
  const auto rounded = [](float x) { return internal::bf16_to_float(internal::float_to_bf16(x)); };
  return rounded(rounded(rounded(static_cast<float>(v) * factor) - rounded(mean)) / rounded(std));
}

/// Position of channel `c` of R, G, B in a pixel, rgb or bgr.
std::size_t channel_at(PixelFormat order, std::size_t c) {
  return order == PixelFormat::bgr ? 2 - c : c;
}

}  // namespace

PreprocessMemory::PreprocessMemory() : buffers_(std::make_unique<Buffers>()) {}
PreprocessMemory::~PreprocessMemory() = default;
PreprocessMemory::PreprocessMemory(PreprocessMemory&&) noexcept = default;
PreprocessMemory& PreprocessMemory::operator=(PreprocessMemory&&) noexcept = default;

std::size_t PreprocessMemory::bytes() const noexcept {
  return buffers_ == nullptr ? 0 : buffers_->bytes();
}

PreprocessMemory::Buffers& PreprocessMemory::buffers() {
  return internal::parts_of(buffers_, Where{"PreprocessMemory", ErrorKind::argument});
}

Preprocessor::Preprocessor(const PreprocessConfig& config) : config_(config) {
  validate(config_);
  const auto factor = static_cast<float>(config_.rescale_factor);
  for (std::size_t c = 0; c < std::min<std::size_t>(levels_.size(), num_channels()); ++c) {
    const auto mean = static_cast<float>(config_.mean[c]);
    const auto std = static_cast<float>(config_.std[c]);
    // torchvision's fused form scales mean and standard deviation up instead of the pixels down.
    const bool fused = config_.normalize == NormalizeRule::fused;
    const float up = fused && config_.rescale && config_.subtract_mean
                         ? static_cast<float>(1.0 / config_.rescale_factor)
                         : 1.0f;
    const bool in_bfloat16 = config_.normalize == NormalizeRule::in_bfloat16;
    for (std::size_t v = 0; v < 256; ++v) {
      if (in_bfloat16) levels_[c][v] = level_in_bfloat16(v, factor, mean, std);
      if (in_bfloat16) continue;
      float value = static_cast<float>(v);
      if (config_.rescale && up == 1.0f) {
        value = fused ? value * factor : static_cast<float>(static_cast<double>(v) * config_.rescale_factor);
      }
      levels_[c][v] = config_.subtract_mean ? (value - mean * up) / (std * up) : value;
    }
  }
}

DecodeOptions Preprocessor::decode_options() const noexcept {
  return {.orientation = config_.apply_orientation ? Orientation::apply : Orientation::ignore,
          .alpha = config_.alpha_on_white ? Alpha::on_white : Alpha::drop,
          .max_pixels = config_.max_pixels};
}

/// The input of the resize: three channels, padded to a square if the rules require it.
ImageView Preprocessor::Steps::input(ImageView image, PreprocessMemory& memory) const {
  PreprocessMemory::Buffers& buffers = memory.buffers();
  VIT_CHECK(num_channels() == 3 || is_gray(), kWhere.with(ErrorKind::mismatch),
            "an image has red, green and blue, but the model takes ", num_channels(),
            " channels; expected a TIFF with that many bands, or preprocessed pixels");
  ImageView in = three_channels(image, of_.decode_options().alpha, buffers.rgb);
  if (is_gray()) {
    std::uint8_t* const gray = in.data() == image.data() ? copied_rgb(in, buffers.rgb) : buffers.rgb.data();
    internal::make_gray(gray, in.height() * in.width());
    in = {gray, in.height(), in.width()};
  }
  if (config_.opencv_longest_edge != 0) {
    std::size_t step = 0;
    for (const ImageSize size : opencv_sizes(in.size())) {
      if (in.size() == size) continue;
      Buffer<std::uint8_t>& buffer = step++ == 0 ? buffers.squared : buffers.second_step;
      std::uint8_t* const out =
          buffer.take(checked_mul(checked_mul(size.height, size.width, kWhere), 3, kWhere));
      internal::resize_opencv(rows_of(in), size, out);
      in = {out, size.height, size.width, {.format = in.format()}};
    }
    return in;
  }
  if (!config_.pad_to_square || in.height() == in.width()) return in;
  return square(in, config_.square_pad_color, config_.square_at_corner, buffers.squared);
}

/// Resized and cropped, not yet padded; in `memory`, rgb or bgr.
ImageView Preprocessor::Steps::resize_to_bytes(ImageView image, const Plan& plan, PreprocessMemory& memory,
                                               int threads) const {
  PreprocessMemory::Buffers& buffers = memory.buffers();
  const EdgePlan& rows = plan.rows;
  const EdgePlan& columns = plan.columns;
  if (config_.resize == ResizeRule::box)
    return warp_to_bytes(
        image, {0.0, 0.0, static_cast<double>(image.width()), static_cast<double>(image.height())}, memory);
  const ImageView in = input(image, memory);
  std::uint8_t* const out = buffers.resized.take(checked_mul(rows.count, columns.count * 3, kWhere));
  internal::resize(rows_of(in), {.height = rows.resized, .width = columns.resized},
                   {.top = rows.begin, .left = columns.begin, .height = rows.count, .width = columns.count},
                   {.resampler = config_.resampler,
                    .filter = config_.filter,
                    .pillow = config_.pillow,
                    .threads = threads},
                   buffers.resize, out);
  return {out, rows.count, columns.count, {.format = in.format()}};
}

/// A box of the image; in `memory`, rgb or bgr.
ImageView Preprocessor::Steps::warp_to_bytes(ImageView image, const Box& box,
                                             PreprocessMemory& memory) const {
  const ImageSize target{config_.resize_height, config_.resize_width};
  const ImageView in = input(image, memory);
  std::uint8_t* const out =
      memory.buffers().resized.take(checked_mul(target.height, target.width * 3, kWhere));
  internal::warp_box(rows_of(in), internal::box_map(internal::widened(box, target, config_.box_unit), target),
                     target, out);
  return {out, target.height, target.width, {.format = in.format()}};
}

Tensor<float> Preprocessor::run_box(ImageView image, const Box& box) const {
  VIT_CHECK(config_.resize == ResizeRule::box, kWhere.with(ErrorKind::mismatch), config_.source,
            ": the rules take whole images, not boxes of them");
  VIT_CHECK(!internal::is_outside(box, image.size()), kWhere.with(ErrorKind::argument), "the box (", box.x0,
            ", ", box.y0, ", ", box.x1, ", ", box.y1, ") lies outside of the image of ", image.width(), " x ",
            image.height());
  const Steps::Plan edges = steps().plan(image.size());
  Tensor<float> out(Shape{num_channels(), edges.rows.out, edges.columns.out});
  PreprocessMemory memory;
  steps().write_bytes(steps().warp_to_bytes(image, box, memory), edges, out);
  return out;
}

Image Preprocessor::crop_stage(ImageView image, int threads) const {
  VIT_CHECK(has_crop_stage(), kWhere.with(ErrorKind::mismatch), config_.source,
            ": these rules resize in float, so there is no 8-bit image before normalization");
  const Steps::Plan edges = steps().plan(image.size());
  PreprocessMemory memory;
  const ImageView part = steps().resize_to_bytes(image, edges, memory, threads);
  Image out(edges.rows.out, edges.columns.out);
  const bool padded = part.size() != out.size();
  for (std::size_t i = 0; padded && i < out.height() * out.width(); ++i)
    std::copy_n(config_.crop_pad_color.data(), 3, out.data() + 3 * i);
  for (std::size_t y = 0; y < part.height(); ++y) {
    std::uint8_t* const to = out.row(edges.rows.at + y) + 3 * edges.columns.at;
    internal::convert_to_rgb({part.row(y), 1, part.width(), {.format = part.format()}}, Alpha::drop, to);
  }
  return out;
}

void Preprocessor::run(ImageView image, TensorView<float> out, PreprocessMemory& memory, int threads) const {
  const Steps::Plan edges = steps().plan(image.size());
  const Shape shape = steps().shape_of(edges);
  VIT_CHECK(out.shape() == shape && !out.empty(), kWhere, "the output must be ", shape.to_string(), ", got ",
            out.describe());
  internal::check_rows_apart(out, kWhere);
  if (config_.resize == ResizeRule::tiles) {
    steps().run_tiles(image, edges, memory, threads, out);
  } else if (config_.normalize == NormalizeRule::rescale_first) {
    steps().run_in_float(image, edges, memory, threads, out);
  } else {
    steps().write_bytes(steps().resize_to_bytes(image, edges, memory, threads), edges, out);
  }
  memory.buffers().give_back();
}

namespace {

/// A copy of an image of three channels that the next resize may read.
ImageView kept(ImageView image, Buffer<std::uint8_t>& buffer) {
  const std::size_t row = 3 * image.width();
  std::uint8_t* const out = buffer.take(checked_mul(image.height(), row, kWhere));
  for (std::size_t y = 0; y < image.height(); ++y) std::copy_n(image.row(y), row, out + y * row);
  return {out, image.height(), image.width(), {.format = image.format()}};
}

}  // namespace

/// The tiles of the canvas row by row, and the whole image as one before or after them.
void Preprocessor::Steps::run_tiles(ImageView image, const Plan& canvas, PreprocessMemory& memory,
                                    int threads, TensorView<float> out) const {
  const auto whole = [](ImageSize size) {
    return Plan{.rows = {.resized = size.height, .out = size.height, .count = size.height},
                .columns = {.resized = size.width, .out = size.width, .count = size.width}};
  };
  const std::size_t height = canvas.rows.out, width = canvas.columns.out, planes = num_channels();
  const std::size_t columns = width / out.dim(2), num_tiles = height / out.dim(1) * columns;
  const std::size_t area = checked_mul(height, width, kWhere);
  const TensorView<float> pixels(memory.buffers().planes.take(checked_mul(area, planes, kWhere)),
                                 Shape{planes, height, width});
  const bool by_steps = config_.canvas == TileCanvas::whole_edges;
  if (by_steps) {
    const ImageSize first = internal::size_before_canvas(image.size(), config_);
    image = kept(resize_to_bytes(image, whole(first), memory, threads), memory.buffers().squared);
  }
  ImageView resized = resize_to_bytes(image, canvas, memory, threads);
  write_bytes(resized, canvas, pixels);
  if (by_steps) image = kept(resized, memory.buffers().second_step);  // the overview is made of it
  const bool is_first = config_.overview == TileOverview::always_first;
  const TensorView<float> tiles = out.part(is_first ? planes : 0, num_tiles * planes);
  for (std::size_t row = 0; row < num_tiles * planes * out.dim(1); ++row) {
    const std::size_t tile = row / out.dim(1) / planes, plane = row / out.dim(1) % planes;
    const std::size_t y = tile / columns * out.dim(1) + row % out.dim(1);
    std::copy_n(pixels.row(plane * height + y) + tile % columns * out.dim(2), out.dim(2), tiles.row(row));
  }
  if (num_tiles == 1 && !is_first) return;
  const Plan squashed = whole({out.dim(1), out.dim(2)});
  write_bytes(resize_to_bytes(image, squashed, memory, threads), squashed,
              out.part(is_first ? 0 : num_tiles * planes, planes));
}

/// `part` padded and normalized.
void Preprocessor::Steps::write_bytes(ImageView part, const Plan& plan, TensorView<float> out) const {
  const EdgePlan& rows = plan.rows;
  const EdgePlan& columns = plan.columns;
  const std::array<unsigned char, 3> pad_color = padding();
  for (std::size_t y = 0; y < rows.out; ++y) {
    for (std::size_t c = 0; c < num_channels(); ++c) {
      const std::array<float, 256>& levels = levels_[c];
      float* const plane = out.row(plane_of(c) * rows.out + y);
      const bool is_inside = y >= rows.at && y < rows.at + rows.count;
      if (!is_inside || columns.count < columns.out)
        std::fill_n(plane, columns.out, config_.pad_normalized ? 0.0f : levels[pad_color[c]]);
      if (!is_inside) continue;
      const std::uint8_t* const from = part.row(y - rows.at) + channel_at(part.format(), c);
      for (std::size_t x = 0; x < columns.count; ++x) plane[columns.at + x] = levels[from[3 * x]];
    }
  }
}

/// The color around an image that is smaller than the crop.
std::array<unsigned char, 3> Preprocessor::Steps::padding() const {
  std::array<unsigned char, 3> color = config_.crop_pad_color;
  if (is_gray()) internal::make_gray(color.data(), 1);
  return color;
}

void Preprocessor::run(ImageView image, TensorView<float> out, int threads) const {
  PreprocessMemory memory;
  run(image, out, memory, threads);
}

Tensor<float> Preprocessor::run(ImageView image, int threads) const {
  Tensor<float> out(steps().shape_of(steps().plan(image.size())));
  run(image, out.view(), threads);
  return out;
}

float Preprocessor::Steps::normalized(float value, std::size_t channel) const {
  if (!config_.subtract_mean) return value;
  return (value - static_cast<float>(config_.mean[channel])) / static_cast<float>(config_.std[channel]);
}

void Preprocessor::Steps::run_in_float(ImageView image, const Plan& plan, PreprocessMemory& memory,
                                       int threads, TensorView<float> out) const {
  PreprocessMemory::Buffers& buffers = memory.buffers();
  const EdgePlan& rows = plan.rows;
  const EdgePlan& columns = plan.columns;
  const ImageView in = input(image, memory);
  const std::size_t plane_size = checked_mul(rows.count, columns.count, kWhere);
  const TensorView<float> part(buffers.planes.take(checked_mul(plane_size, 3, kWhere)),
                               Shape{3, rows.count, columns.count});
  internal::resize_to_float(
      rows_of(in), static_cast<float>(config_.rescale_factor),
      {.height = rows.resized, .width = columns.resized},
      {.top = rows.begin, .left = columns.begin, .height = rows.count, .width = columns.count},
      config_.filter, threads, buffers.resize, part);
  write_floats(part, in.format(), plan, out);
}

/// `part`, planes of channels in `order`, padded and normalized.
void Preprocessor::Steps::write_floats(TensorView<const float> part, PixelFormat order, const Plan& plan,
                                       TensorView<float> out) const {
  const EdgePlan& rows = plan.rows;
  const EdgePlan& columns = plan.columns;
  for (std::size_t c = 0; c < num_channels(); ++c) {
    for (std::size_t y = 0; y < rows.out; ++y) {
      float* const to = out.row(plane_of(c) * rows.out + y);
      // else padding is black before normalization
      std::fill_n(to, columns.out, config_.pad_normalized ? 0.0f : normalized(0.0f, c));
      if (y < rows.at || y >= rows.at + rows.count) continue;
      const float* const from = part.row(channel_at(order, c) * rows.count + y - rows.at);
      for (std::size_t x = 0; x < columns.count; ++x) to[columns.at + x] = normalized(from[x], c);
    }
  }
}

}  // namespace vit
