// Every stage of reference models of prompts, from preprocessed pixels and ids, and their results from
// images, compared with float64 runs of their library. The models lie next to a developer's checkout.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/shared_data.h"
#include "vit/config.h"
#include "vit/io/json.h"
#include "vit/prompts.h"
#include "vit/rings/prompts/prompt_parts.h"

TEST_SUITE_BEGIN("prompts");

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

/// A folder of the reference models and what it says of itself.
struct PromptCase {
  fs::path folder;
  Json json;
  test::FixtureTensors expected;
  Json errors;

  explicit PromptCase(const fs::path& path)
      : folder(path),
        json(load_json(path / "case.json")),
        expected(path / "expected.safetensors"),
        errors(json.at("float32_error")) {}

  /// Twice the error of the library's own float32, and at least that of a few roundings.
  double tolerance(const std::string& name) const {
    return std::max(3e-6, 2.0 * errors.find_double(name.c_str()).value_or(0.0));
  }
  fs::path image(const Json& prompt) const {
    return folder.parent_path() / "images" / (std::string(prompt.at("image").as_string()) + ".png");
  }
};

/// Values of any shape against a tensor, relative to its largest value; nothing where it is not stored.
void check_stage(const PromptCase& c, const std::string& name, std::span<const float> found) {
  if (!c.expected.has(name + ".f64")) return;
  CAPTURE(name);
  const std::vector<double> wanted = c.expected.doubles(name + ".f64");
  REQUIRE(found.size() == wanted.size());
  double largest = 1.0, difference = 0.0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    difference = std::max(difference, std::abs(static_cast<double>(found[i]) - wanted[i]));
  }
  CHECK(difference / largest <= c.tolerance(name));
}

/// Rows of pixels (P, D) as planes (D, P).
std::vector<float> planes_of(TensorView<const float> rows) {
  std::vector<float> out(rows.num_elements());
  for (std::size_t i = 0; i < rows.num_rows(); ++i) {
    for (std::size_t c = 0; c < rows.num_columns(); ++c) out[c * rows.num_rows() + i] = rows.row(i)[c];
  }
  return out;
}

std::vector<float> flat_of(TensorView<const float> view) {
  std::vector<float> out;
  for (std::size_t i = 0; i < view.num_rows(); ++i)
    out.insert(out.end(), view.row(i), view.row(i) + view.num_columns());
  return out;
}

/// Both parts of the bias, (Q, G, H) each, as (H, Q, G G).
std::vector<float> whole_bias(TensorView<const float> rows, TensorView<const float> columns) {
  std::vector<float> out;
  for (std::size_t head = 0; head < rows.dim(2); ++head) {
    for (std::size_t q = 0; q < rows.dim(0); ++q) {
      for (std::size_t y = 0; y < rows.dim(1); ++y) {
        for (std::size_t x = 0; x < columns.dim(1); ++x)
          out.push_back(rows[q].row(y)[head] + columns[q].row(x)[head]);
      }
    }
  }
  return out;
}

/// A copy of the first bias part until the second comes.
struct StageChecks {
  const PromptCase& c;
  std::string front;  // "landscape.T1."
  Tensor<float> bias_rows{};

  void keep(std::string_view name, std::size_t index, TensorView<const float> values) {
    const std::string numbered = front + std::string(name) + "." + std::to_string(index);
    if (name == "bias_y") {
      bias_rows = Tensor<float>(values.shape());
      std::ranges::copy(flat_of(values), bias_rows.data());
    } else if (name == "bias_x") {
      check_stage(c, front + "box_bias", whole_bias(bias_rows, values));
    } else if (name == "geometry" || name == "mask_embed") {
      check_stage(c, front + std::string(name), flat_of(values));
    } else if (name == "pixel_embed") {
      check_stage(c, front + "pixel_embed", planes_of(values));
    } else {
      check_stage(c, numbered, flat_of(values));
    }
  }
};

