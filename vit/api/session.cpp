#include "vit/session.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "vit/api/layers_of.h"
#include "vit/api/source_pixels.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/config.h"
#include "vit/config/output_table.h"
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
  /// (B, K, H, W) with unspecified contents.
  TensorView<float> take(std::size_t images, std::size_t channels, ImageSize size) {
    const Shape shape{images, channels, size.height, size.width};
    if (numbers_.num_elements() < shape.num_elements()) numbers_ = Tensor<float>(Shape{shape.num_elements()});
    return {numbers_.data(), shape};
  }

 private:
  Tensor<float> numbers_;
};

/// Sizes of preprocessed pixels.
struct PixelSize {
  std::size_t planes = 0;
  ImageSize edges;
  bool operator==(const PixelSize&) const = default;
};

/// (K, H, W) as a batch of one image.
TensorView<const float> as_batch(const Tensor<float>& pixels) {
  return {pixels.data(), Shape{1, pixels.dim(0), pixels.dim(1), pixels.dim(2)}};
}

/// Copies the upper left part of the planes `in` that fits `out`.
void copy_planes(TensorView<const float> in, TensorView<float> out) {
  if (in.shape() == out.shape()) {
    std::ranges::copy(in.flat(), out.data());
    return;
  }
  for (std::size_t k = 0; k < out.dim(0); ++k) {
    for (std::size_t y = 0; y < out.dim(1); ++y)
      std::copy_n(in.row(k * in.dim(1) + y), out.dim(2), out.row(k * out.dim(1) + y));
  }
}

}  // namespace

struct Session::State {
  SessionOptions options;
  RunLimits limits;
  std::optional<Preprocessor> preprocessor;
  ForwardMemory memory;
  PixelBuffer pixels;
  std::vector<PreprocessMemory> preprocess_memory;  // one per thread
  std::vector<PixelSize> sizes;                     // of preprocessed images
  std::vector<std::size_t> order;                   // images sorted by these sizes
  std::vector<ImageFrame> frames;                   // of the images

  /// Sorts the images by size. Images of one size keep their order.
  void sort() {
    order.resize(sizes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      const auto key = [this](std::size_t i) {
        return std::tuple(sizes[i].edges.height, sizes[i].edges.width, sizes[i].planes, i);
      };
      return key(a) < key(b);
    });
  }
  /// Number of images from order[first] on that run in one pass: as many of one size as `batch` allows.
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
  VIT_CHECK(options.input_size.height <= kMaxInputEdge && options.input_size.width <= kMaxInputEdge, kWhere,
            "an input size of ", options.input_size.height, " x ", options.input_size.width,
            "; the longest edge is ", kMaxInputEdge, " pixels");
  std::optional<Preprocessor> preprocessor;
  if (model_->has_preprocess_config()) {
    preprocessor.emplace(model_->preprocess_config(), options.input_size, model_->config().edge_multiple());
  }
  VIT_CHECK(options.threads >= 0, kWhere, "threads is ", options.threads, "; 0 = all cores");
  state_ = std::make_unique<State>();
  options.threads = resolve_threads(options.threads);  // that of another thread, or later, may differ
  state().options = options;
  state().preprocess_memory.resize(static_cast<std::size_t>(options.threads));
  state().preprocessor = std::move(preprocessor);
  state().memory.limit_passes(&state().limits);
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Session::State& Session::state() const {
  VIT_CHECK(state_ != nullptr, kWhere, "this session was moved from");
  return *state_;
}

const Model& Session::model() const {
  state();
  return *model_;
}

const SessionOptions& Session::options() const {
  return state().options;
}

const Preprocessor& Session::preprocessor() const {
  State& state = this->state();
  model_->require_preprocess_config();
  return *state.preprocessor;
}

ImageSize Session::computed_size(ImageSize pixels) const {
  if (state().options.input_size.kind != InputSize::Kind::native) return pixels;
  const std::size_t patch = model_->config().patch.size;
  return {pixels.height / patch * patch, pixels.width / patch * patch};
}

std::size_t Session::workspace_bytes() const {
  return state().memory.bytes();
}

void Session::watch_passes(PassWatch* watch) noexcept {
  state().memory.watch_passes(watch);
}

std::size_t Session::most_images_per_group(const SessionOptions& options) {
  return plan_group(static_cast<std::size_t>(resolve_threads(options.threads)), options.batch).at_most;
}

