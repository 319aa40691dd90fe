// What runs of prompts share: the model, the phrases, and the boxes of each image.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/rings/dense/prompt_options.h"
#include "apps/vit/rings/dense/prompt_results.h"
#include "vit/prompts.h"

namespace vit::app {

/// Loads the model of prompts, and gives its image tower to the run. Throws Error, as PromptModel::load()
/// does, and UsageError if it has no part for `use`.
std::shared_ptr<const PromptModel> load_prompts(ImageRun& run, const CommonOptions& common, PromptUse use);

/// The prompts of each image: one for every phrase.
class PhrasePrompts {
 public:
  /// Reads the files of `choices`. Throws UsageError for none, and for boxes without a label among several
  /// phrases or with one that is no phrase; Error for a damaged file.
  explicit PhrasePrompts(const PromptChoices& choices);

  /// What is asked for in words; none for boxes alone.
  const std::vector<std::string>& phrases() const noexcept { return phrases_; }
  /// SHA-256 of the file of boxes; "none" without one.
  const std::string& boxes_digest() const noexcept { return boxes_digest_; }
  /// Names of the classes; that of a prompt of only boxes is the model's word for it.
  const std::vector<std::string>& labels() const noexcept { return labels_; }
  /// Those of an image. Throws Error if there are neither phrases nor boxes for it.
  std::vector<Prompt> of_image(const std::string& name) const;
  /// One line about boxes of files that are not among the inputs; "" if there are none.
  std::string unused(std::span<const Input> inputs) const;

 private:
  std::vector<std::string> phrases_, labels_;
  std::map<std::string, std::vector<ExampleLine>> boxes_;
  std::filesystem::path boxes_file_;
  std::string boxes_digest_ = "none";
};

/// The facts on which results depend, for runs that are continued.
void note_prompts(MapOutputs& outputs, const PromptJob& job);

/// A run of phrases and boxes over images; what becomes of an image is add()'s.
class PhraseWork : public ImageWork {
  const PhrasePrompts prompts_;  // read before the outputs are checked

 public:
  /// As MapOutputs(); `job` must outlive it.
  PhraseWork(const char* command, const PromptJob& job, std::span<const MapFormat> formats,
             std::vector<std::string_view> fallback);
  /// Returns the exit code.
  int run() { return outputs_.run(*this, {job_.choices.texts.file, job_.choices.boxes}); }

 protected:
  /// What an image of this name is asked.
  ClassPrompts asked(const std::string& name) const;
  PromptSegmenter& segmenter() { return *segmenter_; }

  const PromptJob& job_;
  MapOutputs outputs_;
  const bool json_;  // lines are JSON

 private:
  std::optional<Request> load(ImageRun& run) override;
  int finish(ImageRun& run) override { return outputs_.finish(run); }

  std::optional<PromptSegmenter> segmenter_;
};

/// Objects of images by points, boxes and masks (segment_objects.cpp). Returns the exit code.
int segment_objects(const PromptJob& job);

}  // namespace vit::app
