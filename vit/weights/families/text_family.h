// What a page of a text tower is: which configuration a checkpoint's files mean, and by which table its
// tensors lie in them. The image tower of the same checkpoint is family.h; the rows are those of layout.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/config.h"
#include "vit/weights/families/layout.h"
#include "vit/weights/families/source_files.h"

namespace vit::internal {

/// A text tower as its family reads it.
struct TextReading {
  TextConfig config;  // not yet validated; of the score only the kind is known
  Match match{};      // `prefix` in front of every name of the tower
  Layout layout;
  std::vector<std::span<const Ignored>> ignored{};
  std::vector<std::string> notes{};  // whose rules apply, what was assumed
};

struct TextFamily {
  const char* name;
  /// Nothing if the checkpoint is of another family or has no text tower. Files without weights are not
  /// asked for.
  std::optional<TextReading> (*read)(const SourceFiles& files);
};

/// All families in the order in which they are asked.
std::span<const TextFamily* const> text_families();

extern const TextFamily kHfTextFamily;        // families/hf_text.cpp
extern const TextFamily kTipsv2TextFamily;    // families/hf_tipsv2.cpp
extern const TextFamily kOpenClipTextFamily;  // families/open_clip_text.cpp
extern const TextFamily kDinoTextFamily;      // families/dino_text.cpp
extern const TextFamily kOpenAiTextFamily;    // families/openai_text.cpp

/// The logit scale alone is stored: no bias.
inline constexpr Row kLogitScale[] = {at(Place::outside, {Part::logit_scale, "logit_scale"}),
                                      {Part::logit_bias, ""}};
inline constexpr Row kLogitScaleAndBias[] = {at(Place::outside, {Part::logit_scale, "logit_scale"}),
                                             at(Place::outside, {Part::logit_bias, "logit_bias"})};

}  // namespace vit::internal
