// The texts of pages and of questions, as the processor of ColModernVBERT composes them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "vit/position/config.h"

namespace vit::internal {

/// What processor_config.json says of texts, or the library's class where it does not.
struct PageText {
  /// Around the image, whose place "<image>" takes.
  std::string prompt = "<|begin_of_text|>User:<image>Describe the image.<end_of_utterance>\nAssistant:";
  std::string query_prefix{};
  std::size_t tokens_of_tile = 64;  // visual ones, of each tile and of the whole image

  /// The text of a page: of each tile, row by row, its place and its visual tokens, then those of the whole
  /// image. `tiles`: 1 x 1 if the image was not cut.
  std::string of_page(GridSize tiles) const;
  /// The text of a question, which ends in tokens that take up what it does not say.
  std::string of_query(std::string_view question) const;
};

/// Reads processor_config.json in the folder of a checkpoint, if there is one. Throws Error for a prompt that
/// has not exactly one image.
PageText read_page_text(const std::filesystem::path& folder);

}  // namespace vit::internal
