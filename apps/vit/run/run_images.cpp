#include "apps/vit/run/run_images.h"

#include <array>
#include <iostream>
#include <system_error>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/clips.h"
#include "apps/vit/inputs/video_frames.h"
#include "apps/vit/options/load_model.h"
#include "vit/config.h"

namespace vit::app {
namespace {

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;  // no such file
  return std::filesystem::is_regular_file(a, error) && std::filesystem::equivalent(a, b, error);
}

bool takes_frames(const ImageJob& job) {
  return job.takes_videos && job.common.model_options.clip_frames == 0;
}

InputList list_of(const ImageJob& job) {
  InputList list = job.list                                   ? job.list()
                   : job.common.model_options.clip_frames > 0 ? list_clips(job.inputs)
                                                              : list_inputs(job.inputs, std::cin);
  if (job.shard && !takes_frames(job)) take_shard(list, *job.shard);
  return list;
}

/// The files and folders that a run writes; "" = none.
std::vector<std::filesystem::path> outputs_of(const ImageJob& job) {
  std::vector<std::filesystem::path> all = job.files;
  all.insert(all.end(), job.writes.begin(), job.writes.end());
  return all;
}

}  // namespace

void confine_run(const CommonOptions& common, std::span<const Input> inputs,
                 const std::vector<std::filesystem::path>& reads,
                 const std::vector<std::filesystem::path>& outputs) {
  for (const std::filesystem::path& path : outputs) {
    if (path.empty()) continue;
    check_no_input(path, inputs);
    for (const std::filesystem::path& other : reads) {
      if (!other.empty() && is_same_file(path, other))
        fail_usage(path.string(), " is read by this run; name another file for the results");
    }
  }
  confine(common, inputs, reads, outputs);
}

int run_images(const ImageJob& job, ImageWork& work) {
  for (const std::filesystem::path& file : job.files) {
    if (!file.empty()) check_output_place(file);
  }
  ImageRun run(job, list_of(job));
  const std::vector<std::filesystem::path> outputs = outputs_of(job);
  confine_run(job.common, run.inputs(), job.reads, outputs);
  if (takes_frames(job)) {  // decoded by the confined process; frames are counted before a part is taken
    expand_videos(run.list(), job.common.model_options.max_pixels);
    if (job.shard) take_shard(run.list(), *job.shard);
  }
  const std::optional<Request> request = work.load(run);
  if (!request) return interrupted_exit_code();
  if (run.model_) check_no_weights(outputs, run.model_->report().files);
  run.start();
  work.run_inputs(run, *request);
  const int code = work.finish(run);
  run.progress_->finish("");
  return std::max(code, exit_code(*run.progress_));
}

void ImageWork::run_inputs(ImageRun& run, const Request& request) {
  run.for_each(request, [&](const StreamedImage& image) {
    return image.outputs ? add(run, image) : add_failed(run, image);
  });
}

const std::shared_ptr<const Model>& ImageRun::load() {
  if (!model_) model_ = load_model(job_.common);
  return model_;
}

void ImageRun::start() {
  if (model_) check_preprocessing(list_.inputs, *model_);
  hold_interrupts();
  reader_.emplace(list_.inputs, job_.digests);
  if (model_) session_.emplace(model_, job_.common.session);
  if (model_ && model_->has_preprocess_config()) reader_->set_preprocessor(&session_->preprocessor());
  progress_.emplace(job_.name, list_.inputs.size() + list_.failures.size(), job_.common.progress_mode());
  if (!job_.common.quiet) {
    progress_->clear();
    for (const InputFailure& note : list_.notes) print_failure(note.name, note.cause);
  }
  for (const InputFailure& failure : list_.failures) progress_->add_failed(failure.name, failure.cause);
}

void ImageRun::count(std::size_t index, const std::string& failure) {
  if (failure.empty()) {
    progress_->add_done(1);
  } else {
    progress_->add_failed(list_.inputs[index].name, failure);
  }
}

void ImageRun::for_each_input(const std::function<std::string(std::size_t)>& run_one) {
  for (std::size_t i = 0; i < list_.inputs.size() && !interrupted(); ++i) count(i, run_one(i));
}

void ImageRun::for_each(const Request& request,
                        const std::function<std::string(const StreamedImage&)>& consume) {
  const auto source = [this](std::size_t index) { return reader_->source(index); };
  const auto take = [&](const StreamedImage& image) { count(image.index, consume(image)); };
  // inputs refused before the run count for the bar, but not for the stream
  const auto num_refused = static_cast<double>(progress_->num_failed());
  const auto show = [&](double done, std::size_t) { progress_->show_partial(num_refused + done); };
  for_each_image(*session_, list_.inputs.size(), source, request, take,
                 {.on_progress = show, .is_cancelled = interrupted});
}

void ImageRun::run_example(const Request& request, const std::function<void(const ImageOutputs&)>& consume) {
  const ModelConfig& config = model_->config();
  const SessionOptions& options = job_.common.session;
  Session session(model_, {.threads = options.threads, .input_size = options.input_size});
  BatchOutputs results;
  if (const std::size_t clip_frames = job_.common.model_options.clip_frames; clip_frames > 0) {
    const Image frame(config.image.height, config.image.width);
    const std::vector<ImageView> frames(clip_frames, frame.view());
    const Tensor<float> clip = session.preprocessor().run_clip(frames);
    session.run_pixels(std::array{clip.view()}, request, results);
  } else if (model_->has_preprocess_config()) {
    const Image image(config.image.height, config.image.width);
    session.run(std::array{image.view()}, request, results);
  } else {
    const Tensor<float> pixels(Shape{config.image.num_channels, config.image.height, config.image.width});
    session.run_pixels(std::array{pixels.view()}, request, results);
  }
  consume(results[0]);
}

void check_preprocessing(std::span<const Input> inputs, const Model& model) {
  if (are_images(inputs)) model.require_preprocess_config();
}

int exit_code(const Progress& progress) {
  if (interrupted()) return interrupted_exit_code();
  return progress.num_failed() > 0 ? 1 : 0;
}

}  // namespace vit::app
