// vit detect with phrases and boxes of a model of prompts: no work on masks.
#include <string>
#include <vector>

#include "apps/vit/rings/dense/detect_results.h"
#include "apps/vit/rings/dense/prompt_run.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

class PhraseDetectWork : public PhraseWork {
 public:
  explicit PhraseDetectWork(const PromptJob& job) : PhraseWork("detect", job, kDetectFormats, {"color"}) {}

 private:
  std::string add(ImageRun& run, const StreamedImage& image) override {
    return failure_of([&] {
      const std::string& name = run.inputs()[image.index].name;
      const ClassPrompts prompts = asked(name);
      const auto features = segmenter().encode(*image.outputs);
      const std::vector<Detection> found = find_boxes(segmenter(), *features, prompts);
      if (outputs_.writes_arrays()) outputs_.add_arrays(run, image.index, arrays_of_detections(found));
      write_detections(outputs_, run, image, found);
      MapOutputs::print(run, line_of_detections(name, found, json_));
    });
  }
};

}  // namespace

int detect_prompts(const PromptJob& job) {
  VIT_CHECK(!job.run.raw, "detect", "--raw of a model of prompts is written by vit segment --raw");
  return PhraseDetectWork(job).run();
}

}  // namespace vit::app
