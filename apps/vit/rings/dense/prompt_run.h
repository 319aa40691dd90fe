// What runs of prompts share: the model, the phrases, and the boxes of each image.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/vit/rings/dense/prompt_options.h"
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

  /// Names of the classes; that of a prompt of only boxes is the model's word for it.
  const std::vector<std::string>& labels() const noexcept { return labels_; }
  /// Those of an image. Throws Error if there are neither phrases nor boxes for it.
  std::vector<Prompt> of_image(const std::string& name) const;

 private:
  std::vector<std::string> phrases_, labels_;
  std::map<std::string, std::vector<ExampleLine>> boxes_;
  std::filesystem::path boxes_file_;
};

/// The settings of a job.
PromptOptions prompt_options_of(const PromptJob& job);
/// The facts on which results depend, for runs that are continued.
void note_prompts(MapOutputs& outputs, const PromptJob& job);
/// Begins a run of phrases: loads the model, notes the facts, opens the outputs.
PromptSegmenter open_phrases(ImageRun& run, const PromptJob& job, const PhrasePrompts& prompts,
                             MapOutputs& outputs);

/// Objects of images by points, boxes and masks (segment_objects.cpp). Returns the exit code.
int segment_objects(const PromptJob& job);

}  // namespace vit::app
