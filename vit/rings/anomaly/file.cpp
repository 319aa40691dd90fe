// Files of banks.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/io/json_writer.h"
#include "vit/io/safetensors.h"
#include "vit/rings/anomaly/search.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"anomaly_bank", ErrorKind::format};
constexpr const char* kMember = "vit_anomaly";  // of the metadata
constexpr std::size_t kFormat = 1;
constexpr double kSmallestShare = 1e-12;
constexpr double kLargestScore = 1e9;  // scores are distances of vectors of length 1
constexpr std::size_t kMostPatchesSeen = std::size_t{1} << 48;
constexpr AnomalyScore kScores[]{AnomalyScore::top_percent, AnomalyScore::maximum, AnomalyScore::reweighted};

std::string number_text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

std::string size_text(const InputSize& size) {
  switch (size.kind) {
    case InputSize::Kind::native: return "native";
    case InputSize::Kind::fixed: return text(size.height, "x", size.width);
    case InputSize::Kind::model: break;
  }
  return "model";
}

InputSize parse_size(const Json& json) {
  const std::string_view size = json.as_string();
  if (size == "model") return {};
  if (size == "native") return {.kind = InputSize::Kind::native};
  InputSize out{.kind = InputSize::Kind::fixed};
  const char* const end = size.data() + size.size();
  const auto [cross, error] = std::from_chars(size.data(), end, out.height);
  const bool has_width = error == std::errc() && cross != end && *cross == 'x';
  VIT_CHECK(has_width && std::from_chars(cross + 1, end, out.width).ptr == end, kWhere, json.where(),
            " must be model, native or HxW, found ", in_quotes(size));
  return out;
}

/// A number from `lowest` to `highest`.
double parse_number(const Json& json, double lowest, double highest) {
  const double number = json.as_double();
  VIT_CHECK(number >= lowest && number <= highest, kWhere, json.where(), " must be ", lowest, " to ", highest,
            ", found ", number);
  return number;
}

AnomalyScore parse_score(const Json& json) {
  for (const AnomalyScore score : kScores) {
    if (json.as_string() == to_string(score)) return score;
  }
  fail(kWhere.with(ErrorKind::unsupported), json.where(), ": no such score: ", in_quotes(json.as_string()));
}

/// The tensor `name` as float32 of rank 2; columns 0 = any.
Tensor<float> read_rows(const TensorFile& file, const char* name, std::size_t rows, std::size_t columns) {
  const TensorEntry& entry = file.at(name);
  const bool fits = entry.shape.size() == 2 && entry.shape[0] > 0 && entry.shape[1] > 0 &&
                    (rows == 0 || entry.shape[0] == rows) && (columns == 0 || entry.shape[1] == columns);
  VIT_CHECK(fits, kWhere, entry.describe(), " does not fit the other parts");
  Tensor<float> out = to_float(entry);
  VIT_CHECK(std::ranges::all_of(out.flat(), [](float x) { return std::isfinite(x); }), kWhere,
            entry.describe(), " holds numbers that are not finite");
  return out;
}

std::vector<std::uint32_t> read_owners(const TensorFile& file, std::size_t num_patches,
                                       std::size_t num_images) {
  const TensorEntry& entry = file.at("images");
  VIT_CHECK(entry.dtype_name == "I32" && entry.shape == std::vector{num_patches}, kWhere, entry.describe(),
            " must hold an I32 for each of ", num_patches, " patches");
  std::vector<std::uint32_t> out(num_patches);
  entry.bytes.read(0, std::as_writable_bytes(std::span(out)));
  VIT_CHECK(std::ranges::is_sorted(out) && out.back() < num_images, kWhere, entry.describe(),
            " must name images 0 to ", num_images - 1, " in increasing order");
  return out;
}

TensorToWrite to_write(const char* name, const Tensor<float>& tensor) {
  return {.name = name,
          .dtype = Dtype::f32,
          .shape = {tensor.dim(0), tensor.dim(1)},
          .bytes = std::as_bytes(tensor.flat())};
}

}  // namespace

