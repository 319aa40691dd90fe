// timm's own files: the names of its VisionTransformer and Eva classes, and its rules. Nearly everything is
// in timm_layout.cpp, since the publishers' pages share it; which tensors exist follows from the
// architecture's arguments. OpenCLIP's files with a timm tower keep its names behind visual.trunk. and the
// projection outside.
#include "vit/base/error.h"
#include "vit/weights/families/timm_layout.h"

namespace vit::internal {
namespace {

/// OpenCLIP's projection beside the tower, or null.
const TensorEntry* outer_projection(const SourceFiles& files) {
  constexpr std::string_view kTrunk = "trunk.";
  if (!files.prefix.ends_with(kTrunk)) return nullptr;
  return files.tensors.find(files.prefix.substr(0, files.prefix.size() - kTrunk.size()) + "head.proj.weight");
}

void adjust_args(const SourceFiles& files, const Architecture&, TimmArgs& args) {
  const TensorEntry* const projection = outer_projection(files);
  if (projection != nullptr && projection->shape.size() == 2) args.num_classes = projection->shape[0];
}

std::vector<Piece> pieces(const SourceFiles& files, const ModelConfig&, const std::string& canonical,
                          const Shape& shape) {
  const TensorEntry* const projection = outer_projection(files);
  if (projection == nullptr) return {};
  if (canonical == "head.weight")
    return {{.source = projection->name, .shape = sizes_of(shape), .absolute = true}};
  if (canonical == "head.bias") return {{.zeros = shape[0]}};
  return {};
}

constexpr TimmLayout kLayout{.adjust_args = adjust_args, .pieces = pieces};

bool matches(SourceFiles& files) {
  if (files.find_prefix("patch_embed.proj.weight", kTimmPrefixes)) return true;
  const bool named = files.config && files.config->find("architecture");
  VIT_CHECK(!named, "timm_vit", files.weights_name,
            ": no tensor patch_embed.proj.weight, with or without a known prefix, though config.json is one "
            "of timm's");
  return false;
}

}  // namespace

constinit const Family kTimmFamily{"timm", "patch_embed.proj.weight", matches, [](const SourceFiles& files) {
                                     return adapt_timm_layout(files, kLayout);
                                   }};

}  // namespace vit::internal
