// vit segment with points, boxes and masks: one object each.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/sha256.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/rings/dense/prompt_results.h"
#include "apps/vit/rings/dense/prompt_run.h"
#include "vit/base/check.h"
#include "vit/io/source_file.h"

namespace vit::app {
namespace {

/// The objects of images: those of a file, or the one of the command line.
class ObjectPrompts {
 public:
  explicit ObjectPrompts(const PromptChoices& choices) : file_(choices.objects) {
    if (!choices.objects.empty()) {
      if (!choices.points.empty() || choices.box)
        fail_usage("--objects says what the objects are; --points and --box mean one of one image");
      const std::string text = read_prompts_file(choices.objects);
      digest_ = sha256(std::as_bytes(std::span(text)));
      all_ = parse_objects(text, choices.objects.string());
      return;
    }
    one_.emplace();
    one_->points = choices.points;
    if (choices.box) one_->box.push_back(*choices.box);
    for (const PointLine& point : choices.points)
      digest_ += text(digest_.empty() ? "" : " ", point.x, ",", point.y, point.positive ? "" : ",-");
    if (const std::optional<Box>& box = choices.box)
      digest_ += text(" in ", box->x0, ",", box->y0, ",", box->x1, ",", box->y1);
  }

  /// What is asked: points and box, or the SHA-256 of the file.
  const std::string& asked() const noexcept { return digest_; }
  /// The file of a mask: next to the file of prompts, unless its path says otherwise.
  std::filesystem::path mask_file(const ObjectLine& object) const {
    return file_.parent_path() / object.mask;
  }
  /// Those of all objects.
  std::vector<std::filesystem::path> mask_files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& [image, objects] : all_) {
      for (const ObjectLine& object : objects) {
        if (!object.mask.empty()) files.push_back(mask_file(object));
      }
    }
    return files;
  }

  bool is_of_one_image() const noexcept { return one_.has_value(); }
  /// Those of an image. Throws Error if there are none.
  std::vector<ObjectLine> of_image(const std::string& name) const {
    if (one_) return {*one_};
    const auto found = all_.find(name);
    VIT_CHECK(found != all_.end() && !found->second.empty(), (Where{"prompts", ErrorKind::mismatch}), name,
              ": ", file_.string(), " has no objects of this image");
    return found->second;
  }

 private:
  std::filesystem::path file_;
  std::string digest_;
  std::map<std::string, std::vector<ObjectLine>> all_;
  std::optional<ObjectLine> one_;
};

class ObjectWork : public ImageWork {
 public:
  explicit ObjectWork(const PromptJob& job)
      : job_(job),
        prompts_(job.choices),
        outputs_("segment", job.run, kPromptFormats, {"png", "color"}),
        json_(job.run.has_word("json") || job.run.writes_arrays()) {}

  int run() {
    std::vector<std::filesystem::path> reads = prompts_.mask_files();
    reads.push_back(job_.choices.objects);
    return outputs_.run(*this, std::move(reads));
  }

 private:
  std::optional<Request> load(ImageRun& run) override {
    const auto model = load_prompts(run, job_.run.common, PromptUse::objects);
    note_prompts(outputs_, job_);
    outputs_.note("masks", job_.choices.all_masks ? "all" : "best");
    outputs_.note("objects", prompts_.asked());
    outputs_.note("mask_files", digests_of_masks());
    outputs_.open(run);
    if (prompts_.is_of_one_image() && run.inputs().size() > 1)
      fail_usage("--points and --box mean an object of one image, and there are ", run.inputs().size(),
                 "; --objects FILE names those of several");
    segmenter_.emplace(model, PromptSegmenterOptions{.threads = outputs_.threads()});
    return model->request();
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    return failure_of([&] {
      const std::vector<ObjectLine> objects = prompts_.of_image(run.inputs()[image.index].name);
      const auto features = segmenter_->encode(*image.outputs, PromptUse::objects);
      std::vector<ObjectMasks> all;
      for (const ObjectLine& object : objects) all.push_back(masks_of_object(*features, object));
      write(run, image, all, features->image());
    });
  }

  int finish(ImageRun& run) override { return outputs_.finish(run); }

  /// Of the masks that can be read, in their order; the others fail with their image.
  std::vector<std::string> digests_of_masks() const {
    std::vector<std::string> digests;
    if (!outputs_.writes_folder()) return digests;
    for (const std::filesystem::path& file : prompts_.mask_files()) {
      std::string& digest = digests.emplace_back("none");
      failure_of([&] { digest = sha256(internal::SourceFile(file, "resume")); });
    }
    return digests;
  }

  /// The logits of an object's mask. Throws Error that names the file.
  Tensor<float> read_mask(const ObjectLine& object) const {
    const std::filesystem::path file = prompts_.mask_file(object);
    Tensor<float> mask;
    try {
      mask = load_npy_floats(file);
    } catch (const Error& error) {
      fail(Where("prompts", error.kind()), "the mask ", file.string(), ": ", error.message());
    }
    while (mask.shape().rank() > 2 && mask.dim(0) == 1) mask = without_first(std::move(mask));
    VIT_CHECK(mask.shape().rank() == 2, (Where{"prompts", ErrorKind::mismatch}), "the mask ", file.string(),
              ": expected (h, w) logits, found ", mask.shape().to_string());
    return mask;
  }

  ObjectMasks masks_of_object(const PromptFeatures& features, const ObjectLine& object) {
    ObjectPrompt prompt;
    for (const PointLine& point : object.points)
      prompt.points.push_back({.x = point.x, .y = point.y, .positive = point.positive});
    if (!object.box.empty()) prompt.box = object.box.front();
    Tensor<float> mask;
    if (!object.mask.empty()) {
      mask = read_mask(object);
      prompt.mask = mask;
    }
    return segmenter_->segment_object(
        features, prompt,
        {.multimask = object.multimask,
         .rule =
             job_.choices.rule == PromptRuleChoice::library ? PromptRule::library : PromptRule::repository});
  }

  static Tensor<float> without_first(Tensor<float> mask) {
    std::vector<std::size_t> sizes;
    for (std::size_t i = 1; i < mask.shape().rank(); ++i) sizes.push_back(mask.dim(i));
    Tensor<float> out{Shape(std::span<const std::size_t>(sizes))};
    std::ranges::copy(mask.flat(), out.data());
    return out;
  }

  void write(ImageRun& run, const StreamedImage& image, std::span<const ObjectMasks> all, ImageSize size) {
    const FoundMasks found = masks_of_objects(all, job_.choices.all_masks, size);
    if (outputs_.writes_arrays())
      outputs_.add_arrays(run, image.index, job_.run.raw ? raw_of_objects(all) : arrays_of_masks(found));
    write_masks(outputs_, run, image, found);
    MapOutputs::print(run, line_of_masks(run.inputs()[image.index].name, found, "instance", json_));
  }

  const PromptJob& job_;
  ObjectPrompts prompts_;
  MapOutputs outputs_;
  bool json_;
  std::optional<PromptSegmenter> segmenter_;
};

}  // namespace

int segment_objects(const PromptJob& job) {
  return ObjectWork(job).run();
}

}  // namespace vit::app
