#include "apps/vit/options/record.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <system_error>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/sha256.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/load_model.h"
#include "vit/base/check.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"
#include "vit/machine.h"
#include "vit/version.h"
#include "vit/weights/checkpoint/config_json.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr Where kRecord{"record", ErrorKind::mismatch};

std::string size_text(const InputSize& size) {
  if (size.kind == InputSize::Kind::native) return "native";
  return size.kind == InputSize::Kind::fixed ? text(size.height, "x", size.width) : "model";
}

std::string pad_text(const std::optional<std::array<unsigned char, 3>>& color) {
  return color ? text(int{(*color)[0]}, ",", int{(*color)[1]}, ",", int{(*color)[2]}) : "";
}

/// 16 digits of what decides about numbers in addition to the weights.
std::string settings_of(const Model& model) {
  std::string values = config_json(model.config());
  if (model.has_preprocess_config()) {
    PreprocessConfig rules = model.preprocess_config();
    rules.source.clear();  // the file that has them may be called otherwise
    values += config_json(rules);
  }
  return sha256(std::as_bytes(std::span(values))).substr(0, 16);
}

std::string joined(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

/// The record of a bank of 0.3: values of the library in place of options.
RunModel former_source(const Json& json) {
  RunModel made;
  made.model = json.at("model").as_string();
  made.size = "";  // the bank's own
  for (const char* name : {"architecture", "layout", "rope_scaling", "resampler", "exif"}) {
    std::string option = std::string("--") + name;
    std::ranges::replace(option, '_', '-');
    if (const auto value = json.find_string(name)) made.options[option] = {*value};
  }
  if (const auto overrides = json.find("set")) {
    for (std::size_t i = 0; i < overrides->size(); ++i)
      made.options["--set"].push_back(std::string((*overrides)[i].key()) + "=" +
                                      std::string((*overrides)[i].as_string()));
  }
  constexpr const char* kReleases[] = {"12.1", "12.2", "13"};
  if (const auto pillow = json.find_size("pillow", {.max = 2}))
    made.options["--pillow"] = {kReleases[*pillow]};
  if (const auto pixels = json.find("pixels")) {
    pixels->expect_array(2, "[least, most]");
    made.options["--pixels"] = {text((*pixels)[0].as_size(), ":", (*pixels)[1].as_size())};
  }
  if (const auto pad = json.find("pad")) {
    pad->expect_array(3, "[red, green, blue]");
    made.pad = text((*pad)[0].as_size(), ",", (*pad)[1].as_size(), ",", (*pad)[2].as_size());
  }
  made.channels = json.find_string("channels").value_or("rgb");
  return made;
}

/// Throws Error that names both if an option was given that has another value in the record, or none.
void check_said(const RunModel& made, const std::string& place, const CommonOptions& options) {
  CommonOptions standards;  // as they are where nothing is said
  std::vector<Option> list;
  add_common_options(list, standards);
  // where the model is: the fingerprint decides whether it is the same one
  constexpr std::string_view kPlaces[] = {"--architecture", "--layout", "--prefix", "--adapter",
                                          "--tokenizer"};
  const auto refuse = [&](const std::string& option, const std::string& former, const std::string& now) {
    fail(kRecord, place, ": was made ", former.empty() ? "without " : "with ", option,
         former.empty() ? "" : " ", printable(former), ", but this run has ", option, " ", printable(now),
         "; leave the option out to use the recorded value, or make the result again");
  };
  for (const auto& [name, values] : options.given) {
    if (std::ranges::find(kPlaces, name) != std::end(kPlaces)) continue;
    const auto former = made.options.find(name);
    const auto option = std::ranges::find(list, name, &Option::name);
    const std::string standard = option == list.end() ? "" : option->target.default_text;
    const bool is_same = former != made.options.end() ? former->second == values : joined(values) == standard;
    if (!is_same) refuse(name, former == made.options.end() ? "" : joined(former->second), joined(values));
  }
  const std::string size = size_text(options.session.input_size);
  if (options.said.contains("--size") && !made.size.empty() && size != made.size)
    refuse("--size", made.size, size);
  const std::string pad = pad_text(options.model_options.square_pad_color);
  if (options.said.contains("--pad") && pad != made.pad) refuse("--pad", made.pad, pad);
  const std::string channels = options.model_options.channels == ChannelOrder::bgr ? "bgr" : "rgb";
  if (options.said.contains("--channels") && channels != made.channels)
    refuse("--channels", made.channels, channels);
}

/// Says that results of this run keep another contract of reproducible results than the record, unless they
/// have another precision, which says more.
void notice_bits(const RunModel& made, const std::string& place, const CommonOptions& options) {
  const BitsContract bits = bits_contract(options.model_options.precision, options.model_options.kernels);
  const bool is_same_dtype = made.dtype == to_string(options.model_options.precision);
  if (made.bits != 0 && bits.number != made.bits && is_same_dtype && !options.quiet)
    print_failure(place,
                  text("was made with contract ", made.bits, " of reproducible results, this run keeps ",
                       bits.number == 0 ? "none" : std::to_string(bits.number), " (", bits.why_not,
                       "): the last digits may differ"));
}

/// The portable arithmetic, if the result was made with it and this machine has it; else notice_bits() says
/// so.
void take_bits(const RunModel& made, CommonOptions& options) {
  ModelOptions& model = options.model_options;
  if (made.bits == 0 || options.said.contains("--bits") || options.said.contains("--kernels")) return;
  if (bits_contract(model.precision).number == 0 && bits_contract(Precision::float32).number != 0)
    model.kernels = ":portable";
}

}  // namespace

