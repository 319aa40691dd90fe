#include "vit/model.h"

#include <optional>
#include <utility>

#include "vit/image/preprocess.h"
#include "vit/kernels/kernels.h"
#include "vit/towers/map_head.h"
#include "vit/towers/vision_transformer.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/preprocess_config.h"

namespace vit {
using namespace internal;
namespace {

const kernels::KernelTable& table_for(const ModelOptions& options) {
  return options.kernels.empty() ? kernels::default_kernels() : kernels::find_kernels(options.kernels);
}

PreprocessConfig random_preprocess(const ModelConfig& config, const ModelOptions& options) {
  PreprocessConfig preprocess = architecture_preprocess(config, options);
  apply_choices(preprocess, options);
  std::optional<PreprocessConfig> fitting = preprocess;
  const std::string note = fit_channels(fitting, config.image.num_channels, options);
  if (fitting) return *fitting;
  preprocess.mean.assign(config.image.num_channels, 0.5);  // random weights were trained with none
  preprocess.std.assign(config.image.num_channels, 0.5);
  return preprocess;
}

/// The rules of a checkpoint for the channels of its model.
std::optional<PreprocessConfig> fitting_preprocess(const CheckpointFolder& folder,
                                                   const ModelOptions& options,
                                                   Checkpoint<ModelConfig>& checkpoint) {
  std::optional<PreprocessConfig> config = folder.preprocess_config();
  std::string note = fit_channels(config, checkpoint.config.image.num_channels, options);
  if (!note.empty()) checkpoint.report.notes.push_back(std::move(note));
  return config;
}

VisionTransformer transformer_of(const Checkpoint<ModelConfig>& checkpoint, const ModelOptions& options) {
  const kernels::KernelTable& table = table_for(options);
  VisionTransformer out{checkpoint.config, checkpoint.weights, table, options.precision};
  if (checkpoint.dense)
    out.set_dense(build_map_head(checkpoint.dense->config, checkpoint.dense->weights, checkpoint.config,
                                 table, options.precision));
  return out;
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
  return load(CheckpointFolder(path, options));
}

std::shared_ptr<const Model> Model::load(const CheckpointFolder& folder) {
  const ModelOptions& options = folder.options();
  Checkpoint checkpoint = folder.load<ModelConfig>();
  std::optional<PreprocessConfig> preprocess = fitting_preprocess(folder, options, checkpoint);
  VisionTransformer transformer = transformer_of(checkpoint, options);
  return build(std::make_unique<const Parts>(Parts{.transformer = std::move(transformer),
                                                   .preprocess = std::move(preprocess),
                                                   .report = std::move(checkpoint.report),
                                                   .precision = options.precision}));
}

std::shared_ptr<const Model> Model::random(const std::string& architecture, const ModelOptions& options) {
  Checkpoint checkpoint = random_checkpoint(architecture, options);
  PreprocessConfig preprocess = random_preprocess(checkpoint.config, options);
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

const DenseConfig* Model::dense_config() const noexcept {
  const MapHead* const head = parts_->transformer.dense();
  return head != nullptr ? &head->config() : nullptr;
}

const char* Model::kernels() const noexcept {
  return parts_->transformer.kernels().name;
}

const LoadReport& Model::report() const noexcept {
  return parts_->report;
}

std::string Model::name() const {
  return config().architecture.empty() ? report().path.filename().string() : config().architecture;
}

std::string Model::label(std::size_t index) const {
  const std::vector<std::string>& labels = config().head.labels;
  return index < labels.size() ? labels[index] : std::to_string(index);
}

bool Model::has_preprocess_config() const noexcept {
  return parts_->preprocess.has_value();
}

const PreprocessConfig& Model::preprocess_config() const {
  require_preprocess_config();
  return *parts_->preprocess;
}

void Model::require_preprocess_config() const {
  VIT_CHECK(parts_->preprocess || config().image.num_channels == 3, (Where{"Model", ErrorKind::mismatch}),
            parts_->report.path.string(), ": no file defines how images of ", config().image.num_channels,
            " channels are preprocessed; give ModelOptions::mean and std, one number for each, or "
            "preprocessed pixels");
  if (!parts_->preprocess) fail_without_preprocess_config(parts_->report.path);
}

void Model::require_grid(std::size_t height, std::size_t width) const {
  static_cast<void>(grid_for(height, width));
}

GridSize Model::grid_for(std::size_t height, std::size_t width) const {
  return parts_->transformer.grid_for(height, width);
}

std::size_t Model::steps_for(std::size_t num_planes) const {
  return parts_->transformer.steps_for(num_planes);
}

std::size_t Model::num_leading_tokens(const Request& request) const {
  return parts_->transformer.num_leading_tokens(request);
}

const VisionTransformer& Model::transformer() const noexcept {
  return parts_->transformer;
}

CheckpointDescription describe_checkpoint(const std::filesystem::path& path, const ModelOptions& options) {
  const CheckpointFolder folder(path, options);
  Checkpoint checkpoint = folder.load<ModelConfig>();
  std::optional<PreprocessConfig> preprocess = fitting_preprocess(folder, options, checkpoint);
  CheckpointDescription out{.config = std::move(checkpoint.config),
                            .preprocess = std::move(preprocess),
                            .report = std::move(checkpoint.report)};
  if (checkpoint.dense) out.dense = std::move(checkpoint.dense->config);
  return out;
}

CheckpointDescription describe_architecture(const std::string& architecture, const ModelOptions& options) {
  Checkpoint checkpoint = random_checkpoint(architecture, options);
  PreprocessConfig preprocess = random_preprocess(checkpoint.config, options);
  return {.config = std::move(checkpoint.config),
          .preprocess = std::move(preprocess),
          .report = std::move(checkpoint.report)};
}

std::optional<PreprocessConfig> find_preprocess_config(const std::filesystem::path& path,
                                                       const ModelOptions& options, const InputSize& size) {
  const CheckpointFolder folder(path, options);
  std::optional<PreprocessConfig> found = folder.preprocess_config();
  if (!found) return std::nullopt;
  // one number is that of every channel of the model
  if (found->mean.size() != 3 || found->std.size() != 3)
    fit_channels(found, folder.model_config().image.num_channels, options);
  if (!found) return std::nullopt;
  // the model's own files are read only for its patches, and for overrides of the caller
  const bool asks_model = size.kind == InputSize::Kind::native || !options.overrides.empty();
  return with_input_size(*found, size, asks_model ? folder.model_config().edge_multiple() : 1);
}

std::vector<std::filesystem::path> weight_files(const std::filesystem::path& path) {
  return CheckpointFolder(path).weight_files();
}

}  // namespace vit
