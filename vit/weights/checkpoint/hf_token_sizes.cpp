// How the image processors of vision-language models in transformers choose sizes: limits of area, of edges
// and of patches. Source: transformers
// models/{qwen2_vl,glm4v,paddleocr_vl,video_llama_3,ernie4_5_vl_moe,pixtral,kimi_k25,
// gemma4}/image_processing_*.py; the publisher's processor of Kimi-VL.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/preprocess_values.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_preprocess_config", ErrorKind::format};
constexpr SizeRange kPatchRange{1, 1024}, kMergeRange{1, 64}, kAreaRange{0, std::size_t{1} << 40};

/// What a class says if the file is silent.
struct TokenSizes {
  std::string_view processor;
  ResizeRule rule;
  bool reads_pixels;  // limits under min_pixels and max_pixels too
  std::size_t patch = 14, merge = 2;
  std::size_t low = 0;   // of area: pixels
  std::size_t high = 0;  // of area: pixels; of longest: the edge; of the others: patches, or tokens
  ShortEdges short_edges = ShortEdges::kept;
  std::size_t frames = 1;
  FrameSampling sampling = FrameSampling::even;  // of clips
};

constexpr TokenSizes kSizes[] = {
    {"Qwen2VL", ResizeRule::area, true, 14, 2, 56 * 56, 28 * 28 * 1280},
    {"Glm4v", ResizeRule::area, false, 14, 2, 112 * 112, 28 * 28 * 15000, ShortEdges::both, 2},
    {"Glm46V", ResizeRule::area, false, 14, 2, 112 * 112, 28 * 28 * 15000, ShortEdges::both, 2},
    {"PaddleOCRVL", ResizeRule::area, true, 14, 2, 384 * 384, 1536 * 1536, ShortEdges::each},
    {"VideoLlama3", ResizeRule::area, true, 14, 1, 56 * 56, 28 * 28 * 1280},
    {"Ernie4_5_VLMoe", ResizeRule::area, false, 14, 2, 56 * 56, 28 * 28 * 6177},
    {"Ernie4_5_VL_Moe", ResizeRule::area, false, 14, 2, 56 * 56, 28 * 28 * 6177},
    {"Qwen2VLVideo", ResizeRule::area, true, 14, 2, 128 * 28 * 28, 28 * 28 * 768, ShortEdges::kept, 1,
     FrameSampling::even_float32},
    {"Qwen3VLVideo", ResizeRule::area, false, 16, 2, 128 * 32 * 32, 32 * 32 * 768, ShortEdges::both, 2,
     FrameSampling::end_to_end},
    {"Glm4vVideo", ResizeRule::area, false, 14, 2, 112 * 112, 28 * 28 * 2 * 30000, ShortEdges::both, 2},
    {"Glm46VVideo", ResizeRule::area, false, 14, 2, 112 * 112, 28 * 28 * 2 * 30000, ShortEdges::both, 2},
    {"Pixtral", ResizeRule::longest, false, 16, 1, 0, 1024},
    {"Kimi_K25", ResizeRule::patch_limit, false, 14, 2, 0, 16384},
    {"KimiVL", ResizeRule::patch_limit, false, 14, 2, 0, 4096},
    {"Gemma4", ResizeRule::token_count, false, 16, 3, 0, 280},
};

const TokenSizes* find_sizes(std::string_view processor) {
  const auto found = std::ranges::find(kSizes, processor, &TokenSizes::processor);
  return found == std::end(kSizes) ? nullptr : found;
}

/// One number, [height, width] or {height, width} of a square.
std::size_t read_square(const Json& value, SizeRange range) {
  GridSize edges{};
  if (value.is_object()) {
    edges = {value.at("height").as_size(range), value.at("width").as_size(range)};
  } else {
    edges = read_edges(value, range);
  }
  VIT_CHECK(edges.rows == edges.columns, kWhere.with(ErrorKind::unsupported), value.where(),
            " must be square");
  return edges.rows;
}

std::size_t find_square(const Json& file, const char* key, SizeRange range, std::size_t fallback) {
  const auto value = file.find(key);
  return value ? read_square(*value, range) : fallback;
}

