// vit evaluate --anomaly: how well a bank separates good images from damaged ones, in a tree like MVTec's.
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/rings/anomaly/anomaly.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/run/run_images.h"
#include "vit/analysis/detection.h"
#include "vit/base/check.h"
#include "vit/config.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGood = "good";
constexpr double kProLimit = 0.3;  // as Bergmann et al. 2021
constexpr double kSigma = 4.0;     // of maps, as in `vit anomaly score`

/// Images of a test set; kinds[i] is the folder of image i.
struct TestSet {
  InputList list;
  std::vector<std::string> kinds;
  fs::path masks;  // ground_truth/, if it exists

  /// The mask of an image of a defect: NAME_mask.png or NAME.png. Throws Error if neither is there.
  fs::path mask_of(const Input& image, const std::string& kind) const {
    const fs::path folder = masks / kind;
    const std::string stem = fs::path(image.path).stem().string();
    std::error_code error;
    for (const char* ending : {"_mask.png", ".png"}) {
      if (fs::exists(folder / (stem + ending), error)) return folder / (stem + ending);
    }
    fail(Where("evaluate", ErrorKind::io), (folder / (stem + "_mask.png")).string(), ": no such mask");
  }
};

TestSet read_test_set(const fs::path& folder) {
  std::error_code error;
  const fs::path root = fs::is_directory(folder / "test", error) ? folder / "test" : folder;
  TestSet set;
  for (const fs::path& kind : class_folders(root, "evaluate", set.list)) {
    for (const std::string& image : images_below(kind, set.list)) {
      set.list.inputs.push_back({.name = image, .path = image, .pixels = nullptr});
      set.kinds.push_back(kind.filename().string());
    }
  }
  const fs::path masks = fs::absolute(root).lexically_normal().parent_path();
  const fs::path sibling = (root.filename().empty() ? masks.parent_path() : masks) / "ground_truth";
  if (fs::is_directory(sibling, error)) set.masks = sibling;
  return set;
}

Tensor<std::uint8_t> read_mask(const fs::path& path, ImageSize size) {
  const Image mask = decode_file(path);
  VIT_CHECK(mask.size() == size, Where("evaluate", ErrorKind::mismatch), path.string(), ": a mask of ",
            mask.width(), " x ", mask.height(), " pixels for an image of ", size.width, " x ", size.height);
  Tensor<std::uint8_t> out(Shape{size.height, size.width});
  for (std::size_t i = 0; i < out.num_elements(); ++i) out.data()[i] = mask.data()[3 * i];
  return out;
}

/// The options of the measure.
struct AnomalyEvaluation {
  fs::path bank;                  // "" = not requested
  std::optional<double> limit{};  // of the share of good pixels, for PRO; nothing = kProLimit
};

/// The results so far.
struct Scores {
  std::vector<float> scores;
  std::vector<std::uint8_t> is_defective;
  std::vector<std::string> kinds;
  PixelScores pixels;

  JsonValue kinds_json(std::optional<float> threshold) const {
    std::map<std::string, std::vector<float>> by_kind;
    for (std::size_t i = 0; i < scores.size(); ++i) by_kind[kinds[i]].push_back(scores[i]);
    JsonValue out = JsonValue::array();
    for (const auto& [kind, values] : by_kind) {
      JsonValue row{
          {"kind", kind}, {"images", values.size()}, {"above_threshold", nullptr}, {"image_auroc", nullptr}};
      if (threshold)
        row["above_threshold"] =
            std::ranges::count_if(values, [&](float score) { return score > *threshold; });
      if (kind != kGood && by_kind.contains(kGood)) {
        std::vector<float> both = by_kind.at(kGood);
        std::vector<std::uint8_t> labels(both.size(), 0);
        both.insert(both.end(), values.begin(), values.end());
        labels.resize(both.size(), 1);
        row["image_auroc"] = roc_auc(both, labels);
      }
      out.push_back(std::move(row));
    }
    return out;
  }
};

std::string separation_as_text(const JsonValue& result) {
  const auto number = [](const JsonValue& value) {
    char digits[32] = "-";
    if (value.is_number()) std::snprintf(digits, sizeof digits, "%.4f", value.get<double>());
    return std::string(digits);
  };
  std::string out = "image AUROC " + number(result["image_auroc"]) + ", pixel AUROC " +
                    number(result["pixel_auroc"]) + ", PRO " + number(result["pro"]) +
                    text(" of ", result["images"].get<std::size_t>(), " images, ",
                         result["failed"].get<std::size_t>(), " failed\n");
  for (const JsonValue& row : result["kinds"]) {
    out += "  " + number(row["image_auroc"]) + text("  ", row["images"].get<std::size_t>(), " images");
    if (!row["above_threshold"].is_null())
      out += text(", ", row["above_threshold"].get<std::size_t>(), " above the threshold");
    out += "  " + printable(row["kind"].get<std::string>()) + "\n";
  }
  return out;
}

