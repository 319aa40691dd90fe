// One run of a command over its inputs, in the only order that works: check the outputs, list, take a part,
// confine the process, load, run, report, exit code. A command defines what it needs and how it uses the
// results. for_each_image() of vit/session.h reads and computes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/progress.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/options.h"
#include "vit/base/finite.h"
#include "vit/session.h"

namespace vit::app {

/// What a run reads and writes.
struct ImageJob {
  std::string name;  // of the command
  const CommonOptions& common;
  std::span<const std::string> inputs{};        // INPUT...
  std::function<InputList()> list{};            // if the inputs are listed in another way
  std::optional<Shard> shard{};                 // the part of the inputs that is run
  bool takes_videos = false;                    // of a video each frame is an input, if it is no clip
  std::vector<std::filesystem::path> reads{};   // in addition to inputs and model
  std::vector<std::filesystem::path> files{};   // written: each must be possible in its folder
  std::vector<std::filesystem::path> writes{};  // other files and folders, which their writers check
  Digests digests = Digests::none;
};

class ImageWork;

/// The state of a run, which a command's ImageWork is given.
class ImageRun {
 public:
  /// `job` must outlive this.
  ImageRun(const ImageJob& job, InputList list) : job_(job), list_(std::move(list)) {}

  /// The model of --model, loaded now unless it is already loaded.
  const std::shared_ptr<const Model>& load();
  void set_model(std::shared_ptr<const Model> model) { model_ = std::move(model); }
  /// The inputs, which ImageWork::load() may change.
  InputList& list() noexcept { return list_; }

  const Model& model() const noexcept { return *model_; }
  const std::vector<Input>& inputs() const noexcept { return list_.inputs; }
  /// Calls `consume` with the results of a black image of the model's own size, to find their shapes.
  void run_example(const Request& request, const std::function<void(const ImageOutputs&)>& consume);

  // after ImageWork::load()
  /// Throws Error if no file of the model defines the preprocessing.
  const Preprocessor& preprocessor() const { return session_->preprocessor(); }
  Progress& progress() { return *progress_; }
  /// The SHA-256 of an input that was read, if the job asks for digests. Can be taken once.
  std::string take_digest(std::size_t index) { return reader_->take_digest(index); }
  /// Runs all inputs through the model; `consume` takes each in their order and returns why it failed, or "".
  void for_each(const Request& request, const std::function<std::string(const StreamedImage&)>& consume);
  /// Calls `run_one` for each index of an input until an interrupt, for commands that read and compute by
  /// themselves; it returns why the input failed, or "".
  void for_each_input(const std::function<std::string(std::size_t)>& run_one);

 private:
  friend int run_images(const ImageJob& job, ImageWork& work);
  /// Counts an input as done or, with a failure, as failed.
  void count(std::size_t index, const std::string& failure);
  /// Reports inputs without images. From now on an interrupt requests an early end.
  void start();

  const ImageJob& job_;
  InputList list_;
  std::shared_ptr<const Model> model_;  // null for a command that needs none
  std::optional<InputReader> reader_;
  std::optional<Session> session_;
  std::optional<Progress> progress_;
};

/// What a command does in a run, in this order.
class ImageWork {
 public:
  virtual ~ImageWork() = default;

  /// Loads, once the process is confined, what the command needs: the model, unless it needs none. May change
  /// the list of inputs. Returns the request for the images, or nothing to end the run as after an interrupt.
  virtual std::optional<Request> load(ImageRun& run) = 0;
  /// Runs the inputs: through the model, to add() and add_failed(), unless a command has another way.
  virtual void run_inputs(ImageRun& run, const Request& request);
  /// Takes the results of an input, in their order. Returns why they are unusable, or "".
  virtual std::string add(ImageRun& /*run*/, const StreamedImage& /*image*/) { return ""; }
  /// Takes an input that has no results, and returns why.
  virtual std::string add_failed(ImageRun& /*run*/, const StreamedImage& image) { return image.failure; }
  /// Writes the results. Returns an additional exit code, 0 if there is none.
  virtual int finish(ImageRun& run) = 0;
};

/// Runs a job. Returns the exit code.
int run_images(const ImageJob& job, ImageWork& work);

/// A step of every run, once its inputs are known. Throws UsageError if an output, "" = none, would replace
/// an input or a file of `reads`; then confine().
void confine_run(const CommonOptions& common, std::span<const Input> inputs,
                 const std::vector<std::filesystem::path>& reads,
                 const std::vector<std::filesystem::path>& outputs);

/// Throws Error if the inputs are images and no file of the model defines the preprocessing.
void check_preprocessing(std::span<const Input> inputs, const Model& model);

/// The message of an Error thrown by `work`, or "": the failure of one input, which does not end a run.
template <typename Work>
std::string failure_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// interrupted_exit_code() after an interrupt, 1 if something failed, else 0.
int exit_code(const Progress& progress);

}  // namespace vit::app