/// size.shortest_edge and longest_edge are areas; min_pixels and max_pixels of older files win.
void read_area(const Json& file, const TokenSizes& sizes, PreprocessConfig& config) {
  config.min_area = sizes.low;
  config.max_area = sizes.high;
  const auto size = file.find("size");
  if (size && size->is_object()) {
    // older files have the limits in here too
    config.min_area = size->find_size("min_pixels", kAreaRange).value_or(config.min_area);
    config.max_area = size->find_size("max_pixels", kAreaRange).value_or(config.max_area);
    config.min_area = size->find_size("shortest_edge", kAreaRange).value_or(config.min_area);
    config.max_area = size->find_size("longest_edge", kAreaRange).value_or(config.max_area);
  }
  if (sizes.reads_pixels) {
    config.min_area = file.find_size("min_pixels", kAreaRange).value_or(config.min_area);
    config.max_area = file.find_size("max_pixels", kAreaRange).value_or(config.max_area);
  }
  config.short_edges = sizes.short_edges;
  // of clips the limits count all frames, where they count more than one of an image
  config.area_frames = sizes.frames > 1 && config.clip_frames > 0 ? config.clip_frames : sizes.frames;
  VIT_CHECK(!file.find_bool("cap_pixels_per_frame").value_or(false), kWhere.with(ErrorKind::unsupported),
            file.file(), ": cap_pixels_per_frame is not implemented; --pixels sets limits");
}

void read_longest(const Json& file, const TokenSizes& sizes, PreprocessConfig& config) {
  config.longest_edge = sizes.high;
  const auto size = file.find("size");
  if (!size) return;
  if (size->is_object() && size->find("longest_edge")) {
    config.longest_edge = size->at("longest_edge").as_size(kEdgeRange);
  } else {
    config.longest_edge = read_square(*size, kEdgeRange);
  }
}

/// K2.5 pads to whole cells; Kimi-VL cuts to them unless pad_input asks for padding.
void read_patch_limit(const Json& file, bool kimi_vl, std::size_t cell, PreprocessConfig& config) {
  bool pads = true;
  if (kimi_vl) {
    config.max_patches = file.find_size("in_token_limit", kPatchesRange).value_or(config.max_patches);
    pads = file.find_bool("pad_input").value_or(false);
  } else {
    config.max_patches = file.find_size("max_patches", kPatchesRange).value_or(config.max_patches);
    config.max_side = 512;
    if (const auto size = file.find("size")) {
      const std::size_t height = size->at("max_height").as_size(kEdgeRange);
      VIT_CHECK(size->at("max_width").as_size(kEdgeRange) == height, kWhere, size->where(),
                " must have max_height and max_width alike");
      config.max_side = height;
    }
  }
  if (pads) {
    config.pad_multiple = cell;
    config.pad_at_end = true;
  } else {
    config.crop = true;
    config.crop_multiple = cell;
  }
}

}  // namespace

bool has_token_sizes(std::string_view processor) {
  return find_sizes(processor) != nullptr;
}

void read_token_sizes(const Json& file, std::string_view processor, PreprocessConfig& config) {
  const TokenSizes& sizes = *find_sizes(processor);
  const std::size_t patch = find_square(file, "patch_size", kPatchRange, sizes.patch);
  const char* const merge_key = processor == "Gemma4"   ? "pooling_kernel_size"
                                : processor == "KimiVL" ? "merge_kernel_size"
                                                        : "merge_size";
  const std::size_t merge = find_square(file, merge_key, kMergeRange, sizes.merge);
  config.resize = sizes.rule;
  config.crop = false;
  config.patch_size = patch;
  config.max_patches = sizes.high;
  config.edge_multiple = patch * merge;
  config.sampling = sizes.sampling;
  switch (sizes.rule) {
    case ResizeRule::area: read_area(file, sizes, config); break;
    case ResizeRule::longest: read_longest(file, sizes, config); break;
    case ResizeRule::patch_limit: read_patch_limit(file, processor == "KimiVL", patch * merge, config); break;
    default:
      config.max_patches = file.find_size("max_soft_tokens", {1, 4096}).value_or(sizes.high) * merge * merge;
      break;
  }
  if (processor != "KimiVL") return;
  config.resampler = Resampler::pillow;  // the publisher's code knows no other
  config.normalize = NormalizeRule::divide_then_normalize;
}

}  // namespace vit::internal
