// vit info: properties of the program, the machine and a model.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "apps/vit/commands/commands.h"
#include "apps/vit/commands/expect.h"
#include "apps/vit/commands/flops.h"
#include "apps/vit/commands/machine_facts.h"
#include "apps/vit/commands/model_facts.h"
#include "apps/vit/ground/flag_names.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/options.h"
#include "vit/base/check.h"
#include "vit/checkpoint.h"
#include "vit/image/preprocess.h"
#include "vit/machine.h"
#include "vit/position/rope.h"
#include "vit/weights/checkpoint/config_json.h"

namespace vit::app {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  vit info                      version, processor, kernels\n"
    "  vit info --kernels            the kernels that this machine can run\n"
    "  vit info --peak               measures the floating-point peak of this machine\n"
    "  vit info --model vit_base/    family, configuration, parameters, preprocessing\n"
    "  vit info --model vit_base/ --tensors --json\n"
    "  vit info --architecture vit_base_patch16_rope_224\n"
    "  vit info --model run7.pth --layout run7.json --expect pixels.npy outputs.npy";

constexpr const char* kNoPreprocessing =
    "no file defines the preprocessing; only preprocessed pixels (.npy) can be used";

struct InfoOptions {
  CommonOptions common;
  std::filesystem::path path;
  bool json = false;
  bool peak = false;
  bool tensors = false;
  bool list_kernels = false;
  ExpectOptions expect;
};

// ---------------------------------------------------------------------------------------------- the model

/// The grid of preprocessed inputs, the model's own if that is unknown; nothing if each
/// image has its own.
std::optional<GridSize> grid_of(const CheckpointDescription& facts) {
  if (!facts.preprocess) return facts.config.native_grid();
  const PreprocessConfig& preprocess = *facts.preprocess;
  if (preprocess.resize == ResizeRule::patches) {  // the largest square
    const auto edge = static_cast<std::size_t>(std::sqrt(static_cast<double>(preprocess.max_patches)));
    return GridSize{edge, edge};
  }
  const bool is_cropped = preprocess.crop && preprocess.crop_multiple == 0;
  if (!is_cropped && preprocess.resize != ResizeRule::squash) return std::nullopt;
  const std::size_t height = is_cropped ? preprocess.crop_height : preprocess.resize_height;
  const std::size_t width = is_cropped ? preprocess.crop_width : preprocess.resize_width;
  const std::size_t patch = facts.config.patch.size;
  VIT_CHECK(height >= patch && width >= patch, "info", "images of ", height, " x ", width,
            " pixels are smaller than a patch of ", patch);
  return GridSize{height / patch, width / patch};
}

/// The towers of a checkpoint.
struct ModelFacts {
  std::optional<CheckpointDescription> image;
  std::optional<TextDescription> text;

