#include "apps/vit/options/model_source.h"

#include <array>
#include <utility>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/sha256.h"
#include "apps/vit/ground/text_format.h"
#include "vit/base/check.h"
#include "vit/io/json.h"
#include "vit/position/rope.h"
#include "vit/weights/checkpoint/config_json.h"

namespace vit::app {
namespace {

using internal::Json;

constexpr Named<ResamplerChoice> kStoredResamplers[]{{"pillow", ResamplerChoice::pillow},
                                                     {"torchvision", ResamplerChoice::torchvision}};
constexpr Named<ExifChoice> kStoredExifRules[]{{"apply", ExifChoice::apply}, {"ignore", ExifChoice::ignore}};
constexpr Named<ChannelOrder> kOrders[]{{"rgb", ChannelOrder::rgb}, {"bgr", ChannelOrder::bgr}};

/// A member, unless its text is empty.
void add_text(JsonWriter& json, std::string_view name, const std::string& value) {
  if (!value.empty()) json.member(name, value);
}

template <typename T, std::size_t N>
void add_choice(JsonWriter& json, std::string_view name, const Named<T> (&choices)[N], T value) {
  for (const auto& [word, choice] : choices) {
    if (choice == value) json.member(name, word);
  }
}

template <typename T, std::size_t N>
T parse_choice(const Json& json, const Named<T> (&choices)[N]) {
  for (const auto& [word, choice] : choices) {
    if (word == json.as_string()) return choice;
  }
  fail(Where("model_source", ErrorKind::format), json.where(),
       ": no such value: ", printable(json.as_string()));
}

std::string size_text(const InputSize& size) {
  if (size.kind == InputSize::Kind::native) return "native";
  return size.kind == InputSize::Kind::fixed ? text(size.height, "x", size.width) : "model";
}

std::string pad_text(const std::optional<std::array<unsigned char, 3>>& color) {
  return color ? text(int{(*color)[0]}, ",", int{(*color)[1]}, ",", int{(*color)[2]}) : "";
}

/// 16 digits of what decides about numbers in addition to the weights.
std::string settings_of(const Model& model) {
  std::string values = internal::config_json(model.config());
  if (model.has_preprocess_config()) {
    PreprocessConfig rules = model.preprocess_config();
    rules.source.clear();  // the file that has them may be called otherwise
    values += internal::config_json(rules);
  }
  return sha256(std::as_bytes(std::span(values))).substr(0, 16);
}

std::string joined(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

}  // namespace

std::string model_source(const CommonOptions& options) {
  const ModelOptions& load = options.model_options;
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  add_text(json, "model", std::filesystem::absolute(model_path(options)).string());
  add_text(json, "architecture", load.architecture);
  if (!load.layout.empty()) add_text(json, "layout", std::filesystem::absolute(load.layout).string());
  if (load.rope_scaling) add_text(json, "rope_scaling", position::to_string(*load.rope_scaling));
  if (!load.overrides.empty()) {
    json.key("set").begin_object();
    for (const auto& [key, value] : load.overrides) json.member(key, value);
    json.end_object();
  }
  add_choice(json, "resampler", kStoredResamplers, load.resampler);
  if (load.pillow != PillowRelease::from_13_0) json.member("pillow", static_cast<int>(load.pillow));
  add_choice(json, "exif", kStoredExifRules, load.exif);
  if (load.channels) add_choice(json, "channels", kOrders, *load.channels);
  if (load.area_limits) json.array("pixels", std::array{load.area_limits->least, load.area_limits->most});
  if (load.square_pad_color) json.array("pad", *load.square_pad_color);
  json.end_object();
  return out;
}

void inherit_model(CommonOptions& options, const std::string& source, const std::string& place) {
  if (!options.model.empty()) return;
  const Json json = internal::parse_json(source, place);
  ModelOptions& load = options.model_options;
  options.model = json.at("model").as_string();
  load.architecture = json.find_string("architecture").value_or(load.architecture);
  load.layout = json.find_string("layout").value_or(load.layout.string());
  if (const auto scaling = json.find_string("rope_scaling"))
    load.rope_scaling = position::parse_rope_scaling(*scaling);
  if (const auto overrides = json.find("set")) {
    for (std::size_t i = 0; i < overrides->size(); ++i)
      load.overrides.emplace((*overrides)[i].key(), (*overrides)[i].as_string());
  }
  if (const auto resampler = json.find("resampler"))
    load.resampler = parse_choice(*resampler, kStoredResamplers);
  if (const auto pillow = json.find_size("pillow", {.max = 2}))
    load.pillow = static_cast<PillowRelease>(*pillow);
  if (const auto exif = json.find("exif")) load.exif = parse_choice(*exif, kStoredExifRules);
  if (const auto channels = json.find("channels")) load.channels = parse_choice(*channels, kOrders);
  if (const auto pixels = json.find("pixels")) {
    pixels->expect_array(2, "[least, most]");
    load.area_limits = AreaLimits{.least = (*pixels)[0].as_size(), .most = (*pixels)[1].as_size()};
  }
  if (const auto pad = json.find("pad")) {
    pad->expect_array(3, "[red, green, blue]");
    auto& color = load.square_pad_color.emplace();
    for (std::size_t i = 0; i < 3; ++i)
      color[i] = static_cast<unsigned char>((*pad)[i].as_size({.max = 255}));
  }
}

RunModel run_model(const CommonOptions& options, const Model& model, std::span<const std::string> features) {
  return {.model = std::filesystem::absolute(model_path(options)).lexically_normal().string(),
          .fingerprint = model.report().fingerprint,
          .features = joined(features),
          .size = size_text(options.session.input_size),
          .dtype = to_string(model.precision()),
          .pad = pad_text(options.model_options.square_pad_color),
          .channels = options.model_options.channels == ChannelOrder::bgr ? "bgr" : "rgb",
          .settings = settings_of(model)};
}

}  // namespace vit::app
