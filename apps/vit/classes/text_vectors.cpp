#include "apps/vit/classes/text_vectors.h"

#include <cmath>
#include <utility>

#include "apps/vit/options/usage_error.h"
#include "vit/base/check.h"

namespace vit::app {

void add_text_vector_options(std::vector<Option>& list, TextVectorOptions& options) {
  add_text_options(list, options.inputs);
  add_template_options(list, options.templates);
  add_tokenizer_options(list, options.tower);
}

TextsToEncode read_texts_to_encode(const TextVectorOptions& options) {
  if (!options.inputs.are_given()) {
    if (options.templates.are_given()) fail_usage("--template goes with --text or --text-file");
    if (options.tower.are_given()) fail_usage("--tokenizer and --library go with --text or --text-file");
    return {};
  }
  TextsToEncode out{.names = read_texts(options.inputs), .templates = read_templates(options.templates)};
  VIT_CHECK(!out.names.empty(), "embed", options.inputs.file.string(), ": no texts");
  return out;
}

NamedVectors encode_texts(TextEncoder& encoder, const TextsToEncode& texts, Progress& progress) {
  if (texts.templates.empty()) return encode_texts(encoder, texts.names, texts.names, progress);
  if (texts.templates.size() > 1) {
    const ClassVectors found = encode_classes(encoder, texts.names, texts.templates, progress);
    return {.names = found.names,
            .numbers = {found.vectors.flat().begin(), found.vectors.flat().end()},
            .width = encoder.tower().config().embedding_dim()};
  }
  std::vector<std::string> filled;
  for (const std::string& name : texts.names) filled.push_back(fill_template(texts.templates.front(), name));
  return encode_texts(encoder, filled, texts.names, progress);
}

void normalize(std::span<float> vector) {
  double sum = 0.0;
  for (const float value : vector) sum += double{value} * value;
  const double length = std::sqrt(sum);
  for (float& value : vector) value = static_cast<float>(double{value} / length);
}

}  // namespace vit::app
