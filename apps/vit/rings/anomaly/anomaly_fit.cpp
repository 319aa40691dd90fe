// vit anomaly fit: good images to a bank of patches.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <set>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/record.h"
#include "apps/vit/outputs/result_writer.h"
#include "apps/vit/rings/anomaly/anomaly.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/config.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

/// The image rotated clockwise by 90 degrees.
Image quarter_turn(const Image& image) {
  const std::size_t height = image.size().height, width = image.size().width;
  Image out(width, height);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x)
      std::copy_n(image.data() + 3 * (y * width + x), 3, out.data() + 3 * (x * height + (height - 1 - y)));
  }
  return out;
}

AnomalyOptions library_options(const AnomalyCommandOptions& options, const Model& model) {
  AnomalyOptions out{.neighborhood = options.neighborhood,
                     .coreset = options.coreset,
                     .score = options.score,
                     .foreground = options.foreground,
                     .quantile = options.quantile,
                     .threads = options.common.session.threads};
  if (options.neighborhood % 2 == 0) fail_usage("--neighborhood must be odd");
  const auto depth = static_cast<int>(model.config().encoder.depth);
  for (const int layer : options.layers) {
    if (layer < -depth || layer >= depth)
      fail_usage(
          text("--layer: the model has blocks 0 to ", depth - 1, " (or -1 to ", -depth, "), found ", layer));
    out.layers.push_back(static_cast<std::size_t>(layer < 0 ? layer + depth : layer));
  }
  return out;
}

/// Names of folders in which images are not good, or no images but masks.
bool is_bad_folder(const std::string& name) {
  constexpr std::string_view kBad[] = {"ground_truth", "groundtruth", "test",    "bad",    "ng",
                                       "abnormal",     "anomalous",   "anomaly", "defect", "defects",
                                       "defective",    "masks",       "mask",    "defekt", "reject"};
  return std::ranges::find(kBad, internal::lower_ascii(name)) != std::end(kBad);
}

/// The folder of good images of a data set.
std::string good_folder_of(const fs::path& root) {
  std::error_code error;
  for (const char* place : {"train/good", "good", "train/normal", "normal", "train/ok", "ok", "OK"}) {
    if (fs::is_directory(root / place, error)) return (root / place).string();
  }
  return "a folder of good images only";
}

/// Throws Error if the argument is a whole data set: its defects and masks would be learned as good. Images
/// below good/ next to other folders, and below test/ and the like, are the signs.
void check_are_good(const std::string& argument, std::span<const Input> inputs) {
  std::error_code error;
  if (!fs::is_directory(argument, error)) return;
  const fs::path root(argument);
  const bool has_good = fs::is_directory(root / "good", error);
  for (const Input& input : inputs) {
    const fs::path below = fs::path(input.path).lexically_relative(root);
    if (below.empty() || below.begin()->string() == "..") continue;
    bool is_bad = has_good && *below.begin() != "good" && below.has_parent_path();
    for (const fs::path& part : below.parent_path()) is_bad = is_bad || is_bad_folder(part.string());
    VIT_CHECK(
        !is_bad, (Where{"anomaly fit", ErrorKind::mismatch}), argument, ": holds ", below.string(),
        ", which its folder says is not good: this is a whole data set, with test images, defects or masks; "
        "give ",
        good_folder_of(root));
  }
}

/// Throws Error that names both if an option of fit says otherwise than the bank that is added to.
void check_same_bank(const AnomalyCommandOptions& options, const AnomalyOptions& now,
                     const AnomalyModel& bank) {
  const AnomalyOptions& made = bank.options();
  const auto check = [&](const char* option, const auto& former, const auto& given, const auto& show) {
    if (std::ranges::find(options.said, option) == options.said.end() || former == given) return;
    fail(Where("anomaly fit", ErrorKind::mismatch), options.output.string(), ": was made with ", option, " ",
         show(former), ", but this run has ", option, " ", show(given),
         "; leave the option out to add images to the bank, or name another bank");
  };
  const auto plain = [](const auto& value) { return text(value); };
  const auto list = [](const std::vector<std::size_t>& layers) {
    std::string out;
    for (const std::size_t layer : layers) out += (out.empty() ? "" : ",") + std::to_string(layer);
    return out.empty() ? std::string("(after the final norm)") : out;
  };
  check("--layer", made.layers, now.layers, list);
  check("--neighborhood", made.neighborhood, now.neighborhood, plain);
  check("--quantile", made.quantile, now.quantile, plain);
  check("--score", made.score, now.score, [](AnomalyScore score) { return std::string(to_string(score)); });
  check("--foreground", made.foreground, now.foreground,
        [](bool is) { return std::string(is ? "yes" : "no"); });
  check("--coreset", std::pair(made.coreset.fraction, made.coreset.count),
        std::pair(now.coreset.fraction, now.coreset.count),
        [](const auto& size) { return size.second > 0 ? text(size.second) : text(size.first); });
}

