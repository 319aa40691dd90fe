#include "vit/boxes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "vit/api/class_vectors.h"
#include "vit/base/check.h"
#include "vit/base/rounded.h"
#include "vit/layers/convolution.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"Detector", ErrorKind::mismatch};
constexpr float kNormLeast = 1e-6f;  // added to the length of vectors, as the library has it

const DenseConfig& config_with_boxes(const std::shared_ptr<const Model>& known) {
  VIT_CHECK(known != nullptr, kWhere.with(ErrorKind::argument), "no model");
  const Model& model = *known;
  const DenseConfig* const config = model.dense_config();
  VIT_CHECK(config != nullptr && config->find(Output::boxes) != nullptr, kWhere, model.report().path.string(),
            " has no head that gives boxes; RF-DETR, LW-DETR, YOLOS, OWL-ViT and OWLv2 have");
  return *config;
}

std::vector<std::string> numbers(std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(std::to_string(i));
  return out;
}

/// Rows divided by their lengths.
Tensor<float> unit_rows(TensorView<const float> rows) {
  Tensor<float> out(Shape{rows.num_rows(), rows.num_columns()});
  for (std::size_t i = 0; i < rows.num_rows(); ++i) {
    double square = 0.0;
    for (std::size_t c = 0; c < rows.num_columns(); ++c) square += std::pow(double{rows.row(i)[c]}, 2.0);
    const float length = static_cast<float>(std::sqrt(square)) + kNormLeast;
    for (std::size_t c = 0; c < rows.num_columns(); ++c)
      out.data()[i * rows.num_columns() + c] = rows.row(i)[c] / length;
  }
  return out;
}

/// The class with the largest of `count` numbers, the first of equals.
std::size_t best_of(const float* scores, std::size_t count) {
  return static_cast<std::size_t>(std::max_element(scores, scores + count) - scores);
}

float softmax_of(const float* logits, std::size_t count, std::size_t index) {
  const double largest = *std::max_element(logits, logits + count);
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(logits[i] - largest);
  return static_cast<float>(std::exp(logits[index] - largest) / sum);
}

/// Center, width and height as parts of `frame`, in pixels.
Box in_pixels(const float* box, ImageSize frame) {
  const auto width = static_cast<float>(frame.width), height = static_cast<float>(frame.height);
  return {.x0 = (box[0] - 0.5f * box[2]) * width,
          .y0 = (box[1] - 0.5f * box[3]) * height,
          .x1 = (box[0] + 0.5f * box[2]) * width,
          .y1 = (box[1] + 0.5f * box[3]) * height};
}

/// A class of a box, whose score is not compared with those of others.
struct ScoredClass {
  std::size_t box = 0, index = 0;
  float score = 0.0f;
};

/// The `most` best of all boxes and classes with a score above `threshold`, the best first.
std::vector<ScoredClass> best_classes(const Tensor<float>& logits, std::size_t most, float threshold) {
  std::vector<ScoredClass> out;
  for (std::size_t box = 0; box < logits.dim(0); ++box) {
    for (std::size_t c = 0; c < logits.dim(1); ++c) {
      const float score = rounded_sigmoid(logits.view().row(box)[c]);
      if (score > threshold) out.push_back({box, c, score});
    }
  }
  std::ranges::stable_sort(out, std::ranges::greater(), &ScoredClass::score);
  out.resize(std::min(out.size(), most));
  return out;
}

/// Names of the classes that a model was trained for.
std::vector<std::string> names_of_classes(const std::shared_ptr<const Model>& model,
                                          std::vector<std::string> labels) {
  const DenseConfig& config = config_with_boxes(model);
  const std::size_t count = config.num_box_classes();
  VIT_CHECK(count != 0, kWhere, model->report().path.string(),
            ": the boxes of this model are compared with texts; say which");
  if (labels.empty()) labels = config.labels.empty() ? numbers(count) : config.labels;
  VIT_CHECK(labels.size() == count, kWhere, labels.size(), " names for the ", count, " classes of ",
            model->report().path.string());
  return labels;
}

}  // namespace

/// The vectors of texts as a product of rows.
struct Detector::Texts {
  Convolution product;  // (texts, E)
};

Detector::Detector(std::shared_ptr<const Model> model, std::vector<std::string> labels,
                   std::shared_ptr<const Texts> texts)
    : ImageTask(model, config_with_boxes(model).request()),
      labels_(std::move(labels)),
      threshold_(model->dense_config()->box_threshold),
      texts_(std::move(texts)) {}

Detector::Detector(std::shared_ptr<const Model> model, std::vector<std::string> labels)
    : Detector(model, names_of_classes(model, std::move(labels)), nullptr) {}

Detector::Detector(const std::filesystem::path& path, const ModelOptions& options)
    : Detector(Model::load(path, options)) {}

