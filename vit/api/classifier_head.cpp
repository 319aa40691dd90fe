// Applying heads, and their files.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "vit/analysis/neighbors.h"
#include "vit/api/head_file.h"
#include "vit/base/check.h"
#include "vit/classifier_head.h"
#include "vit/config/output_table.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/io/json_writer.h"
#include "vit/io/safetensors.h"

namespace vit {
namespace {

using internal::Json;
using internal::TensorFile;

constexpr Where kWhere{"classifier_head", ErrorKind::argument};
constexpr const char* kMember = "vit_classifier";  // of the metadata
constexpr const char* kRecord = "vit_record";
constexpr std::size_t kFormat = 1;
constexpr std::string_view kMethods[]{"logistic", "knn", "centroid"};

/// The description of a model in messages: its name, else its origin, and its fingerprint.
std::string described(const std::string& name, const std::string& fingerprint) {
  return (name.empty() ? "a model" : internal::plain_or_quoted(name)) + " (" + fingerprint + ")";
}

void apply_functions(const ClassifierHead& head, std::span<const float> x, std::span<float> values) {
  std::vector<double> row(x.size());
  for (std::size_t c = 0; c < x.size(); ++c) {
    row[c] = (static_cast<double>(x[c]) - static_cast<double>(head.mean.data()[c])) /
             static_cast<double>(head.scale.data()[c]);
  }
  for (std::size_t k = 0; k < values.size(); ++k) {
    const float* const factors = head.coefficients.view().row(k);
    double sum = head.intercepts.data()[k];
    for (std::size_t c = 0; c < row.size(); ++c) sum += row[c] * static_cast<double>(factors[c]);
    values[k] = static_cast<float>(sum);
  }
}

void apply_votes(const ClassifierHead& head, std::span<const float> x, std::span<float> values) {
  std::vector<float> vector(x.begin(), x.end());
  normalize_vector(vector);
  std::vector<std::size_t> rows(head.classes.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const std::vector<double> votes =
      internal::count_votes({head.vectors, head.classes, rows}, vector, values.size(), head.neighbors);
  std::ranges::transform(votes, values.begin(), [](double sum) {
    return sum > 0 ? static_cast<float>(std::log(sum)) : ClassifierHead::kNoVotes;
  });
}

// ------------------------------------------------------------------------------------------------- files

std::string number_text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

std::string to_json(const ClassifierHead& head) {
  std::string out;
  internal::JsonWriter json(out, internal::JsonLayout::spaced, internal::JsonText::ascii);
  json.begin_object().member("format", kFormat).member("method", to_string(head.method));
  json.member("features", head.features).member("model", head.model).member("fingerprint", head.fingerprint);
  json.member("images", head.num_images).member("folds", head.num_folds);
  if (head.method == FitMethod::knn) json.member("neighbors", head.neighbors);
  if (head.strength) json.key("strength").json(number_text(*head.strength));
  if (head.cross_validated_top1)
    json.key("cross_validated_top1").json(number_text(*head.cross_validated_top1));
  json.array("labels", head.labels).end_object();
  return out;
}

FitMethod parse_method(const Json& name) {
  const auto found = std::ranges::find(kMethods, name.as_string());
  VIT_CHECK(found != std::end(kMethods), kWhere.with(ErrorKind::unsupported), name.where(),
            ": no such method: ", internal::in_quotes(name.as_string()));
  return static_cast<FitMethod>(found - std::begin(kMethods));
}

/// The fields from the metadata; tensors are read later.
ClassifierHead parse_head(const Json& json) {
  const std::size_t format = json.at("format").as_size();
  VIT_CHECK(format == kFormat, kWhere.with(ErrorKind::unsupported), json.file(), ": a head of format ",
            format, "; this release reads ", kFormat);
  ClassifierHead head;
  head.method = parse_method(json.at("method"));
  head.features = json.at("features").as_string();
  head.model = json.at("model").as_string();
  head.fingerprint = json.at("fingerprint").as_string();
  head.num_images = json.at("images").as_size();
  head.num_folds = json.at("folds").as_size();
  if (head.method == FitMethod::knn) head.neighbors = json.at("neighbors").as_size({.min = 1});
  head.strength = json.find_double("strength");
  head.cross_validated_top1 = json.find_double("cross_validated_top1");
  const Json labels = json.at("labels");
  for (std::size_t k = 0; k < labels.size(); ++k) head.labels.emplace_back(labels[k].as_string());
  VIT_CHECK(head.labels.size() >= 2, kWhere.with(ErrorKind::format), labels.where(),
            " must name at least two classes");
  return head;
}

/// The tensor `name` as float32, of that shape; 0 = any size but zero.
Tensor<float> read_floats(const TensorFile& file, const char* name, Shape shape) {
  const internal::TensorEntry& entry = file.at(name);
  bool fits = entry.shape.size() == shape.rank();
  for (std::size_t i = 0; fits && i < shape.rank(); ++i)
    fits = shape[i] == 0 ? entry.shape[i] > 0 : entry.shape[i] == shape[i];
  VIT_CHECK(fits, kWhere.with(ErrorKind::format), entry.describe(), " does not match the other parts");
  Tensor<float> out = internal::to_float(entry);
  VIT_CHECK(std::ranges::all_of(out.flat(), [](float x) { return std::isfinite(x); }),
            kWhere.with(ErrorKind::format), entry.describe(), " contains numbers that are not finite");
  return out;
}

void read_votes(const TensorFile& file, ClassifierHead& head) {
  head.vectors = read_floats(file, "vectors", {0, 0});
  const internal::TensorEntry& entry = file.at("classes");
  const std::size_t count = head.vectors.dim(0);
  VIT_CHECK(entry.dtype_name == "I32" && entry.shape == std::vector{count}, kWhere.with(ErrorKind::format),
            entry.describe(), " must contain an I32 for each of ", count, " vectors");
  head.classes.resize(count);
  entry.bytes.read(0, std::as_writable_bytes(std::span(head.classes)));
  const auto largest = *std::ranges::max_element(head.classes);
  VIT_CHECK(largest < head.labels.size(), kWhere.with(ErrorKind::format), entry.describe(),
            " contains a class without a label: ", largest);
}

void read_functions(const TensorFile& file, ClassifierHead& head) {
  head.mean = read_floats(file, "mean", {0});
  const std::size_t columns = head.mean.num_elements(), num_classes = head.labels.size();
  head.scale = read_floats(file, "scale", {columns});
  head.coefficients = read_floats(file, "coefficients", {num_classes, columns});
  head.intercepts = read_floats(file, "intercepts", {num_classes});
  VIT_CHECK(std::ranges::all_of(head.scale.flat(), [](float x) { return x > 0; }),
            kWhere.with(ErrorKind::format), file.at("scale").describe(), " must be positive");
}

internal::TensorToWrite floats_to_write(const char* name, const Tensor<float>& tensor) {
  internal::TensorToWrite out{.name = name, .dtype = internal::Dtype::f32, .shape = {}, .bytes = {}};
  for (std::size_t i = 0; i < tensor.shape().rank(); ++i) out.shape.push_back(tensor.dim(i));
  out.bytes = std::as_bytes(tensor.flat());
  return out;
}

}  // namespace

const char* to_string(FitMethod method) {
  return kMethods[static_cast<std::size_t>(method)].data();
}

std::size_t ClassifierHead::num_features() const {
  return method == FitMethod::knn ? vectors.dim(1) : coefficients.dim(1);
}

void ClassifierHead::validate() const {
  check_choice(kWhere, "method", method, FitMethod::centroid);
  const std::size_t count = labels.size();
  const auto has_shape = [](const Tensor<float>& tensor, const Shape& shape) {
    return !tensor.empty() && tensor.shape() == shape;
  };
  if (method == FitMethod::knn) {
    VIT_CHECK(
        !vectors.empty() && vectors.shape().rank() == 2 && classes.size() == vectors.dim(0) && neighbors != 0,
        kWhere, "a head of ", neighbors, " neighbors with ", classes.size(), " classes of vectors ",
        vectors.shape().to_string());
    const auto largest = *std::ranges::max_element(classes);
    VIT_CHECK(largest < count, kWhere, "a class without a label: ", largest);
    return;
  }
  const Shape& shape = coefficients.shape();
  const bool has_rows = !coefficients.empty() && shape.rank() == 2 && shape[0] == count;
  VIT_CHECK(has_rows && has_shape(mean, {shape[1]}) && has_shape(scale, {shape[1]}) &&
                has_shape(intercepts, {count}),
            kWhere, "a head of ", count, " labels with coefficients ", shape.to_string(), ", mean ",
            mean.shape().to_string(), ", scale ", scale.shape().to_string(), " and intercepts ",
            intercepts.shape().to_string());
}

void ClassifierHead::apply(std::span<const float> x, std::span<float> values) const {
  validate();
  VIT_CHECK(x.size() == num_features() && values.size() == labels.size(), kWhere, "the head expects ",
            num_features(), " features and outputs ", labels.size(), " values, not ", x.size(), " and ",
            values.size());
  method == FitMethod::knn ? apply_votes(*this, x, values) : apply_functions(*this, x, values);
}

void ClassifierHead::attach(const Model& from, Output vector) {
  features = to_string(vector);
  model = from.name();
  fingerprint = from.report().fingerprint;
}

void internal::check_model(const ClassifierHead& head, const Model& from) {
  const std::string& found = from.report().fingerprint;
  VIT_CHECK(head.fingerprint.empty() || head.fingerprint == found, kWhere.with(ErrorKind::mismatch),
            "the classifier was fitted on features of ", described(head.model, head.fingerprint), ", not of ",
            described(from.name(), found), "; give the model that it was fitted with");
}

Output ClassifierHead::output(const Model& from) const {
  internal::check_model(*this, from);
  const OutputKey key = parse_output(features, from.config(), from.dense_config());
  VIT_CHECK(internal::row_of(key.output).is_vector, kWhere, "the classifier reads ",
            internal::in_quotes(features), ", which is not a vector");
  return key.output;
}

namespace {

void add_facts(const ClassifierHead& head, std::map<std::string, std::string>& metadata) {
  metadata[kMember] = to_json(head);
  if (!head.record.empty()) metadata[kRecord] = head.record;
}

std::vector<internal::TensorToWrite> tensors_of(const ClassifierHead& head) {
  head.validate();
  std::vector<internal::TensorToWrite> tensors;
  if (head.method == FitMethod::knn) {
    tensors.push_back(floats_to_write("vectors", head.vectors));
    tensors.push_back({.name = "classes",
                       .dtype = internal::Dtype::i32,
                       .shape = {head.classes.size()},
                       .bytes = std::as_bytes(std::span(head.classes))});
  } else {
    tensors.push_back(floats_to_write("mean", head.mean));
    tensors.push_back(floats_to_write("scale", head.scale));
    tensors.push_back(floats_to_write("coefficients", head.coefficients));
    tensors.push_back(floats_to_write("intercepts", head.intercepts));
  }
  return tensors;
}

}  // namespace

void internal::write_head(const std::filesystem::path& path, const ClassifierHead& head,
                          std::map<std::string, std::string> metadata) {
  add_facts(head, metadata);
  internal::write_safetensors(path, tensors_of(head), metadata);
}

std::string internal::head_bytes(const ClassifierHead& head, std::map<std::string, std::string> metadata) {
  add_facts(head, metadata);
  return internal::safetensors_bytes(tensors_of(head), metadata);
}

void save_head(const std::filesystem::path& path, const ClassifierHead& head) {
  internal::write_head(path, head, {});
}

ClassifierHead internal::read_head(const TensorFile& file) {
  const auto metadata = file.metadata().find(kMember);
  VIT_CHECK(metadata != file.metadata().end(), kWhere.with(ErrorKind::format), file.path().string(),
            ": not a classifier head, there is no ", kMember, " in its metadata; is it a checkpoint?");
  ClassifierHead head = parse_head(internal::parse_json(metadata->second, file.path().string()));
  if (const auto record = file.metadata().find(kRecord); record != file.metadata().end())
    head.record = record->second;
  head.method == FitMethod::knn ? read_votes(file, head) : read_functions(file, head);
  return head;
}

ClassifierHead load_head(const std::filesystem::path& path) {
  const TensorFile file = internal::open_safetensors(path);
  VIT_CHECK(!file.metadata().contains(internal::kPixelsMember), kWhere.with(ErrorKind::mismatch),
            path.string(),
            ": has classes of pixels, made by vit fit --truth; vit segment --classifier uses it, and heads "
            "of images come from vit fit FOLDER");
  return internal::read_head(file);
}

}  // namespace vit
