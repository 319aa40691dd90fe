// Models of several labels for an image: the golden tagger in the layout in which taggers are published, and
// its results with --activation, --threshold, --labels, --pad and --channels.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/classifier.h"
#include "vit/config.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/outputs.h"
#include "vit/session.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;

const char* const kImages[]{"wide", "tall", "square"};

fs::path tagger() {
  return data_path("golden/tagger");
}

RunResult tag(std::vector<std::string> arguments, const std::string& model = tagger()) {
  arguments.insert(arguments.begin(), {"classify", "--model", model, "--pad", "white", "--channels", "bgr"});
  return run_vit(arguments);
}

std::string image(const std::string& name) {
  return tagger() / (name + ".png");
}

std::vector<std::size_t> indices_of(const RunResult& result) {
  REQUIRE_MESSAGE(result.exit_code == 0, result.err);
  const Json top = parse_json(result.out, "line").at("top");
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < top.size(); ++i) out.push_back(top[i].at("index").as_size());
  return out;
}

void refused(const RunResult& result, int exit_code, const std::string& cause) {
  CHECK(result.exit_code == exit_code);
  CHECK(result.num_errors() == 1);
  CHECK_MESSAGE(contains(result.err, cause), result.err);
}

/// A copy of the tagger whose list of tags is another one.
std::string with_tags(const TestFolder& folder, const std::string& csv) {
  const std::string copy = folder / "tagger";
  fs::remove_all(copy);
  fs::copy(tagger(), copy);
  fs::remove(copy + "/selected_tags.csv");
  if (!csv.empty()) write_text(copy + "/selected_tags.csv", csv);
  return copy;
}

}  // namespace

TEST_CASE("apps: a published tagger sees padded images in blue, green, red, and has timm's sigmoids") {
  const TensorFile expected = open_safetensors(tagger() / "expected.safetensors");
  const TestFolder folder;
  for (const std::string name : kImages) {
    CAPTURE(name);
    REQUIRE(run_vit({"preprocess", "--model", tagger(), "--pad", "#ffffff", "--channels", "bgr", image(name),
                     "--output", folder / "x.safetensors"})
                .exit_code == 0);
    const Tensor<float> pixels = to_float(open_safetensors(folder / "x.safetensors").at("pixels"));
    const Tensor<float> of_timm = to_float(expected.at(name + ".pixels"));
    CHECK(std::ranges::equal(pixels.flat(), of_timm.flat()));

    const RunResult result = tag({image(name), "--format", "json", "--top", "9"});
    REQUIRE_MESSAGE(result.exit_code == 0, result.err);
    const Json top = parse_json(result.out, "line").at("top");
    const std::vector<double> logits = to_double(expected.at(name + ".logits.f64"));
    const std::vector<double> probabilities = to_double(expected.at(name + ".probabilities"));
    REQUIRE(top.size() == logits.size());
    for (std::size_t i = 0; i < top.size(); ++i) {
      const std::size_t index = top[i].at("index").as_size();
      CHECK(top[i].at("logit").as_double() == doctest::Approx(logits[index]).epsilon(3e-6));
      CHECK(top[i].at("probability").as_double() == doctest::Approx(probabilities[index]).epsilon(3e-6));
    }
    CHECK(top[0].at("label").as_string() == "\"quoted\" sign");
  }
}

