// vit evaluate --task segment --classifier: learned classes of pixels, compared with labels.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <sstream>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/inputs/pixel_labels.h"
#include "apps/vit/outputs/result_names.h"
#include "apps/vit/rings/dense/segment_pixels.h"
#include "apps/vit/run/run_images.h"
#include "vit/pixels.h"
#include "vit/rings/dense/map_metrics.h"

namespace vit::app {
namespace {

std::vector<std::size_t> unlabeled_of(const MapEvaluation& evaluation) {
  if (evaluation.reduce) fail_usage("--reduce-labels is for the head of a model; --ignore-index 0 ignores 0");
  if (!evaluation.ignored) return {};
  return {*evaluation.ignored};
}

class PixelEvaluation : public ImageWork {
 public:
  PixelEvaluation(const MapEvaluation& evaluation, const EvaluateRun& run)
      : evaluation_(evaluation), run_(run), files_(evaluation.truth, unlabeled_of(evaluation)) {}

  std::optional<Request> load(ImageRun& run) override {
    const std::shared_ptr<const Model>& model = run.load();
    head_ = PixelHead::load(run_.classifier, evaluation_.upsampler);
    head_->check(*model);
    extractor_.emplace(model, head_->options, run_.common.session.threads);
    scores_.emplace(head_->classifier.labels.size());
    names_ = result_names(run.inputs());
    return Request(Output::patches);  // each image is run by the extractor
  }

  void run_inputs(ImageRun& run, const Request&) override {
    run.for_each_input([&](std::size_t index) { return failure_of([&] { compare(run, index); }); });
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    if (interrupted()) return 0;
    VIT_CHECK(num_images_ > 0, "evaluate", run_.folder.string(), ": no image could be evaluated");
    JsonValue result{{"task", "segment"},
                     {"images", num_images_},
                     {"miou", scores_->mean_iou()},
                     {"accuracy", scores_->accuracy()},
                     {"classes", JsonValue::array()},
                     {"failed", run.progress().num_failed()},
                     {"seconds", run.progress().seconds()}};
    const std::vector<std::string>& labels = head_->classifier.labels;
    for (std::size_t k = 0; k < labels.size(); ++k) {
      if (const auto iou = scores_->iou(k))
        result["classes"].push_back({{"index", k}, {"label", labels[k]}, {"iou", *iou}});
    }
    print_result(run_.as_json ? result.dump() + "\n" : as_text(result));
    return 0;
  }

 private:
  void compare(ImageRun& run, std::size_t i) {
    const Input& input = run.inputs()[i];
    VIT_CHECK(input.pixels == nullptr, "evaluate", "preprocessed pixels have no image to compare");
    const Image image = decode_input(input, run.preprocessor().decode_options());
    const std::optional<PixelLabels> labels = files_.read(input, names_[i], image.size());
    VIT_CHECK(labels, (Where{"evaluate", ErrorKind::io}), evaluation_.truth.string(), ": no labels of ",
              names_[i].string());
    const Tensor<std::int32_t> truth = classes_of(*labels, image.size());
    scores_->add(head_->classes(extractor_->extract(image), run_.common.session.threads), truth);
    ++num_images_;
  }

  /// The head's class of a value: by its name in the files that it was learned from, or its own name; of maps
  /// of indices also by the index, which is what vit segment writes.
  std::int32_t class_of(const PixelLabels& labels, std::int64_t value) const {
    const std::string name = files_.name_of(labels.kind, value);
    for (const std::vector<std::string>* const names : {&head_->sources, &head_->classifier.labels}) {
      const auto found = std::ranges::find(*names, name);
      if (found != names->end()) return static_cast<std::int32_t>(found - names->begin());
    }
    const std::size_t count = head_->classifier.labels.size();
    if (labels.kind == LabelKind::indices && value < static_cast<std::int64_t>(count))
      return static_cast<std::int32_t>(value);
    fail(kMapMismatch, labels.file, ": holds the class ", printable(name), ", which is none of the ", count,
         " of ", run_.classifier.string(), "; --ignore-index names the index of pixels without a class");
  }

  Tensor<std::int32_t> classes_of(const PixelLabels& labels, ImageSize size) const {
    VIT_CHECK(labels.values.dim(0) == size.height && labels.values.dim(1) == size.width, kMapMismatch,
              labels.file, ": labels of ", labels.values.dim(1), " x ", labels.values.dim(0),
              " pixels for an image of ", size.width, " x ", size.height);
    std::vector<std::int32_t> classes;
    for (const std::int64_t value : labels.found) classes.push_back(class_of(labels, value));
    Tensor<std::int32_t> out(labels.values.shape());
    std::ranges::transform(labels.values.flat(), out.data(), [&](std::int64_t value) {
      if (value == kUnlabeled) return head_->has_background ? 0 : -1;
      const auto place = std::ranges::find(labels.found, value) - labels.found.begin();
      return classes[static_cast<std::size_t>(place)];
    });
    return out;
  }

  std::string as_text(const JsonValue& result) const {
    char line[160];
    std::snprintf(line, sizeof line, "mIoU %.2f %%, accuracy %.2f %% of %zu images\n",
                  100 * result["miou"].get<double>(), 100 * result["accuracy"].get<double>(), num_images_);
    std::string out = line;
    for (const JsonValue& row : result["classes"]) {
      std::snprintf(line, sizeof line, "  %6.2f %%  ", 100 * row["iou"].get<double>());
      out += line + printable(row["label"].get<std::string>()) + "\n";
    }
    return out;
  }

  const MapEvaluation& evaluation_;
  const EvaluateRun& run_;
  LabelFiles files_;
  std::vector<std::filesystem::path> names_;
  std::optional<PixelHead> head_;
  std::optional<PixelExtractor> extractor_;
  std::optional<ClassScores> scores_;
  std::size_t num_images_ = 0;
};

}  // namespace

int evaluate_pixels(const MapEvaluation& evaluation, const EvaluateRun& run) {
  PixelEvaluation work(evaluation, run);
  const std::vector<std::string> folder{run.folder.string()};
  std::istringstream none;
  return run_images({.name = "evaluate",
                     .common = run.common,
                     .list = [&] { return list_inputs(folder, none); },
                     .reads = {evaluation.truth, run.classifier, evaluation.upsampler,
                               PixelHead::upsampler_file(run.classifier)}},
                    work);
}

}  // namespace vit::app
