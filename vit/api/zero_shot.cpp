#include "vit/zero_shot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "vit/base/check.h"
#include "vit/head/classifier.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"ZeroShotClassifier", ErrorKind::argument};
constexpr const char* kTensor = "text";
constexpr const char* kNames = "names";

double length_of(std::span<const float> vector) {
  double sum = 0.0;
  for (const float value : vector) sum += double{value} * value;
  return std::sqrt(sum);
}

/// Rows to length 1. Throws Error for one that has no direction.
void normalize_rows(Tensor<float>& vectors, const std::vector<std::string>& names, const Where& where,
                    const std::string& file) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::span<float> row(vectors.view().row(i), vectors.dim(1));
    const double length = length_of(row);
    VIT_CHECK(std::isfinite(length) && length > 0.0, where, file, "the vector of the class ",
              in_quotes(names[i]), " has the length ", length, ", so no direction");
    for (float& value : row) value = static_cast<float>(double{value} / length);
  }
}

void check_names(const std::vector<std::string>& names, const Where& where, const std::string& file) {
  VIT_CHECK(!names.empty(), where, file, "no classes");
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    VIT_CHECK(!name.empty(), where, file, "a class without a name");
    VIT_CHECK(seen.insert(name).second, where, file, "the class ", in_quotes(name), " is there twice");
  }
}

const TextScore& score_of(const TextTower& tower) {
  VIT_CHECK(tower.config().score, kWhere.with(ErrorKind::unsupported), tower.report().path.string(),
            ": a text tower alone, without the scale that compares its vectors with those of images");
  return *tower.config().score;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "[" : ", ") + json_string(name);
  return list + "]";
}

}  // namespace

std::string fill_template(const std::string& text, const std::string& label) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = text.find("{}"); at != text.npos; at = text.find("{}", done)) {
    out.append(text, done, at - done).append(label);
    done = at + 2;
  }
  VIT_CHECK(done != 0, kWhere, "the template ", in_quotes(text), " has no {} for the label");
  return out.append(text, done);
}

