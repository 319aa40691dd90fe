// What the public classes of prompts hold.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "vit/config/load_report.h"
#include "vit/prompts.h"
#include "vit/rings/prompts/detector.h"
#include "vit/text/tokenizer.h"
#include "vit/towers/text_transformer.h"

namespace vit::internal {

struct PromptParts {
  std::shared_ptr<const Model> image;
  PromptConfig config;
  std::optional<TextTransformer> text;  // with the detector
  std::optional<Tokenizer> tokenizer;   // with the detector, unless it is random
  std::optional<PromptDetector> detector;
  std::optional<ClickDecoder> clicks;
  LoadReport report;
  std::size_t num_text_parameters = 0;
  Tensor<float> word_rows{};  // the token table of random weights
  const kernels::KernelTable* kernels;

  static const PromptParts& of(const PromptModel& model) noexcept { return *model.parts_; }
  static std::shared_ptr<const PromptModel> share(std::unique_ptr<const PromptParts> parts) {
    return std::shared_ptr<const PromptModel>(new PromptModel(std::move(parts)));
  }
};

struct KeptMaps {
  std::shared_ptr<const PromptModel> model;  // that made them
  ImageSize image;
  ImageMaps maps;    // empty if it was not encoded for phrases
  ClickMaps clicks;  // empty if it was not encoded for objects
};

/// A token for each word, between a first and a last one, for weights without a vocabulary.
TokenRow tokens_of_words(std::string_view phrase, const TextConfig& config);

/// masks (n, H, W) of values (n, h, w) by linear interpolation: 1 above the threshold.
Tensor<std::uint8_t> masks_above(TensorView<const float> values, ImageSize image, float threshold,
                                 const kernels::MapKernels& kernels, int threads);
/// The probabilities (H, W) of logits (h, w), which it changes.
Tensor<float> probabilities_of(TensorView<float> logits, ImageSize image, const PromptOptions& options,
                               const kernels::MapKernels& kernels, int threads);
/// The same of logits, of which probabilities are interpolated, or logits as the repository does. Changes
/// them.
Tensor<std::uint8_t> masks_of(TensorView<float> logits, ImageSize image, const PromptOptions& options,
                              const kernels::MapKernels& kernels, int threads);

}  // namespace vit::internal