std::vector<std::int32_t> integers_of(const test::FixtureTensors& file, const std::string& name) {
  const TensorEntry& entry = file.file().at(name);
  std::vector<std::int32_t> out(entry.num_elements());
  entry.bytes.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

/// The ids of a prompt without padding.
std::vector<std::int32_t> padded_ids(const PromptCase& c, const std::string& front, std::size_t& count) {
  std::vector<std::int32_t> ids = integers_of(c.expected, front + "input_ids");
  const std::vector<std::size_t> shape = c.expected.shape(front + "text.f64");
  count = shape[0];
  return ids;
}

std::vector<ExampleBox> examples_of(const PromptCase& c, const std::string& front) {
  std::vector<ExampleBox> out;
  if (!c.expected.has(front + "input_boxes_labels")) return out;
  const std::vector<double> boxes = c.expected.doubles(front + "input_boxes");
  const std::vector<std::int32_t> labels = integers_of(c.expected, front + "input_boxes_labels");
  for (std::size_t i = 0; i < labels.size(); ++i)
    out.push_back({boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3], labels[i] == 1});
  return out;
}

void check_detector_outputs(const PromptCase& c, const PromptParts& parts, const ImageMaps& maps,
                            const std::string& front, PromptMemory& memory, bool repository) {
  std::size_t count = 0;
  const std::vector<std::int32_t> ids = padded_ids(c, front, count);
  Tensor<float> text(Shape{count, parts.text->config().embedding_dim()});
  TextMemory texts;
  parts.text->forward_tokens({.ids = ids, .first = 0, .count = count}, text, 2, texts);
  check_stage(c, front + "text", text.flat());
  const std::vector<ExampleBox> boxes = examples_of(c, front);
  const std::string results = front + (repository ? "publisher." : "");
  FoundQueries found;
  parts.detector->find(maps, {.text = text, .boxes = boxes, .always_class_token = repository}, found, memory);
  check_stage(c, results + "pred_logits", found.logits);
  check_stage(c, results + "pred_boxes", found.decoded.boxes.flat());
  check_stage(c, results + "presence_logits", std::span(&found.decoded.presence, 1));
  const std::size_t edge = 4 * parts.detector->config().grid, queries = found.logits.size();
  Tensor<float> masks(Shape{queries, edge, edge}), semantic(Shape{edge, edge});
  parts.detector->masks(maps, found.decoded.states, masks, semantic, memory);
  check_stage(c, results + "pred_masks", masks.flat());
  check_stage(c, results + "semantic_seg", semantic.flat());
}

/// The maps of an image from the pixels of the case.
ImageMaps encode_pixels(const PromptCase& c, const PromptModel& model, const std::string& image,
                        PromptMemory& memory) {
  Session session(model.image(), {.threads = 2});
  const std::size_t depth = model.image()->config().encoder.depth;
  Request request;
  for (std::size_t k = 0; k < depth; ++k) request.add({Output::block, k});
  Outputs outputs;
  const Tensor<float> pixels = c.expected.floats(image + ".pixels");
  const Shape batch{1, pixels.dim(0), pixels.dim(1), pixels.dim(2)};
  session.forward({pixels.data(), batch}, request, outputs);
  for (std::size_t k = 0; k < depth; ++k)
    check_stage(c, image + ".block." + std::to_string(k), flat_of(outputs[0].block(k)));
  ImageMaps maps;
  PromptParts::of(model).detector->encode(outputs[0].block(depth - 1), maps, memory);
  check_stage(c, image + ".fpn.0", planes_of(maps.finest));
  check_stage(c, image + ".fpn.1", planes_of(maps.finer));
  check_stage(c, image + ".fpn.2", planes_of(maps.tokens));
  return maps;
}

std::size_t check_stages(const PromptCase& c) {
  const auto model = PromptModel::load(c.folder);
  const PromptParts& parts = PromptParts::of(*model);
  std::map<std::string, ImageMaps> images;
  const Json prompts = c.json.at("prompts");
  std::size_t num_checked = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::string image(prompts[i].at("image").as_string()), id(prompts[i].at("id").as_string());
    if (id.starts_with("P")) continue;
    PromptMemory memory;
    memory.threads = 2;
    if (!images.contains(image)) images.emplace(image, encode_pixels(c, *model, image, memory));
    StageChecks checks{c, image + "." + id + "."};
    memory.watch = [&](std::string_view name, std::size_t index, TensorView<const float> values) {
      checks.keep(name, index, values);
    };
    check_detector_outputs(c, parts, images.at(image), checks.front, memory, /*repository=*/false);
    memory.watch = nullptr;
    if (c.expected.has(checks.front + "publisher.pred_logits.f64"))
      check_detector_outputs(c, parts, images.at(image), checks.front, memory, /*repository=*/true);
    ++num_checked;
  }
  return num_checked;
}