RunModel run_model(const CommonOptions& options, const Model& model, std::span<const std::string> features) {
  return {.model = std::filesystem::absolute(model_path(options)).lexically_normal().string(),
          .fingerprint = model.report().fingerprint,
          .features = joined(features),
          .size = size_text(options.session.input_size),
          .dtype = to_string(model.precision()),
          .pad = pad_text(options.model_options.square_pad_color),
          .channels = options.model_options.channels == ChannelOrder::bgr ? "bgr" : "rgb",
          .settings = settings_of(model),
          .release = version(),
          .bits = bits_contract(model.precision(), options.model_options.kernels).number,
          .options = options.given};
}

RunModel run_model(const CommonOptions& options, const TextTower& tower) {
  return {.model = std::filesystem::absolute(model_path(options)).lexically_normal().string(),
          .fingerprint = tower.report().fingerprint,
          .features = "text",
          .size = size_text(options.session.input_size),
          .dtype = to_string(tower.precision()),
          .pad = pad_text(options.model_options.square_pad_color),
          .channels = options.model_options.channels == ChannelOrder::bgr ? "bgr" : "rgb",
          .release = version(),
          .bits = bits_contract(tower.precision(), options.model_options.kernels).number,
          .options = options.given};
}

void take_record(const RunModel& made, const std::string& place, CommonOptions& options) {
  check_said(made, place, options);
  std::vector<Option> list;
  add_common_options(list, options);
  repeat_options(list, made.options, options, place);
  if (options.model.empty()) {
    std::error_code unknown;
    VIT_CHECK(std::filesystem::exists(made.model, unknown), kRecord.with(ErrorKind::io), place,
              ": was made with the model ", printable(made.model),
              ", which no longer exists; name its new place with --model");
    options.model = made.model;
  }
  try {
    if (!options.said.contains("--size") && !made.size.empty())
      options.session.input_size = parse_size(made.size);
    if (!options.said.contains("--dtype") && !made.dtype.empty())
      options.model_options.precision = parse_precision(made.dtype);
    if (!made.pad.empty()) options.model_options.square_pad_color = parse_color(made.pad);
  } catch (const UsageError& error) {
    fail(kRecord.with(ErrorKind::format), place, ": ", error.what());
  }
  take_bits(made, options);
  if (made.channels == "bgr") options.model_options.channels = ChannelOrder::bgr;
  notice_bits(made, place, options);
}

void take_record(const std::string& record, const std::string& place, CommonOptions& options) {
  if (record.empty()) {
    if (!options.quiet)
      print_failure(
          place,
          "has no record of how it was made (an earlier release, or another program); give the options that "
          "it was made with: --model, --size, --pad, ...");
    return;
  }
  const Json json = parse_json(record, place);
  take_record(json.find("fingerprint") ? parse_run_model(json) : former_source(json), place, options);
}

std::optional<RunFacts> resume_record(const std::filesystem::path& output, bool is_folder,
                                      CommonOptions& options) {
  const std::filesystem::path path = run_record_path(output, is_folder);
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown) || std::filesystem::file_size(path, unknown) == 0)
    return std::nullopt;
  RunFacts facts = parse_run_facts(SourceFile(path, kRecord).text(), path.string());
  take_record(facts.model, is_folder ? output.string() : path.string(), options);
  return facts;
}

}  // namespace vit::app
