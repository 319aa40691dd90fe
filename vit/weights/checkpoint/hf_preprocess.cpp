// The image processors of transformers, torchvision and pil backends; hf_processors.h has the classes, and
// hf_token_sizes.cpp the sizes of those of vision-language models. Source: transformers
// image_processing_backends.py, image_transforms.py, models/*/image_processing_*.py.

#include <string_view>

#include "vit/base/check.h"
#include "vit/weights/checkpoint/hf_processors.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/preprocess_values.h"

namespace vit::internal {

namespace {

constexpr Where kWhere{"load_preprocess_config", ErrorKind::format};

// Keys of other processors that would change the image if they are set.
void refuse_unknown_steps(const Json& file, const ProcessorClass& processor) {
  const bool naflex = processor.name == kNaFlex;
  const OwnSizes* const own = find_own_sizes(processor.name);
  // those with sizes by tokens pad the images of a batch to one size
  const bool pads = (own != nullptr && own->pads) || has_token_sizes(processor.name);
  for (const char* const key :
       {"do_pad", "use_square_size", "do_thumbnail", "do_align_long_axis", "do_flip_channel_order",
        "do_crop_margin", "do_image_splitting", "do_color_quantize", "do_trim_border", "do_pan_and_scan",
        "crop_to_patches"}) {
    const auto value = file.find(key);
    if (pads && key == std::string_view("do_pad")) continue;
    if (own != nullptr && own->splits == key) continue;
    VIT_CHECK(!value || (value->is_bool() && !value->as_bool()), kWhere.with(ErrorKind::unsupported),
              value->where(), ": this step is not implemented");
  }
  for (const char* const key :
       {"crop_pct", "size_divisor", "size_divisibility", "rescale_offset", "max_num_patches"}) {
    const auto value = file.find(key);
    if (naflex && key == std::string_view("max_num_patches")) continue;
    if (own != nullptr && own->divides && key == std::string_view("size_divisor")) continue;
    VIT_CHECK(!value, kWhere.with(ErrorKind::unsupported), value->where(), ": this value is not implemented");
  }
}

ResizeFilter read_filter(const Json& value) {
  constexpr ResizeFilter kByNumber[] = {ResizeFilter::nearest, ResizeFilter::lanczos, ResizeFilter::bilinear,
                                        ResizeFilter::bicubic, ResizeFilter::box,     ResizeFilter::hamming};
  return kByNumber[value.as_size({0, 5})];
}

void set_squash(PreprocessConfig& config, std::size_t height, std::size_t width) {
  config.resize = ResizeRule::squash;
  config.resize_height = height;
  config.resize_width = width;
}

void set_shortest_edge(PreprocessConfig& config, std::size_t edge, std::size_t longest = 0) {
  config.resize = ResizeRule::shortest_edge;
  config.resize_height = config.resize_width = edge;
  config.longest_edge = longest;
}

void read_size(const Json& size, bool square_from_int, PreprocessConfig& config) {
  if (size.is_number() && !square_from_int) return set_shortest_edge(config, size.as_size(kEdgeRange));
  if (!size.is_object()) {
    const GridSize edges = read_edges(size);
    return set_squash(config, edges.rows, edges.columns);
  }
  const auto height = size.find_size("height", kEdgeRange);
  const auto width = size.find_size("width", kEdgeRange);
  const auto shortest = size.find_size("shortest_edge", kEdgeRange);
  const auto longest = size.find_size("longest_edge", kEdgeRange);
  const auto max_height = size.find_size("max_height", kEdgeRange);
  const auto max_width = size.find_size("max_width", kEdgeRange);
  if (shortest) return set_shortest_edge(config, *shortest, longest.value_or(0));
  if (max_height && max_width) {
    set_squash(config, *max_height, *max_width);
    config.resize = ResizeRule::contain_trunc;
    return;
  }
  VIT_CHECK(height && width, kWhere, size.where(),
            " must contain height and width, shortest_edge, or max_height and max_width");
  set_squash(config, *height, *width);
}

void read_crop(const Json& size, PreprocessConfig& config) {
  const GridSize edges =
      size.is_object() ? GridSize{size.at("height").as_size(kEdgeRange), size.at("width").as_size(kEdgeRange)}
                       : read_edges(size);
  config.crop_height = edges.rows;
  config.crop_width = edges.columns;
}

/// Processors other than NaFlex: one size for all images.
void read_fixed_size(const Json& file, const ProcessorClass& processor, PreprocessConfig& config) {
  if (processor.square_default) {
    set_squash(config, processor.size, processor.rare.width != 0 ? processor.rare.width : processor.size);
  } else {
    set_shortest_edge(config, processor.size);
  }
  const bool square_from_int = read_switch(file, "default_to_square", processor.square_from_int);
  if (const auto value = file.find("size")) read_size(*value, square_from_int, config);

  config.crop = processor.rare.can_crop && read_switch(file, "do_center_crop", processor.crop != 0);
  config.crop_height = config.crop_width = processor.crop != 0 ? processor.crop : processor.rare.unused_crop;
  if (const auto value = file.find("crop_size"); value && config.crop) read_crop(*value, config);
  VIT_CHECK(!config.crop || config.crop_height > 0, kWhere, file.file(),
            ": do_center_crop is set, but crop_size is missing");
}

void set_backend(const ProcessorClass& processor, const ModelOptions& options, PreprocessConfig& config) {
  const bool pil = options.resampler == ResamplerChoice::pillow;
  const bool in_float =
      processor.name == "DINOv3ViT" || processor.name == kOwlv2 || processor.name == kRfDetr;
  VIT_CHECK(!pil || !in_float, kWhere.with(ErrorKind::unsupported), config.source, ": Hugging Face's ",
            processor.name,
            " processor resizes in float, as torchvision does, so there are no Pillow results to reproduce");
  config.pillow = options.pillow;
  config.crop_rounding = CropRounding::floor;
  config.pad_rounding = pil ? PadRounding::extra_top_left : PadRounding::extra_bottom_right;
  config.resampler = pil        ? Resampler::pillow
                     : in_float ? Resampler::torchvision_float
                                : Resampler::torchvision_uint8;
  config.normalize = pil        ? NormalizeRule::divide_then_normalize
                     : in_float ? NormalizeRule::rescale_first
                                : NormalizeRule::fused;
  config.apply_orientation = options.exif != ExifChoice::ignore;
}

std::vector<double> read_channels(const Json& value, ScalarForm scalar, double low, double high) {
  std::vector<double> channels;
  if (value.is_number() && scalar == ScalarForm::allowed) {
    channels.assign(3, value.as_double());
  } else {
    VIT_CHECK(value.is_array() && value.size() >= 1 && value.size() <= kMaxChannels, kWhere, value.where(),
              " must be an array of a number for each channel, three for R, G, B");
    for (std::size_t c = 0; c < value.size(); ++c) channels.push_back(value[c].as_double());
  }
  for (const double channel : channels) {
    VIT_CHECK(channel >= low && channel <= high, kWhere, value.where(), " must lie between ", low, " and ",
              high, ", found ", channel);
  }
  return channels;
}

}  // namespace

std::vector<double> read_mean(const Json& value, ScalarForm scalar) {
  return read_channels(value, scalar, -1e6, 1e6);
}
std::vector<double> read_std(const Json& value, ScalarForm scalar) {
  return read_channels(value, scalar, 1e-6, 1e6);
}

void check_channels(const Json& object, const char* mean_key, const std::vector<double>& mean,
                    const char* std_key, const std::vector<double>& std) {
  if (mean.size() == std.size()) return;
  const bool is_mean = mean.size() != 3;  // the other one may be a default
  fail(kWhere, object.at(is_mean ? mean_key : std_key).where(), " has a number for each of ",
       (is_mean ? mean : std).size(), " channels, and ", is_mean ? std_key : mean_key, " for ",
       (is_mean ? std : mean).size());
}

PreprocessConfig read_mistral_preprocess(const Json& params, const ModelOptions& options) {
  const Json tower = params.at("vision_encoder");
  const std::size_t patch = tower.find_size("patch_size", {1, 1024}).value_or(16);
  const std::size_t merge = tower.find_size("spatial_merge_size", {1, 64}).value_or(1);
  const std::size_t native = tower.find_size("image_size", kEdgeRange).value_or(1024);
  const std::size_t longest = tower.find_size("max_image_size", kEdgeRange).value_or(native);
  const std::string file = text(R"({"image_processor_type": "PixtralImageProcessor", "patch_size": )",
                                patch * merge, R"(, "size": {"longest_edge": )", longest, "}}");
  return read_hf_preprocess(parse_json(file, params.file()), "", options);
}

PreprocessConfig read_hf_preprocess(const Json& file, const std::string& model_type,
                                    const ModelOptions& options) {
  const std::string& source = file.file();
  file.expect(Json::Kind::object);
  const ProcessorClass& processor = find_processor(file, model_type, options.clip_frames > 0);
  const bool naflex = processor.name == kNaFlex;
  refuse_unknown_steps(file, processor);
  const bool by_tokens = has_token_sizes(processor.name);
  PreprocessConfig config;
  const char* const kind = processor.name.ends_with("Video") ? "Processor)" : "ImageProcessor)";
  config.source = text(source, " (Hugging Face ", processor.name, kind);
  set_backend(processor, options, config);
  config.clip_frames = options.clip_frames;
  const bool of_video = processor.name.ends_with("Video");
  if (of_video && by_tokens)
    config.frames_of_patch = file.find_size("temporal_patch_size", {1, 16}).value_or(2);

  config.filter = processor.filter;
  if (const auto value = file.find("resample")) config.filter = read_filter(*value);
  if (by_tokens) {
    read_token_sizes(file, processor.name, config);
  } else if (naflex) {
    set_max_patches(config, file.find_size("max_num_patches", kPatchesRange).value_or(processor.size),
                    file.find_size("patch_size", {1, 1024}).value_or(16));
  } else {
    const OwnSizes* const own = find_own_sizes(processor.name);
    if (own == nullptr || !own->reads_size) read_fixed_size(file, processor, config);
    if (own != nullptr) own->read(file, config);
    const bool asks_for_tiles =
        model_type == "internvl" || model_type == "qianfan_ocr" || model_type == "aya_vision";
    if (asks_for_tiles && processor.name == "GotOcr2" && config.resize == ResizeRule::squash)
      read_got_ocr_tiles(file, config);
  }
  // boxes are warped whatever do_resize says
  if (processor.name != kVitPose && !read_switch(file, "do_resize", processor.rare.resizes)) {
    VIT_CHECK(config.resize != ResizeRule::tiles, kWhere.with(ErrorKind::unsupported), source,
              ": do_resize must not be false of images that are cut into tiles");
    config.resize = ResizeRule::none;
    if (by_tokens) config.pad_multiple = 0;
  }

  config.rescale = read_switch(file, "do_rescale", true);
  config.rescale_factor = file.find_double("rescale_factor").value_or(1.0 / 255.0);
  VIT_CHECK(config.rescale_factor >= 1e-9 && config.rescale_factor <= 1e6, kWhere, source,
            ": rescale_factor must lie between 1e-9 and 1e6, found ", config.rescale_factor);
  config.subtract_mean = read_switch(file, "do_normalize", processor.rare.normalizes);
  if (processor.name == kLlama4 && config.rescale && config.subtract_mean)
    config.normalize = NormalizeRule::in_bfloat16;
  config.mean = to_vector(processor.mean);
  config.std = to_vector(processor.std);
  if (const auto value = file.find("image_mean")) config.mean = read_mean(*value, ScalarForm::allowed);
  if (const auto value = file.find("image_std")) config.std = read_std(*value, ScalarForm::allowed);
  check_channels(file, "image_mean", config.mean, "image_std", config.std);
  validate(config);
  return config;
}

}  // namespace vit::internal