PassPlan Session::plan(std::size_t num_images, std::size_t height, std::size_t width) const {
  const GridSize grid = model().grid_for(height, width);
  const auto num_threads = static_cast<std::size_t>(state().options.threads);
  const BatchPlan plan =
      plan_batches({.num_images = num_images,
                    .num_tokens = grid.rows * grid.columns +
                                  model_->config().num_prefix_after(model_->config().encoder.depth - 1),
                    .batch = state().options.batch,
                    .num_threads = num_threads});
  return {.images_per_pass = plan.images_per_pass,
          .images_per_task = plan.images_per_task,
          .num_tasks = plan.num_tasks,
          .num_shared = plan.num_shared,
          .images_per_group =
              plan_group(num_threads, state().options.batch)
                  .num_images(model_->config().image.num_channels * height * width * sizeof(float))};
}

Image Session::decode(const std::filesystem::path& file) const {
  return decode_file(file, preprocessor().decode_options());
}

Image Session::decode(std::span<const std::byte> file) const {
  return decode_bytes(file, preprocessor().decode_options(), "image in memory");
}

template <typename Fill>
void Session::run_sorted(const Request& request, BatchOutputs& outputs, const Fill& fill) {
  State& state = this->state();
  state.sort();
  outputs.places_.resize(state.sizes.size());
  std::size_t pass = 0;
  for (std::size_t first = 0; first < state.order.size(); ++pass) {
    const auto [planes, size] = state.sizes[state.order[first]];
    const GridSize grid = model_->grid_for(size.height, size.width);
    const std::size_t num_tokens =
        model_->steps_for(planes) *
        (grid.rows * grid.columns + model_->config().num_prefix_after(model_->config().encoder.depth - 1));
    const std::size_t batch =
        plan_batches({.num_tokens = num_tokens, .batch = state.options.batch}).images_per_pass;
    const std::size_t count = state.count_together(first, batch);
    const TensorView<float> pixels = state.pixels.take(count, planes, size);
    parallel_for(count, state.options.threads, [&](std::size_t i, int thread) {
      state.limits.check();
      fill(state.order[first + i], pixels[i], thread);
    });
    if (outputs.passes_.size() == pass) outputs.passes_.emplace_back();
    compute(pixels, request, outputs.passes_[pass]);
    const OutputWriter writer(outputs.passes_[pass]);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t image = state.order[first + i];
      writer.set_frame(i, state.frames[image]);
      outputs.places_[image] = {pass, i};
    }
    first += count;
  }
}

void Session::run(const ImageSource& source, const Request& request, Outputs& outputs) {
  PreprocessMemory& memory = state().preprocess_memory.front();
  const int threads = state().options.threads;
  state().limits.check();
  if (const auto* const image = std::get_if<ImageView>(&source)) {  // in memory kept by the session
    const TensorView<float> pixels = state().pixels.take(1, preprocessor().num_planes(image->size()),
                                                         preprocessor().output_size(image->size()));
    preprocessor().run(*image, pixels[0], memory, threads);
    compute(pixels, request, outputs);
    return OutputWriter(outputs).set_frame(0, frame_of(*this, image->size()));
  }
  const SourcePixels read = read_pixels(*this, source, memory, threads);
  compute(as_batch(read.pixels), request, outputs);
  OutputWriter(outputs).set_frame(0, read.frame);
}

void Session::run(std::span<const ImageView> images, const Request& request, BatchOutputs& outputs) {
  const Preprocessor& preprocessor = this->preprocessor();
  state().sizes.resize(images.size());
  state().frames.resize(images.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    state().sizes[i] = {preprocessor.num_planes(images[i].size()),
                        preprocessor.output_size(images[i].size())};
    state().frames[i] = frame_of(*this, images[i].size());
  }
  run_sorted(request, outputs, [&](std::size_t i, TensorView<float> out, int thread) {
    preprocessor.run(images[i], out, state().preprocess_memory[static_cast<std::size_t>(thread)]);
  });
}

BatchOutputs Session::run(std::span<const ImageView> images, const Request& request) {
  BatchOutputs outputs;
  run(images, request, outputs);
  return outputs;
}

void Session::run_pixels(std::span<const TensorView<const float>> pixels, const Request& request,
                         BatchOutputs& outputs) {
  state().sizes.resize(pixels.size());
  state().frames.resize(pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    VIT_CHECK(pixels[i].rank() == 3 && pixels[i].is_contiguous() && !pixels[i].empty(), kWhere,
              "pixels of image ", i, " must be contiguous with shape (", model_->config().image.num_channels,
              ", H, W), got ", pixels[i].describe());
    model_->steps_for(pixels[i].dim(0));
    require_finite(pixels[i], i);
    const ImageSize size{pixels[i].dim(1), pixels[i].dim(2)};
    state().sizes[i] = {pixels[i].dim(0), computed_size(size)};
    state().frames[i] = frame_of_pixels(size);
  }
  run_sorted(request, outputs,
             [&](std::size_t i, TensorView<float> out, int) { copy_planes(pixels[i], out); });
}

