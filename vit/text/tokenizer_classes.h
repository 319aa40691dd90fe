// The classes of tokenizers that libraries build around files, each from what its folder holds.
#pragma once

#include "vit/text/text_encoding.h"
#include "vit/text/tokenizer_folder.h"

namespace vit::internal {

struct BuiltTokenizer {
  TextEncoding encoding;
  TextFrame frame;
  std::string steps;  // what happens to a text before it is cut, in words
};

/// Throws Error (io) that names the missing file and a place where it is published.
BuiltTokenizer build_tokenizer(const TokenizerFolder& folder);

}  // namespace vit::internal
