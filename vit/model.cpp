#include "vit/model.h"

#include <utility>

#include "vit/kernels/kernels.h"

namespace vit {
namespace {

const kernels::KernelTable& table_for(const ModelOptions& options) {
  return options.kernels.empty() ? kernels::default_kernels() : kernels::find_kernels(options.kernels);
}

}  // namespace

Model::Model(VisionTransformer transformer, std::optional<PreprocessConfig> preprocess, LoadReport report)
    : transformer_(std::move(transformer)), preprocess_(std::move(preprocess)), report_(std::move(report)) {}

std::shared_ptr<const Model> Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  Checkpoint checkpoint = load_checkpoint(path, options.load);
  std::optional<PreprocessConfig> preprocess =
      checkpoint_preprocess(path, checkpoint.config, options.load, options.preprocess);
  VisionTransformer transformer(std::move(checkpoint.config), checkpoint.weights, table_for(options),
                                options.dtype);
  return std::make_shared<const Model>(std::move(transformer), std::move(preprocess),
                                       std::move(checkpoint.report));
}

std::shared_ptr<const Model> Model::random(const std::string& architecture, const ModelOptions& options) {
  Checkpoint checkpoint = random_checkpoint(architecture, options.load);
  PreprocessConfig preprocess = architecture_preprocess(checkpoint.config, options.preprocess);
  VisionTransformer transformer(std::move(checkpoint.config), checkpoint.weights, table_for(options),
                                options.dtype);
  return std::make_shared<const Model>(std::move(transformer), std::move(preprocess),
                                       std::move(checkpoint.report));
}

const PreprocessConfig& Model::preprocess_config() const {
  if (!preprocess_) fail_without_preprocess_config(report_.path);
  return *preprocess_;
}

std::string Model::label(std::size_t index) const {
  const std::vector<std::string>& labels = config().labels;
  return index < labels.size() ? labels[index] : std::to_string(index);
}

}  // namespace vit
