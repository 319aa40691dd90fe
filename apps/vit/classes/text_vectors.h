// Vectors of the texts that vit embed is given, with or without templates.
#pragma once

#include <string>
#include <vector>

#include "apps/vit/classes/class_texts.h"
#include "apps/vit/classes/text_tower.h"
#include "apps/vit/command_line.h"
#include "apps/vit/inputs/texts.h"

namespace vit::app {

struct TextVectorOptions {
  TextInputs inputs;
  TemplateOptions templates;
  TextTowerOptions tower;
};
void add_text_vector_options(std::vector<Option>& list, TextVectorOptions& options);

/// Texts before they are encoded.
struct TextsToEncode {
  std::vector<std::string> names;      // as given
  std::vector<std::string> templates;  // into which they are put; none: they stand for themselves
};
/// None where no option gives texts. Throws UsageError for options that go with texts alone, and Error for
/// files that cannot be read.
TextsToEncode read_texts_to_encode(const TextVectorOptions& options);

/// Vectors of the texts, not normalized; of several templates the mean of their normalized vectors,
/// normalized again. Texts that are no UTF-8 are reported and left out.
NamedVectors encode_texts(TextEncoder& encoder, const TextsToEncode& texts, Progress& progress);

/// To length 1.
void normalize(std::span<float> vector);

}  // namespace vit::app