/// A prompt of a case in pixels of its image.
Prompt prompt_of(const Json& json) {
  Prompt out{.text = json.find_string("text").value_or("")};
  const auto boxes = json.find("boxes");
  for (std::size_t i = 0; boxes && i < boxes->size(); ++i) {
    const Json box = (*boxes)[i];
    out.boxes.push_back(
        {.box = {box[0].as_double(), box[1].as_double(), box[2].as_double(), box[3].as_double()},
         .positive = json.at("labels")[i].as_integer() == 1});
  }
  return out;
}

/// Masks of the fixture where they are farther from the threshold than rounding.
void check_pixels(const PromptCase& c, const std::string& name, const std::string& lead,
                  std::span<const std::uint8_t> found) {
  constexpr double kDecided = 1e-4;
  const std::vector<unsigned char> wanted = c.expected.bytes(name);
  const std::vector<double> leads = c.expected.doubles(lead);
  REQUIRE(found.size() == wanted.size());
  std::size_t num_wrong = 0, num_close = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::abs(leads[i]) < kDecided) {
      ++num_close;
    } else if (found[i] != wanted[i]) {
      ++num_wrong;
    }
  }
  CHECK(num_wrong == 0);
  CHECK(num_close < wanted.size() / 100);
}

/// Instances in the order of queries against those of a prompt.
void check_instances(const PromptCase& c, const std::string& front, PromptInstances found, ImageSize image) {
  CAPTURE(front);
  std::vector<std::size_t> order(found.queries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  CHECK(std::ranges::is_sorted(found.scores, std::ranges::greater()));
  std::ranges::sort(order, {}, [&](std::size_t i) { return found.queries[i]; });
  const std::vector<std::int32_t> kept = integers_of(c.expected, front + "kept");
  REQUIRE(order.size() == kept.size());
  const std::vector<double> scores = c.expected.doubles(front + "scores.f64");
  const std::vector<double> boxes = c.expected.doubles(front + "boxes.f64");
  const std::size_t pixels = image.width * image.height;
  std::vector<std::uint8_t> masks;
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(found.queries[order[i]] == static_cast<std::size_t>(kept[i]));
    CHECK(std::abs(static_cast<double>(found.scores[order[i]]) - scores[static_cast<std::size_t>(kept[i])]) <
          1e-5);
    const Box& box = found.boxes[order[i]];
    const double edges[] = {box.x0, box.y0, box.x1, box.y1};
    for (std::size_t k = 0; k < 4; ++k) CHECK(std::abs(edges[k] - boxes[4 * i + k]) < 1e-3);
    const std::uint8_t* const mask = found.masks.data() + order[i] * pixels;
    masks.insert(masks.end(), mask, mask + pixels);
  }
  check_pixels(c, front + "masks", front + "mask_lead", masks);
}

void check_results(const PromptCase& c) {
  PromptSegmenter segmenter(PromptModel::load(c.folder), {.threads = 2});
  std::map<std::string, std::shared_ptr<const PromptFeatures>> images;
  const Json prompts = c.json.at("prompts");
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::string image(prompts[i].at("image").as_string()), id(prompts[i].at("id").as_string());
    if (id.starts_with("P")) continue;
    if (!images.contains(image)) images[image] = segmenter.encode(c.image(prompts[i]));
    const PromptOptions options{.threshold = prompts[i].at("threshold").as_double()};
    const Prompt prompt = prompt_of(prompts[i]);
    const PromptFeatures& features = *images[image];
    const std::string front = image + "." + id + ".";
    check_instances(c, front, segmenter.segment(features, prompt, options), features.image());
    CHECK(segmenter.detect(features, prompt, options).scores ==
          segmenter.segment(features, prompt, options).scores);
    const Tensor<float> probabilities = segmenter.pixel_probabilities(features, prompt, options);
    std::vector<std::uint8_t> pixels;
    for (const float probability : probabilities.flat()) pixels.push_back(probability > 0.5f ? 1 : 0);
    check_pixels(c, front + "semantic", front + "semantic_lead", pixels);
  }
}