  const LoadReport& report() const { return image ? image->report : text->report; }
};

ModelFacts load_facts(const InfoOptions& options) {
  ModelFacts facts{.image = std::nullopt, .text = find_text_facts(options.common)};
  // a vector of each token is for a detector, which comes with an image tower
  const bool is_text_alone =
      facts.text && !facts.text->config.score && facts.text->config.pooling != TextPooling::none;
  if (!is_text_alone) facts.image = load_model_facts(options.common);
  return facts;
}

/// The tensors of the file, with the text tower's use of those that the image tower ignores.
std::vector<TensorUse> tensor_uses(const ModelFacts& facts) {
  std::map<std::string, std::string> of_text;
  if (facts.text) {
    for (const TensorUse& tensor : facts.text->report.tensors)
      if (!tensor.feeds.empty()) of_text[tensor.name] = "text " + tensor.feeds;
  }
  std::vector<TensorUse> out = facts.report().tensors;
  for (TensorUse& tensor : out) {
    const auto found = of_text.find(tensor.name);
    if (found == of_text.end()) continue;
    if (facts.image && tensor.ignored_because.empty()) continue;
    tensor.feeds = found->second;
    tensor.ignored_because.clear();
  }
  return out;
}

/// Ignored tensors by reason, so that 200 tensors of a tower take one line.
std::map<std::string, std::size_t> ignored_by_reason(const std::vector<TensorUse>& tensors) {
  std::map<std::string, std::size_t> out;
  for (const TensorUse& tensor : tensors) {
    if (!tensor.ignored_because.empty()) ++out[tensor.ignored_because];
  }
  return out;
}

JsonValue flops_json(const CheckpointDescription& facts) {
  const std::optional<GridSize> grid = grid_of(facts);
  if (!grid) return nullptr;
  const Flops flops = count_flops(facts.config, *grid);
  return {{"height", grid->rows * facts.config.patch.size},
          {"width", grid->columns * facts.config.patch.size},
          {"tokens", grid->rows * grid->columns + facts.config.num_prefix_tokens()},
          {"total", flops.total()},
          {"patch_embed", flops.patch_embed},
          {"attention_linear", flops.attention_linear},
          {"attention", flops.attention},
          {"mlp", flops.mlp},
          {"head", flops.head}};
}

JsonValue lines_of(const std::string& text) {
  JsonValue out = JsonValue::array();
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

JsonValue tensors_json(const std::vector<TensorUse>& uses) {
  JsonValue tensors = JsonValue::array();
  for (const TensorUse& tensor : uses) {
    const std::string use = tensor.feeds.empty() ? "ignored: " + tensor.ignored_because : tensor.feeds;
    tensors.push_back(
        {{"name", tensor.name}, {"shape", tensor.shape}, {"dtype", tensor.dtype}, {"use", use}});
  }
  return tensors;
}

/// How RoPE handles other grids than trained; "" for models without RoPE.
std::string rope_scaling_text(const PositionConfig& position) {
  if (position.rope == RopeKind::none) return "";
  const RopeScalingRule own = position::default_scaling_rule(position.coordinates);
  const std::string own_text = position::to_string(RopeScaling{.rule = own});
  if (position.rope_scaling) {
    return position::to_string(*position.rope_scaling) + " (given; default of the checkpoint: " + own_text +
           ")";
  }
  return own_text + (own == RopeScalingRule::none ? " (positions are extrapolated)"
                                                  : " (every grid is mapped to the trained range)");
}

/// Adds the facts about an image tower.
void add_image_tower(const CheckpointDescription& facts, JsonValue& out) {
  out["parameters"] = facts.report.num_parameters;
  out["flops_per_image"] = flops_json(facts);
  out["config"] = JsonValue::from(internal::parse_json(internal::config_json(facts.config), "configuration"));
  if (const std::string scaling = rope_scaling_text(facts.config.position); !scaling.empty())
    out["rope_scaling"] = scaling;
  if (facts.dense) out["dense_head"] = dense_json(facts);
  out["labels"] = facts.config.head.labels.size();
  out["preprocessing"] = nullptr;
  if (facts.preprocess)
    out["preprocessing"] =
        JsonValue::from(internal::parse_json(internal::config_json(*facts.preprocess), "configuration"));
  out["preprocessing_steps"] =
      lines_of(facts.preprocess ? Preprocessor(*facts.preprocess).describe() : kNoPreprocessing);
}

JsonValue model_json(const InfoOptions& options, const ModelFacts& facts) {
  const LoadReport& report = facts.report();
  JsonValue out;
  out["path"] = report.path.string();
  out["files"] = JsonValue::array();
  for (const std::filesystem::path& file : report.files) out["files"].push_back(file.string());
  out["architecture"] = facts.image ? facts.image->config.architecture : facts.text->config.architecture;
  out["family"] = facts.image ? facts.image->config.family : facts.text->config.family;
  out["library"] = facts.image ? facts.image->config.library : facts.text->config.library;
  out["stored_dtype"] = report.stored_dtype;
  if (facts.image) add_image_tower(*facts.image, out);
  if (facts.text) out["text"] = to_json(*facts.text);
  out["notes"] = JsonValue::array();
  for (const std::string& note : report.notes) out["notes"].push_back(with_flag_names(note));
  const std::vector<TensorUse> tensors = tensor_uses(facts);
  out["ignored"] = JsonValue::array();
  for (const auto& [reason, count] : ignored_by_reason(tensors)) {
    out["ignored"].push_back({{"tensors", count}, {"why", reason}});
  }
  if (options.tensors) out["tensors"] = tensors_json(tensors);
  return out;
}

/// "    key: value" lines; nested objects as "position.rope".
std::string values_text(const JsonValue& object, const std::string& prefix = "") {
  std::string out;
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      out += values_text(value, prefix + key + ".");
    } else {
      out += "  " + prefix + key + ": " +
             printable(value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
    }
  }
  return out;
}

std::string flops_text(const JsonValue& flops) {
  if (flops.is_null()) return "FLOPs         depend on the size of each image (--size native)\n";
  return text("FLOPs         ", with_unit(flops["total"].get<double>()), " per image of ",
              flops["height"].get<std::size_t>(), " x ", flops["width"].get<std::size_t>(),
              " (height x width), ", flops["tokens"].get<std::size_t>(), " tokens\n");
}

/// A line for each tensor: name, shape, dtype, use, in columns.
std::string tensors_text(const JsonValue& tensors) {
  std::vector<std::array<std::string, 4>> rows;
  std::array<std::size_t, 4> widths{};
  for (const JsonValue& tensor : tensors) {
    rows.push_back({printable(tensor["name"].get<std::string>()), tensor["shape"].dump(),
                    tensor["dtype"].get<std::string>(), printable(tensor["use"].get<std::string>())});
    for (std::size_t i = 0; i + 1 < widths.size(); ++i)
      widths[i] = std::max(widths[i], rows.back()[i].size());
  }
  std::string out;
  for (std::array<std::string, 4>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i].resize(std::max(row[i].size(), widths[i]), ' ');
      out += "  " + row[i];
    }
    out += "\n";
  }
  return out;
}

