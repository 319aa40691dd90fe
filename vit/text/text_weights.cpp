// Names of the tables under the publishers' layouts.
#include "vit/text/text_weights.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "vit/weights/checkpoint/open_weights.h"

namespace vit::internal {
namespace {

constexpr std::string_view kTokens = "token_embedding.weight", kDinoText = "text_model.backbone.";

/// The prefix of the tables: "", "text.", or one added by a training script.
std::optional<std::string_view> stem_of(std::string_view name) {
  if (!name.ends_with(kTokens)) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - kTokens.size());
  const bool own = stem.empty() || (stem.ends_with('.') && !stem.ends_with("embeddings."));  // transformers'
  return own ? std::optional(stem) : std::nullopt;
}

std::optional<TextWeights> text_weights(const TensorFile& file) {
  for (const TensorEntry& tokens : file.entries()) {
    const auto stem = stem_of(tokens.name);
    if (!stem || tokens.shape.size() != 2) continue;
    TextWeights found{.vocabulary_size = tokens.shape[0]};
    const auto beside = [&](std::string_view name) { return file.find(std::string(*stem).append(name)); };
    const TensorEntry* const places = beside("positional_embedding");
    if (places != nullptr && places->shape.size() == 2) found.context_length = places->shape[0];
    // Only OpenAI's files contain these integers; dino.txt uses OpenAI's tokenizer.
    const bool openai = beside("context_length") != nullptr && beside("vocab_size") != nullptr;
    if (openai || stem->ends_with(kDinoText)) found.library = TextLibrary::openai;
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