Detector Detector::of_texts(std::shared_ptr<const Model> model, ClassVectors texts) {
  const DenseConfig& config = config_with_boxes(model);
  const MapOutput* const vectors = config.find(Output::box_vectors);
  VIT_CHECK(vectors != nullptr, kWhere, model->report().path.string(),
            ": the boxes of this model have classes of their own; texts are for OWL-ViT and OWLv2");
  ClassVectors unit = normalized_classes(std::move(texts));
  const TensorView<const float> rows = unit.vectors.view();
  VIT_CHECK(rows.dim(1) == vectors->channels, kWhere, "texts have vectors of ", rows.dim(1),
            " numbers, boxes of ", vectors->channels);
  const Tensor<float> weights = unit_rows(rows);
  auto product =
      std::make_shared<const Texts>(Texts{Convolution({weights.data(), Shape{rows.dim(0), rows.dim(1), 1, 1}},
                                                      {}, 1, kernels::find_kernels(model->kernels()))});
  return {std::move(model), std::move(unit.names), std::move(product)};
}

Detector Detector::of_texts(const ImageAndText& towers, std::vector<std::string> texts,
                            std::span<const std::string> templates) {
  TextEncoder encoder(towers.text);
  const std::string plain[] = {kPlainTemplate};
  return of_texts(towers.image, encode_classes(encoder, std::move(texts),
                                               templates.empty() ? std::span(plain) : templates));
}

Tensor<float> Detector::logits(const ImageOutputs& outputs, int threads) const {
  if (!texts_) {
    const TensorView<const float> scores = outputs[Output::box_classes];
    const bool has_none = outputs.head()->best_boxes == 0;
    VIT_CHECK(scores.num_columns() == labels_.size() + (has_none ? 1 : 0), kWhere, "scores of ",
              scores.num_columns(), " classes for ", labels_.size(), " names",
              has_none ? " and no object" : "");
    Tensor<float> out(scores.shape());
    std::ranges::copy(scores.flat(), out.data());
    return out;
  }
  Tensor<float> vectors = unit_rows(outputs[Output::box_vectors]);
  const TensorView<const float> terms = outputs[Output::box_terms];  // (N, 2)
  Tensor<float> out(Shape{vectors.dim(0), labels_.size()});
  const MapSize rows{1, vectors.dim(0)};
  texts_->product.forward(FeatureMap::of_tokens(vectors, rows), FeatureMap::of_tokens(out, rows), threads,
                          {});
  for (std::size_t i = 0; i < out.dim(0); ++i) {
    const float shift = terms.row(i)[0], scale = terms.row(i)[1];
    const float factor = (scale > 0.0f ? scale : rounded_expm1(scale)) + 1.0f;
    float* const row = out.view().row(i);
    for (std::size_t c = 0; c < labels_.size(); ++c) row[c] = (row[c] + shift) * factor;
  }
  return out;
}

std::vector<Detection> Detector::detect(const ImageOutputs& outputs, std::optional<float> threshold,
                                        int threads) const {
  VIT_CHECK(!threshold || !std::isnan(*threshold), kWhere.with(ErrorKind::argument),
            "a threshold that is not a number");
  const Tensor<float> scores = logits(outputs, threads);
  const TensorView<const float> boxes = outputs[Output::boxes];
  const ImageSize image = outputs.frame().image;
  const std::size_t edge = std::max(image.height, image.width);
  const ImageSize frame = outputs.head()->boxes_of_square ? ImageSize{edge, edge} : image;
  const std::size_t most = outputs.head()->best_boxes;
  std::vector<Detection> found;
  if (most != 0) {
    for (const ScoredClass& one : best_classes(scores, most, threshold.value_or(threshold_)))
      found.push_back({.index = one.index,
                       .label = labels_[one.index],
                       .score = one.score,
                       .box = in_pixels(boxes.row(one.box), frame)});
    return found;
  }
  for (std::size_t i = 0; i < boxes.dim(0); ++i) {
    const float* const row = scores.view().row(i);
    const std::size_t best = best_of(row, labels_.size());
    const float score = texts_ ? rounded_sigmoid(row[best]) : softmax_of(row, labels_.size() + 1, best);
    if (!(score > threshold.value_or(threshold_))) continue;
    found.push_back(
        {.index = best, .label = labels_[best], .score = score, .box = in_pixels(boxes.row(i), frame)});
  }
  return found;
}

std::vector<Detection> Detector::detect(Session& session, const ImageSource& image,
                                        std::optional<float> threshold) const {
  Outputs outputs;
  run(session, image, outputs);
  return detect(outputs[0], threshold, session.options().threads);
}

std::vector<Detection> Detector::detect(const ImageSource& image, std::optional<float> threshold) const {
  Session session(model());
  return detect(session, image, threshold);
}

}  // namespace vit
