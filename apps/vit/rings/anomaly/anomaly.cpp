// vit anomaly: the command line of fit and score.
#include "apps/vit/rings/anomaly/anomaly.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/options/record.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "fit keeps the patch features of good images; score compares the patches of other images with them.\n"
    "The threshold is the quantile of the scores of good images, each compared with the patches of the "
    "others; `vit anomaly fit` states how sure it is. Run again with the same BANK, fit adds images.\n"
    "Scores, in cosine distances but for reweighted:\n"
    "  top-percent  mean of the largest 1 % of the patches (AnomalyDINO)\n"
    "  maximum      the largest one\n"
    "  reweighted   the largest Euclidean distance, weighted by how common its nearest good patch is "
    "(PatchCore)\n"
    "Examples:\n"
    "  vit anomaly fit --model dinov2_small/ --size 448 good/ --output bank.safetensors\n"
    "  vit anomaly score bank.safetensors new/ --maps maps/ --html report.html\n"
    "  vit anomaly score bank.safetensors line.mp4 --format json\n"
    "  vit evaluate --anomaly bank.safetensors bottle/test";

enum class Action { fit, score };
constexpr Named<Action> kActions[]{{"fit", Action::fit}, {"score", Action::score}};
constexpr Named<AnomalyScore> kScores[]{{"top-percent", AnomalyScore::top_percent},
                                        {"maximum", AnomalyScore::maximum},
                                        {"reweighted", AnomalyScore::reweighted}};
constexpr std::size_t kMaxCoreset = std::size_t{1} << 32;
constexpr const char* kFitGroup = "Options of fit";
constexpr const char* kScoreGroup = "Options of score";

/// A fraction with a point, or a number of patches.
CoresetSize parse_coreset(const std::string& value) {
  if (value.find('.') != std::string::npos) return {.fraction = parse_real(value, 1e-6, 1.0)};
  return {.count = parse_integer(value, 1, kMaxCoreset)};
}

int parse_layer(const std::string& value) {
  const bool is_negative = value.starts_with("-");
  const auto number = static_cast<int>(parse_integer(value.substr(is_negative ? 1 : 0), 0, 1000));
  return is_negative ? -number : number;
}

struct Parsed {
  AnomalyCommandOptions options;
  Action action = Action::fit;
  std::vector<std::string> only_fit, only_score;  // options given that one action takes

  /// The target, which notes in `list` that its option was given.
  static Target noting(Target target, std::vector<std::string>& list, std::string name) {
    return {[store = std::move(target.store), &list,
             name = std::move(name)](const std::vector<std::string>& values) {
              store(values);
              list.push_back(name);
            },
            target.default_text, target.choices};
  }
};

int run(Parsed& parsed) {
  AnomalyCommandOptions& options = parsed.options;
  const bool is_fit = parsed.action == Action::fit;
  std::vector<std::string>& wrong = is_fit ? parsed.only_score : parsed.only_fit;
  if (!is_fit && options.rotations) wrong.push_back("--augment");
  if (!is_fit && options.foreground) wrong.push_back("--foreground");
  if (!wrong.empty()) fail_usage(wrong.front() + " is for vit anomaly " + (is_fit ? "score" : "fit"));
  if (is_fit) {
    if (options.output.empty()) fail_usage("--output BANK is required");
    options.said = parsed.only_fit;
    if (options.foreground) options.said.emplace_back("--foreground");
    return fit_anomalies(options);
  }
  options.bank = options.inputs.front();
  options.inputs.erase(options.inputs.begin());
  if (options.inputs.empty()) fail_usage("vit anomaly score BANK INPUT...: an input is required");
  return score_anomalies(options);
}

