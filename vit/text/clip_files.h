// Files of CLIP's vocabulary: vocab.json with merges.txt, and only the merges as published by OpenAI.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "vit/text/text_model.h"

namespace vit::internal {

TextModel load_vocabulary_and_merges(const std::filesystem::path& vocabulary,
                                     const std::filesystem::path& merges);
TextModel parse_vocabulary_and_merges(std::string_view vocabulary, std::string_view merges,
                                      const std::string& name);

struct MergesOptions {
  std::string_view start = "<|startoftext|>", end = "<|endoftext|>";  // how the special tokens are spelled
  /// Tokens of the model; 0: 49408. A smaller one takes as many of the first merges as fit.
  std::size_t vocabulary_size = 0;
};

/// bpe_simple_vocab_16e6.txt, gzip-packed or not: one version line, then one merge per line, of which the
/// first 49152 - 256 - 2 are used. Ids: bytes, bytes that end a word, merges in order, start, end.
TextModel load_merges(const std::filesystem::path& path, const MergesOptions& options = {});
TextModel parse_merges(std::string_view text, const std::string& name, const MergesOptions& options = {});

/// The contents of a gzip file; the bytes themselves if they are not packed. Throws Error for damaged
/// files and for more than `max_bytes`.
std::string unpack(std::string_view bytes, std::size_t max_bytes, const std::string& name);

}  // namespace vit::internal
