// Loads models from bytes in memory, which are freed before the model runs.
#include "tests/fuzz/fuzz_model.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>

#include "tests/support/files.h"
#include "vit/config.h"
#include "vit/model.h"
#include "vit/session.h"

namespace vit::fuzz {
namespace {

/// The outcome of a load: a model, or an Error.
struct Loaded {
  std::shared_ptr<const Model> model;
  std::optional<Error> error;
};

template <typename Load>
Loaded attempt(const Load& load) {
  try {
    return {load(), {}};
  } catch (const Error& error) {
    return {nullptr, error};
  }
}

/// From memory of exactly this size, which is gone afterwards.
Loaded load_from_memory(std::string_view config, std::string_view weights) {
  const auto bytes = std::make_unique<std::byte[]>(weights.size());
  if (!weights.empty()) std::memcpy(bytes.get(), weights.data(), weights.size());
  return attempt([&] {
    return Model::load(
        {.weights = {bytes.get(), weights.size()}, .files = {{"config.json", std::string(config)}}});
  });
}

Loaded load_from_folder(std::string_view config, std::string_view weights) {
  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  folder.write("config.json", config);
  folder.write("model.safetensors", weights);
  return attempt([] { return Model::load(folder.path()); });
}

/// Runs a model that takes no time; the numbers of hostile weights may be anything.
void run_small(const Model& model) {
  constexpr std::size_t kMaxEdge = 64, kMaxWidth = 256;
  const ModelConfig& config = model.config();
  const ImageConfig& image = config.image;
  if (std::max(image.height, image.width) > kMaxEdge || config.embed_dim > kMaxWidth) return;
  const Tensor<float> pixels(Shape{1, image.num_channels, image.height, image.width});
  Session session(std::shared_ptr<const Model>(std::shared_ptr<const Model>(), &model), {.threads = 1});
  Outputs outputs;
  session.forward(pixels, Output::tokens, outputs);
}

}  // namespace

void run_model_bytes(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string_view config = input.substr(0, end),
                         weights = input.substr(std::min(end + 1, input.size()));
  const Loaded memory = load_from_memory(config, weights), folder = load_from_folder(config, weights);
  if ((memory.model == nullptr) != (folder.model == nullptr))
    throw std::logic_error("memory and a folder of the same bytes differ: " +
                           std::string((memory.error ? memory.error : folder.error)->what()));
  if (memory.error) throw *memory.error;
  if (memory.model->report().fingerprint != folder.model->report().fingerprint)
    throw std::logic_error("memory and a folder of the same bytes are different models");
  run_small(*memory.model);
}

std::vector<std::string> model_bytes_seeds() {
  std::vector<std::string> seeds;
  for (const char* const name : {"timm-parallel", "rope-mixed", "timm-aimv2", "hf-vit-bare"}) {
    const std::filesystem::path folder =
        std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden" / "models" / name;
    std::string config = test::read_text(folder / "config.json");
    std::ranges::replace(config, '\n', ' ');
    seeds.push_back(config + "\n" + test::read_text(folder / "model.safetensors"));
  }
  return seeds;
}

}  // namespace vit::fuzz