void add_fit_options(std::vector<Option>& list, Parsed& parsed) {
  AnomalyCommandOptions& o = parsed.options;
  const auto add = [&](Option option) {
    option.group = kFitGroup;
    if (option.flag == nullptr)
      option.target =
          Parsed::noting(option.target, parsed.only_fit, option.name.substr(option.name.find(',') + 1));
    list.push_back(std::move(option));
  };
  add({.name = "-o,--output",
       .type_name = "BANK",
       .help = "File of the bank, ends in .safetensors; an existing one is added to",
       .target = text_target(o.output)});
  add({.name = "--layer",
       .type_name = "LIST",
       .help = "Blocks whose tokens are the features, such as 8,11 or -1; default: the patches after the "
               "final norm",
       .target = list_target(o.layers, parse_layer),
       .occurs = Occurs::list});
  add({.name = "--coreset",
       .type_name = "SIZE",
       .help = "Patches to keep, chosen by greedy k-center: a fraction (0.1) or a number (50000)",
       .target = parsed_target(o.coreset, parse_coreset, "all")});
  add({.name = "--neighborhood",
       .type_name = "N",
       .help = "Average features over N x N patches, N odd (PatchCore: 3)",
       .target = integer_target(o.neighborhood, std::size_t{1}, std::size_t{31})});
  add({.name = "--score",
       .type_name = "NAME",
       .help = "top-percent, maximum or reweighted, see below",
       .target = choice_target(o.score, kScores)});
  add({.name = "--augment",
       .type_name = "KIND",
       .help = "rotations: images rotated by 90, 180 and 270 degrees are good as well",
       .target = offering({[&o](const std::vector<std::string>& values) {
                            if (values.front() != "rotations") fail_value("rotations", values.front());
                            o.rotations = true;
                          }},
                          {"rotations"})});
  list.push_back({.name = "--foreground",
                  .type_name = "",
                  .help = "Leave out the background: patches on its side of the first principal component",
                  .flag = &o.foreground,
                  .group = kFitGroup});
  add({.name = "--quantile",
       .type_name = "Q",
       .help = "Share of good images at or below the threshold",
       .target = parsed_target(
           o.quantile, [](const std::string& value) { return parse_real(value, 0.001, 0.9999); }, "0.95")});
}

std::string parse_map_format(const std::string& value) {
  const auto found = std::ranges::find(kAnomalyMapFormats, value, &AnomalyMapFormat::word);
  if (found == std::end(kAnomalyMapFormats)) fail_value("npy, color or overlay", value);
  return value;
}

void add_score_options(std::vector<Option>& list, Parsed& parsed) {
  AnomalyCommandOptions& o = parsed.options;
  const auto add = [&](Option option) {
    option.group = kScoreGroup;
    option.target = Parsed::noting(option.target, parsed.only_score, option.name);
    list.push_back(std::move(option));
  };
  add({.name = "--maps",
       .type_name = "FOLDER",
       .help = "Writes maps of each image, named as the image",
       .target = text_target(o.maps)});
  add({.name = "--map-formats",
       .type_name = "LIST",
       .help = "npy (float32 distances), color (PNG) and overlay (PNG over the image); default: all",
       .target = offering(list_target(o.map_formats, parse_map_format), {"npy", "color", "overlay"}),
       .occurs = Occurs::list});
  add({.name = "--sigma",
       .type_name = "S",
       .help = "Pixels of the Gaussian that smooths maps; 0 = none",
       .target = parsed_target(
           o.sigma, [](const std::string& value) { return parse_real(value, 0, 1000); }, "4")});
  add(html_option(o.html));
  add(shard_option(o.shard));
}

}  // namespace

AnomalyModel load_bank(const std::filesystem::path& path, CommonOptions& common) {
  AnomalyModel bank = AnomalyModel::load(path);
  take_record(bank.source(), path.string(), common);
  const InputSize &given = common.session.input_size, &own = bank.input_size();
  const bool is_own_size = given.kind == own.kind && given.height == own.height && given.width == own.width;
  VIT_CHECK(!common.said.contains("--size") || is_own_size, (Where{"anomaly", ErrorKind::mismatch}),
            path.string(),
            ": was made with another --size than this run has; leave the option out to use the bank's");
  common.session.input_size = bank.input_size();
  return bank;
}

Command anomaly_command() {
  const auto parsed = std::make_shared<Parsed>();
  Command command{.name = "anomaly",
                  .summary = "Detect anomalies: learn from good images, score others",
                  .footer = kFooter,
                  .options = {{.name = "ACTION",
                               .type_name = "",
                               .help = "fit or score",
                               .target = choice_target(parsed->action, kActions),
                               .is_required = true}},
                  .run = [parsed] { return run(*parsed); }};
  Option inputs = inputs_option(parsed->options.inputs);
  inputs.help = "fit: good images or folders of them; score: BANK, then images, folders, videos";
  command.options.push_back(std::move(inputs));
  command.options.push_back({.name = "--format",
                             .type_name = "FORMAT",
                             .help = "text or json",
                             .target = choice_target(parsed->options.format, kPrintFormatsWithoutCsv)});
  command.options.push_back({.name = "--threshold",
                             .type_name = "T",
                             .help = "Score above which an image is anomalous, instead of the bank's",
                             .target = parsed_target(parsed->options.threshold, [](const std::string& value) {
                               return parse_real(value, 0, 1e6);
                             })});
  add_fit_options(command.options, *parsed);
  add_score_options(command.options, *parsed);
  add_image_run_options(command.options, parsed->options.common);
  Option& size = *std::ranges::find(command.options, "--size", &Option::name);
  size.target.default_text = "native, score: the bank's";
  size.help += "; native leaves out the pixels at the border beyond the last whole patch";
  return command;
}

}  // namespace vit::app