TEST_CASE("apps: --threshold selects all classes from a probability on, by category") {
  const TensorFile expected = open_safetensors(tagger() / "expected.safetensors");
  const std::vector<double> probabilities = to_double(expected.at("wide.probabilities"));
  const std::vector<std::string> json{image("wide"), "--format", "json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), json.begin(), json.end());
    return tag(more);
  };
  const auto above = [&](const std::vector<double>& thresholds) {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < probabilities.size(); ++i) {
      if (probabilities[i] >= thresholds[i]) out.push_back(i);
    }
    std::ranges::sort(out, [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
    return out;
  };
  CHECK(indices_of(with({"--threshold", "0.2"})) == above(std::vector<double>(9, 0.2)));
  CHECK(indices_of(with({"--threshold", "0"})).size() == 9);
  CHECK(indices_of(with({"--threshold", "1"})).empty());
  // ratings are left out where nothing is said of them; of two thresholds that of the category counts
  CHECK(indices_of(with({"--threshold", "0=0.45", "--threshold", "4=0.1"})) ==
        above({2, 2, 0.45, 0.45, 0.45, 0.45, 0.45, 0.1, 0.1}));
  CHECK(indices_of(with({"--threshold", "0.6", "--threshold", "9=0.15"})) ==
        above({0.15, 0.15, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6}));

  const std::vector<std::string> rows =
      lines_of(tag({image("wide"), "--threshold", "0.6", "--format", "csv"}).out);
  REQUIRE(rows.size() == 4);
  CHECK(contains(rows[1], ",1,5,\"\"\"quoted\"\" sign\","));
  CHECK(contains(rows[2], ",2,3,\"red hair, long\","));
  CHECK(lines_of(tag({image("wide"), "--threshold", "1"}).out).size() == 1);  // only the name of the file

  refused(with({"--threshold", "0.5", "--top", "3"}), 2, "--top and --threshold");
  refused(with({"--threshold", "7=0.5"}), 2, "categories: 9, 0, 4");
  refused(with({"--threshold", "0=0.5", "--threshold", "0=0.6"}), 2, "given twice for the category 0");
  refused(with({"--threshold", "1.5"}), 2, "from 0 to 1");
  refused(with({"--threshold", "=0.5"}), 2, "CATEGORY=P");
  refused(run_vit({"classify", "--model", golden_model("rope-axial"), "--threshold", "4=0.5", image("wide")}),
          2, "no categories");
}

TEST_CASE("apps: --activation is the checkpoint's unless it is chosen") {
  const TestFolder folder;
  const auto sum_of = [&](const RunResult& result) {
    REQUIRE_MESSAGE(result.exit_code == 0, result.err);
    const Json top = parse_json(result.out, "line").at("top");
    double sum = 0;
    for (std::size_t i = 0; i < top.size(); ++i) sum += top[i].at("probability").as_double();
    return sum;
  };
  const std::vector<std::string> all{image("wide"), "--top", "9", "--format", "json"};
  const auto with = [&](const std::string& model, std::vector<std::string> more) {
    more.insert(more.begin(), all.begin(), all.end());
    return sum_of(tag(more, model));
  };
  const double sigmoids = with(tagger(), {});
  CHECK(sigmoids > 3.0);
  CHECK(with(tagger(), {"--activation", "softmax"}) == doctest::Approx(1.0));
  const std::string without = with_tags(folder, "");
  CHECK(with(without, {}) == doctest::Approx(1.0));  // timm's configuration does not say
  CHECK(with(without, {"--activation", "sigmoid"}) == sigmoids);
  CHECK(with(with_tags(folder, "name\na\nb\n"), {}) == doctest::Approx(1.0));  // tags of another model

  const std::string multi = folder / "multi";
  fs::copy(golden_model("hf-vit"), multi);
  std::string config = read_text(multi + "/config.json");
  config.insert(config.find('{') + 1, "\"problem_type\": \"multi_label_classification\",");
  write_text(multi + "/config.json", config);
  CHECK(with(multi, {"--activation", "auto"}) != doctest::Approx(1.0));
  CHECK(with(multi, {"--activation", "softmax"}) == doctest::Approx(1.0));
  CHECK(with(golden_model("hf-vit"), {}) == doctest::Approx(1.0));
  refused(tag({image("wide"), "--activation", "relu"}), 2, "auto, softmax, sigmoid, none");

  const std::string values = folder / "values";  // of a regression, as transformers' pipeline gives them
  fs::copy(golden_model("hf-vit"), values);
  config = read_text(values + "/config.json");
  config.insert(config.find('{') + 1, "\"problem_type\": \"regression\",");
  write_text(values + "/config.json", config);
  const RunResult regression = tag({image("wide"), "--format", "json"}, values);
  REQUIRE(regression.exit_code == 0);
  const Json top = parse_json(regression.out, "stdout").at("top");
  for (std::size_t i = 0; i < top.size(); ++i)
    CHECK(top[i].at("probability").as_double() == top[i].at("logit").as_double());
  CHECK_FALSE(contains(tag({image("wide"), "--format", "text"}, values).out, "%"));
  refused(tag({image("wide"), "--threshold", "0.5"}, values), 2, "--threshold");
  refused(run_vit({"evaluate", "--model", values, folder.path()}), 1, "regression");
}

TEST_CASE("apps: --labels reads tables of names and categories") {
  const TestFolder folder;
  const std::string model = with_tags(folder, "");
  const auto labels_of = [&](const std::string& csv, std::vector<std::string> more) {
    write_text(folder / "names.csv", csv);
    more.insert(more.begin(), {image("wide"), "--labels", folder / "names.csv", "--format", "json"});
    return tag(more, model);
  };
  const std::string published = read_text(tagger() / "selected_tags.csv");
  const RunResult own = labels_of(published, {"--activation", "sigmoid", "--threshold", "4=0"});
  CHECK(indices_of(own) == std::vector<std::size_t>{7, 8});
  CHECK(contains(own.out, "\u00e9toile"));
  std::string windows =
      "\xEF\xBB\xBF"
      "category,name\r\n";
  for (const char* name : {"a", "b", "\"c,\"\"d\"\"\"", "e", "f", "g", "h", "i", "\"j\nk\""})
    windows += "x y," + std::string(name) + "\r\n\r\n";
  const RunResult turned = labels_of(windows, {"--top", "9", "--threshold", "x y=0"});
  refused(turned, 2, "--top and --threshold");
  const RunResult all = labels_of(windows, {"--threshold", "x y=0"});
  CHECK(indices_of(all).size() == 9);
  CHECK(contains(all.out, R"("label": "c,\"d\"")"));
  CHECK(contains(all.out, R"("label": "j\u000ak")"));
  CHECK(contains(labels_of("a\nb\nc\nd\ne\nf\ng\nh\ni\n", {"--top", "1"}).out,
                 "\"label\": \"f\""));  // no header

  refused(labels_of("name,category\na,1\n", {}), 1, "1 name for 9 classes");
  refused(labels_of("name,category\na,1\n\"b", {}), 1, "line 3: a quote that does not close");
  refused(labels_of("name,category\na\n", {}), 1, "line 2: 1 fields below a header of 2");
  refused(labels_of("name\n\"a\"b\n", {}), 1, "line 2: text after a closing quote");
  refused(labels_of("", {}), 1, "names.csv");
}

TEST_CASE("apps: colors of --pad, and orders of --channels") {
  const TestFolder folder;
  const auto pixels_of = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"preprocess", "--model", tagger(), image("wide"), "--output", folder / "x.npy"});
    const RunResult result = run_vit(more);
    REQUIRE_MESSAGE(result.exit_code == 0, result.err);
    return parse_npy(read_text(folder / "x.npy")).floats();
  };
  const std::vector<float> gray = pixels_of({"--pad", "gray"});
  for (const char* same : {"grey", "#808080", "128,128,128"}) CHECK(pixels_of({"--pad", same}) == gray);
  CHECK(pixels_of({"--pad", "#fff"}) == pixels_of({"--pad", "white"}));
  CHECK(pixels_of({"--pad", "0,0,0"}) == pixels_of({"--pad", "black"}));
  CHECK(pixels_of({"--pad", "black"}) != gray);
  const std::vector<float> rgb = pixels_of({"--channels", "rgb"});
  std::vector<float> turned = pixels_of({"--channels", "bgr"});
  const auto plane = static_cast<std::ptrdiff_t>(rgb.size() / 3);
  CHECK(rgb != turned);
  std::swap_ranges(turned.begin(), turned.begin() + plane, turned.end() - plane);
  CHECK(rgb == turned);
  for (const char* wrong : {"", "blue", "#12345", "#gggggg", "1,2", "1,2,256", "1,2,3,4", "-1,2,3", " 1,2,3"})
    refused(tag({image("wide"), "--pad", wrong}), 2, "--pad");
  refused(run_vit({"classify", "--model", tagger(), image("wide"), "--channels", "BGR"}), 2, "rgb or bgr");
}

