#include "vit/zero_shot.h"
#include "vit/io/json_writer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "vit/api/class_vectors.h"
#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"classes", ErrorKind::argument};
constexpr std::size_t kTextsAtOnce = 64;  // between two reports of progress
constexpr const char* kTensor = "text";
constexpr const char* kNames = "names";

double length_of(std::span<const float> vector) {
  double sum = 0.0;
  for (const float value : vector) sum += double{value} * value;
  return std::sqrt(sum);
}

/// Normalizes rows to length 1. Throws Error for one without direction.
void normalize_rows(Tensor<float>& vectors, const std::vector<std::string>& names, const Where& where,
                    const std::string& file) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::span<float> row(vectors.view().row(i), vectors.dim(1));
    const double length = length_of(row);
    VIT_CHECK(std::isfinite(length) && length > 0.0, where, file, "the vector of the class ",
              in_quotes(names[i]), " has the length ", length, " and no direction");
    for (float& value : row) value = static_cast<float>(double{value} / length);
  }
}

void check_names(const std::vector<std::string>& names, const Where& where, const std::string& file) {
  VIT_CHECK(!names.empty(), where, file, "no classes");
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    VIT_CHECK(!name.empty(), where, file, "a class without a name");
    VIT_CHECK(seen.insert(name).second, where, file, "the class ", in_quotes(name), " appears twice");
  }
}

/// Appends the mean of the normalized vectors of each class in all templates.
void add_means(TextEncoder& encoder, std::span<const std::string> classes,
               std::span<const std::string> templates, std::vector<float>& means) {
  std::vector<std::string> texts;
  for (const std::string& name : classes) {
    for (const std::string& text : templates) texts.push_back(fill_template(text, name));
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const TextEmbeddings found = encoder.encode(views);
  std::vector<float> mean(found.vectors.dim(1));
  for (std::size_t i = 0; i < classes.size(); ++i) {
    mean_direction(found.vectors.view().part(i * templates.size(), templates.size()), mean);
    means.insert(means.end(), mean.begin(), mean.end());
  }
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  JsonWriter(list, JsonLayout::spaced, JsonText::ascii).array(names);
  return list;
}

}  // namespace

void mean_direction(TensorView<const float> vectors, std::span<float> mean) {
  VIT_CHECK(vectors.rank() == 2 && vectors.num_columns() == mean.size() && !vectors.empty(), kWhere,
            "the mean of vectors ", vectors.describe(), " in ", mean.size(), " numbers");
  std::vector<double> sums(mean.size());
  for (std::size_t i = 0; i < vectors.num_rows(); ++i) {
    const std::span<const float> row(vectors.row(i), mean.size());
    const double length = length_of(row);
    for (std::size_t c = 0; c < mean.size(); ++c) sums[c] += double{row[c]} / length;
  }
  for (std::size_t c = 0; c < mean.size(); ++c)
    mean[c] = static_cast<float>(sums[c] / static_cast<double>(vectors.num_rows()));
}

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
                            std::span<const std::string> templates, const StreamOptions& options) {
  check_names(classes, kWhere, "");
  const std::string standard[] = {kDefaultTemplate};
  if (templates.empty()) templates = standard;
  const std::size_t num_classes = classes.size(), width = encoder.tower().config().embedding_dim();
  const std::size_t at_once = std::max<std::size_t>(kTextsAtOnce / templates.size(), 1);
  std::vector<float> means;
  std::size_t done = 0;
  while (done < num_classes && !(options.is_cancelled && options.is_cancelled())) {
    const std::size_t count = std::min(at_once, num_classes - done);
    add_means(encoder, std::span(classes).subspan(done, count), templates, means);
    done += count;
    if (options.on_progress) options.on_progress(static_cast<double>(done), num_classes);
  }
  classes.resize(done);
  ClassVectors out{.names = std::move(classes), .vectors = Tensor<float>(Shape{done, width})};
  std::ranges::copy(means, out.vectors.data());
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

void ClassVectors::compare(std::span<const float> image, const TextScore& score,
                           std::span<float> logits) const {
  VIT_CHECK(image.size() == vectors.dim(1), kWhere.with(ErrorKind::mismatch), "an image's vector of ",
            image.size(), " numbers for classes of ", vectors.dim(1), "; do they come from the same model?");
  VIT_CHECK(logits.size() == names.size(), kWhere, "room for ", logits.size(), " logits of ", names.size(),
            " classes");
  const double length = length_of(image);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float* const row = vectors.view().row(i);
    double product = 0.0;
    for (std::size_t c = 0; c < image.size(); ++c) product += double{image[c]} * row[c];
    logits[i] = static_cast<float>(product / length * score.scale + score.bias);
  }
}

ClassVectors internal::normalized_classes(ClassVectors classes) {
  check_names(classes.names, kWhere, "");
  const Shape& shape = classes.vectors.shape();
  VIT_CHECK(shape.rank() == 2 && shape[0] == classes.names.size() && shape[1] != 0, kWhere, "vectors ",
            shape.to_string(), " for ", classes.names.size(), " classes");
  normalize_rows(classes.vectors, classes.names, kWhere, "");
  return classes;
}

}  // namespace vit
