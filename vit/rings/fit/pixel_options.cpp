#include "vit/rings/fit/pixel_options.h"

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"

namespace vit::internal {
namespace {

std::string size_name(const InputSize& size) {
  switch (size.kind) {
    case InputSize::Kind::model: return "model";
    case InputSize::Kind::native: return "native";
    case InputSize::Kind::fixed: break;
  }
  return text(size.height, "x", size.width);
}

PixelUpsampling parse_upsampling(const Json& json) {
  for (const PixelUpsampling known : {PixelUpsampling::bilinear, PixelUpsampling::shift,
                                      PixelUpsampling::guided, PixelUpsampling::learned}) {
    if (json.as_string() == to_string(known)) return known;
  }
  fail(Where("pixel head", ErrorKind::unsupported), json.where(),
       ": no such upsampling: ", in_quotes(json.as_string()));
}

}  // namespace

bool are_same(const PixelOptions& a, const PixelOptions& b) {
  return described(a) == described(b);
}

std::string features_name(const PixelOptions& options) {
  if (options.layers.empty()) return "patches";
  std::string out;
  for (const std::size_t layer : options.layers) out += text(out.empty() ? "" : ",", "block.", layer);
  return out;
}

std::string described(const PixelOptions& options) {
  std::string out =
      text(features_name(options), ", size ", size_name(options.size), ", ", to_string(options.upsampling));
  if (options.upsampling == PixelUpsampling::shift) out += text(" ", options.shifts);
  if (options.upsampler != nullptr)
    out += text(" by ", options.upsampler->name(), " (", options.upsampler->fingerprint(), ")");
  if (options.scales != std::vector<double>{1.0}) {
    out += ", scales";
    for (const double scale : options.scales) out += text(" ", scale);
  }
  if (options.color) out += ", color";
  if (options.unit_length) out += ", unit length";
  return out;
}

void write_members(JsonWriter& json, const PixelOptions& options) {
  json.array("layers", options.layers);
  json.key("size").begin_object();
  json.member("kind", options.size.kind == InputSize::Kind::model    ? "model"
                      : options.size.kind == InputSize::Kind::native ? "native"
                                                                     : "fixed");
  if (options.size.kind == InputSize::Kind::fixed)
    json.member("height", options.size.height).member("width", options.size.width);
  json.end_object();
  json.array("scales", options.scales).member("upsampling", to_string(options.upsampling));
  json.member("shifts", options.shifts).member("color", options.color);
  json.member("unit_length", options.unit_length);
}

PixelOptions parse_pixel_options(const Json& json) {
  PixelOptions out;
  out.scales.clear();
  const Json layers = json.at("layers"), scales = json.at("scales"), size = json.at("size");
  constexpr std::size_t kMostLayers = 1024;
  for (std::size_t i = 0; i < layers.size(); ++i)
    out.layers.push_back(layers[i].as_size({.max = kMostLayers}));
  for (std::size_t i = 0; i < scales.size(); ++i) out.scales.push_back(scales[i].as_double());
  const Json kind = size.at("kind");
  if (kind.as_string() == "native") {
    out.size.kind = InputSize::Kind::native;
  } else if (kind.as_string() == "fixed") {
    constexpr SizeRange kEdge{.min = 1, .max = 1u << 16};
    out.size = {InputSize::Kind::fixed, size.at("height").as_size(kEdge), size.at("width").as_size(kEdge)};
  } else {
    VIT_CHECK(kind.as_string() == "model", (Where{"pixel head", ErrorKind::unsupported}), kind.where(),
              ": no such size: ", in_quotes(kind.as_string()));
  }
  out.upsampling = parse_upsampling(json.at("upsampling"));
  out.shifts = json.at("shifts").as_size({.min = 1, .max = 64});
  out.color = json.at("color").as_bool();
  out.unit_length = json.at("unit_length").as_bool();
  return out;
}

}  // namespace vit::internal
