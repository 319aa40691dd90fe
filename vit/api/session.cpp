#include "vit/session.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/image/image.h"
#include "vit/towers/batch_plan.h"
#include "vit/towers/vision_transformer.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"Session", ErrorKind::argument};

/// Preprocessed pixels of one pass, in memory that only grows.
class PixelBuffer {
 public:
  /// (B, 3, H, W); the numbers are those of earlier passes.
  TensorView<float> take(std::size_t images, ImageSize size) {
    const Shape shape{images, 3, size.height, size.width};
    if (numbers_.empty() || numbers_.num_elements() < shape.num_elements())
      numbers_ = Tensor<float>(Shape{shape.num_elements()});
    return {numbers_.data(), shape};
  }

 private:
  Tensor<float> numbers_;
};

/// (3, H, W) as a batch of one image.
TensorView<const float> as_batch(const Tensor<float>& pixels) {
  return {pixels.data(), Shape{1, pixels.dim(0), pixels.dim(1), pixels.dim(2)}};
}

}  // namespace

struct Session::State {
  SessionOptions options;
  std::optional<Preprocessor> preprocessor;
  ForwardMemory memory;
  PixelBuffer pixels;
  std::vector<PreprocessMemory> preprocess_memory;  // one per thread
  std::vector<ImageSize> sizes;                     // of preprocessed images
  std::vector<std::size_t> order;                   // images sorted by these sizes

  /// Sorts the images by size. Images of one size keep their order.
  void sort() {
    order.resize(sizes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return std::tuple(sizes[a].height, sizes[a].width, a) < std::tuple(sizes[b].height, sizes[b].width, b);
    });
  }
  /// Images from order[first] on that run in one pass: as many of one size as `batch` allows.
  std::size_t count_together(std::size_t first, std::size_t batch) const {
    std::size_t count = 1;
    while (count < batch && first + count < order.size() &&
           sizes[order[first + count]] == sizes[order[first]]) {
      ++count;
    }
    return count;
  }
};

