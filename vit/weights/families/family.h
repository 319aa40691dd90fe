// What a family's page is: how a checkpoint is recognized, which configuration it means, and by which tables
// its tensors lie in the file. One page per family in this folder; nothing else in the library knows a
// family's names.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/config.h"
#include "vit/weights/families/layout.h"
#include "vit/weights/families/source_files.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {

/// A checkpoint as its family reads it.
struct Reading {
  ModelConfig config;  // not yet validated
  Layout layout;
  std::vector<std::span<const Ignored>> ignored{};
  std::vector<std::string> notes{};     // whose rules apply, what was assumed
  std::shared_ptr<const void> texts{};  // what the names of tables point into, if they are not constants
};

struct Family {
  const char* name;
  const char* anchor;   // the tensor by which a file of this family is known, without prefix
  const char* library;  // whose architectures it reads by name, beside timm's; "" for none
  std::optional<Match> (*match)(const SourceFiles& files);
  /// Null where `read_as` needs a published architecture.
  Reading (*read)(const SourceFiles& files) = nullptr;
  Reading (*read_as)(const SourceFiles& files, const Architecture& architecture) = nullptr;
};

/// All families in the order in which they are asked.
std::span<const Family* const> families();

extern const Family kTimmFamily;        // families/timm_vit.cpp
extern const Family kNaverFamily;       // families/naver_rope_vit.cpp
extern const Family kBaaiFamily;        // families/baai_eva02.cpp
extern const Family kMetaDinov2Family;  // families/meta_dino.cpp
extern const Family kMetaDinov3Family;
extern const Family kOpenAiOwnFamily;  // families/openai_clip.cpp
extern const Family kOpenAiFamily;
extern const Family kOpenClipFamily;  // families/open_clip.cpp
extern const Family kHfVitFamily;     // families/hf_vit.cpp
extern const Family kHfDinov2Family;  // families/hf_dinov2.cpp
extern const Family kHfDinov3Family;  // families/hf_dinov3.cpp
extern const Family kHfClipFamily;    // families/hf_clip.cpp
extern const Family kHfTipsv2Family;  // families/hf_tipsv2.cpp

/// A text tower beside the image tower.
inline constexpr Ignored kTextTower[] = {
    {"text.*", "text tower", Place::outside},
    {"text_model.*", "text tower", Place::outside},
    {"transformer.resblocks.*", "text tower", Place::outside},
    {"token_embedding.*", "text tower", Place::outside},
    {"ln_final.*", "text tower", Place::outside},
    {"text_projection.*", "text tower", Place::outside},
    {"text_decoder.*", "text tower", Place::outside},
    {"positional_embedding", "text tower", Place::outside},
    {"text_projection", "text tower", Place::outside},
    {"logit_scale", "compares images with texts", Place::outside},
    {"logit_bias", "compares images with texts", Place::outside},
};

}  // namespace vit::internal
