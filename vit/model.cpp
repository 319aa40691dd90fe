#include "vit/model.h"

#include <optional>
#include <utility>

#include "vit/kernels/kernels.h"
#include "vit/vision_transformer.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/checkpoint/preprocess_config.h"

namespace vit {
namespace {

const kernels::KernelTable& table_for(const ModelOptions& options) {
  return options.kernels.empty() ? kernels::default_kernels() : kernels::find_kernels(options.kernels);
}

VisionTransformer transformer_of(const Checkpoint& checkpoint, const ModelOptions& options) {
  return {checkpoint.config, checkpoint.weights, table_for(options), options.precision};
}

}  // namespace

struct Model::Parts {
  VisionTransformer transformer;
  std::optional<PreprocessConfig> preprocess;
  LoadReport report;
  Precision precision = Precision::float32;
};

Model::Model(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::build(std::unique_ptr<const Parts> parts) {
  return std::shared_ptr<const Model>(new Model(std::move(parts)));
}

std::shared_ptr<const Model> Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  Checkpoint checkpoint = load_checkpoint(path, options.load_options());
  std::optional<PreprocessConfig> preprocess =
      checkpoint_preprocess(path, checkpoint.config, options.load_options(), options.preprocess_options());
  VisionTransformer transformer = transformer_of(checkpoint, options);
  return build(std::make_unique<const Parts>(Parts{.transformer = std::move(transformer),
                                                   .preprocess = std::move(preprocess),
                                                   .report = std::move(checkpoint.report),
                                                   .precision = options.precision}));
}

std::shared_ptr<const Model> Model::random(const std::string& architecture, const ModelOptions& options) {
  Checkpoint checkpoint = random_checkpoint(architecture, options.load_options());
  PreprocessConfig preprocess = architecture_preprocess(checkpoint.config, options.preprocess_options());
  VisionTransformer transformer = transformer_of(checkpoint, options);
  return build(std::make_unique<const Parts>(Parts{.transformer = std::move(transformer),
                                                   .preprocess = std::move(preprocess),
                                                   .report = std::move(checkpoint.report),
                                                   .precision = options.precision}));
}

const ModelConfig& Model::config() const noexcept {
  return parts_->transformer.config();
}

Precision Model::precision() const noexcept {
  return parts_->precision;
}

const char* Model::kernels() const noexcept {
  return parts_->transformer.kernels().name;
}

const LoadReport& Model::report() const noexcept {
  return parts_->report;
}

std::string Model::label(std::size_t index) const {
  const std::vector<std::string>& labels = config().labels;
  return index < labels.size() ? labels[index] : std::to_string(index);
}

bool Model::has_preprocess_config() const noexcept {
  return parts_->preprocess.has_value();
}

const PreprocessConfig& Model::preprocess_config() const {
  if (!parts_->preprocess) fail_without_preprocess_config(parts_->report.path);
  return *parts_->preprocess;
}

GridSize Model::grid_for(std::size_t height, std::size_t width) const {
  return parts_->transformer.grid_for(height, width);
}

std::size_t Model::num_leading_tokens(const Request& request) const {
  return parts_->transformer.num_leading_tokens(request);
}

const VisionTransformer& Model::transformer() const noexcept {
  return parts_->transformer;
}

}  // namespace vit