TEST_CASE("tagger: the library knows padding, order and thresholds") {
  ModelOptions options;
  options.square_pad_color = {255, 255, 255};
  options.channels = ChannelOrder::bgr;
  const std::shared_ptr<const Model> model = Model::load(tagger(), options);
  CHECK(model->config().head.logits == LogitKind::tags);
  CHECK(model->config().head.label_categories.front() == "9");
  CHECK(
      contains(Preprocessor(model->preprocess_config()).describe(), "pad to a square with (255, 255, 255)"));
  const TensorFile expected = open_safetensors(tagger() / "expected.safetensors");
  for (const std::string name : kImages) {
    CAPTURE(name);
    Session session(model, {.threads = 1});
    const Image rgb = session.decode(image(name));
    const Tensor<float> of_timm = to_float(expected.at(name + ".pixels"));
    CHECK(std::ranges::equal(session.preprocessor().run(rgb).flat(), of_timm.flat()));
    Image bgr(rgb.height(), rgb.width());  // the same colors in the order of OpenCV
    for (std::size_t i = 0; i < 3 * rgb.width() * rgb.height(); ++i)
      bgr.data()[i] = rgb.data()[i / 3 * 3 + 2 - i % 3];
    const ImageView view(bgr.data(), bgr.height(), bgr.width(), {.format = PixelFormat::bgr});
    CHECK(std::ranges::equal(session.preprocessor().run(view).flat(), of_timm.flat()));
    const std::vector<Prediction> best = Classifier::of_model(model).classify(rgb.view(), 1);
    CHECK(best.front().probability ==
          doctest::Approx(to_double(expected.at(name + ".probabilities"))[best.front().index]).epsilon(3e-6));
  }
  // the middle of an image stays in the middle: 45 x 26 lies 9 rows below the top of 45 x 45
  const Preprocessor preprocessor(model->preprocess_config());
  const SourceMap map = preprocessor.source_map({.height = 26, .width = 45});
  CHECK(map.left == doctest::Approx(0.0));
  CHECK(map.top == doctest::Approx(-9.0));
  CHECK(map.x_step == doctest::Approx(45.0 / 24.0));
  CHECK(map.y_step == doctest::Approx(45.0 / 24.0));

  const std::vector<float> logits{0.0f, 2.0f, -1.0f, 2.0f};
  const std::vector<float> thresholds{0.5f, 0.9f, 0.1f, 0.0f};
  const std::vector<std::string> names{"a", "b", "c", "d"};
  const std::vector<Prediction> found =
      ClassSelection::above(thresholds).of(logits, names, ClassActivation::sigmoid);
  REQUIRE(found.size() == 3);  // sigmoid(2) = 0.88 is below 0.9
  CHECK(found[0].label == "d");
  CHECK(found[1].label == "a");
  CHECK(found[1].probability == 0.5f);
  CHECK(found[2].label == "c");
  CHECK_THROWS_AS(ClassSelection::above({0.5f, 0.9f, 0.1f}).of(logits, names), Error);
}