BatchOutputs Session::run_pixels(std::span<const TensorView<const float>> pixels, const Request& request) {
  BatchOutputs outputs;
  run_pixels(pixels, request, outputs);
  return outputs;
}

void Session::forward(TensorView<const float> pixels, const Request& request, Outputs& outputs) {
  VIT_CHECK(pixels.rank() != 4 || !pixels.empty(), kWhere, "no pixels of ", pixels.shape().to_string());
  if (pixels.rank() == 4) {
    static_cast<void>(pixels.num_elements());  // throws for sizes that overflow, before a pixel is read
    parallel_for(pixels.dim(0), state().options.threads,
                 [&](std::size_t i, int) { require_finite(pixels[i], i); });
  }
  compute(pixels, request, outputs);
}

void Session::set_limits(RunLimits limits) {
  state().limits = std::move(limits);
}

void Session::reserve(std::span<const ImageSize> sizes, const Request& request, std::size_t batch) {
  VIT_CHECK(batch != 0, kWhere, "a batch of 0 images to reserve memory for");
  State& state = this->state();
  BatchOutputs outputs;
  state.sizes.reserve(sizes.size() * batch);
  state.order.reserve(sizes.size() * batch);
  state.frames.reserve(sizes.size() * batch);
  for (const ImageSize size : sizes) {
    VIT_CHECK(size.height != 0 && size.width != 0, kWhere, "an image of ", size.height, " x ", size.width,
              " pixels to reserve memory for");
    const Image image(size.height, size.width);
    Tensor<float> pixels(Shape{preprocessor().num_planes(size), preprocessor().output_size(size).height,
                               preprocessor().output_size(size).width});
    // which thread gets which image is chance
    for (PreprocessMemory& memory : state.preprocess_memory) preprocessor().run(image, pixels, memory);
    preprocessor().run(image, pixels, state.preprocess_memory.front(), state.options.threads);
    const std::vector<ImageView> images(batch, image.view());
    PassPlan last{.num_tasks = batch + 1};
    for (std::size_t count = batch; count > 0; --count) {  // large to small: few plans differ
      const PassPlan next = plan(count, pixels.dim(1), pixels.dim(2));
      const bool is_new = next.num_tasks != last.num_tasks || next.num_shared != last.num_shared ||
                          next.images_per_task != last.images_per_task;
      if (is_new) run(std::span(images).first(count), request, outputs);
      last = next;
    }
  }
}

void Session::compute(TensorView<const float> pixels, const Request& request, Outputs& outputs) {
  LayersOf::image(model()).forward(pixels, request, state().options.threads, state().memory, outputs);
  for (std::size_t i = 0; i < outputs.num_images(); ++i)
    OutputWriter(outputs).set_frame(i, frame_of_pixels({pixels.dim(2), pixels.dim(3)}));
}

StageTimes Session::measure(TensorView<const float> pixels, const Request& request, Outputs& outputs) {
  StageTimes times;
  state().memory.measure_stages(&times);
  try {
    forward(pixels, request, outputs);
  } catch (...) {
    state().memory.measure_stages(nullptr);
    throw;
  }
  state().memory.measure_stages(nullptr);
  return times;
}

// ---------------------------------------------------------------------------------------------- ImageTask

ImageTask::ImageTask(std::shared_ptr<const Model> model, Request request)
    : model_(std::move(model)), request_(std::move(request)) {}

void ImageTask::run(Session& session, const ImageSource& image, Outputs& outputs) const {
  VIT_CHECK(&session.model() == model_.get(), kWhere,
            "the session and the task were made from different models");
  session.run(image, request_, outputs);
}

// --------------------------------------------------------------------------------------- FeatureExtractor

FeatureExtractor::FeatureExtractor(std::shared_ptr<const Model> model, SessionOptions options)
    : session_(std::move(model), options), request_{Output::tokens} {
  if (session_.model().config().head.pooling != Pooling::none) request_.add(Output::pooled);
}
FeatureExtractor::FeatureExtractor(const std::filesystem::path& path, SessionOptions options,
                                   const ModelOptions& model_options)
    : FeatureExtractor(Model::load(path, model_options), options) {}

ImageOutputs FeatureExtractor::extract(const ImageSource& image) & {
  session_.run(image, request_, outputs_);
  return outputs_[0];
}

}  // namespace vit
