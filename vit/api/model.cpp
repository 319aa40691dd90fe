#include "vit/model.h"

#include <cmath>
#include <optional>
#include <utility>

#include "vit/api/layers_of.h"
#include "vit/api/stored_tensors.h"
#include "vit/base/check.h"
#include "vit/base/moved.h"
#include "vit/checkpoint.h"
#include "vit/image/preprocess.h"
#include "vit/kernels/kernels.h"
#include "vit/towers/map_head.h"
#include "vit/towers/vision_transformer.h"
#include "vit/weights/architectures/architecture.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/own_checkpoint.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/tower_architectures.h"

namespace vit {
using namespace internal;
namespace {

/// Throws Error for numbers of the caller that no preprocessing can use, before anything is loaded.
void check_statistics(const ModelOptions& options) {
  const Where where{"ModelOptions", ErrorKind::argument};
  for (const double mean : options.mean) VIT_CHECK(std::isfinite(mean), where, "a mean of ", mean);
  for (const double deviation : options.std)
    VIT_CHECK(std::isfinite(deviation) && deviation > 0.0, where, "std has a deviation of ", deviation,
              "; expected positive numbers");
}

/// The preprocessing that the caller gave, or that of the published weights of the architecture.
std::optional<PreprocessConfig> given_preprocess(const ModelConfig& config, const ModelOptions& options,
                                                 const std::optional<PreprocessConfig>& given) {
  if (!given && find_known_architecture(config.architecture) == nullptr &&
      !is_tower_architecture(config.architecture))
    return std::nullopt;
  std::optional<PreprocessConfig> preprocess = given ? *given : architecture_preprocess(config, options);
  apply_choices(*preprocess, options);
  const std::string note = fit_channels(preprocess, config.image.num_channels, options);
  VIT_CHECK(note.empty() || !given, (Where{"Model", ErrorKind::argument}), note);
  if (preprocess) static_cast<void>(Preprocessor(*preprocess));  // checks it
  return preprocess;
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

/// The rules of a checkpoint for the channels of its model; whether they cut images is noted for its head.
std::optional<PreprocessConfig> fitting_preprocess(const CheckpointFolder& folder,
                                                   const ModelOptions& options,
                                                   internal::LoadedTower<ModelConfig>& checkpoint) {
  std::optional<PreprocessConfig> config = folder.preprocess_config();
  std::string note = fit_channels(config, checkpoint.config.image.num_channels, options);
  if (!note.empty()) checkpoint.report.notes.push_back(std::move(note));
  if (config && checkpoint.dense) checkpoint.dense->config.cuts_windows = config->windows;
  return config;
}

VisionTransformer transformer_of(const internal::LoadedTower<ModelConfig>& checkpoint,
                                 const ModelOptions& options) {
  check_choice("Model", "precision", options.precision, Precision::int8);
  const kernels::KernelTable& table = kernels::find_kernels(options.kernels);
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
  StoredTensors tensors{};

  Parts(const internal::LoadedTower<ModelConfig>& checkpoint, std::optional<PreprocessConfig> rules,
        const ModelOptions& options, StoredTensors::Reader reader)
      : transformer(transformer_of(checkpoint, options)),
        preprocess(std::move(rules)),
        report(checkpoint.report),
        precision(options.precision),
        tensors(std::move(reader)) {}
};

Model::Model(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::build(std::unique_ptr<const Parts> parts) {
  return std::shared_ptr<const Model>(new Model(std::move(parts)));
}

std::shared_ptr<const Model> Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  check_statistics(options);
  return load(CheckpointFolder(path, options));
}

std::shared_ptr<const Model> Model::load(const CheckpointFolder& folder) {
  internal::LoadedTower checkpoint = folder.load<ModelConfig>();
  std::optional<PreprocessConfig> preprocess = fitting_preprocess(folder, folder.options(), checkpoint);
  const auto reader = [path = checkpoint.report.path, options = folder.options()] {
    return load_checkpoint(path, options);
  };
  return build(std::make_unique<const Parts>(checkpoint, std::move(preprocess), folder.options(), reader));
}

std::shared_ptr<const Model> Model::load(const ModelBytes& bytes, const ModelOptions& options) {
  check_statistics(options);
  const CheckpointFolder folder(bytes.weights, bytes.files, options);
  internal::LoadedTower checkpoint = folder.load<ModelConfig>();
  std::optional<PreprocessConfig> preprocess = fitting_preprocess(folder, options, checkpoint);
  return build(std::make_unique<const Parts>(checkpoint, std::move(preprocess), options, nullptr));
}

std::shared_ptr<const Model> Model::random(const std::string& architecture, const ModelOptions& options) {
  check_statistics(options);
  const auto reader = [architecture, options] { return random_checkpoint(architecture, options); };
  const internal::LoadedTower checkpoint = reader();
  return build(std::make_unique<const Parts>(checkpoint, random_preprocess(checkpoint.config, options),
                                             options, reader));
}

std::shared_ptr<const Model> Model::random(const ModelConfig& config, const ModelOptions& options,
                                           const std::optional<PreprocessConfig>& preprocess) {
  const auto reader = [config, options] { return random_checkpoint_of(config, options); };
  const internal::LoadedTower checkpoint = reader();
  return build(std::make_unique<const Parts>(checkpoint, given_preprocess(config, options, preprocess),
                                             options, reader));
}

std::shared_ptr<const Model> Model::from_tensors(const ModelConfig& config, const TensorViews& tensors,
                                                 const ModelOptions& options,
                                                 const std::optional<PreprocessConfig>& preprocess) {
  const internal::LoadedTower checkpoint = checkpoint_of_tensors(config, tensors, options);
  return build(std::make_unique<const Parts>(checkpoint, given_preprocess(config, options, preprocess),
                                             options, nullptr));
}

std::vector<std::string> Model::tensor_names() const {
  return internal::tensor_names(config(), dense_config());
}

Tensor<float> Model::tensor(const std::string& name) const {
  return parts_->tensors.read(name, parts_->report, tensor_names());
}

const ModelConfig& Model::config() const noexcept {
  return parts_->transformer.config();
}

Precision Model::precision() const noexcept {
  return parts_->precision;
}

const DenseConfig* Model::dense_config() const noexcept {
  const MapHead* const head = parts_->transformer.dense();
  return head != nullptr ? head->config().get() : nullptr;
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
  VIT_CHECK(height <= kMaxInputEdge && width <= kMaxInputEdge, (Where{"Model", ErrorKind::argument}),
            "an input of ", height, " x ", width, "; the longest edge is ", kMaxInputEdge, " pixels");
  return parts_->transformer.grid_for(height, width);
}

std::size_t Model::steps_for(std::size_t num_planes) const {
  return parts_->transformer.steps_for(num_planes);
}

std::size_t Model::num_leading_tokens(const Request& request) const {
  return parts_->transformer.num_leading_tokens(request);
}

std::shared_ptr<const Model> LayersOf::load_image(const CheckpointFolder& folder) {
  return Model::load(folder);
}

const VisionTransformer& LayersOf::image(const Model& model) noexcept {
  return model.parts_->transformer;
}

// --------------------------------------------------------------------------------------------- Checkpoint

namespace {

constexpr Where kCheckpoint{"Checkpoint", ErrorKind::argument};

}  // namespace

struct vit::Checkpoint::Parts {
  std::optional<CheckpointFolder> folder;  // or:
  std::string architecture;
  ModelOptions options;
};

vit::Checkpoint::Checkpoint(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
vit::Checkpoint::Checkpoint(const std::filesystem::path& path, const ModelOptions& options)
    : parts_(std::make_unique<const Parts>(
          Parts{.folder = CheckpointFolder(path, options), .architecture = {}, .options = options})) {}
vit::Checkpoint::~Checkpoint() = default;
vit::Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
vit::Checkpoint& vit::Checkpoint::operator=(Checkpoint&&) noexcept = default;

vit::Checkpoint vit::Checkpoint::random(const std::string& architecture, const ModelOptions& options) {
  return vit::Checkpoint(std::make_unique<const Parts>(
      Parts{.folder = std::nullopt, .architecture = architecture, .options = options}));
}

CheckpointDescription vit::Checkpoint::describe() const {
  const ModelOptions& options = parts_of(parts_, kCheckpoint).options;
  const auto& folder = parts_of(parts_, kCheckpoint).folder;
  internal::LoadedTower found = folder
                                    ? folder->load<ModelConfig>()
                                    : random_checkpoint(parts_of(parts_, kCheckpoint).architecture, options);
  std::optional<PreprocessConfig> preprocess =
      folder ? fitting_preprocess(*folder, options, found) : random_preprocess(found.config, options);
  CheckpointDescription out{.config = std::move(found.config),
                            .preprocess = std::move(preprocess),
                            .report = std::move(found.report)};
  if (found.dense && folder) out.dense = std::move(found.dense->config);
  return out;
}

std::optional<TextDescription> vit::Checkpoint::describe_text(const TextOptions& options) const {
  const auto& folder = parts_of(parts_, kCheckpoint).folder;
  if (!folder || !folder->parsed<TextConfig>()) return std::nullopt;
  internal::LoadedTower found = folder->load<TextConfig>();
  TextDescription out{.config = std::move(found.config),
                      .report = std::move(found.report),
                      .tokenizer = std::nullopt,
                      .tokenizer_missing = {}};
  try {
    out.tokenizer = Tokenizer::load_for_model(
        folder->path(), options.tokenizer,
        {.library = options.library, .vocabulary_size = out.config.vocabulary_size});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    out.tokenizer_missing = error.message();
  }
  return out;
}

std::optional<PreprocessConfig> vit::Checkpoint::preprocess_config(const InputSize& size) const {
  const ModelOptions& options = parts_of(parts_, kCheckpoint).options;
  if (!parts_of(parts_, kCheckpoint).folder) {
    const ModelConfig config = random_checkpoint(parts_of(parts_, kCheckpoint).architecture, options).config;
    return with_input_size(random_preprocess(config, options), size, config.edge_multiple());
  }
  const CheckpointFolder& folder = *parts_of(parts_, kCheckpoint).folder;
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

TextScore vit::Checkpoint::text_score() const {
  const Where where{"text score", ErrorKind::mismatch};
  const auto& folder = parts_of(parts_, kCheckpoint).folder;
  VIT_CHECK(folder && folder->parsed<TextConfig>(), where,
            folder ? folder->path().string() : parts_of(parts_, kCheckpoint).architecture,
            " has no text tower, so its images cannot be compared with texts");
  const TextConfig config = folder->load<TextConfig>().config;
  VIT_CHECK(config.score, where, folder->path().string(),
            ": has only a text tower; images cannot be compared with texts");
  return *config.score;
}

std::vector<std::filesystem::path> vit::Checkpoint::weight_files() const {
  return parts_of(parts_, kCheckpoint).folder ? parts_of(parts_, kCheckpoint).folder->weight_files()
                                              : std::vector<std::filesystem::path>{};
}

}  // namespace vit
