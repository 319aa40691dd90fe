// timm's rules. Hugging Face's are in hf_preprocess.cpp, OpenCLIP's in open_clip_preprocess.cpp.
#include "vit/weights/checkpoint/preprocess_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/preprocess_values.h"

namespace vit::internal {

namespace {

constexpr Where kWhere{"load_preprocess_config", ErrorKind::format};

ResizeFilter timm_filter(const Json& value) {
  return read_choice<ResizeFilter>(value, {{"bicubic", ResizeFilter::bicubic},
                                           {"bilinear", ResizeFilter::bilinear},
                                           {"lanczos", ResizeFilter::lanczos},
                                           {"nearest", ResizeFilter::nearest},
                                           {"box", ResizeFilter::box},
                                           {"hamming", ResizeFilter::hamming}});
}

TimmCropMode timm_crop_mode(const Json& value) {
  return read_choice<TimmCropMode>(
      value,
      {{"center", TimmCropMode::center}, {"squash", TimmCropMode::squash}, {"border", TimmCropMode::border}});
}

/// Whether the input size of a model that takes no other one is that of its arguments: older timm left the
/// pretrained one in pretrained_cfg.
bool is_size_of_args(const Json& cfg, const std::optional<Json>& args) {
  return cfg.find_bool("fixed_input_size").value_or(false) && args && args->find("img_size") &&
         !args->find_bool("dynamic_img_size").value_or(false) &&
         args->find_bool("strict_img_size").value_or(true);
}

void read_timm_size(const Json& root, const Json& cfg, TimmPreprocess& timm) {
  const auto args = root.find("model_args");
  if (const auto size = cfg.find("input_size"); size && !is_size_of_args(cfg, args)) {
    VIT_CHECK(size->is_array() && size->size() == 3, kWhere, size->where(),
              " must be [channels, height, width]");
    timm.height = (*size)[1].as_size(kEdgeRange);
    timm.width = (*size)[2].as_size(kEdgeRange);
    return;
  }
  const auto size = args ? args->find("img_size") : std::nullopt;
  if (!size) return;
  const GridSize edges = read_edges(*size);
  timm.height = edges.rows;
  timm.width = edges.columns;
}

}  // namespace

PreprocessConfig build_timm_preprocess(const TimmPreprocess& timm, const ModelOptions& options,
                                       const std::string& source) {
  PreprocessConfig config;
  config.source = source;
  config.resampler =
      options.resampler == ResamplerChoice::torchvision ? Resampler::torchvision_uint8 : Resampler::pillow;
  config.pillow = options.pillow;
  config.filter = timm.filter;
  config.crop_pct = timm.crop_pct;
  config.resize_height =
      static_cast<std::size_t>(std::floor(static_cast<double>(timm.height) / timm.crop_pct));
  config.resize_width = static_cast<std::size_t>(std::floor(static_cast<double>(timm.width) / timm.crop_pct));
  config.crop_height = timm.height;
  config.crop_width = timm.width;
  switch (timm.crop_mode) {
    case TimmCropMode::center:
      config.resize =
          config.resize_height == config.resize_width ? ResizeRule::shortest_edge : ResizeRule::cover;
      break;
    case TimmCropMode::squash: config.resize = ResizeRule::squash; break;
    case TimmCropMode::border:
      config.resize = ResizeRule::contain;
      for (std::size_t c = 0; c < std::min<std::size_t>(timm.mean.size(), 3);
           ++c) {  // Python's round(255 * mean), kept inside a byte
        const double level = std::nearbyint(255.0 * timm.mean[c]);
        config.crop_pad_color[c] = static_cast<unsigned char>(level < 0.0     ? 0.0
                                                              : level > 255.0 ? 255.0
                                                                              : level);
      }
      break;
  }
  config.mean = timm.mean;
  config.std = timm.std;
  config.apply_orientation = options.exif == ExifChoice::apply;
  validate(config);
  return config;
}

void apply_choices(PreprocessConfig& config, const ModelOptions& options) {
  if (options.channels) config.channels = *options.channels;
  config.max_pixels = options.max_pixels;
  if (!options.mean.empty()) config.mean = options.mean;
  if (!options.std.empty()) config.std = options.std;
  if (options.area_limits) config = with_area_limits(config, *options.area_limits);
  if (!options.square_pad_color) return;
  config.pad_to_square = true;
  config.square_pad_color = *options.square_pad_color;
}

std::string fit_channels(std::optional<PreprocessConfig>& config, std::size_t num_channels,
                         const ModelOptions& options) {
  if (!config) return "";
  const auto fits = [num_channels](std::vector<double>& values) {
    if (values.empty()) return false;
    const bool are_equal = std::ranges::count(values, values.front()) == std::ranges::ssize(values);
    if (values.size() == 1 || (num_channels == 1 && are_equal)) values.assign(num_channels, values.front());
    return values.size() == num_channels;
  };
  const std::size_t num_means = config->mean.size(), num_stds = config->std.size();
  const bool mean_fits = fits(config->mean), std_fits = fits(config->std);
  if (mean_fits && std_fits) return "";
  const std::string why = text("mean and standard deviation have ", num_means, " and ", num_stds,
                               " numbers, and the model takes ", num_channels, " channels");
  VIT_CHECK(options.mean.empty() && options.std.empty(), kWhere.with(ErrorKind::argument),
            "ModelOptions::mean and std: ", why);
  config.reset();
  return "images are not preprocessed: " + why;
}

void set_max_patches(PreprocessConfig& config, std::size_t max_patches, std::size_t patch_size) {
  config.resize = ResizeRule::patches;
  config.max_patches = max_patches;
  config.patch_size = patch_size;
  config.crop = false;
}

bool is_timm_config(const Json& config) {
  return config.find("pretrained_cfg").has_value() ||
         (config.find("architecture") && config.find("input_size"));
}

PreprocessConfig read_timm_preprocess(const Json& root, const ModelOptions& options) {
  const Json cfg = root.find("pretrained_cfg").value_or(root);  // the older form is flat
  TimmPreprocess timm;
  read_timm_size(root, cfg, timm);
  if (const auto value = cfg.find("interpolation")) timm.filter = timm_filter(*value);
  if (const auto value = cfg.find("crop_mode")) timm.crop_mode = timm_crop_mode(*value);
  if (const auto value = cfg.find("crop_pct")) timm.crop_pct = value->as_double();
  VIT_CHECK(timm.crop_pct >= 0.01 && timm.crop_pct <= 10.0, kWhere, cfg.where(),
            ".crop_pct must be 0.01 to 10, found ", timm.crop_pct);
  if (const auto value = cfg.find("mean")) timm.mean = read_mean(*value, ScalarForm::refused);
  if (const auto value = cfg.find("std")) timm.std = read_std(*value, ScalarForm::refused);
  check_channels(cfg, "mean", timm.mean, "std", timm.std);
  const std::string architecture =
      root.find_string("architecture").value_or(cfg.find_string("architecture").value_or(""));
  return build_timm_preprocess(
      timm, options,
      architecture.empty() ? root.file() : root.file() + " (timm " + plain_or_quoted(architecture) + ")");
}

PillowRelease parse_pillow_release(std::string_view version) {
  const char* const end = version.data() + version.size();
  int numbers[3] = {};
  const char* at = version.data();
  for (int part = 0; part < 3; ++part) {
    const auto [next, error] = std::from_chars(at, end, numbers[part]);
    VIT_CHECK(error == std::errc() && numbers[part] >= 0 && (next == end || *next == '.'),
              "parse_pillow_release", "a Pillow version such as 12.1 or 13 is expected, got ",
              in_quotes(version));
    if (next == end) {
      if (numbers[0] >= 13) return PillowRelease::from_13_0;
      return numbers[0] == 12 && numbers[1] >= 2 ? PillowRelease::from_12_2 : PillowRelease::up_to_12_1;
    }
    at = next + 1;
  }
  fail("parse_pillow_release", "a Pillow version such as 12.1 or 13 is expected, got ", in_quotes(version));
}

}  // namespace vit::internal
