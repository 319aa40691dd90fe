// Image encoders of SAM and HQ-SAM, by themselves or inside the model, and GOT-OCR's by itself: windows that
// are completed by zeros, relative positions on both axes, and a neck of convolutions, which is a merger
// here. Prompts and decoders are left unread. Source: transformers, models/sam and sam_hq.
#include <algorithm>

#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/sam.h"

namespace vit::internal {
namespace hf_sam {
namespace {

constexpr std::string_view kTypes[] = {"sam", "sam_vision_model", "sam_hq", "sam_hq_vision_model",
                                       "got_ocr2_vision"};
constexpr std::string_view kPrefixes[] = {"", "vision_encoder."};
constexpr Ignored kIgnored[] = {{"*", "of the model around the encoder, which is not read", Place::outside}};

ParsedModel read(const SourceFiles& files) {
  return {.config = hf_sam_config(files, hf_tower_part(*files.config, "vision")),
          .layout = {kSamRows},
          .ignored = {kIgnored}};
}

std::optional<Match> match(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (std::ranges::find(kTypes, type) == std::end(kTypes)) return std::nullopt;
  return match_tower(files, kSamAnchor, kPrefixes);
}

}  // namespace
}  // namespace hf_sam

constinit const Family kHfSamFamily{.name = "hf_sam",
                                    .anchor = kSamAnchor,
                                    .prefixes = hf_sam::kPrefixes,
                                    .library = "",
                                    .match = hf_sam::match,
                                    .read = hf_sam::read};

}  // namespace vit::internal
