// Properties of a tokenizer inferred from the weights of a text tower, if there is no configuration.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "vit/text/tokenizer.h"

namespace vit::internal {

struct TextWeights {
  std::size_t context_length = 0;   // rows of the position table; 0: there is none
  std::size_t vocabulary_size = 0;  // rows of the token table
  TextLibrary library = TextLibrary::open_clip;
};

/// Looks for the tables in a weight file, or in the weight files of a folder; nothing if they are in none.
std::optional<TextWeights> find_text_weights(const std::filesystem::path& path);

}  // namespace vit::internal
