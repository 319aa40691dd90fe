#include "apps/vit/run/image_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "apps/vit/inputs/video_frames.h"
#include "apps/vit/run/interrupt.h"

namespace vit::app {

ImageRun::ImageRun(std::string name, const CommonOptions& options)
    : name_(std::move(name)), options_(options) {
  check_has_weights(options);
  model_ = load_model(options);
}

ImageRun::ImageRun(std::string name, const CommonOptions& options, std::shared_ptr<const Model> model)
    : name_(std::move(name)), options_(options), model_(std::move(model)) {}

ImageRun::ImageRun(std::string name, const CommonOptions& options, InputList list)
    : name_(std::move(name)), options_(options), list_(std::move(list)) {}

const std::shared_ptr<const Model>& ImageRun::load() {
  if (!model_) model_ = load_model(options_);
  return model_;
}

void ImageRun::start(InputList list, Digests digests) {
  list_ = std::move(list);
  start(digests);
}

void ImageRun::start(Digests digests) {
  if (model_) check_preprocessing(list_.inputs, *model_);
  hold_interrupts();
  reader_.emplace(list_.inputs, digests);
  if (model_) session_.emplace(model_, options_.session);
  if (model_ && model_->has_preprocess_config()) reader_->set_preprocessor(&session_->preprocessor());
  progress_.emplace(name_, list_.inputs.size() + list_.failures.size(), options_.progress_mode());
  if (!options_.quiet) report_notes(list_, *progress_);
  report_failures(list_, *progress_);
}

void ImageRun::for_each(const Request& request, const Consume& consume) {
  for_each_sized(request, [&](const StreamedImage& image) { return consume(image.index, *image.outputs); });
}

void ImageRun::for_each_sized(const Request& request, const ConsumeSized& consume) {
  for_each_input(request,
                 [&](const StreamedImage& image) { return image.outputs ? consume(image) : image.failure; });
}

void ImageRun::for_each_input(const Request& request, const ConsumeSized& consume) {
  const auto source = [this](std::size_t index) { return reader_->source(index); };
  const auto take = [&](StreamedImage image) {
    // the stream knows the pixels of a frame only
    if (const Input& input = list_.inputs[image.index]; input.video) image.size = input.video->frame_size();
    const std::string failure = consume(image);
    if (failure.empty()) {
      progress_->add_done(1);
    } else {
      progress_->add_failed(list_.inputs[image.index].name, failure);
    }
  };
  // inputs refused before the run count for the bar, but not for the stream
  const auto num_refused = static_cast<double>(progress_->num_failed());
  const auto show = [&](double done, std::size_t) { progress_->show_partial(num_refused + done); };
  for_each_image(*session_, list_.inputs.size(), source, request, take,
                 {.on_progress = show, .is_cancelled = interrupted});
}

void ImageRun::run_example(const Request& request, const std::function<void(const ImageOutputs&)>& consume) {
  const ModelConfig& config = model_->config();
  Session session(model_, {.threads = options_.session.threads, .input_size = options_.session.input_size});
  BatchOutputs results;
  if (options_.model_options.clip_frames > 0) {
    const Image frame(config.image_height, config.image_width);
    const std::vector<ImageView> frames(options_.model_options.clip_frames, frame.view());
    const Tensor<float> clip = session.preprocessor().run_clip(frames);
    session.run_pixels(std::array{clip.view()}, request, results);
  } else if (model_->has_preprocess_config()) {
    const Image image(config.image_height, config.image_width);
    session.run(std::array{image.view()}, request, results);
  } else {
    const Tensor<float> pixels(Shape{config.num_channels, config.image_height, config.image_width});
    session.run_pixels(std::array{pixels.view()}, request, results);
  }
  consume(results[0]);
}

int ImageRun::finish(const std::string& summary) {
  progress_->finish(summary);
  return exit_code(*progress_);
}

void check_preprocessing(std::span<const Input> inputs, const Model& model) {
  if (are_images(inputs)) model.require_preprocess_config();
}

bool are_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

std::string defect_of(std::span<const float> logits) {
  return are_finite(logits) ? "" : "the logits are not finite; damaged pixels or weights?";
}

void report_notes(const InputList& list, Progress& progress) {
  progress.clear();
  for (const InputFailure& note : list.notes) print_failure(note.name, note.cause);
}

void report_failures(const InputList& list, Progress& progress) {
  for (const InputFailure& failure : list.failures) progress.add_failed(failure.name, failure.cause);
}

int exit_code(const Progress& progress) {
  if (interrupted()) return interrupted_exit_code();
  return progress.num_failed() > 0 ? 1 : 0;
}

}  // namespace vit::app