constexpr const char* kAugmentFact = "augment";  // of the record of a bank

/// Takes whether rotations are good as well from a bank that images are added to. Throws Error if it was made
/// without them and the command line asks for them; what an older bank was made with is not known.
void take_augmentation(AnomalyCommandOptions& options, const std::optional<std::string>& former) {
  if (!former) return;
  const bool made_with = *former == "rotations";
  VIT_CHECK(made_with || !options.rotations, (Where{"anomaly fit", ErrorKind::mismatch}),
            options.output.string(),
            ": was made without --augment, but this run has --augment rotations; leave "
            "the option out to add images to the bank, or name another bank");
  options.rotations = made_with;
}

/// What the record of a bank says about --augment.
std::optional<std::string> augmentation_of(const AnomalyModel& bank, const fs::path& path) {
  if (bank.source().empty()) return std::nullopt;
  const RunFacts facts = parse_run_facts(bank.source(), path.string());
  for (const auto& [key, value] : facts.others) {
    if (key == kAugmentFact) return value;
  }
  return std::nullopt;
}

/// Images that the bank has by name are not added again.
std::size_t remove_known(InputList& list, const AnomalyModel& bank) {
  const std::set<std::string_view> known(bank.images().begin(), bank.images().end());
  return std::erase_if(list.inputs, [&](const Input& input) { return known.contains(input.name); });
}

/// Runs the rotated forms of each image too.
class Rotations {
 public:
  explicit Rotations(ImageRun& run, const CommonOptions& options) : session_(run.load(), options.session) {}

  void add_to(AnomalyBuilder& builder, const Input& input) {
    if (input.pixels) return;  // preprocessed pixels are what they are
    Image image = decode_input(input, session_.preprocessor().decode_options());
    for (int turn = 0; turn < 3; ++turn) {
      image = quarter_turn(image);
      session_.run(image, builder.request(), outputs_);
      builder.add(outputs_[0], input.name);
    }
  }

 private:
  Session session_;
  Outputs outputs_;
};

std::string percent(double share) {
  char number[32];
  std::snprintf(number, sizeof number, "%.4g %%", 100 * share);
  return number;
}

/// How sure the threshold is, which is the largest of n scores: 1 - Q^n.
std::string certainty(const AnomalyModel& bank) {
  constexpr double kWanted = 0.95;
  const double quantile = bank.options().quantile;
  const std::string share = percent(quantile);
  char number[32];
  std::snprintf(number, sizeof number, "%.0f %%", 100 * bank.confidence());
  if (bank.confidence() >= kWanted)
    return text("at least ", share, " of good images are below it, with ", number, " confidence");
  const double needed = std::ceil(std::log(1 - kWanted) / std::log(quantile));
  return text("few images for a ", share, " threshold: ", needed, " give 95 % confidence, these ", number);
}

std::string as_text(const AnomalyModel& bank, const fs::path& output) {
  std::string out = text(bank.num_patches(), " of ", bank.num_patches_seen(), " patches of ",
                         bank.images().size(), bank.images().size() == 1 ? " good image" : " good images");
  if (bank.threshold()) {
    char number[32];
    std::snprintf(number, sizeof number, "%.4g", static_cast<double>(*bank.threshold()));
    out += text(", threshold ", number);
    if (bank.confidence() > 0) out += " (" + certainty(bank) + ")";
  }
  return out + ": " + printable(output.string()) + "\n";
}

std::string as_json(const AnomalyModel& bank, std::size_t num_failed) {
  JsonValue out{{"images", bank.images().size()},
                {"patches_seen", bank.num_patches_seen()},
                {"patches", bank.num_patches()},
                {"features", bank.num_features()},
                {"score", to_string(bank.options().score)},
                {"threshold", nullptr},
                {"quantile", bank.options().quantile},
                {"confidence", bank.confidence()},
                {"held_out", bank.held_out_scores().size()},
                {"failed", num_failed}};
  if (bank.threshold()) {  // in the digits that scores have
    std::string digits;
    append_json_float(digits, *bank.threshold());
    out["threshold"] = std::stod(digits);
  }
  return out.dump() + "\n";
}