/// Objects of points, boxes and masks: stages from the case's numbers, and masks of images.
std::size_t check_objects(const PromptCase& c) {
  const auto model = PromptModel::load(c.folder);
  const PromptParts& parts = PromptParts::of(*model);
  PromptSegmenter segmenter(model, {.threads = 2});
  std::map<std::string, std::shared_ptr<const PromptFeatures>> images;
  const Json prompts = c.json.at("prompts");
  std::size_t num_checked = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Json prompt = prompts[i];
    const std::string image(prompt.at("image").as_string()), id(prompt.at("id").as_string());
    if (!id.starts_with("P")) continue;
    const std::string front = image + "." + id + ".";
    CAPTURE(front);
    if (!images.contains(image)) {
      images[image] = segmenter.encode(c.image(prompt), PromptUse::objects);
      Session session(model->image(), {.threads = 2});
      Outputs outputs;
      session.run(c.image(prompt), model->request(), outputs);
      PromptMemory memory;
      memory.threads = 2;
      ClickMaps maps;
      parts.clicks->encode(outputs[0].block(model->image()->config().encoder.depth - 1), maps, memory);
      check_stage(c, image + ".tracker_fpn.0", planes_of(maps.finest));
      check_stage(c, image + ".tracker_fpn.1", planes_of(maps.finer));
      check_stage(c, image + ".tracker_fpn.2", planes_of(maps.tokens));
    }
    ObjectPrompt given;
    const auto points = prompt.find("points");
    for (std::size_t k = 0; points && k < points->size(); ++k)
      given.points.push_back({.x = (*points)[k][0].as_double(),
                              .y = (*points)[k][1].as_double(),
                              .positive = prompt.at("labels")[k].as_integer() == 1});
    if (const auto box = prompt.find("box"))
      given.box =
          Box{(*box)[0].as_double(), (*box)[1].as_double(), (*box)[2].as_double(), (*box)[3].as_double()};
    Tensor<float> mask;
    if (c.expected.has(front + "input_masks")) {
      mask = c.expected.floats(front + "input_masks");
      given.mask = mask;
    }
    const bool multimask = prompt.at("multimask").as_bool();
    const ObjectMasks found = segmenter.segment_object(*images[image], given, {.multimask = multimask});
    check_stage(c, front + "iou_scores", found.scores);
    check_stage(c, front + "object_score_logits", std::span(&found.object_logit, 1));
    check_stage(c, front + "pred_masks", found.logits.flat());
    check_pixels(c, front + "masks", front + "mask_lead", found.masks.flat());
    const ObjectMasks other = segmenter.segment_object(
        *images[image], given, {.multimask = multimask, .rule = PromptRule::repository});
    check_stage(c, front + "publisher.iou_scores", other.scores);
    check_stage(c, front + "publisher.object_score_logits", std::span(&other.object_logit, 1));
    ++num_checked;
  }
  return num_checked;
}

TEST_CASE("prompts: every stage of the reference models") {
  SKIP_WITHOUT_SHARED("fixtures/sam3");
  for (const char* const name : {"whole", "detector"}) {
    CAPTURE(name);
    CHECK(check_stages(PromptCase(test::shared_path("fixtures/sam3") / name)) >= 8);
  }
}

TEST_CASE("prompts: instances and maps of images are those of the reference models") {
  SKIP_WITHOUT_SHARED("fixtures/sam3");
  for (const char* const name : {"whole", "detector"}) {
    CAPTURE(name);
    check_results(PromptCase(test::shared_path("fixtures/sam3") / name));
  }
}

TEST_CASE("prompts: objects of the reference model") {
  SKIP_WITHOUT_SHARED("fixtures/sam3");
  CHECK(check_objects(PromptCase(test::shared_path("fixtures/sam3") / "whole")) >= 10);
}

TEST_CASE("prompts: the golden model gives what its library gives, to phrases, boxes, points and a mask") {
  const PromptCase c(test::data_path("golden/prompts/sam3"));
  CHECK(check_stages(c) == 3);
  check_results(c);
  CHECK(check_objects(c) == 3);
}