std::string parameters_text(const JsonValue& tower) {
  const auto parameters = tower["parameters"].get<unsigned long long>();
  return with_thousands(parameters) + " (" + with_unit(static_cast<double>(parameters)) + ")\n";
}

std::string dense_head_text(JsonValue head) {
  const JsonValue branches = head["branches"], flops = head["flops"];
  std::string out = "dense head\n  parameters: " + parameters_text(head);
  out += text("  FLOPs: ", with_unit(flops["total"].get<double>()), " per image of ",
              flops["height"].get<std::size_t>(), " x ", flops["width"].get<std::size_t>(), "\n");
  for (const char* const shown : {"branches", "flops", "parameters"}) head.erase(shown);
  out += values_text(head);
  for (std::size_t i = 0; i < branches.size(); ++i) out += values_text(branches[i], text("branch.", i, "."));
  return out;
}

std::string image_tower_text(const JsonValue& model) {
  std::string out = "parameters    " + parameters_text(model) + flops_text(model["flops_per_image"]) +
                    "configuration\n" + values_text(model["config"]);
  if (model.contains("rope_scaling"))
    out += "rope scaling  " + model["rope_scaling"].get<std::string>() + "\n";
  if (model.contains("dense_head")) out += dense_head_text(model["dense_head"]);
  const JsonValue& preprocessing = model["preprocessing"];
  const std::string source = preprocessing.is_null() ? "unknown" : preprocessing["source"];
  out += "preprocessing (" + printable(source) + ")\n";
  for (const JsonValue& step : model["preprocessing_steps"]) out += "  " + step.get<std::string>() + "\n";
  return out;
}

std::string text_tower_text(const JsonValue& tower) {
  std::string out = "text tower\n  parameters: " + parameters_text(tower) + values_text(tower["config"]);
  if (tower["score"].is_object()) out += values_text(tower["score"], "score.");
  if (tower["tokenizer"].is_object()) return out + values_text(tower["tokenizer"], "tokenizer.");
  return out + "  tokenizer: " + printable(tower["tokenizer_missing"].get<std::string>()) + "\n";
}

