// Every reference model of images and texts, compared with float64 results of the library that defines it:
// ids, vectors, logits and probabilities. The models are next to a developer's checkout; data/golden/text
// holds small twins.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/fixture_tensors.h"
#include "tests/support/golden_models.h"
#include "tests/support/numbers.h"
#include "tests/support/shared_data.h"
#include "vit/head/probabilities.h"
#include "vit/io/json.h"
#include "vit/session.h"
#include "vit/text_encoder.h"
#include "vit/zero_shot.h"

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

std::vector<std::string> strings_of(const Json& list) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < list.size(); ++i) out.emplace_back(list[i].as_string());
  return out;
}

struct Case {
  fs::path folder, path;  // path: what is loaded
  Json facts;
  test::FixtureTensors expected;

  explicit Case(const fs::path& at)
      : folder(at), path(at), facts(load_json(at / "case.json")), expected(at / "expected.safetensors") {
    const std::string file = facts.find_string("file").value_or("");
    if (!file.empty()) path = folder / file;
  }

  ModelOptions image_options() const {
    ModelOptions options{.architecture = facts.find_string("architecture").value_or("")};
    const Json set = facts.at("set");
    for (std::size_t i = 0; i < set.size(); ++i) {
      options.overrides[std::string(set[i].key())] =
          set[i].is_string() ? std::string(set[i].as_string()) : number_of(set[i]);
    }
    return options;
  }
  TextOptions text_options(const fs::path& vocabulary) const {
    TextOptions options{.architecture = facts.find_string("architecture").value_or("")};
    if (const auto given = facts.find("tokenizer"); given && given->is_string()) {
      options.tokenizer = folder / given->as_string();
      return options;
    }
    bool has_files = false;
    for (const char* name : {"tokenizer.json", "vocab.json", "spiece.model", "tokenizer.model"})
      has_files = has_files || fs::exists(folder / name);
    if (!has_files) options.tokenizer = vocabulary;
    return options;
  }

 private:
  static std::string number_of(const Json& value) {
    const double number = value.as_double();
    return number == std::floor(number) ? std::to_string(static_cast<long>(number)) : std::to_string(number);
  }
};

/// Against float64: twice the reference's own float32 error, at least 3e-6 of the largest value, of 1 where
/// that is smaller.
void check_close(const Case& c, const std::string& name, std::span<const float> found) {
  CAPTURE(name);
  const std::vector<double> exact = c.expected.doubles(name + ".f64");
  const std::vector<double> single = c.expected.doubles(name);
  REQUIRE(found.size() == exact.size());
  double largest = 1.0, own = 0.0, error = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (std::isnan(exact[i])) continue;  // of a text without tokens
    largest = std::max(largest, std::abs(exact[i]));
    own = std::max(own, std::abs(single[i] - exact[i]));
    const double off = std::abs(found[i] - exact[i]);
    error = std::isnan(off) ? INFINITY : std::max(error, off);
  }
  CHECK(error <= std::max(2.0 * own, 3e-6 * largest));
}

void check_ids(const Case& c, const TextTower& tower, const std::vector<std::string>& texts,
               const std::string& name) {
  const TensorEntry& entry = c.expected.file().at(name);
  REQUIRE(entry.dtype == Dtype::i64);
  std::vector<std::int64_t> ids(entry.num_elements());
  entry.bytes.read(0, std::as_writable_bytes(std::span(ids)));
  const std::size_t places = tower.config().context_length;
  REQUIRE(ids.size() == texts.size() * places);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(texts[i]);
    const TokenRow row = tower.tokenize(texts[i]);
    for (std::size_t j = 0; j < places; ++j)
      REQUIRE(row.ids[j] == static_cast<std::int32_t>(ids[i * places + j]));
  }
}

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

void check_text(const Case& c, TextEncoder& encoder) {
  const std::vector<std::string> texts = strings_of(c.facts.at("texts"));
  check_ids(c, encoder.tower(), texts, "ids");
  check_close(c, "text", encoder.encode(views(texts)).vectors.flat());
}

void check_scores(const Case& c, const ClassVectors& classes, const TextScore& score,
                  const std::string& name) {
  const Tensor<float> images = c.expected.floats("image");
  std::vector<float> logits, probabilities;
  for (std::size_t i = 0; i < images.dim(0); ++i) {
    std::vector<float> row(classes.names.size());
    classes.compare({images.view().row(i), images.dim(1)}, score, row);
    logits.insert(logits.end(), row.begin(), row.end());
    row = internal::probabilities(row, score.kind);
    probabilities.insert(probabilities.end(), row.begin(), row.end());
  }
  check_close(c, name + ".logits", logits);
  check_close(c, name + ".probabilities", probabilities);
}

void check_zero_shot(const Case& c, TextEncoder& encoder) {
  const auto form = c.facts.find_string("template");
  if (!form) return;
  const std::vector<std::string> labels = strings_of(c.facts.at("labels"));
  const TextScore score = encoder.tower().config().score.value();
  check_scores(c, encode_classes(encoder, labels, std::vector<std::string>{*form}), score, "classes");
  const auto forms = c.facts.find("templates");
  if (!forms) return;
  const ClassVectors averaged = encode_classes(encoder, labels, strings_of(*forms));
  check_close(c, "averaged.classifier", averaged.vectors.flat());
  check_scores(c, averaged, score, "averaged");
}

void check_images(const Case& c, const std::shared_ptr<const Model>& model) {
  if (!c.expected.has("pixels")) return;
  Session session(model, {.threads = 2});
  const Tensor<float> pixels = c.expected.floats("pixels");
  Outputs outputs;
  const Output embedding = default_output(model->config());
  session.forward(pixels, embedding, outputs);
  std::vector<float> found;
  for (std::size_t i = 0; i < pixels.dim(0); ++i) {
    const std::span<const float> row = outputs[i][embedding].flat();
    found.insert(found.end(), row.begin(), row.end());
  }
  check_close(c, "image", found);
}

void check_case(const fs::path& folder, const fs::path& vocabulary) {
  CAPTURE(folder.string());
  const Case c(folder);
  std::shared_ptr<const TextTower> text;
  if (c.expected.has("pixels")) {
    const ImageAndText both = ImageAndText::load(c.path, c.image_options(), c.text_options(vocabulary));
    check_images(c, both.image);
    text = both.text;
  } else {
    text = TextTower::load(c.path, c.text_options(vocabulary));
  }
  TextEncoder encoder(text, {.threads = 2});
  check_text(c, encoder);
  check_zero_shot(c, encoder);
}

}  // namespace

TEST_CASE("model: text towers match float64 of their libraries, with ids, scores and image towers") {
  const fs::path root = test::data_path("golden/text");
  for (const fs::path& folder : test::folders_in(root)) check_case(folder, {});
}

TEST_CASE(
    "model: text towers of the reference models match float64 of their libraries, as their image towers") {
  SKIP_WITHOUT_SHARED("fixtures/text");
  const fs::path root = test::shared_path("fixtures/text");
  for (const fs::path& folder : test::folders_in(root)) {
    if (fs::exists(folder / "case.json")) check_case(folder, root / "vocabulary");
  }
}

}  // namespace vit
