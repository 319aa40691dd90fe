// timm's own files: the names of its VisionTransformer and Eva classes, and its rules. Everything is in
// timm_layout.cpp, since the publishers' pages share it; which tensors exist follows from the architecture's
// arguments.
#include "vit/base/error.h"
#include "vit/weights/families/timm_layout.h"

namespace vit {
namespace {

constexpr TimmLayout kLayout{};

bool matches(SourceFiles& files) {
  if (files.find_prefix("patch_embed.proj.weight", kTimmPrefixes)) return true;
  const bool named = files.config && files.config->find("architecture");
  VIT_CHECK(!named, "timm_vit", files.weights_name,
            ": no tensor patch_embed.proj.weight, with or without a known prefix, though config.json is one "
            "of timm's");
  return false;
}

}  // namespace

constinit const Family kTimmFamily{
    "timm", matches, [](const SourceFiles& files) { return adapt_timm_layout(files, kLayout); }};

}  // namespace vit