std::string model_text(const JsonValue& model) {
  const auto word = [&](const char* key) {
    const std::string value = model[key];
    return (value.empty() ? "-" : printable(value)) + "\n";
  };
  std::string out = "model         " + word("path");
  for (const JsonValue& file : model["files"])
    out += "file          " + printable(file.get<std::string>()) + "\n";
  out += "architecture  " + word("architecture") + "family        " + word("family") + "library       " +
         word("library") + "stored as     " + word("stored_dtype");
  if (model.contains("config")) out += image_tower_text(model);
  if (model.contains("text")) out += text_tower_text(model["text"]);
  for (const JsonValue& note : model["notes"])
    out += "note          " + printable(note.get<std::string>()) + "\n";
  for (const JsonValue& ignored : model["ignored"]) {
    out += text("ignored       ", ignored["tensors"].get<std::size_t>(), " tensors: ") +
           printable(ignored["why"].get<std::string>()) + "\n";
  }
  if (!model.contains("tensors")) return out;
  return out + "tensors\n" + tensors_text(model["tensors"]);
}

// ------------------------------------------------------------------------------------------------ command

/// Lets --kernels without a name request the list; the parser passes that as an empty value.
void list_kernels_without_name(std::vector<Option>& list, bool& is_asked) {
  const auto kernels =
      std::find_if(list.begin(), list.end(), [](const Option& option) { return option.name == "--kernels"; });
  kernels->help = "List the kernels, or choose the one to measure";
  kernels->occurs = Occurs::optional_value;
  kernels->target.store = [store = kernels->target.store, &is_asked](const std::vector<std::string>& values) {
    is_asked = values.empty() || values.front().empty();
    if (!is_asked) store(values);
  };
}

int info(InfoOptions options) {
  if (!options.path.empty()) {
    if (!options.common.model.empty()) fail_usage("PATH and --model: give only one of them");
    options.common.model = options.path;
  }
  const bool has_model = !options.common.model.empty() || !options.common.model_options.architecture.empty();
  if (options.tensors && !has_model) fail_usage("--tensors needs PATH or --model");
  if (!options.expect.feature.empty() && options.expect.pixels.empty())
    fail_usage("--feature is for --expect PIXELS.npy OUTPUTS.npy");
  if (!options.expect.pixels.empty()) {
    if (!has_model) fail_usage("--expect needs PATH or --model");
    options.expect.json = options.json;
    return expect_outputs(options.common, options.expect);
  }
  JsonValue out = machine_json(options.common, options.peak);
  if (has_model) out["model"] = model_json(options, load_facts(options));
  std::string printed;
  if (options.json) {
    printed = out.dump(internal::JsonLayout::indented) + "\n";
  } else {
    if (options.peak || !(has_model || options.list_kernels)) {
      printed += machine_text(out);  // with the kernels
    } else if (options.list_kernels) {
      printed += kernels_text(out["kernels"]);
    }
    if (has_model) printed += model_text(out["model"]) + bits_text(out, "bits          ");
  }
  print_result(printed);
  return 0;
}

}  // namespace

Command info_command() {
  const auto options = std::make_shared<InfoOptions>();
  Command command{
      .name = "info",
      .summary = "Show version, CPU, kernels and model details",
      .footer = kExamples,
      .options = {{.name = "PATH",
                   .type_name = "",
                   .help = "The model, same as --model",
                   .target = text_target(options->path)},
                  {.name = "--json",
                   .type_name = "",
                   .help = "Everything as one JSON object",
                   .flag = &options->json},
                  {.name = "--peak",
                   .type_name = "",
                   .help = "Measure the floating-point peak",
                   .flag = &options->peak},
                  {.name = "--tensors",
                   .type_name = "",
                   .help = "List the tensors of the model and their use",
                   .flag = &options->tensors},
                  {.name = "--expect",
                   .type_name = "PIXELS.npy OUTPUTS.npy",
                   .help = "Compare with the outputs of your own script; where a --layout differs, try the "
                           "choices that no tensor determines, and print it corrected",
                   .target = {[options](const std::vector<std::string>& values) {
                     options->expect.pixels = not_empty(values[0]);
                     options->expect.outputs = not_empty(values[1]);
                   }},
                   .occurs = Occurs::two_values},
                  {.name = "--feature",
                   .type_name = "NAME",
                   .help = "Of --expect: the output to compare; default: the one whose shape fits",
                   .target = text_target(options->expect.feature)}},
      .run = [options] { return info(*options); }};
  add_common_options(command.options, options->common);
  list_kernels_without_name(command.options, options->list_kernels);
  return command;
}

}  // namespace vit::app
