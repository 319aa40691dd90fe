// Sizes and offsets of every preprocessing rule, and the rules for another input size.
#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/image/preprocess.h"
#include "vit/image/preprocess_steps.h"
#include "vit/image/token_sizes.h"
#include "vit/image/warp_box.h"

namespace vit {

namespace {

constexpr Where kWhere{"preprocess", ErrorKind::argument};
constexpr Where kMismatch = kWhere.with(ErrorKind::mismatch);  // the rules contradict the request

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

/// Hugging Face's get_size_with_aspect_ratio_yolos, which for upright images follows the unrounded value also
/// where the short edge stays.
ImageSize shortest_edge_floored(ImageSize in, const PreprocessConfig& config) {
  const auto height = static_cast<double>(in.height), width = static_cast<double>(in.width);
  const double low = std::min(height, width), high = std::max(height, width);
  double exact = static_cast<double>(config.resize_height);
  std::size_t edge = config.resize_height;
  if (config.longest_edge != 0 && high / low * exact > static_cast<double>(config.longest_edge)) {
    exact = static_cast<double>(config.longest_edge) * low / high;
    edge = half_even(exact);
  }
  ImageSize size = in;
  if (in.width < in.height) {
    size = {floor_of(exact * height / width), edge};
  } else if (in.height != edge) {
    size = {edge, floor_of(exact * width / height)};
  }
  const std::size_t multiple = std::max<std::size_t>(config.size_multiple, 1);
  return {size.height / multiple * multiple, size.width / multiple * multiple};
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

std::size_t to_multiple(double edge, std::size_t multiple) {
  return half_even(edge / static_cast<double>(multiple)) * multiple;
}

/// One scale for both edges, those rounded to multiples. Hugging Face's DPT takes from the two scales to the
/// target the one that changes less; its authors take the larger one, and edges not below the target.
ImageSize scaled_to_multiples(ImageSize in, const PreprocessConfig& config) {
  const auto height = static_cast<double>(in.height), width = static_cast<double>(in.width);
  const double by_height = static_cast<double>(config.resize_height) / height;
  const double by_width = static_cast<double>(config.resize_width) / width;
  const std::size_t multiple = std::max<std::size_t>(config.size_multiple, 1);
  if (config.resize == ResizeRule::squash)
    return {to_multiple(by_height * height, multiple), to_multiple(by_width * width, multiple)};
  const bool covers = config.resize == ResizeRule::cover;
  const bool takes_width =
      covers ? by_width > by_height : std::abs(1.0 - by_width) < std::abs(1.0 - by_height);
  const double scale = takes_width ? by_width : by_height;
  const auto edge = [&](double size, std::size_t target) {
    const std::size_t rounded = to_multiple(scale * size, multiple);
    if (!covers || rounded >= target) return rounded;
    return static_cast<std::size_t>(std::ceil(scale * size / static_cast<double>(multiple))) * multiple;
  };
  return {edge(height, config.resize_height), edge(width, config.resize_width)};
}

/// Hugging Face's get_image_size_for_max_num_patches, timm's get_image_size_for_seq: the scale by bisection,
/// in their order of operations, so that every size is the same.
ImageSize whole_patches(ImageSize in, const PreprocessConfig& config) {
  constexpr double kPrecision = 1e-5;
  const auto patch = static_cast<double>(config.patch_size);
  const auto patches_of = [&](std::size_t edge, double scale) {
    return std::max(std::ceil(static_cast<double>(edge) * scale / patch), 1.0);
  };
  double low = kPrecision / 10.0, high = 100.0;
  while (high - low >= kPrecision) {
    const double scale = (low + high) / 2.0;
    const bool fits =
        patches_of(in.height, scale) * patches_of(in.width, scale) <= static_cast<double>(config.max_patches);
    (fits ? low : high) = scale;
  }
  return {static_cast<std::size_t>(patches_of(in.height, low)) * config.patch_size,
          static_cast<std::size_t>(patches_of(in.width, low)) * config.patch_size};
}

/// Rules whose sizes depend on each image, within limits.
bool has_limits(ResizeRule rule) {
  return rule == ResizeRule::area || rule == ResizeRule::longest || rule == ResizeRule::patch_limit ||
         rule == ResizeRule::token_count || rule == ResizeRule::tiles;
}

/// Resizes the longest edge to the bound, the other one in proportion.
ImageSize longest_edge(ImageSize in, std::size_t edge) {
  const double scale = static_cast<double>(edge) / static_cast<double>(std::max(in.height, in.width));
  const auto scaled = [&](std::size_t size) {
    return std::max<std::size_t>(half_even(static_cast<double>(size) * scale), 1);
  };
  return {scaled(in.height), scaled(in.width)};
}

/// The larger one of two equally near ones.
std::size_t nearest_multiple(std::size_t edge, std::size_t multiple) {
  const std::size_t below = edge / multiple * multiple;
  return below == 0 || below + multiple - edge <= edge - below ? below + multiple : below;
}

/// Rules that do not crop resize to the target itself, or to its number of patches.
void replace_target(PreprocessConfig& config, const InputSize& size) {
  const std::size_t crop_multiple = std::exchange(config.crop_multiple, 0);  // by which they would crop
  config.crop = false;
  if (config.opencv_longest_edge != 0) {
    config.opencv_longest_edge = std::max(size.height, size.width);
    return;
  }
  VIT_CHECK(config.resize != ResizeRule::none, kMismatch, config.source,
            ": the rules neither resize nor crop, so they have no target size");
  const bool by_edge =
      config.resize == ResizeRule::shortest_edge || config.resize == ResizeRule::shortest_edge_floored;
  VIT_CHECK(!by_edge || size.height == size.width, kMismatch, config.source,
            ": the rules set only the shortest edge; ask for one size, not ", size.height, "x", size.width);
  if (config.resize == ResizeRule::patches) {
    VIT_CHECK(size.height == size.width && size.height >= config.patch_size, kMismatch, config.source,
              ": the rules keep the aspect ratio and limit the number of patches; give one size of at least ",
              config.patch_size, ", for a square with that many, not ", size.height, "x", size.width);
    config.max_patches = (size.height / config.patch_size) * (size.width / config.patch_size);
    return;
  }
  config.resize_height = size.height;
  config.resize_width = size.width;
  config.longest_edge = 0;
  if (!has_limits(config.resize)) return;
  const std::size_t multiple =
      std::max({config.edge_multiple, config.pad_multiple, crop_multiple, std::size_t{1}});
  const auto rounded = [&](std::size_t edge) {
    return std::max<std::size_t>((edge + multiple / 2) / multiple, 1) * multiple;
  };
  config.resize = ResizeRule::squash;
  config.resize_height = rounded(size.height);
  config.resize_width = rounded(size.width);
}

}  // namespace

PreprocessConfig with_input_size(const PreprocessConfig& config, const InputSize& size,
                                 std::size_t patch_size) {
  PreprocessConfig out = config;
  if (size.kind == InputSize::Kind::model) return out;
  validate(config);
  if (size.kind == InputSize::Kind::native) {
    VIT_CHECK(patch_size > 0, kWhere, "native size needs the patch size");
    out.resize = ResizeRule::none;
    out.pad_multiple = 0;
    out.crop = true;
    out.crop_multiple = patch_size;
    return out;
  }
  constexpr std::size_t kMost = std::size_t{1} << 22;  // the longest edge to resize to
  VIT_CHECK(size.height > 0 && size.width > 0 && size.height <= kMost && size.width <= kMost, kWhere,
            "an input of ", size.height, " x ", size.width, " pixels; edges are 1 to ", kMost);
  if (!config.crop || config.crop_multiple != 0) {
    replace_target(out, size);
    return out;
  }
  const bool by_edge = config.resize == ResizeRule::shortest_edge;
  out.crop_height = size.height;
  out.crop_width = size.width;
  if (config.crop_pct > 0.0) {
    out.resize_height = floor_of(static_cast<double>(size.height) / config.crop_pct);
    out.resize_width = floor_of(static_cast<double>(size.width) / config.crop_pct);
    if (by_edge || config.resize == ResizeRule::cover)
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

PreprocessConfig with_area_limits(const PreprocessConfig& config, const AreaLimits& limits) {
  VIT_CHECK(config.resize == ResizeRule::area, kMismatch, config.source,
            ": the rules have no limits of area; those of Qwen-VL, GLM-4V and PaddleOCR-VL have");
  PreprocessConfig out = config;
  out.min_area = limits.least;
  out.max_area = limits.most;
  validate(out);
  return out;
}

ImageSize Preprocessor::Steps::resized_size(ImageSize in) const {
  const bool to_multiples = config_.size_multiple != 0;
  switch (config_.resize) {
    case ResizeRule::none: return in;
    case ResizeRule::nearer_scale: return scaled_to_multiples(in, config_);
    case ResizeRule::squash:
      if (to_multiples) return scaled_to_multiples(in, config_);
      return {config_.resize_height, config_.resize_width};
    case ResizeRule::shortest_edge: return shortest_edge(in, config_.resize_height, config_.longest_edge);
    case ResizeRule::shortest_edge_floored: return shortest_edge_floored(in, config_);
    case ResizeRule::box: return {config_.resize_height, config_.resize_width};
    case ResizeRule::cover:
      if (to_multiples) return scaled_to_multiples(in, config_);
      return same_ratio(in, config_);
    case ResizeRule::contain:
    case ResizeRule::contain_trunc: return same_ratio(in, config_);
    case ResizeRule::patches: return whole_patches(in, config_);
    case ResizeRule::area: return internal::size_by_area(in, config_);
    case ResizeRule::longest: return internal::size_by_longest(in, config_);
    case ResizeRule::patch_limit: return internal::size_by_patch_limit(in, config_);
    case ResizeRule::token_count: return internal::size_by_token_count(in, config_);
    case ResizeRule::tiles:
      return internal::size_in_canvas(in, internal::canvas_of_tiles(in, config_), config_);
  }
  return in;
}

Preprocessor::Steps::EdgePlan Preprocessor::Steps::plan_edge(std::size_t resized, std::size_t crop) const {
  if (!config_.crop) {
    const std::size_t out = config_.pad_multiple != 0 ? round_up(resized, config_.pad_multiple) : resized;
    return {
        .resized = resized, .out = out, .at = config_.pad_at_end ? 0 : (out - resized) / 2, .count = resized};
  }
  if (config_.crop_multiple > 0) crop = resized / config_.crop_multiple * config_.crop_multiple;
  if (resized < crop) {
    const std::size_t missing = crop - resized;
    const std::size_t before =
        config_.pad_rounding == PadRounding::extra_top_left ? ceil_div(missing, 2) : missing / 2;
    return {.resized = resized, .out = crop, .at = before, .count = resized};
  }
  const std::size_t rest = resized - crop;
  const std::size_t begin =
      config_.crop_rounding == CropRounding::floor ? rest / 2 : half_even(static_cast<double>(rest) / 2.0);
  return {.resized = resized, .out = crop, .begin = begin, .count = crop};
}

/// The sizes of both steps.
std::array<ImageSize, 2> Preprocessor::Steps::opencv_sizes(ImageSize in) const {
  const ImageSize first = longest_edge(in, config_.opencv_longest_edge);
  const std::size_t multiple = std::max<std::size_t>(config_.size_multiple, 1);
  return {first, {nearest_multiple(first.height, multiple), nearest_multiple(first.width, multiple)}};
}

/// The size of the input of the resize.
ImageSize Preprocessor::Steps::input_size(ImageSize in) const {
  VIT_CHECK(in.height > 0 && in.width > 0, kWhere, "the image has no pixels");
  if (config_.opencv_longest_edge != 0) return opencv_sizes(in)[1];
  if (!config_.pad_to_square) return in;
  const std::size_t edge = std::max(in.height, in.width);
  VIT_CHECK(edge <= kMaxImagePixels / edge, kWhere.with(ErrorKind::unsupported), "an image of ", in.width,
            " x ", in.height, " would be padded to ", edge, " x ", edge, ": too many pixels");
  return {edge, edge};
}

Preprocessor::Steps::Plan Preprocessor::Steps::plan(ImageSize image) const {
  const ImageSize in = input_size(image);
  const ImageSize resized = resized_size(in);
  VIT_CHECK(resized.height > 0 && resized.width > 0, kWhere, "an image of ", in.width, " x ", in.height,
            " is too narrow: the rules of ", config_.source, " would resize it to ", resized.width, " x ",
            resized.height);
  Plan plan{.rows = plan_edge(resized.height, config_.crop_height),
            .columns = plan_edge(resized.width, config_.crop_width)};
  if (config_.resize == ResizeRule::tiles) {
    const ImageSize canvas = internal::canvas_of_tiles(in, config_);
    plan.rows.out = canvas.height;
    plan.columns.out = canvas.width;
    if (config_.canvas == TileCanvas::listed) {  // centered
      plan.rows.at = (canvas.height - resized.height) / 2;
      plan.columns.at = (canvas.width - resized.width) / 2;
    }
  }
  VIT_CHECK(plan.rows.out > 0 && plan.columns.out > 0, kWhere, "an image of ", in.width, " x ", in.height,
            " is smaller than one patch of ", config_.crop_multiple, " pixels");
  VIT_CHECK(plan.rows.out <= kMaxImagePixels / plan.columns.out, kWhere.with(ErrorKind::unsupported),
            "an image of ", in.width, " x ", in.height, " would become ", plan.columns.out, " x ",
            plan.rows.out, ": too many pixels");
  return plan;
}

ImageSize Preprocessor::output_size(ImageSize in) const {
  const Shape shape = steps().shape_of(steps().plan(in));
  return {shape[1], shape[2]};
}

std::size_t Preprocessor::num_planes(ImageSize in) const {
  return config_.resize == ResizeRule::tiles ? steps().shape_of(steps().plan(in))[0] : num_channels();
}

Shape Preprocessor::Steps::shape_of(const Plan& plan) const {
  if (config_.resize != ResizeRule::tiles) return {num_channels(), plan.rows.out, plan.columns.out};
  const std::size_t num_tiles =
      (plan.rows.out / config_.resize_height) * (plan.columns.out / config_.resize_width);
  const bool has_overview = config_.overview == TileOverview::always_first || num_tiles > 1;
  return {num_channels() * (num_tiles + (has_overview ? 1 : 0)), config_.resize_height, config_.resize_width};
}

SourceMap Preprocessor::source_map(ImageSize in) const {
  const Steps::Plan edges = steps().plan(in);
  const ImageSize square = steps().input_size(in);  // which contains the image if the rules pad
  const auto step = [](const Steps::EdgePlan& edge, std::size_t size) {
    return static_cast<double>(size) / static_cast<double>(edge.resized);
  };
  const auto origin = [](const Steps::EdgePlan& edge) {
    return static_cast<double>(edge.begin) - static_cast<double>(edge.at);
  };
  if (config_.resize == ResizeRule::box) {
    const ImageSize target{config_.resize_height, config_.resize_width};
    const Box whole{0.0, 0.0, static_cast<double>(in.width), static_cast<double>(in.height)};
    const internal::BoxMap map =
        internal::box_map(internal::widened(whole, target, config_.box_unit), target);
    // from centers of pixels to points
    return {.left = map.left + 0.5 - 0.5 * map.x_step,
            .top = map.top + 0.5 - 0.5 * map.y_step,
            .x_step = map.x_step,
            .y_step = map.y_step};
  }
  const bool in_middle = steps().is_inside_square();
  const double x_step = step(edges.columns, square.width), y_step = step(edges.rows, square.height);
  const auto before = [in_middle](std::size_t rest) {
    return in_middle ? static_cast<double>(rest / 2) : 0.0;
  };
  return {.left = origin(edges.columns) * x_step - before(square.width - in.width),
          .top = origin(edges.rows) * y_step - before(square.height - in.height),
          .x_step = x_step,
          .y_step = y_step};
}

}  // namespace vit
