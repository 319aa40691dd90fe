// Encodes many texts with the text tower of --model, with progress. The texts are read by
// inputs/texts.h.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/options/options.h"
#include "apps/vit/outputs/result_writer.h"
#include "apps/vit/run/progress.h"
#include "vit/text_encoder.h"
#include "vit/zero_shot.h"

namespace vit::app {

/// Warns that texts of more than `places` tokens are truncated, and names the first one.
void warn_truncated(std::size_t places, const Tokenizer& tokenizer, std::string_view text);

/// The vectors of texts, each inserted into the template if there is one, not normalized; for several, the
/// mean of their normalized vectors, normalized again. Texts that are not UTF-8 are reported and left out.
/// After an interrupt, only the completed ones.
NamedVectors encode_texts(TextEncoder& encoder, std::span<const std::string> texts,
                          std::span<const std::string> templates, Progress& progress);

/// encode_classes() of the library with a progress bar; nothing after an interrupt.
std::optional<ClassVectors> encode_classes(TextEncoder& encoder, std::vector<std::string> classes,
                                           std::span<const std::string> templates,
                                           const CommonOptions& common);

}  // namespace vit::app
