// Sizes and offsets of every rule, and the two roads to floats: through 8 bits and a table, or through float
// resizing.
#include "vit/image/preprocess.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vit/base/checked.h"
#include "vit/base/error.h"
#include "vit/base/parallel.h"
#include "vit/image/resample.h"

namespace vit {

namespace {

constexpr std::size_t kMaxOutputPixels = 178'956'970;
constexpr const char* kWhere = "preprocess";

std::size_t half_even(double value) {
  return static_cast<std::size_t>(std::nearbyint(value));
}

std::size_t floor_of(double value) {
  return static_cast<std::size_t>(std::floor(value));
}

ImageSize shortest_edge(ImageSize in, std::size_t edge, std::size_t longest) {
  const std::size_t low = std::min(in.height, in.width);
  const std::size_t high = std::max(in.height, in.width);
  if (longest == 0) {
    const std::size_t other = checked_mul(edge, high, kWhere) / low;
    return in.width <= in.height ? ImageSize{other, edge} : ImageSize{edge, other};
  }
  // Hugging Face's get_size_with_aspect_ratio: the bound shrinks the short edge, rounded half to even, while
  // the long one follows the unrounded value.
  double exact = static_cast<double>(edge);
  const double ratio = static_cast<double>(high) / static_cast<double>(low);
  if (ratio * exact > static_cast<double>(longest)) {
    exact = static_cast<double>(longest) * static_cast<double>(low) / static_cast<double>(high);
    edge = half_even(exact);
  }
  if (low == edge) return in;
  const auto height = static_cast<double>(in.height);
  const auto width = static_cast<double>(in.width);
  return in.width < in.height ? ImageSize{floor_of(exact * height / width), edge}
                              : ImageSize{edge, floor_of(exact * width / height)};
}

ImageSize same_ratio(ImageSize in, const PreprocessConfig& config) {
  const auto height = static_cast<double>(in.height);
  const auto width = static_cast<double>(in.width);
  if (config.resize == ResizeRule::contain_trunc) {
    const double scale = std::min(static_cast<double>(config.resize_height) / height,
                                  static_cast<double>(config.resize_width) / width);
    return {floor_of(height * scale), floor_of(width * scale)};
  }
  const double by_height = height / static_cast<double>(config.resize_height);
  const double by_width = width / static_cast<double>(config.resize_width);
  const double ratio =
      config.resize == ResizeRule::cover ? std::min(by_height, by_width) : std::max(by_height, by_width);
  return {half_even(height / ratio), half_even(width / ratio)};
}

}  // namespace

PreprocessConfig with_input_size(const PreprocessConfig& config, const InputSize& size,
                                 std::size_t patch_size) {
  PreprocessConfig out = config;
  if (size.kind == InputSize::Kind::model) return out;
  if (size.kind == InputSize::Kind::native) {
    VIT_CHECK(patch_size > 0, kWhere, "native size needs the patch size");
    out.resize = ResizeRule::none;
    out.crop = true;
    out.crop_multiple = patch_size;
    return out;
  }
  VIT_CHECK(size.height > 0 && size.width > 0, kWhere, "an input of ", size.height, " x ", size.width,
            " pixels");
  const bool by_edge = config.resize == ResizeRule::shortest_edge;
  if (!config.crop) {
    VIT_CHECK(config.resize != ResizeRule::none, kWhere, config.source,
              ": the rules neither resize nor crop, so they have no target size");
    VIT_CHECK(!by_edge || size.height == size.width, kWhere, config.source,
              ": the rules set the shortest edge alone; ask for one size, not ", size.height, "x",
              size.width);
    out.resize_height = size.height;
    out.resize_width = size.width;
    out.longest_edge = 0;
    return out;
  }
  out.crop_height = size.height;
  out.crop_width = size.width;
  if (config.crop_pct > 0.0) {
    out.resize_height = floor_of(static_cast<double>(size.height) / config.crop_pct);
    out.resize_width = floor_of(static_cast<double>(size.width) / config.crop_pct);
    const bool centre = by_edge || config.resize == ResizeRule::cover;
    if (centre)
      out.resize = out.resize_height == out.resize_width ? ResizeRule::shortest_edge : ResizeRule::cover;
  } else if (by_edge) {
    const std::size_t from = std::max(config.crop_height, config.crop_width);
    out.resize_height = config.resize_height * std::max(size.height, size.width) / from;
    out.resize_width = out.resize_height;
    out.longest_edge = 0;
  } else {
    out.resize_height = config.resize_height * size.height / config.crop_height;
    out.resize_width = config.resize_width * size.width / config.crop_width;
  }
  return out;
}

Preprocessor::Preprocessor(const PreprocessConfig& config) : config_(config) {
  validate(config_);
  const auto factor = static_cast<float>(config_.rescale_factor);
  for (std::size_t c = 0; c < 3; ++c) {
    const auto mean = static_cast<float>(config_.mean[c]);
    const auto std = static_cast<float>(config_.std[c]);
    // torchvision's fused form scales mean and standard deviation up instead of the pixels down.
    const bool fused = config_.normalize == NormalizeRule::fused;
    const float up = fused && config_.rescale && config_.subtract_mean
                         ? static_cast<float>(1.0 / config_.rescale_factor)
                         : 1.0f;
    for (std::size_t v = 0; v < 256; ++v) {
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
          .alpha = config_.alpha_on_white ? Alpha::on_white : Alpha::drop};
}

ImageSize Preprocessor::resized_size(ImageSize in) const {
  switch (config_.resize) {
    case ResizeRule::none: return in;
    case ResizeRule::squash: return {config_.resize_height, config_.resize_width};
    case ResizeRule::shortest_edge: return shortest_edge(in, config_.resize_height, config_.longest_edge);
    case ResizeRule::cover:
    case ResizeRule::contain:
    case ResizeRule::contain_trunc: return same_ratio(in, config_);
  }
  return in;
}

Preprocessor::EdgePlan Preprocessor::plan_edge(std::size_t resized, std::size_t crop) const {
  if (!config_.crop) return {resized, resized, 0, 0, resized};
  if (config_.crop_multiple > 0) crop = resized / config_.crop_multiple * config_.crop_multiple;
  if (resized < crop) {
    const std::size_t missing = crop - resized;
    const std::size_t before =
        config_.pad_rounding == PadRounding::extra_top_left ? ceil_div(missing, 2) : missing / 2;
    return {resized, crop, 0, before, resized};
  }
  const std::size_t rest = resized - crop;
  const std::size_t begin =
      config_.crop_rounding == CropRounding::floor ? rest / 2 : half_even(static_cast<double>(rest) / 2.0);
  return {resized, crop, begin, 0, crop};
}

Preprocessor::Plan Preprocessor::plan(ImageSize in) const {
  VIT_CHECK(in.height > 0 && in.width > 0, kWhere, "the picture has no pixels");
  const ImageSize resized = resized_size(in);
  VIT_CHECK(resized.height > 0 && resized.width > 0, kWhere, "a picture of ", in.width, " x ", in.height,
            " is too narrow: the rules of ", config_.source, " would resize it to ", resized.width, " x ",
            resized.height);
  const Plan plan{plan_edge(resized.height, config_.crop_height),
                  plan_edge(resized.width, config_.crop_width)};
  VIT_CHECK(plan.rows.out > 0 && plan.columns.out > 0, kWhere, "a picture of ", in.width, " x ", in.height,
            " is smaller than one patch of ", config_.crop_multiple, " pixels");
  VIT_CHECK(plan.rows.out <= kMaxOutputPixels / plan.columns.out, kWhere, "a picture of ", in.width, " x ",
            in.height, " would become ", plan.columns.out, " x ", plan.rows.out, ": too many pixels");
  return plan;
}

ImageSize Preprocessor::output_size(ImageSize in) const {
  const Plan edges = plan(in);
  return {edges.rows.out, edges.columns.out};
}

Image Preprocessor::crop_stage(ImageView image, int threads) const {
  VIT_CHECK(has_crop_stage(), kWhere, config_.source,
            ": these rules resize in float, so there is no 8-bit picture before normalisation");
  const Plan edges = plan(image.size());
  Image part = resize(image, {edges.rows.resized, edges.columns.resized},
                      {edges.rows.begin, edges.columns.begin, edges.rows.count, edges.columns.count},
                      {.resampler = config_.resampler,
                       .filter = config_.filter,
                       .pillow = config_.pillow,
                       .threads = threads});
  if (!edges.padded()) return part;
  Image out(edges.rows.out, edges.columns.out);
  for (std::size_t i = 0; i < out.height() * out.width(); ++i)
    std::copy_n(config_.pad_color.data(), 3, out.data() + 3 * i);
  for (std::size_t y = 0; y < part.height(); ++y) {
    std::copy_n(part.row(y), 3 * part.width(), out.row(edges.rows.at + y) + 3 * edges.columns.at);
  }
  return out;
}

void Preprocessor::run(ImageView image, TensorView<float> out, int threads) const {
  const Plan edges = plan(image.size());
  const Shape shape{3, edges.rows.out, edges.columns.out};
  VIT_CHECK(out.shape() == shape, kWhere, "the output must be ", shape.to_string(), ", got ",
            out.shape().to_string());
  if (config_.normalize == NormalizeRule::rescale_first) return run_in_float(image, edges, threads, out);
  const Image cropped = crop_stage(image, threads);
  const std::size_t height = cropped.height();
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* const rgb = cropped.row(y);
    for (std::size_t c = 0; c < 3; ++c) {
      float* const plane = out.row(c * height + y);
      for (std::size_t x = 0; x < cropped.width(); ++x) plane[x] = levels_[c][rgb[3 * x + c]];
    }
  }
}

float Preprocessor::normalized(float value, std::size_t channel) const {
  if (!config_.subtract_mean) return value;
  return (value - static_cast<float>(config_.mean[channel])) / static_cast<float>(config_.std[channel]);
}

void Preprocessor::run_in_float(ImageView image, const Plan& edges, int threads,
                                TensorView<float> out) const {
  const auto factor = static_cast<float>(config_.rescale_factor);
  Tensor<float> part(Shape{3, edges.rows.count, edges.columns.count});
  resize_to_float(image, factor, {edges.rows.resized, edges.columns.resized},
                  {edges.rows.begin, edges.columns.begin, edges.rows.count, edges.columns.count},
                  config_.filter, threads, part.view());
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < edges.rows.out; ++y) {
      float* const to = out.row(c * edges.rows.out + y);
      std::fill_n(to, edges.columns.out, normalized(0.0f, c));  // padding is black before normalisation
      if (y < edges.rows.at || y >= edges.rows.at + edges.rows.count) continue;
      const float* const from = part.view().row(c * edges.rows.count + y - edges.rows.at);
      for (std::size_t x = 0; x < edges.columns.count; ++x) to[edges.columns.at + x] = normalized(from[x], c);
    }
  }
}

Tensor<float> Preprocessor::run(ImageView image, int threads) const {
  const ImageSize size = output_size(image.size());
  Tensor<float> out(Shape{3, size.height, size.width});
  run(image, out.view(), threads);
  return out;
}

}  // namespace vit
