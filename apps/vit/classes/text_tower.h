// The text tower of --model: which tokenizer and whose rules it is asked for, and the vectors of many texts
// with progress. Where the texts come from is for texts.h and class_texts.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/command_line.h"
#include "apps/vit/options/options.h"
#include "apps/vit/run/progress.h"
#include "vit/text_encoder.h"
#include "vit/zero_shot.h"

namespace vit::app {

struct TextTowerOptions {
  std::filesystem::path tokenizer;
  TextLibrary library = TextLibrary::automatic;

  bool are_given() const { return !tokenizer.empty() || library != TextLibrary::automatic; }
};
/// --tokenizer and --library.
void add_tokenizer_options(std::vector<Option>& list, TextTowerOptions& options);

/// What the text tower is loaded with, the image tower being loaded with `common`.
TextOptions text_options(const CommonOptions& common, const TextTowerOptions& options);

/// Says that texts of more than `places` tokens are cut, and which was the first.
void tell_cut(std::size_t places, const Tokenizer& tokenizer, std::string_view text);

/// Vectors of texts, and what each is called.
struct NamedVectors {
  std::vector<std::string> names;
  std::vector<float> numbers;  // (n, E)
  std::size_t width = 0;       // E

  TensorView<const float> view() const { return {numbers.data(), Shape{names.size(), width}}; }
};

/// The vectors of texts called `names`, not normalized. Texts that are no UTF-8 are reported and left out.
/// After an interrupt those that are done.
NamedVectors encode_texts(TextEncoder& encoder, std::span<const std::string> texts,
                          std::span<const std::string> names, Progress& progress);

/// encode_classes() of the library, a few classes at a time. After an interrupt those that are done.
ClassVectors encode_classes(TextEncoder& encoder, const std::vector<std::string>& classes,
                            std::span<const std::string> templates, Progress& progress);

}  // namespace vit::app
