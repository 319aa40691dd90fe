// The image processors of ViT, DeiT, BEiT, PVT, BiT (DINOv2), DINOv3, SigLIP, SigLIP 2 NaFlex, TIPSv2, CLIP,
// and, by the sizes of hf_token_sizes.cpp, of vision-language models in transformers, torchvision and pil
// backends. Source: transformers image_processing_backends.py, image_transforms.py,
// models/*/image_processing_*.py.

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/preprocess_values.h"

namespace vit::internal {

namespace {

constexpr Where kWhere{"load_preprocess_config", ErrorKind::format};

constexpr std::string_view kNaFlex = "Siglip2", kDpt = "DPT", kChmv2 = "CHMv2", kEomt = "Eomt",
                           kLlama4 = "Llama4";
constexpr std::string_view kOwlv2 = "Owlv2", kYolos = "Yolos", kVitPose = "VitPose";

/// Defaults of a class for values missing in the file.
struct ProcessorClass {
  std::string_view name;
  ResizeFilter filter;
  std::size_t size;
  bool square_default;   // the class' own size is a squash
  bool square_from_int;  // an integer in the file is a squash
  std::size_t crop;      // 0 = no crop
  std::array<double, 3> mean;
  std::array<double, 3> std;
  bool normalizes = true;
};

constexpr ProcessorClass kClasses[] = {
    {"ViT", ResizeFilter::bilinear, 224, true, true, 0, kHalf, kHalf},
    {"DeiT", ResizeFilter::bicubic, 256, true, true, 224, kHalf, kHalf},
    {"Beit", ResizeFilter::bicubic, 224, true, true, 0, kHalf, kHalf},
    {"Pvt", ResizeFilter::bicubic, 224, true, true, 0, kImageNetMean, kImageNetStd},
    {"Bit", ResizeFilter::bicubic, 224, false, false, 224, kClipMean, kClipStd},
    {"DINOv3ViT", ResizeFilter::bilinear, 224, true, true, 0, kImageNetMean, kImageNetStd},
    {"Siglip", ResizeFilter::bicubic, 224, true, false, 0, kHalf, kHalf},
    {kNaFlex, ResizeFilter::bilinear, 256, true, false, 0, kHalf, kHalf},  // 256 patches
    {"Tipsv2", ResizeFilter::bilinear, 448, true, true, 0, kHalf, kHalf, false},
    {"CLIP", ResizeFilter::bicubic, 224, false, false, 224, kClipMean, kClipStd},
    {kDpt, ResizeFilter::bicubic, 384, true, true, 0, kHalf, kHalf},
    {kChmv2, ResizeFilter::bicubic, 384, true, true, 0, kHalf, kHalf},
    {"Tipsv2Dpt", ResizeFilter::bilinear, 448, true, true, 0, kHalf, kHalf, false},
    {kEomt, ResizeFilter::bilinear, 640, false, false, 0, kImageNetMean, kImageNetStd},
    {kOwlv2, ResizeFilter::bilinear, 960, true, true, 0, kClipMean, kClipStd},
    {"OwlViT", ResizeFilter::bicubic, 768, true, true, 0, kClipMean, kClipStd},
    {kYolos, ResizeFilter::bilinear, 800, false, false, 0, kImageNetMean, kImageNetStd},
    {kVitPose, ResizeFilter::bilinear, 256, true, true, 0, kImageNetMean, kImageNetStd},
    {"VJEPA2Video", ResizeFilter::bilinear, 292, false, false, 256, kImageNetMean, kImageNetStd},
    {kLlama4, ResizeFilter::bilinear, 336, true, true, 0, kHalf, kHalf},
    // sizes by hf_token_sizes.cpp
    {"Qwen2VL", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Qwen2VLVideo", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Qwen3VLVideo", ResizeFilter::bicubic, 0, false, false, 0, kHalf, kHalf},
    {"Glm4vVideo", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Glm46VVideo", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Glm4v", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Glm46V", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"PaddleOCRVL", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"VideoLlama3", ResizeFilter::bicubic, 0, false, false, 0, kHalf, kHalf},
    {"Ernie4_5_VLMoe", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Ernie4_5_VL_Moe", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Pixtral", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Kimi_K25", ResizeFilter::bicubic, 0, false, false, 0, kHalf, kHalf},
    {"KimiVL", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Gemma4", ResizeFilter::bicubic, 0, false, false, 0, {0.0, 0.0, 0.0}, {1.0, 1.0, 1.0}, false},
};

struct ModelType {
  std::string_view model_type;
  std::string_view processor;
};

constexpr ModelType kModelTypes[] = {
    {"vit", "ViT"},
    {"ijepa", "ViT"},
    {"deit", "DeiT"},
    {"dinov2", "Bit"},
    {"dinov2_with_registers", "Bit"},
    {"dinov3_vit", "DINOv3ViT"},
    {"siglip", "Siglip"},
    {"siglip_vision_model", "Siglip"},
    {"siglip2", kNaFlex},
    {"siglip2_vision_model", kNaFlex},
    {"tipsv2", "Tipsv2"},
    {"tipsv2_vision_model", "Tipsv2"},
    {"clip", "CLIP"},
    {"clip_vision_model", "CLIP"},
    {"metaclip_2", "CLIP"},
    {"metaclip_2_vision_model", "CLIP"},
    {"dpt", kDpt},
    {"depth_anything", kDpt},
    {"chmv2", kChmv2},
    {"tipsv2_dpt", "Tipsv2Dpt"},
    {"eomt", kEomt},
    {"eomt_dinov3", kEomt},
    {"owlv2", kOwlv2},
    {"owlvit", "OwlViT"},
    {"yolos", kYolos},
    {"vitpose", kVitPose},
    {"mlcd_vision_model", "CLIP"},
    {"qwen2_vl", "Qwen2VL"},
    {"qwen2_vl_vision", "Qwen2VL"},
    {"qwen2_5_vl", "Qwen2VL"},
    {"qwen2_5_vl_vision", "Qwen2VL"},
    {"qwen2_5_omni", "Qwen2VL"},
    {"qwen3_vl", "Qwen2VL"},
    {"qwen3_vl_vision", "Qwen2VL"},
    {"qwen3_vl_moe", "Qwen2VL"},
    {"qwen3_5", "Qwen2VL"},
    {"qwen3_5_moe", "Qwen2VL"},
    {"qwen4_exp", "Qwen2VL"},
    {"qwen3_omni_moe", "Qwen2VL"},
    {"exaone4_5", "Qwen2VL"},
    {"glm4v", "Glm4v"},
    {"glm4v_vision", "Glm4v"},
    {"glm4v_moe", "Glm4v"},
    {"paddleocr_vl", "PaddleOCRVL"},
    {"video_llama_3", "VideoLlama3"},
    {"pixtral", "Pixtral"},
    {"mistral3", "Pixtral"},
    {"kimi_k25", "Kimi_K25"},
    {"kimi_vl", "KimiVL"},
    {"llama4", "Llama4"},
    {"llama4_vision_model", "Llama4"},
    {"gemma4", "Gemma4"},
    {"gemma4_vision", "Gemma4"},
};

/// Processors of clips, by model_type.
constexpr ModelType kVideoTypes[] = {
    {"vjepa2", "VJEPA2Video"},
    {"qwen2_vl", "Qwen2VLVideo"},
    {"qwen2_vl_vision", "Qwen2VLVideo"},
    {"qwen2_5_vl", "Qwen2VLVideo"},
    {"qwen2_5_vl_vision", "Qwen2VLVideo"},
    {"qwen2_5_omni", "Qwen2VLVideo"},
    {"exaone4_5", "Qwen2VLVideo"},
    {"qwen3_vl", "Qwen3VLVideo"},
    {"qwen3_vl_vision", "Qwen3VLVideo"},
    {"qwen3_vl_moe", "Qwen3VLVideo"},
    {"qwen3_5", "Qwen3VLVideo"},
    {"qwen3_5_moe", "Qwen3VLVideo"},
    {"qwen4_exp", "Qwen3VLVideo"},
    {"qwen3_omni_moe", "Qwen2VLVideo"},
    {"glm4v", "Glm4vVideo"},
    {"glm4v_vision", "Glm4vVideo"},
    {"glm4v_moe", "Glm4vVideo"},
    {"glm46v", "Glm46VVideo"},
    {"glm_ocr", "Glm46VVideo"},
};

/// The class name without the suffix for its generation or backend; "Qwen2VLVideo" of processors of clips.
std::string_view without_suffix(std::string_view name) {
  for (const std::string_view suffix :
       {"Processor", "ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor"}) {
    if (suffix == "Processor" && !name.ends_with("VideoProcessor")) continue;
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  }
  return name;
}

const ProcessorClass& find_class(const Json& file, const std::string& model_type, bool of_clips) {
  const std::string& source = file.file();
  auto named = file.find_string("video_processor_type");
  if (!named && !of_clips) named = file.find_string("image_processor_type");
  if (!named && !of_clips) named = file.find_string("feature_extractor_type");
  std::string_view wanted;
  if (named) {
    wanted = without_suffix(*named);
  } else {
    const std::span<const ModelType> types =
        of_clips ? std::span<const ModelType>(kVideoTypes) : std::span<const ModelType>(kModelTypes);
    for (const ModelType& known : types) {
      if (known.model_type == model_type) wanted = known.processor;
    }
    VIT_CHECK(!wanted.empty() || !of_clips, kWhere.with(ErrorKind::unsupported), source,
              ": no rules for the frames of clips are known for model_type ", in_quotes(model_type),
              "; Qwen-VL, GLM-4V and V-JEPA 2 have some");
    VIT_CHECK(!wanted.empty(), kWhere, source, ": image_processor_type is missing, and model_type ",
              in_quotes(model_type), " does not determine the image processor");
  }
  for (const ProcessorClass& known : kClasses) {
    if (known.name == wanted) return known;
  }
  fail(kWhere.with(ErrorKind::unsupported), source, ": image_processor_type ", in_quotes(*named),
       " is not implemented; ViT, DeiT, Beit, Pvt, Bit, DINOv3ViT, Siglip, Siglip2, Tipsv2, Tipsv2Dpt, CLIP, "
       "DPT, CHMv2, Eomt, Owlv2, OwlViT, Yolos, VitPose, Llama4, VJEPA2Video, Qwen2VL, Qwen2VLVideo, "
       "Qwen3VLVideo, Glm4vVideo, Glm4v, PaddleOCRVL, VideoLlama3, Ernie4_5_VLMoe, Pixtral, "
       "Kimi_K25, KimiVL and Gemma4 are");
}

/// Whether one scale is used for both edges, and images are padded.
bool is_dpt(const ProcessorClass& processor) {
  return processor.name == kDpt || processor.name == kChmv2;
}

// Keys of other processors that would change the image if they are set.
void refuse_unknown_steps(const Json& file, const ProcessorClass& processor) {
  const bool naflex = processor.name == kNaFlex;
  // DPT pads images, and those with sizes by tokens the images of a batch to one size
  const bool pads = is_dpt(processor) || processor.name == kEomt || has_token_sizes(processor.name) ||
                    processor.name == kOwlv2 || processor.name == kYolos;
  for (const char* const key :
       {"do_pad", "use_square_size", "do_thumbnail", "do_align_long_axis", "do_flip_channel_order",
        "do_crop_margin", "do_image_splitting", "do_color_quantize", "do_trim_border"}) {
    const auto value = file.find(key);
    if (pads && key == std::string_view("do_pad")) continue;
    VIT_CHECK(!value || (value->is_bool() && !value->as_bool()), kWhere.with(ErrorKind::unsupported),
              value->where(), ": this step is not implemented");
  }
  for (const char* const key :
       {"crop_pct", "size_divisor", "size_divisibility", "rescale_offset", "max_num_patches"}) {
    const auto value = file.find(key);
    if (naflex && key == std::string_view("max_num_patches")) continue;
    if (is_dpt(processor) && key == std::string_view("size_divisor")) continue;
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
    set_squash(config, processor.size, processor.size);
  } else {
    set_shortest_edge(config, processor.size);
  }
  const bool square_from_int = file.find_bool("default_to_square").value_or(processor.square_from_int);
  if (const auto value = file.find("size")) read_size(*value, square_from_int, config);

  config.crop = file.find_bool("do_center_crop").value_or(processor.crop != 0);
  config.crop_height = config.crop_width = processor.crop;
  if (const auto value = file.find("crop_size"); value && config.crop) read_crop(*value, config);
  VIT_CHECK(!config.crop || config.crop_height > 0, kWhere, file.file(),
            ": do_center_crop is set, but crop_size is missing");
}

/// OWLv2 pads to a square, blurs and resizes in float.
void read_owlv2_sizes(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(config.resize == ResizeRule::squash && !config.crop, kWhere.with(ErrorKind::unsupported),
            file.file(), ": an Owlv2ImageProcessor resizes to a height and a width, without a crop");
  VIT_CHECK(config.filter == ResizeFilter::bilinear, kWhere.with(ErrorKind::unsupported), file.file(),
            ": an Owlv2ImageProcessor is implemented with resample 2 (bilinear) alone");
  config.filter = ResizeFilter::blurred_bilinear;
  config.pad_to_square = config.square_at_corner = file.find_bool("do_pad").value_or(true);
}

/// YOLOS: the bound on the longest edge may be a key of its own, and edges are multiples of 16 whatever the
/// patch size. Images of a batch are padded to the largest: of a batch of one nothing.
void read_yolos_sizes(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(!config.crop, kWhere.with(ErrorKind::unsupported), file.file(),
            ": do_center_crop of a YolosImageProcessor is not implemented");
  VIT_CHECK(!file.find("pad_size"), kWhere.with(ErrorKind::unsupported), file.file(),
            ": pad_size of a YolosImageProcessor is not implemented");
  if (config.resize != ResizeRule::shortest_edge) return;
  config.resize = ResizeRule::shortest_edge_floored;
  config.size_multiple = 16;
  if (config.longest_edge == 0) config.longest_edge = file.find_size("max_size", kEdgeRange).value_or(1333);
}

void read_vitpose_sizes(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(config.resize == ResizeRule::squash && !config.crop &&
                file.find_bool("do_affine_transform").value_or(true),
            kWhere.with(ErrorKind::unsupported), file.file(),
            ": a VitPoseImageProcessor warps boxes (do_affine_transform) to a height and a width");
  if (!file.find("size")) config.resize_width = 192;
  config.resize = ResizeRule::box;
  config.box_unit = file.find_double("normalize_factor").value_or(200.0);
}

/// What DPTImageProcessor has beyond others: one scale for both edges, multiples, padding that is the mean
/// color.
void read_dpt_sizes(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(!config.crop, kWhere.with(ErrorKind::unsupported), file.file(),
            ": do_center_crop of a DPTImageProcessor is not implemented");
  const std::size_t multiple = file.find_size("ensure_multiple_of", {1, 1024}).value_or(1);
  if (file.find_bool("keep_aspect_ratio").value_or(false)) config.resize = ResizeRule::nearer_scale;
  config.size_multiple = multiple;
  if (!file.find_bool("do_pad").value_or(false)) return;
  const auto divisor = file.find_size("size_divisor", {1, 1024});
  if (!divisor) return;
  config.pad_multiple = *divisor;
  config.pad_normalized = true;
}

/// What EomtImageProcessor has beyond others: squares that images are padded to, or cut into.
void read_eomt_sizes(const Json& file, PreprocessConfig& config) {
  if (!file.find("size")) config.longest_edge = config.resize_height;
  VIT_CHECK(config.resize == ResizeRule::shortest_edge && !config.crop, kWhere.with(ErrorKind::unsupported),
            file.file(), ": an EomtImageProcessor has a size with shortest_edge and no crop");
  const std::size_t edge = config.resize_height;
  config.windows = file.find_bool("do_split_image").value_or(false);
  // without a longest edge no edge is below the square
  if (!file.find_bool("do_pad").value_or(false) || config.longest_edge == 0) return;
  VIT_CHECK(config.longest_edge == edge, kWhere.with(ErrorKind::unsupported), file.file(),
            ": do_pad goes with one size for shortest_edge and longest_edge, found ", edge, " and ",
            config.longest_edge);
  config.pad_multiple = edge;
  config.pad_at_end = true;
}

/// What Llama4ImageProcessor has beyond others: tiles, and float results rounded to bfloat16.
void read_tiles(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(config.resize == ResizeRule::squash && config.resize_height == config.resize_width, kWhere,
            file.file(), ": size must be {height, width} of a square tile");
  config.resize = ResizeRule::tiles;
  config.max_tiles = file.find_size("max_patches", {1, 256}).value_or(16);
  config.fills_canvas = file.find_bool("resize_to_max_canvas").value_or(false);
  config.crop = false;
}

void set_backend(const ProcessorClass& processor, const ModelOptions& options, PreprocessConfig& config) {
  const bool pil = options.resampler == ResamplerChoice::pillow;
  const bool in_float = processor.name == "DINOv3ViT" || processor.name == kOwlv2;
  VIT_CHECK(!pil || !in_float, kWhere.with(ErrorKind::unsupported), config.source, ": Hugging Face's ",
            processor.name,
            " processor resizes in float, as torchvision does, so there are no Pillow results "
            "to reproduce");
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
  const ProcessorClass& processor = find_class(file, model_type, options.clip_frames > 0);
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
    read_fixed_size(file, processor, config);
    if (is_dpt(processor)) read_dpt_sizes(file, config);
    if (processor.name == kEomt) read_eomt_sizes(file, config);
    if (processor.name == kOwlv2) read_owlv2_sizes(file, config);
    if (processor.name == kYolos) read_yolos_sizes(file, config);
    if (processor.name == kVitPose) read_vitpose_sizes(file, config);
    if (processor.name == kLlama4) read_tiles(file, config);
  }
  // boxes are warped whatever do_resize says
  if (processor.name != kVitPose && !file.find_bool("do_resize").value_or(true)) {
    VIT_CHECK(processor.name != kLlama4, kWhere.with(ErrorKind::unsupported), source,
              ": do_resize must not be false: the library refuses it for tiles");
    config.resize = ResizeRule::none;
    if (by_tokens) config.pad_multiple = 0;
  }

  config.rescale = file.find_bool("do_rescale").value_or(true);
  config.rescale_factor = file.find_double("rescale_factor").value_or(1.0 / 255.0);
  VIT_CHECK(config.rescale_factor >= 1e-9 && config.rescale_factor <= 1e6, kWhere, source,
            ": rescale_factor must lie between 1e-9 and 1e6, found ", config.rescale_factor);
  config.subtract_mean = file.find_bool("do_normalize").value_or(processor.normalizes);
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
