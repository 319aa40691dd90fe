#include "vit/rings/prompts/detector.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/position/sine_code.h"

namespace vit::internal {
namespace {

constexpr Where kDetectorWhere{"PromptDetector", ErrorKind::mismatch};

}  // namespace

PromptDetector::PromptDetector(PromptConfig config, const PromptWeights& weights,
                               const kernels::KernelTable& kernels, Precision precision)
    : config_((validate(config), std::move(config))),
      parts_(build_detector(config_, weights, kernels, precision)),
      code_(sine_code_of_map(config_.grid, config_.grid, config_.dim)) {}

void PromptDetector::encode(TensorView<const float> tokens, ImageMaps& maps, PromptMemory& memory) const {
  VIT_CHECK(tokens.num_rows() == config_.grid * config_.grid && tokens.num_columns() == config_.backbone_dim,
            kDetectorWhere, "tokens ", tokens.shape().to_string(), ", expected (",
            config_.grid * config_.grid, ", ", config_.backbone_dim, ")");
  with_team(memory.threads, [&] {
    parts_.neck.forward(tokens, config_.grid, {maps.finest, maps.finer, maps.tokens}, memory);
    if (maps.attended.empty()) maps.attended = Tensor<float>(maps.tokens.shape());
    std::ranges::copy(maps.tokens.flat(), maps.attended.data());
    parts_.fusion.front().attend_to_itself(maps.attended, code_, memory);
  });
}

// prompt -> fusion encoder -> decoder -> scores
void PromptDetector::find(const ImageMaps& maps, const PromptInput& input, FoundQueries& found,
                          PromptMemory& memory) const {
  const std::size_t dim = config_.dim, num_words = input.text.empty() ? 0 : input.text.num_rows();
  VIT_CHECK(num_words != 0 || !input.boxes.empty(), kDetectorWhere.with(ErrorKind::argument),
            "a prompt without words and boxes");
  with_team(memory.threads, [&] {
    TensorView<const float> geometry;
    if (!input.boxes.empty() || input.always_class_token) {
      geometry = parts_.geometry.forward(input.boxes, maps.tokens, code_, memory);
      memory.keep("geometry", 0, geometry);
    }
    const std::size_t num_shown = geometry.empty() ? 0 : geometry.num_rows();
    const TensorView<float> prompt = memory.prompt.rows(num_words + num_shown, dim);
    memory.num_prompt = prompt.num_rows();
    for (std::size_t i = 0; i < num_words; ++i) std::copy_n(input.text.row(i), dim, prompt.row(i));
    for (std::size_t i = 0; i < num_shown; ++i) std::copy_n(geometry.row(i), dim, prompt.row(num_words + i));

    const TensorView<float> encoded = memory.encoded.rows(maps.tokens.dim(0), dim);
    std::ranges::copy(maps.attended.flat(), encoded.data());
    for (std::size_t i = 0; i < parts_.fusion.size(); ++i) {
      if (i != 0) parts_.fusion[i].attend_to_itself(encoded, code_, memory);
      parts_.fusion[i].attend_to_others(encoded, prompt, prompt, memory);
      memory.keep("encoder", i, encoded);
    }
    parts_.decoder.forward(encoded, code_, prompt, config_.grid, found.decoded, memory);
    found.logits.resize(config_.num_queries);
    parts_.scoring.forward(found.decoded.states, prompt, found.logits, memory);
  });
}

void PromptDetector::masks(const ImageMaps& maps, TensorView<const float> states, TensorView<float> masks,
                           TensorView<float> semantic, PromptMemory& memory) const {
  with_team(memory.threads, [&] {
    const TensorView<const float> prompt = memory.prompt.rows(memory.num_prompt, config_.dim);
    const TensorView<const float> encoded = memory.encoded.rows(maps.tokens.dim(0), config_.dim);
    const FeatureMap pixels = parts_.masks.refine(encoded, prompt, maps, config_.grid, memory);
    memory.keep("pixel_embed", 0,
                {pixels.row(0), Shape{pixels.height() * pixels.width(), pixels.channels()}});
    parts_.masks.multiply(pixels, states, masks, semantic, memory);
  });
}

}  // namespace vit::internal