void AnomalyModel::save(const std::filesystem::path& path) const {
  const AnomalyOptions& o = options_;
  std::string facts;
  JsonWriter json(facts, JsonLayout::spaced, JsonText::ascii);
  json.begin_object().member("format", kFormat).member("model", model_).member("fingerprint", fingerprint_);
  json.member("source", source_).member("size", size_text(input_size_)).array("layers", o.layers);
  json.member("neighborhood", o.neighborhood);
  json.key("coreset_fraction").json(number_text(o.coreset.fraction));
  json.member("coreset_count", o.coreset.count).member("score", to_string(o.score));
  json.member("foreground", o.foreground).key("quantile").json(number_text(o.quantile));
  json.member("max_patches", o.max_patches).member("patches_seen", num_seen_);
  json.key("threshold").json(threshold_ ? number_text(static_cast<double>(*threshold_)) : "null");
  json.member("threshold_given", is_threshold_given_);
  json.key("confidence").json(number_text(confidence_)).key("held_out").begin_array();
  for (const float score : held_out_) json.json(number_text(static_cast<double>(score)));
  json.end_array().array("images", names_).end_object();
  std::vector<TensorToWrite> tensors{to_write("patches", patches_),
                                     {.name = "images",
                                      .dtype = Dtype::i32,
                                      .shape = {of_image_.size()},
                                      .bytes = std::as_bytes(std::span(of_image_))}};
  if (!background_.empty()) tensors.push_back(to_write("background", background_));
  write_safetensors(path, tensors, {{kMember, std::move(facts)}});
}

AnomalyModel AnomalyModel::load(const std::filesystem::path& path) {
  const TensorFile file = open_safetensors(path);
  const auto metadata = file.metadata().find(kMember);
  VIT_CHECK(metadata != file.metadata().end(), kWhere, path.string(),
            ": no bank of good patches, there is no ", kMember,
            " in its metadata; is it a checkpoint or a classifier head?");
  const Json json = parse_json(metadata->second, path.string());
  const std::size_t format = json.at("format").as_size();
  VIT_CHECK(format == kFormat, kWhere.with(ErrorKind::unsupported), path.string(), ": a bank of format ",
            format, ", this release reads ", kFormat);
  AnomalyModel out;
  AnomalyOptions& o = out.options_;
  out.model_ = json.at("model").as_string();
  out.fingerprint_ = json.at("fingerprint").as_string();
  out.source_ = json.at("source").as_string();
  out.input_size_ = parse_size(json.at("size"));
  const Json layers = json.at("layers");
  for (std::size_t i = 0; i < layers.size(); ++i) o.layers.push_back(layers[i].as_size());
  o.neighborhood = json.at("neighborhood").as_size({.min = 1, .max = 31});
  o.coreset = {.fraction = parse_number(json.at("coreset_fraction"), kSmallestShare, 1),
               .count = json.at("coreset_count").as_size()};
  o.score = parse_score(json.at("score"));
  o.foreground = json.at("foreground").as_bool();
  o.quantile = parse_number(json.at("quantile"), kSmallestShare, 1 - kSmallestShare);
  o.max_patches = json.at("max_patches").as_size({.min = 1});
  out.num_seen_ = json.at("patches_seen").as_size({.max = kMostPatchesSeen});
  if (json.find_double("threshold"))
    out.threshold_ = static_cast<float>(parse_number(json.at("threshold"), -kLargestScore, kLargestScore));
  out.confidence_ = parse_number(json.at("confidence"), 0, 1);
  // banks up to 0.4 do not say it; a quantile has a confidence above 0
  const bool is_given = json.find_bool("threshold_given").value_or(out.confidence_ == 0);
  out.is_threshold_given_ = out.threshold_.has_value() && is_given;
  const Json held_out = json.at("held_out"), images = json.at("images");
  for (std::size_t i = 0; i < held_out.size(); ++i)
    out.held_out_.push_back(static_cast<float>(parse_number(held_out[i], -kLargestScore, kLargestScore)));
  for (std::size_t i = 0; i < images.size(); ++i) out.names_.emplace_back(images[i].as_string());
  VIT_CHECK(!out.names_.empty(), kWhere, images.where(), " must name an image");
  out.patches_ = read_rows(file, "patches", 0, 0);
  out.of_image_ = read_owners(file, out.patches_.dim(0), out.names_.size());
  if (o.foreground) out.background_ = read_rows(file, "background", 2, out.patches_.dim(1));
  out.prepare();
  return out;
}

}  // namespace vit
