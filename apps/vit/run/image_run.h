// One run of classify, evaluate or embed over many images: loads the model, reports what fails, shows
// progress, ends early after an interrupt, and gives the exit code. for_each_image() of vit/session.h reads
// and computes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/options.h"
#include "apps/vit/run/progress.h"
#include "vit/session.h"

namespace vit::app {

class ImageRun {
 public:
  /// Loads the model. `name` is the command's. Throws UsageError if only --architecture is given.
  ImageRun(std::string name, const CommonOptions& options);
  /// With an already loaded model.
  ImageRun(std::string name, const CommonOptions& options, std::shared_ptr<const Model> model);

  /// With listed inputs; the model is loaded on demand, or set by set_model().
  ImageRun(std::string name, const CommonOptions& options, InputList list);

  /// The model of --model, loaded now unless it is already loaded.
  const std::shared_ptr<const Model>& load();
  void set_model(std::shared_ptr<const Model> model) { model_ = std::move(model); }
  /// The inputs, to be changed before start().
  InputList& list() noexcept { return list_; }

  const Model& model() const noexcept { return *model_; }
  const std::shared_ptr<const Model>& model_pointer() const noexcept { return model_; }
  const std::vector<Input>& inputs() const noexcept { return list_.inputs; }
  /// After start(). Throws Error if no file of the model defines the preprocessing.
  const Preprocessor& preprocessor() const { return session_->preprocessor(); }

  /// Takes the inputs and reports those without images. From now on an interrupt requests an early end.
  /// Throws Error if the inputs are images and no file of the model defines the preprocessing.
  void start(InputList list, Digests digests = Digests::none);
  void start(Digests digests = Digests::none);  // of list()

  /// Takes the results of inputs()[index]. Returns why they are unusable, or "".
  using Consume = std::function<std::string(std::size_t index, const ImageOutputs& outputs)>;
  /// Calls `consume` for each image that could be computed, in the order of the inputs, and reports the
  /// others.
  void for_each(const Request& request, const Consume& consume);
  /// As for_each(), for results with the size of the image, which is in `image`.
  using ConsumeSized = std::function<std::string(const StreamedImage& image)>;
  void for_each_sized(const Request& request, const ConsumeSized& consume);
  /// As for_each_sized(), also for failed inputs: without outputs, with the failure to be returned.
  void for_each_input(const Request& request, const ConsumeSized& consume);
  /// The SHA-256 of an input that was read, if start() was asked to keep digests. Can be taken once.
  std::string take_digest(std::size_t index) { return reader_->take_digest(index); }

  /// Calls `consume` with the results of a black image of the model's own size, to find their shapes.
  void run_example(const Request& request, const std::function<void(const ImageOutputs&)>& consume);

  Progress& progress() { return *progress_; }
  /// Shows `summary` if progress is shown. Returns exit_code().
  int finish(const std::string& summary = "");

 private:
  const std::string name_;
  const CommonOptions& options_;
  std::shared_ptr<const Model> model_;  // null for a command that needs none
  InputList list_;
  std::optional<InputReader> reader_;
  std::optional<Session> session_;
  std::optional<Progress> progress_;
};

/// Throws Error if the inputs are images and no file of the model defines the preprocessing.
void check_preprocessing(std::span<const Input> inputs, const Model& model);

/// Whether none of the numbers is a NaN or infinite.
bool are_finite(std::span<const float> numbers);

/// Why no class can be derived from these logits, or "".
std::string defect_of(std::span<const float> logits);

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

/// One line on stderr for each note.
void report_notes(const InputList& list, Progress& progress);
void report_failures(const InputList& list, Progress& progress);

/// interrupted_exit_code() after an interrupt, 1 if something failed, else 0.
int exit_code(const Progress& progress);

}  // namespace vit::app
