// Files of banks.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
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

template <typename List, typename ToText>
std::string json_list(const List& list, const ToText& to_text) {
  std::string out = "[";
  for (const auto& element : list) out += (out.size() > 1 ? ", " : "") + to_text(element);
  return out + "]";
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
  std::string json = text(
      "{\"format\": ", kFormat, ", \"model\": ", json_string(model_),
      ", \"fingerprint\": ", json_string(fingerprint_), ", \"source\": ", json_string(source_),
      ", \"size\": ", json_string(size_text(input_size_)),
      ", \"layers\": ", json_list(o.layers, [](std::size_t layer) { return std::to_string(layer); }),
      ", \"neighborhood\": ", o.neighborhood, ", \"coreset_fraction\": ", number_text(o.coreset.fraction),
      ", \"coreset_count\": ", o.coreset.count, ", \"score\": ", json_string(to_string(o.score)),
      ", \"foreground\": ", o.foreground ? "true" : "false", ", \"quantile\": ", number_text(o.quantile),
      ", \"max_patches\": ", o.max_patches, ", \"patches_seen\": ", num_seen_,
      ", \"threshold\": ", threshold_ ? number_text(static_cast<double>(*threshold_)) : "null",
      ", \"confidence\": ", number_text(confidence_),
      ", \"held_out\": ", json_list(held_out_, [](float x) { return number_text(static_cast<double>(x)); }),
      ", \"images\": ", json_list(names_, [](const std::string& name) { return json_string(name); }), "}");
  std::vector<TensorToWrite> tensors{to_write("patches", patches_),
                                     {.name = "images",
                                      .dtype = Dtype::i32,
                                      .shape = {of_image_.size()},
                                      .bytes = std::as_bytes(std::span(of_image_))}};
  if (!background_.empty()) tensors.push_back(to_write("background", background_));
  write_safetensors(path, tensors, {{kMember, std::move(json)}});
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