/// The share of an image of this size that the model does not see.
double unseen_share(const Preprocessor& preprocessor, ImageSize size) {
  const SourceMap map = preprocessor.source_map(size);
  const ImageSize seen = preprocessor.output_size(size);
  const auto covered = [](double start, double length, double edge) {
    return (std::min(start + length, edge) - std::max(start, 0.0)) / edge;
  };
  return 1 -
         covered(map.left, map.x_step * static_cast<double>(seen.width), static_cast<double>(size.width)) *
             covered(map.top, map.y_step * static_cast<double>(seen.height),
                     static_cast<double>(size.height));
}

class Fitting : public ImageWork {
 public:
  explicit Fitting(AnomalyCommandOptions& options) : options_(options) {
    std::error_code error;
    if (fs::exists(options.output, error)) {
      existing_ = load_bank(options.output, options.common);
      augmentation_ = augmentation_of(*existing_, options.output);
      take_augmentation(options, augmentation_);
    } else if (!options.common.said.contains("--size")) {
      options.common.session.input_size = {.kind = InputSize::Kind::native};  // a crop hides defects
    }
    if (!existing_) augmentation_ = options.rotations ? "rotations" : "none";
  }

  InputList list() {
    InputList list = list_once(options_.inputs, std::cin);  // an image given twice would be held out in vain
    for (const std::string& argument : options_.inputs) check_are_good(argument, list.inputs);
    if (!existing_) return list;
    if (const std::size_t num_known = remove_known(list, *existing_); num_known != 0)
      list.notes.push_back({"", text("images that the bank has already are left out: ", num_known)});
    return list;
  }

  std::optional<Request> load(ImageRun& run) override {
    const Session session(run.load(), options_.common.session);
    const AnomalyOptions options = library_options(options_, run.model());
    if (existing_) check_same_bank(options_, options, *existing_);
    builder_ = existing_ ? AnomalyBuilder::resume(session, *std::exchange(existing_, {}),
                                                  options_.common.session.threads)
                         : AnomalyBuilder(session, options);
    if (options_.rotations) rotations_.emplace(run, options_.common);
    return builder_->request();
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    const Input& input = run.inputs()[image.index];
    return failure_of([&] {
      builder_->add(*image.outputs, input.name);
      if (rotations_) rotations_->add_to(*builder_, input);
      if (!input.pixels) unseen_ = std::max(unseen_, unseen_share(run.preprocessor(), image.size));
    });
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    const bool has_only_bad = builder_->num_images() == 0 && run.progress().num_failed() > 0;
    if (has_only_bad || (interrupted() && builder_->num_images() == 0)) return 0;
    if (interrupted())
      print_failure(
          "", text("interrupted: the bank has ", builder_->num_images(),
                   builder_->num_images() == 1 ? " image" : " images", "; run again to add the others"));
    VIT_CHECK(builder_->num_images() > 0, "anomaly fit", options_.inputs.front(), ": no good image");
    if (unseen_ > 0.02 && !options_.common.quiet) print_failure("", unseen_note());
    release_interrupts();  // nothing is lost until the bank is written
    RunFacts facts{.model = run_model(options_.common, run.model(), {}), .others = {}};
    if (augmentation_) facts.others.emplace_back(kAugmentFact, *augmentation_);
    AnomalyModel bank = builder_->build().with_source(facts.json());
    if (options_.threshold) bank = std::move(bank).with_threshold(static_cast<float>(*options_.threshold));
    hold_interrupts();
    bank.save(options_.output);
    if (!bank.threshold())
      print_failure("",
                    "one good image: none is left to hold out, so the bank has no threshold; give "
                    "--threshold or more images");
    print_result(options_.format == PrintFormat::json ? as_json(bank, run.progress().num_failed())
                                                      : as_text(bank, options_.output));
    return 0;
  }

 private:
  std::string unseen_note() const {
    if (options_.common.session.input_size.kind == InputSize::Kind::native)
      return text("pixels at the border beyond the last whole patch, up to ", percent(unseen_),
                  " of an image, are not inspected");
    return text("the center crop ignores up to ", percent(unseen_),
                " of an image; --size native leaves out only the pixels beyond the last whole patch");
  }

  AnomalyCommandOptions& options_;
  std::optional<std::string> augmentation_;  // of the bank, "none" without; nothing for an older one
  std::optional<AnomalyModel> existing_;     // until it is in the builder
  std::optional<AnomalyBuilder> builder_;
  std::optional<Rotations> rotations_;
  double unseen_ = 0;  // the largest share of an image outside the crop
};

}  // namespace

int fit_anomalies(AnomalyCommandOptions& options) {
  constexpr std::array kBankFormats{ResultFormat::safetensors};
  result_format(options.output, kBankFormats);
  Fitting work(options);
  return run_images({.name = "anomaly fit",
                     .common = options.common,
                     .list = [&] { return work.list(); },
                     .files = {options.output}},
                    work);
}

}  // namespace vit::app
