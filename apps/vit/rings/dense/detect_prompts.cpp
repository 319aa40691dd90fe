// vit detect with phrases and boxes of a model of prompts: no work on masks.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/rings/dense/detect_results.h"
#include "apps/vit/rings/dense/prompt_results.h"
#include "apps/vit/rings/dense/prompt_run.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

class PromptDetectWork : public ImageWork {
 public:
  explicit PromptDetectWork(const PromptJob& job)
      : job_(job),
        options_(prompt_options_of(job)),
        prompts_(job.choices),
        outputs_("detect", job.run, kDetectFormats, {"color"}),
        json_(job.run.has_word("json") || job.run.writes_arrays()) {}

  int run() { return outputs_.run(*this, {job_.choices.texts.file, job_.choices.boxes}); }

 private:
  std::optional<Request> load(ImageRun& run) override {
    segmenter_.emplace(open_phrases(run, job_, prompts_, outputs_));
    return segmenter_->model().request();
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    return failure_of([&] {
      const std::string& name = run.inputs()[image.index].name;
      const ClassPrompts asked{
          .labels = prompts_.labels(), .prompts = prompts_.of_image(name), .options = options_};
      const auto features = segmenter_->encode(*image.outputs);
      const std::vector<Detection> found = find_boxes(*segmenter_, *features, asked);
      if (outputs_.writes_arrays()) outputs_.add_arrays(run, image.index, arrays_of_detections(found));
      write_detections(outputs_, run, image, found);
      MapOutputs::print(run, line_of_detections(name, found, json_));
    });
  }

  int finish(ImageRun& run) override { return outputs_.finish(run); }

  const PromptJob& job_;
  PromptOptions options_;
  PhrasePrompts prompts_;
  MapOutputs outputs_;
  bool json_;
  std::optional<PromptSegmenter> segmenter_;
};

}  // namespace

int detect_prompts(const PromptJob& job) {
  VIT_CHECK(!job.run.raw, "detect", "--raw of a model of prompts is written by vit segment --raw");
  return PromptDetectWork(job).run();
}

}  // namespace vit::app