Session::Session(std::shared_ptr<const Model> model, SessionOptions options) : model_(std::move(model)) {
  VIT_CHECK(model_ != nullptr, kWhere, "no model");
  std::optional<Preprocessor> preprocessor;
  if (model_->has_preprocess_config()) {
    preprocessor.emplace(model_->preprocess_config(), options.input_size, model_->config().patch_size);
  }
  state_ = std::make_unique<State>();
  state_->options = options;
  state_->preprocess_memory.resize(static_cast<std::size_t>(resolve_threads(options.threads)));
  state_->preprocessor = std::move(preprocessor);
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const SessionOptions& Session::options() const noexcept {
  return state_->options;
}

const Preprocessor& Session::preprocessor() const {
  if (!state_->preprocessor) static_cast<void>(model_->preprocess_config());  // throws
  return *state_->preprocessor;
}

std::size_t Session::workspace_bytes() const noexcept {
  return state_->memory.bytes();
}

void Session::watch_passes(PassWatch* watch) noexcept {
  state_->memory.watch_passes(watch);
}

PassPlan Session::plan(std::size_t num_images, std::size_t height, std::size_t width) const {
  const GridSize grid = model_->grid_for(height, width);
  const BatchPlan plan =
      plan_batches({.num_images = num_images,
                    .num_tokens = grid.rows * grid.columns + model_->config().num_prefix_tokens(),
                    .batch = state_->options.batch,
                    .num_threads = static_cast<std::size_t>(resolve_threads(state_->options.threads))});
  return {.images_per_pass = plan.images_per_pass,
          .images_per_task = plan.images_per_task,
          .num_tasks = plan.num_tasks,
          .num_shared = plan.num_shared};
}

Image Session::decode(const std::filesystem::path& file) const {
  return decode_file(file, preprocessor().decode_options());
}

Image Session::decode(std::span<const std::byte> file) const {
  return decode_bytes(file, preprocessor().decode_options(), "image in memory");
}

template <typename Fill>
void Session::run_sorted(const Request& request, Results& results, const Fill& fill) {
  State& state = *state_;
  state.sort();
  results.places_.resize(state.sizes.size());
  std::size_t pass = 0;
  for (std::size_t first = 0; first < state.order.size(); ++pass) {
    const ImageSize size = state.sizes[state.order[first]];
    const GridSize grid = model_->grid_for(size.height, size.width);
    const std::size_t num_tokens = grid.rows * grid.columns + model_->config().num_prefix_tokens();
    const std::size_t batch =
        plan_batches({.num_tokens = num_tokens, .batch = state.options.batch}).images_per_pass;
    const std::size_t count = state.count_together(first, batch);
    const TensorView<float> pixels = state.pixels.take(count, size);
    parallel_for(count, state.options.threads,
                 [&](std::size_t i, int thread) { fill(state.order[first + i], pixels[i], thread); });
    if (results.passes_.size() == pass) results.passes_.emplace_back();
    forward(pixels, request, results.passes_[pass]);
    for (std::size_t i = 0; i < count; ++i) results.places_[state.order[first + i]] = {pass, i};
    first += count;
  }
}

void Session::run(const ImageView& image, const Request& request, Outputs& outputs) {
  const TensorView<float> pixels = state_->pixels.take(1, preprocessor().output_size(image.size()));
  preprocessor().run(image, pixels[0], state_->preprocess_memory.front(), state_->options.threads);
  forward(pixels, request, outputs);
}

void Session::run(const std::filesystem::path& file, const Request& request, Outputs& outputs) {
  const FilePixels read =
      preprocessor().run_file(file, state_->preprocess_memory.front(), state_->options.threads);
  forward(as_batch(read.pixels), request, outputs);
}

void Session::run(std::span<const std::byte> file, const Request& request, Outputs& outputs) {
  const FilePixels read = preprocessor().run_bytes(file, "image in memory", state_->preprocess_memory.front(),
                                                   state_->options.threads);
  forward(as_batch(read.pixels), request, outputs);
}

void Session::run(std::span<const ImageView> images, const Request& request, Results& results) {
  const Preprocessor& preprocessor = this->preprocessor();
  state_->sizes.resize(images.size());
  for (std::size_t i = 0; i < images.size(); ++i)
    state_->sizes[i] = preprocessor.output_size(images[i].size());
  run_sorted(request, results, [&](std::size_t i, TensorView<float> out, int thread) {
    preprocessor.run(images[i], out, state_->preprocess_memory[static_cast<std::size_t>(thread)]);
  });
}

Results Session::run(std::span<const ImageView> images, const Request& request) {
  Results results;
  run(images, request, results);
  return results;
}

void Session::run_pixels(std::span<const TensorView<const float>> pixels, const Request& request,
                         Results& results) {
  state_->sizes.resize(pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    VIT_CHECK(pixels[i].rank() == 3 && pixels[i].dim(0) == 3 && pixels[i].is_contiguous(), kWhere,
              "pixels of image ", i, " must be contiguous with shape (3, H, W), got ",
              pixels[i].shape().to_string());
    state_->sizes[i] = {pixels[i].dim(1), pixels[i].dim(2)};
  }
  run_sorted(request, results, [&](std::size_t i, TensorView<float> out, int) {
    std::ranges::copy(pixels[i].flat(), out.data());
  });
}

Results Session::run_pixels(std::span<const TensorView<const float>> pixels, const Request& request) {
  Results results;
  run_pixels(pixels, request, results);
  return results;
}

void Session::forward(TensorView<const float> pixels, const Request& request, Outputs& outputs) {
  model_->transformer().forward(pixels, request, state_->options.threads, state_->memory, outputs);
  outputs.num_images = pixels.dim(0);
  outputs.has_class_token = model_->config().class_token;
}

StageTimes Session::measure(TensorView<const float> pixels, const Request& request, Outputs& outputs) {
  StageTimes times;
  state_->memory.measure_stages(&times);
  try {
    forward(pixels, request, outputs);
  } catch (...) {
    state_->memory.measure_stages(nullptr);
    throw;
  }
  state_->memory.measure_stages(nullptr);
  return times;
}

// ----------------------------------------------------------------------------------- Classifier, features

Classifier::Classifier(std::shared_ptr<const Model> model, SessionOptions options)
    : session_(std::move(model), options), request_{.logits = true} {
  VIT_CHECK(session_.model().config().num_classes != 0, (Where{"Classifier", ErrorKind::mismatch}),
            session_.model().report().path.string(), " has no classifier; it gives features only");
}
Classifier::Classifier(const std::filesystem::path& path, SessionOptions options,
                       const ModelOptions& model_options)
    : Classifier(Model::load(path, model_options), options) {}

Classifier::Classifier(std::shared_ptr<const Model> model, std::shared_ptr<const ClassifierHead> head,
                       SessionOptions options)
    : session_(std::move(model), options), head_(std::move(head)) {
  VIT_CHECK(head_ != nullptr, (Where{"Classifier", ErrorKind::argument}), "no head");
  request_ = head_->request(session_.model());
  values_.resize(head_->labels.size());
}

std::vector<Prediction> Classifier::predict(const ImageOutputs& outputs, std::size_t top) {
  const ModelConfig& config = session_.model().config();
  if (head_ == nullptr)
    return top_predictions(outputs.logits(), top, config.labels, class_activation(config));
  head_->apply(head_->select(outputs), values_);
  return top_predictions(values_, top, head_->labels);
}

std::vector<Prediction> Classifier::classify(const std::filesystem::path& file, std::size_t top) {
  session_.run(file, request_, outputs_);
  return predict(outputs_[0], top);
}

std::vector<Prediction> Classifier::classify(std::span<const std::byte> file, std::size_t top) {
  session_.run(file, request_, outputs_);
  return predict(outputs_[0], top);
}

std::vector<Prediction> Classifier::classify(const ImageView& image, std::size_t top) {
  session_.run(image, request_, outputs_);
  return predict(outputs_[0], top);
}

std::vector<std::vector<Prediction>> Classifier::classify(std::span<const ImageView> images,
                                                          std::size_t top) {
  const Results results = session_.run(images, request_);
  std::vector<std::vector<Prediction>> out;
  for (std::size_t i = 0; i < results.size(); ++i) out.push_back(predict(results[i], top));
  return out;
}

FeatureExtractor::FeatureExtractor(std::shared_ptr<const Model> model, SessionOptions options)
    : session_(std::move(model), options),
      request_{.pooled = session_.model().config().pooling != Pooling::none, .tokens = true} {}
FeatureExtractor::FeatureExtractor(const std::filesystem::path& path, SessionOptions options,
                                   const ModelOptions& model_options)
    : FeatureExtractor(Model::load(path, model_options), options) {}

ImageOutputs FeatureExtractor::extract(const std::filesystem::path& file) & {
  session_.run(file, request_, outputs_);
  return outputs_[0];
}

ImageOutputs FeatureExtractor::extract(std::span<const std::byte> file) & {
  session_.run(file, request_, outputs_);
  return outputs_[0];
}

ImageOutputs FeatureExtractor::extract(const ImageView& image) & {
  session_.run(image, request_, outputs_);
  return outputs_[0];
}

}  // namespace vit