TEST_CASE("prompts: the bits depend neither on the threads nor on the prompts before") {
  const fs::path folder = test::data_path("golden/prompts/sam3");
  const fs::path image = test::data_path("golden/prompts/images/drawing.png");
  const auto model = PromptModel::load(folder);
  PromptSegmenter one(model, {.threads = 1}), many(model, {.threads = 3});
  const Prompt cat{.text = "a cat"}, shown{.text = "", .boxes = {{.box = {10, 8, 42, 39}}}};
  const auto of_one = one.encode(image, PromptUse::both), of_many = many.encode(image, PromptUse::both);
  const PromptLogits first = one.logits(*of_one, cat);
  many.logits(*of_many, shown);
  many.segment_object(*of_many, {.points = {{.x = 20, .y = 20}}});
  const PromptLogits second = many.logits(*of_many, cat);
  CHECK(std::ranges::equal(first.classes.flat(), second.classes.flat()));
  CHECK(std::ranges::equal(first.masks.flat(), second.masks.flat()));
  CHECK(std::ranges::equal(first.semantic.flat(), second.semantic.flat()));
  CHECK(of_one->bytes() > 0);
}

TEST_CASE("prompts: other precisions stay near") {
  const fs::path folder = test::data_path("golden/prompts/sam3");
  const fs::path image = test::data_path("golden/prompts/images/drawing.png");
  const Prompt cat{.text = "a cat"};
  PromptSegmenter exact(PromptModel::load(folder), {.threads = 2});
  const PromptLogits wanted = exact.logits(*exact.encode(image), cat);
  for (const Precision precision : {Precision::bfloat16, Precision::int8}) {
    PromptSegmenter other(PromptModel::load(folder, {.precision = precision}), {.threads = 2});
    const PromptLogits found = other.logits(*other.encode(image), cat);
    double largest = 0.0, difference = 0.0;
    for (std::size_t i = 0; i < wanted.masks.num_elements(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(wanted.masks.data()[i])));
      difference =
          std::max(difference, std::abs(static_cast<double>(wanted.masks.data()[i] - found.masks.data()[i])));
    }
    CHECK(difference < 0.1 * largest);
  }
}

TEST_CASE("prompts: wrong use is an Error that says what is wrong") {
  const fs::path folder = test::data_path("golden/prompts/sam3");
  const fs::path image = test::data_path("golden/prompts/images/drawing.png");
  const auto model = PromptModel::load(folder);
  PromptSegmenter segmenter(model, {.threads = 1});
  const auto features = segmenter.encode(image);
  const auto refused = [&](const Prompt& prompt, const PromptOptions& options = {}) {
    return test::message_of([&] { segmenter.segment(*features, prompt, options); });
  };
  CHECK(test::contains(refused({}), "needs a text or at least one box"));
  CHECK(test::contains(refused({.text = "", .boxes = {{.box = {5, 5, 5, 9}}}}), "is empty or outside"));
  CHECK(test::contains(refused({.text = "", .boxes = {{.box = {500, 5, 600, 9}}}}), "75 x 52"));
  CHECK(test::contains(refused({.text = "", .boxes = {{.box = {NAN, 5, 6, 9}}}}), "not finite"));
  CHECK(test::contains(refused({.text = "a cat"}, {.threshold = 1.5}), "0 to 1"));
  std::string sentence;
  for (std::size_t i = 0; i < 40; ++i) sentence += "cat ";
  CHECK(test::contains(refused({.text = sentence}), "tokens of the model's context"));
  CHECK(test::contains(
      test::message_of([&] { segmenter.segment_object(*features, {.points = {{.x = 1, .y = 1}}}); }),
      "not encoded for objects"));
  const auto both = segmenter.encode(image, PromptUse::both);
  const auto object = [&](const ObjectPrompt& prompt) {
    return test::message_of([&] { segmenter.segment_object(*both, prompt); });
  };
  CHECK(test::contains(object({}), "a point, a box or a mask"));
  CHECK(test::contains(object({.points = {{.x = INFINITY, .y = 1}}}), "not finite"));
  CHECK(test::contains(object({.points = {{.x = 1, .y = -1}}}), "outside of the image"));
  const Tensor<float> mask(Shape{1, 5, 5});
  CHECK(test::contains(object({.mask = mask}), "expected (h, w)"));
  CHECK(test::contains(test::message_of([] { PromptSegmenter(nullptr); }), "no model"));
  CHECK(test::contains(test::message_of([] { PromptModel::load(test::data_path("golden/models/hf-vit")); }),
                       "no detector of prompts"));
  PromptSegmenter moved(std::move(segmenter));
  CHECK(test::contains(test::message_of([&] { segmenter.encode(image); }), "moved from"));
  CHECK(test::contains(test::message_of([&] { TextTower::load(folder); }), "vector for each token"));
}

}  // namespace
}  // namespace vit
