// Names of the tables under the publishers' layouts.
#include "vit/text/text_weights.h"

#include <algorithm>
#include <string>
#include <vector>

#include "vit/weights/checkpoint/open_weights.h"

namespace vit::internal {
namespace {

constexpr std::string_view kDinoText = "text_model.backbone.";

std::optional<TextWeights> text_weights(const TensorFile& file) {
  for (const std::string_view prefix : {std::string_view(), std::string_view("text."), kDinoText}) {
    const TensorEntry* const tokens = file.find(std::string(prefix) + "token_embedding.weight");
    if (tokens == nullptr || tokens->shape.size() != 2) continue;
    TextWeights found{.vocabulary_size = tokens->shape[0]};
    const TensorEntry* const places = file.find(std::string(prefix) + "positional_embedding");
    if (places != nullptr && places->shape.size() == 2) found.context_length = places->shape[0];
    // OpenAI's files carry these integers, and nobody else's; dino.txt uses OpenAI's tokenizer.
    const bool openai = file.find("context_length") != nullptr && file.find("vocab_size") != nullptr;
    if (openai || prefix == kDinoText) found.library = TextLibrary::openai;
    return found;
  }
  return std::nullopt;
}

std::vector<std::filesystem::path> candidates(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {path};
  std::vector<std::filesystem::path> files = list_weights(path);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::optional<TextWeights> find_text_weights(const std::filesystem::path& path) {
  for (const std::filesystem::path& file : candidates(path)) {
    if (const auto found = text_weights(open_weights(file))) return found;
  }
  return std::nullopt;
}

}  // namespace vit::internal