ClassVectors encode_classes(TextEncoder& encoder, std::vector<std::string> classes,
                            std::span<const std::string> templates) {
  check_names(classes, kWhere, "");
  const std::string standard[] = {kDefaultTemplate};
  if (templates.empty()) templates = standard;
  std::vector<std::string> texts;
  for (const std::string& name : classes) {
    for (const std::string& text : templates) texts.push_back(fill_template(text, name));
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const TextEmbeddings found = encoder.encode(views);

  const std::size_t width = found.vectors.dim(1);
  ClassVectors out{.names = std::move(classes),
                   .vectors = Tensor<float>(Shape{texts.size() / templates.size(), width})};
  std::vector<double> mean(width);
  for (std::size_t i = 0; i < out.names.size(); ++i) {
    std::ranges::fill(mean, 0.0);
    for (std::size_t j = 0; j < templates.size(); ++j) {
      const std::span<const float> row(found.vectors.view().row(i * templates.size() + j), width);
      const double length = length_of(row);
      for (std::size_t c = 0; c < width; ++c) mean[c] += double{row[c]} / length;
    }
    for (std::size_t c = 0; c < width; ++c) {
      out.vectors.view().row(i)[c] = static_cast<float>(mean[c] / static_cast<double>(templates.size()));
    }
  }
  normalize_rows(out.vectors, out.names, kWhere, "");
  return out;
}

void save_class_vectors(const ClassVectors& classes, const std::filesystem::path& file) {
  const Tensor<float>& vectors = classes.vectors;
  VIT_CHECK(vectors.shape().rank() == 2 && vectors.dim(0) == classes.names.size(), kWhere, "vectors ",
            vectors.shape().to_string(), " for ", classes.names.size(), " classes");
  const TensorToWrite tensor{.name = kTensor,
                             .dtype = Dtype::f32,
                             .shape = {vectors.dim(0), vectors.dim(1)},
                             .bytes = std::as_bytes(vectors.flat())};
  write_safetensors(file, std::span(&tensor, 1), {{kNames, list_of(classes.names)}});
}

ClassVectors load_class_vectors(const std::filesystem::path& path) {
  const Where where{"load_class_vectors", ErrorKind::format};
  const TensorFile file = open_safetensors(path);
  const TensorEntry& entry = file.at(kTensor);
  const auto found = file.metadata().find(kNames);
  VIT_CHECK(found != file.metadata().end(), where, path.string(),
            ": its metadata has no \"names\", a JSON list with a name for each row of the tensor \"text\"");
  const Json list = parse_json(found->second, path.string() + ", names");
  VIT_CHECK(list.is_array() && entry.shape.size() == 2 && entry.shape[0] == list.size() && list.size() != 0 &&
                entry.shape[1] != 0,
            where, entry.describe(), " with ", list.size(), " names: a row for each name expected");
  ClassVectors out{.names = {}, .vectors = to_float(entry)};
  for (std::size_t i = 0; i < list.size(); ++i) out.names.emplace_back(list[i].as_string());
  check_names(out.names, where, path.string() + ": ");
  normalize_rows(out.vectors, out.names, where, path.string() + ": ");
  return out;
}

Request embedding_request(const ModelConfig& config) {
  if (config.projection_dim != 0) return {.projected = true};
  return {.pooled = true};
}

std::span<const float> embedding_of(const ImageOutputs& outputs, const ModelConfig& config) {
  return config.projection_dim != 0 ? outputs.projected() : outputs.pooled();
}

// ------------------------------------------------------------------------------------- ZeroShotClassifier

ZeroShotClassifier::ZeroShotClassifier(ClassVectors classes, TextScore score)
    : classes_(std::move(classes)), score_(score) {
  check_names(classes_.names, kWhere, "");
  const Shape& shape = classes_.vectors.shape();
  VIT_CHECK(shape.rank() == 2 && shape[0] == classes_.names.size() && shape[1] != 0, kWhere, "vectors ",
            shape.to_string(), " for ", classes_.names.size(), " classes");
  normalize_rows(classes_.vectors, classes_.names, kWhere, "");
}

ZeroShotClassifier::ZeroShotClassifier(TextEncoder& encoder, std::vector<std::string> classes,
                                       std::span<const std::string> templates)
    : ZeroShotClassifier(encode_classes(encoder, std::move(classes), templates), score_of(encoder.tower())) {}

void ZeroShotClassifier::compare(std::span<const float> image, std::span<float> logits) const {
  VIT_CHECK(image.size() == embedding_dim(), kWhere.with(ErrorKind::mismatch), "an image's vector of ",
            image.size(), " numbers for classes of ", embedding_dim(), "; do they come from the same model?");
  VIT_CHECK(logits.size() == size(), kWhere, "room for ", logits.size(), " logits of ", size(), " classes");
  const double length = length_of(image);
  for (std::size_t i = 0; i < size(); ++i) {
    const float* const row = classes_.vectors.view().row(i);
    double product = 0.0;
    for (std::size_t c = 0; c < image.size(); ++c) product += double{image[c]} * row[c];
    logits[i] = static_cast<float>(product / length * score_.scale + score_.bias);
  }
}

void ZeroShotClassifier::probabilities(std::span<const float> logits, std::span<float> probabilities) const {
  VIT_CHECK(logits.size() == size() && probabilities.size() == size(), kWhere, logits.size(), " logits and ",
            probabilities.size(), " probabilities of ", size(), " classes");
  std::ranges::copy(internal::probabilities(logits, score_.kind), probabilities.begin());
}

std::vector<Prediction> ZeroShotClassifier::classify(std::span<const float> image, std::size_t top) const {
  std::vector<float> logits(size());
  compare(image, logits);
  return top_predictions(logits, top, classes_.names, score_.kind);
}

std::vector<Prediction> ZeroShotClassifier::classify(Session& session, const ImageView& image,
                                                     std::size_t top) const {
  const ModelConfig& config = session.model().config();
  Outputs outputs;
  session.run(image, embedding_request(config), outputs);
  return classify(embedding_of(outputs[0], config), top);
}

}  // namespace vit
