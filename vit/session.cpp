#include "vit/session.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "vit/base/error.h"
#include "vit/base/parallel.h"
#include "vit/head/classifier.h"

namespace vit {
namespace {

constexpr const char* kWhere = "Session";

/// Images per pass: enough rows to keep every core in full tiles, few enough that activations stay near the
/// caches.
std::size_t choose_batch(std::size_t num_tokens) {
  constexpr std::size_t kTokensPerPass = 2048;
  return std::clamp<std::size_t>(kTokensPerPass / std::max<std::size_t>(num_tokens, 1), 1, 64);
}

/// Copies the slice of image `index` out of a batched result; empty stays empty.
Tensor<float> slice(const Tensor<float>& batched, std::size_t index) {
  if (batched.empty()) return {};
  const TensorView<const float> part = batched.view()[index];
  Tensor<float> out(part.shape());
  std::ranges::copy(part.flat(), out.data());
  return out;
}

}  // namespace

// ------------------------------------------------------------------------------------------- ImageOutputs

TensorView<const float> ImageOutputs::patches() const {
  VIT_CHECK(!tokens.empty(), kWhere, "patch features were not requested (Request::tokens)");
  return {tokens.data() + num_prefix_tokens * tokens.dim(1), Shape{grid.rows, grid.columns, tokens.dim(1)}};
}

std::span<const float> ImageOutputs::class_token() const {
  VIT_CHECK(!tokens.empty(), kWhere, "the class token was not requested (Request::tokens)");
  VIT_CHECK(has_class_token, kWhere, "this model has no class token");
  return tokens.flat().first(tokens.dim(1));
}

// ------------------------------------------------------------------------------------------------ Session

struct Session::State {
  SessionOptions options;
  std::optional<Preprocessor> preprocessor;
  ForwardMemory memory;
  Tensor<float> batch;  // pixels of one pass
  Outputs outputs;
};

Session::Session(std::shared_ptr<const Model> model, SessionOptions options) : model_(std::move(model)) {
  VIT_CHECK(model_ != nullptr, kWhere, "no model");
  std::optional<Preprocessor> preprocessor;
  if (model_->has_preprocess_config()) {
    preprocessor.emplace(model_->preprocess_config(), options.input_size, model_->config().patch_size);
  }
  state_ = std::make_unique<State>(State{std::move(options), std::move(preprocessor), {}, {}, {}});
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const Preprocessor& Session::preprocessor() const {
  if (!state_->preprocessor) fail_without_preprocess_config(model_->report().path);
  return *state_->preprocessor;
}
std::size_t Session::workspace_bytes() const noexcept {
  return state_->memory.bytes();
}
void Session::measure_stages(StageTimes* times) noexcept {
  state_->memory.measure_stages(times);
}

Tensor<float> Session::preprocess(const ImageView& image) const {
  return preprocessor().run(image);
}

std::vector<ImageOutputs> Session::run(std::span<const ImageView> images, const Request& request) {
  std::vector<Tensor<float>> pixels(images.size());
  parallel_for(images.size(), state_->options.threads,
               [&](std::size_t i, int) { pixels[i] = preprocess(images[i]); });
  const std::vector<TensorView<const float>> views(pixels.begin(), pixels.end());
  return run_pixels(views, request);
}

std::vector<ImageOutputs> Session::run_pixels(std::span<const TensorView<const float>> pixels,
                                              const Request& request) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>>
      by_size;  // images of one size run together
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    VIT_CHECK(pixels[i].rank() == 3 && pixels[i].dim(0) == 3 && pixels[i].is_contiguous(), kWhere,
              "pixels of image ", i, " must be contiguous with shape (3, H, W), got ",
              pixels[i].shape().to_string());
    by_size[{pixels[i].dim(1), pixels[i].dim(2)}].push_back(i);
  }
  std::vector<ImageOutputs> results(pixels.size());
  for (const auto& [size, members] : by_size) {
    const GridSize grid = model_->transformer().grid_for(size.first, size.second);
    const std::size_t num_tokens = grid.rows * grid.columns + model_->config().num_prefix_tokens();
    const std::size_t batch = state_->options.batch != 0 ? state_->options.batch : choose_batch(num_tokens);
    for (std::size_t first = 0; first < members.size(); first += batch) {
      const std::size_t count = std::min(batch, members.size() - first);
      const Shape shape{count, 3, size.first, size.second};
      if (!(state_->batch.shape() == shape)) state_->batch = Tensor<float>(shape);
      for (std::size_t i = 0; i < count; ++i) {
        std::ranges::copy(pixels[members[first + i]].flat(), state_->batch.view()[i].data());
      }
      forward(state_->batch, request, state_->outputs);
      const Outputs& found = state_->outputs;
      for (std::size_t i = 0; i < count; ++i) {
        ImageOutputs& out = results[members[first + i]];
        out.logits = slice(found.logits, i);
        out.pooled = slice(found.pooled, i);
        out.projected = slice(found.projected, i);
        out.tokens = slice(found.tokens, i);
        out.embedded = slice(found.embedded, i);
        for (const Tensor<float>& block : found.blocks) out.blocks.push_back(slice(block, i));
        for (const Tensor<float>& map : found.attention) out.attention.push_back(slice(map, i));
        out.grid = found.grid;
        out.num_prefix_tokens = found.num_prefix_tokens;
        out.has_class_token = model_->config().class_token;
      }
    }
  }
  return results;
}

void Session::forward(TensorView<const float> pixels, const Request& request, Outputs& outputs) {
  model_->transformer().forward(pixels, request, state_->options.threads, state_->memory, outputs);
}

// ----------------------------------------------------------------------------------- Classifier, features

std::vector<Prediction> top_predictions(std::span<const float> logits, std::size_t top, const Model& model) {
  std::vector<Prediction> predictions;
  for (const RankedClass& ranked : top_classes(logits, top)) {
    predictions.push_back({ranked.index, model.label(ranked.index), ranked.probability, ranked.logit});
  }
  return predictions;
}

Classifier::Classifier(std::shared_ptr<const Model> model, SessionOptions options)
    : session_(std::move(model), std::move(options)) {
  VIT_CHECK(session_.model().config().num_classes != 0, "Classifier", session_.model().report().path.string(),
            " has no classifier; it gives features only");
}
Classifier::Classifier(const std::filesystem::path& path, SessionOptions options,
                       const ModelOptions& model_options)
    : Classifier(Model::load(path, model_options), std::move(options)) {}

std::vector<Prediction> Classifier::classify(const ImageView& image, std::size_t top) {
  return classify(std::span(&image, 1), top).front();
}

std::vector<std::vector<Prediction>> Classifier::classify(std::span<const ImageView> images,
                                                          std::size_t top) {
  std::vector<std::vector<Prediction>> results;
  for (const ImageOutputs& out : session_.run(images, {.logits = true})) {
    results.push_back(top_predictions(out.logits.flat(), top, session_.model()));
  }
  return results;
}

FeatureExtractor::FeatureExtractor(std::shared_ptr<const Model> model, SessionOptions options)
    : session_(std::move(model), std::move(options)) {}
FeatureExtractor::FeatureExtractor(const std::filesystem::path& path, SessionOptions options,
                                   const ModelOptions& model_options)
    : FeatureExtractor(Model::load(path, model_options), std::move(options)) {}

ImageOutputs FeatureExtractor::extract(const ImageView& image) {
  const Request request{.pooled = session_.model().config().pooling != Pooling::none, .tokens = true};
  return std::move(session_.run(std::span(&image, 1), request).front());
}

}  // namespace vit