JsonValue json_of(Scores& found, const AnomalyEvaluation& evaluation, const fs::path& folder,
                  const AnomalyModel& bank, const Progress& progress) {
  const auto num_defective = std::ranges::count(found.is_defective, 1);
  const double limit = evaluation.limit.value_or(kProLimit);
  VIT_CHECK(num_defective > 0 && static_cast<std::size_t>(num_defective) < found.scores.size(), "evaluate",
            folder.string(), ": images in good/ and in at least one folder of a defect are required, found ",
            found.scores.size() - static_cast<std::size_t>(num_defective), " and ", num_defective);
  JsonValue result{{"images", found.scores.size()},
                   {"defective", num_defective},
                   {"image_auroc", roc_auc(found.scores, found.is_defective)},
                   {"pixel_auroc", nullptr},
                   {"pro", nullptr},
                   {"pro_limit", limit},
                   {"failed", progress.num_failed()},
                   {"seconds", progress.seconds()},
                   {"kinds", found.kinds_json(bank.threshold())}};
  if (found.pixels.num_regions() > 0) {
    result["pixel_auroc"] = found.pixels.roc_auc();
    result["pro"] = found.pixels.per_region_overlap(limit);
  }
  return result;
}

class AnomalyScoring : public ImageWork {
 public:
  AnomalyScoring(const AnomalyEvaluation& options, const EvaluateRun& evaluation, CommonOptions& common)
      : options_(options),
        evaluation_(evaluation),
        threads_(common.session.threads),
        bank_(load_bank(options.bank, common)),
        set_(read_test_set(evaluation.folder)) {}

  InputList take_list() { return std::move(set_.list); }
  const std::filesystem::path& masks() const { return set_.masks; }

  std::optional<Request> load(ImageRun& run) override { return bank_.request(*run.load()); }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    return failure_of([&] {
      const AnomalyResult result = bank_.score(*image.outputs, threads_);
      const bool is_defective = set_.kinds[image.index] != kGood;
      if (!set_.masks.empty()) {
        const Tensor<float> map =
            anomaly_map(result.distances, image.size, run.preprocessor().source_map(image.size),
                        run.model().config().patch.size, kSigma);
        Tensor<std::uint8_t> mask;
        if (is_defective)
          mask = read_mask(set_.mask_of(run.inputs()[image.index], set_.kinds[image.index]), image.size);
        found_.pixels.add(map, mask);
      }
      found_.scores.push_back(result.score);
      found_.is_defective.push_back(is_defective);
      found_.kinds.push_back(set_.kinds[image.index]);
    });
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    if (interrupted()) return 0;
    const JsonValue result = json_of(found_, options_, evaluation_.folder, bank_, run.progress());
    print_result(evaluation_.as_json ? result.dump() + "\n" : separation_as_text(result));
    return 0;
  }

 private:
  const AnomalyEvaluation& options_;
  const EvaluateRun& evaluation_;
  const int threads_;
  const AnomalyModel bank_;
  TestSet set_;
  Scores found_;
};

class AnomalyMeasure : public Measure {
 public:
  void add_options(std::vector<Option>& list, CommonOptions& /*common*/) override {
    list.push_back({.name = "--anomaly",
                    .type_name = "BANK",
                    .help =
                        "Evaluate a bank of vit anomaly on FOLDER with good/ and one subfolder per kind of "
                        "defect, masks in ground_truth/ next to it",
                    .target = text_target(options_.bank)});
    list.push_back(
        {.name = "--pro-limit",
         .type_name = "SHARE",
         .help = "False positive rate up to which --anomaly integrates PRO",
         .target = parsed_target(
             options_.limit, [](const std::string& value) { return parse_real(value, 0.001, 1); }, "0.3")});
  }

  bool is_requested() const override {
    if (options_.bank.empty() && options_.limit) fail_usage("--pro-limit is for --anomaly");
    return !options_.bank.empty();
  }

  const char* excludes() const override {
    return "--anomaly compares with a bank of good images; it takes no options for classes or scales";
  }

  int run(const EvaluateRun& evaluation) override {
    CommonOptions common = evaluation.common;
    AnomalyScoring work(options_, evaluation, common);
    return run_images({.name = "evaluate",
                       .common = common,
                       .list = [&] { return work.take_list(); },
                       .reads = {options_.bank, work.masks()}},
                      work);
  }

 private:
  AnomalyEvaluation options_;
};

}  // namespace

std::shared_ptr<Measure> anomaly_measure() {
  return std::make_shared<AnomalyMeasure>();
}

}  // namespace vit::app
