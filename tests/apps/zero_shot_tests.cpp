// Texts in vit embed, classify, evaluate and info: results are those of the library's classes, which
// model/text_fixture_tests.cpp compares with the reference libraries.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/session.h"
#include "vit/text_encoder.h"
#include "vit/zero_shot.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string golden_text(const std::string& name) {
  return data_path("golden/text/" + name).string();
}

std::vector<std::string> strings_of(const Json& list) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < list.size(); ++i) out.emplace_back(list[i].as_string());
  return out;
}

/// The vectors that the library gives for these texts.
Tensor<float> encoded(const std::string& model, const std::vector<std::string>& texts,
                      const TextOptions& options = {}) {
  TextEncoder encoder(model, {.threads = 1}, options);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return encoder.encode(views).vectors;
}

bool same(const Tensor<float>& found, const Tensor<float>& expected) {
  return found.shape() == expected.shape() && std::ranges::equal(found.flat(), expected.flat());
}

/// One line of vit classify --format json: values by class.
struct Scores {
  std::vector<double> logits, probabilities;
};
Scores scores_of(const std::string& line, const std::vector<std::string>& classes) {
  const Json top = parse_json(line, "line").at("top");
  REQUIRE(top.size() == classes.size());
  Scores out{std::vector<double>(classes.size()), std::vector<double>(classes.size())};
  for (std::size_t i = 0; i < top.size(); ++i) {
    const std::size_t index = top[i].at("index").as_size();
    CHECK(top[i].at("label").as_string() == classes.at(index));
    out.logits[index] = top[i].at("logit").as_double();
    out.probabilities[index] = top[i].at("probability").as_double();
  }
  return out;
}

/// Twice PyTorch's own float32 error, at least 3e-6 of the largest value, of 1 where that is smaller.
void check_close(const TensorFile& expected, const std::string& name, std::size_t row,
                 const std::vector<double>& found) {
  CAPTURE(name);
  const std::vector<double> exact = to_double(expected.at(name + ".f64")),
                            single = to_double(expected.at(name));
  double own = 0.0, largest = 1.0, error = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    own = std::max(own, std::abs(single[i] - exact[i]));
    largest = std::max(largest, std::abs(exact[i]));
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    error = std::max(error, std::abs(found[i] - exact[row * found.size() + i]));
  CHECK(error <= std::max(2.0 * own, 3e-6 * largest));
}

std::string lines_text(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

/// The options of a golden model: its file, its vocabulary.
std::vector<std::string> options_of(const std::string& name, const Json& facts) {
  const std::string folder = golden_text(name), file = facts.find_string("file").value_or("");
  std::vector<std::string> out{"--model", file.empty() ? folder : folder + "/" + file};
  if (const auto architecture = facts.find_string("architecture"))
    out.insert(out.end(), {"--architecture", *architecture});
  if (const auto tokenizer = facts.find_string("tokenizer"))
    out.insert(out.end(), {"--tokenizer", folder + "/" + *tokenizer});
  return out;
}

RunResult run_with(const std::string& command, std::vector<std::string> options,
                   const std::vector<std::string>& more) {
  options.insert(options.begin(), command);
  options.insert(options.end(), more.begin(), more.end());
  return run_vit(options);
}

/// Classes against the golden images, and again by their vectors from a file.
void check_classes(const std::string& name) {
  CAPTURE(name);
  const Json facts = load_json(golden_text(name) + "/case.json");
  const TensorFile expected = open_safetensors(golden_text(name) + "/expected.safetensors");
  const std::vector<std::string> classes = strings_of(facts.at("labels"));
  const std::vector<std::string> options = options_of(name, facts);
  const TestFolder folder;
  write_text(folder / "names.txt", lines_text(classes));
  write_npy(folder / "pixels.npy", to_float(expected.at("pixels")).view());
  std::vector<std::string> arguments{"--classes-file", folder / "names.txt", "--template",
                                     std::string(facts.at("template").as_string())};
  const std::vector<std::string> output{folder / "pixels.npy", "--format", "json"};
  std::vector<std::string> classify = arguments;
  classify.insert(classify.end(), output.begin(), output.end());
  const RunResult result = run_with("classify", options, classify);
  REQUIRE_MESSAGE(result.exit_code == 0, result.err);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 2);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Scores scores = scores_of(lines[i], classes);
    check_close(expected, "classes.logits", i, scores.logits);
    check_close(expected, "classes.probabilities", i, scores.probabilities);
  }

  std::vector<std::string> embed = arguments;
  embed[0] = "--text-file";
  embed.insert(embed.end(), {"--output", folder / "classes.safetensors"});
  REQUIRE(run_with("embed", options, embed).exit_code == 0);
  const RunResult ready =
      run_with("classify", {options.begin(), options.begin() + 2},
               {"--classes-file", folder / "classes.safetensors", output[0], output[1], output[2]});
  CHECK_MESSAGE(ready.out == result.out, ready.err);
}

}  // namespace

TEST_CASE("apps: custom classes have the probabilities of the model's library") {
  for (const char* const name : {"hf-clip", "hf-siglip", "hf-metaclip2", "openclip-clip", "openclip-siglip"})
    check_classes(name);
}

TEST_CASE("apps: templates are averaged as open_clip does") {
  const std::string name = "openclip-siglip", model = golden_text(name);
  const Json facts = load_json(model + "/case.json");
  const TensorFile expected = open_safetensors(model + "/expected.safetensors");
  const std::vector<std::string> classes = strings_of(facts.at("labels"));
  const std::vector<std::string> templates = strings_of(facts.at("templates"));
  const TestFolder folder;
  write_npy(folder / "pixels.npy", to_float(expected.at("pixels")).view());
  write_text(folder / "templates.txt", lines_text(templates));
  write_text(folder / "names.jsonl", "{\"text\": \"" + classes[0] + "\"}\n{\"text\": \"" + classes[1] +
                                         "\"}\n{\"text\": \"" + classes[2] + "\"}\n");
  const RunResult result =
      run_vit({"classify", "--model", model, "--classes-file", folder / "names.jsonl", "--template-file",
               folder / "templates.txt", "--format", "json", folder / "pixels.npy"});
  REQUIRE_MESSAGE(result.exit_code == 0, result.err);
  for (std::size_t i = 0; i < 2; ++i) {
    const Scores scores = scores_of(lines_of(result.out)[i], classes);
    check_close(expected, "averaged.logits", i, scores.logits);
    check_close(expected, "averaged.probabilities", i, scores.probabilities);
  }
  REQUIRE(run_vit({"embed", "--model", model, "--text-file", folder / "names.jsonl", "--template-file",
                   folder / "templates.txt", "--output", folder / "classes.safetensors"})
              .exit_code == 0);
  const ClassVectors vectors = load_class_vectors(folder / "classes.safetensors");
  CHECK(vectors.names == classes);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::span<const float> row(vectors.vectors.view().row(i), vectors.vectors.dim(1));
    check_close(expected, "averaged.classifier", i, {row.begin(), row.end()});
  }
}

TEST_CASE("apps: embed writes the vectors of texts, with or without images, and their names") {
  const std::string model = golden_text("hf-clip");
  const std::vector<std::string> texts{"a cat", "", "two \"dogs\""};
  const Tensor<float> expected = encoded(model, texts);
  const TestFolder folder;
  write_text(folder / "more.txt", lines_text({texts[1], texts[2]}));
  const std::vector<std::string> given{"--model", model,         "--text",
                                       texts[0],  "--text-file", folder / "more.txt"};
  REQUIRE(run_with("embed", given, {"--output", folder / "texts.safetensors"}).exit_code == 0);
  const TensorFile texts_only = open_safetensors(folder / "texts.safetensors");
  CHECK(texts_only.entries().size() == 1);
  CHECK(same(to_float(texts_only.at("text")), expected));
  CHECK(strings_of(parse_json(texts_only.metadata().at("names"), "names")) == texts);
  CHECK(!texts_only.metadata().contains("files"));

  write_npy(folder / "pixels.npy", Tensor<float>(Shape{1, 3, 16, 16}).view());
  REQUIRE(run_with("embed", given, {folder / "pixels.npy", "--output", folder / "both.npz"}).exit_code == 0);
  const auto both = read_npz(folder / "both.npz");
  CHECK(both.at("projected").shape == std::vector<std::size_t>{1, expected.dim(1)});
  CHECK(both.at("text").floats() == std::vector<float>(expected.flat().begin(), expected.flat().end()));
  CHECK(both.contains("names"));
  CHECK(both.contains("files"));

  REQUIRE(run_with("embed", given, {"--normalize", "--output", folder / "unit.jsonl"}).exit_code == 0);
  const std::vector<std::string> lines = lines_of(read_text(folder / "unit.jsonl"));
  REQUIRE(lines.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const Json line = parse_json(lines[i], "line");
    CHECK(line.at("name").as_string() == texts[i]);
    double sum = 0.0;
    for (std::size_t c = 0; c < line.at("text").size(); ++c)
      sum += std::pow(line.at("text")[c].as_double(), 2);
    CHECK(std::abs(sum - 1.0) < 1e-6);
  }
  CHECK(contains(run_vit({"embed", "--help"}).out, "--template"));
}

TEST_CASE("apps: a text that cannot be encoded is left out, with any number of templates") {
  const std::string model = golden_text("hf-clip");
  const TestFolder folder;
  write_text(folder / "texts.txt", "a cat\n\xff\n\na cat\ntwo dogs\n");
  const std::vector<std::vector<std::string>> lists{{}, {"{}"}, {"{}", "{}"}};
  for (const std::vector<std::string>& templates : lists) {
    std::vector<std::string> texts{"a cat", "a cat", "two dogs"};
    if (templates.empty()) texts.insert(texts.begin() + 1, "");  // else a blank line names no class
    const Tensor<float> plain = encoded(model, texts);
    std::vector<std::string> arguments{"--text-file", folder / "texts.txt", "--normalize", "--output",
                                       folder / "t.npy"};
    for (const std::string& pattern : templates) arguments.insert(arguments.end(), {"--template", pattern});
    const RunResult result = run_with("embed", {"--model", model}, arguments);
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, "UTF-8"));
    const std::vector<float> found = parse_npy(read_text(folder / "t.npy")).floats();
    REQUIRE(found.size() == plain.num_elements());
    for (std::size_t row = 0; row < plain.dim(0); ++row) {
      std::vector<float> expected(plain.view().row(row), plain.view().row(row) + plain.dim(1));
      normalize_vector(expected);
      for (std::size_t c = 0; c < expected.size(); ++c)
        CHECK(std::abs(found[row * expected.size() + c] - expected[c]) < 1e-6f);
    }
  }
}

TEST_CASE("apps: the vocabulary of a publisher's file is an option, and required") {
  const Json facts = load_json(golden_text("meta-pe") + "/case.json");
  const std::vector<std::string> options = options_of("meta-pe", facts);
  const TestFolder folder;
  const RunResult result = run_with("embed", options, {"--text", "a cat", "--output", folder / "text.npy"});
  REQUIRE_MESSAGE(result.exit_code == 0, result.err);
  const std::vector<float> row = parse_npy(read_text(folder / "text.npy")).floats();
  const Tensor<float> expected = encoded(
      options[1], {"a cat"},
      {.architecture = std::string(facts.at("architecture").as_string()), .tokenizer = options.back()});
  CHECK(std::ranges::equal(row, expected.flat()));
  const RunResult missing = run_vit({"embed", "--model", options[1], options[2], options[3], "--text", "a",
                                     "--output", folder / "text.npy"});
  CHECK(missing.exit_code == 1);
  CHECK(missing.num_errors() == 1);
  CHECK(contains(missing.err, "bpe_simple_vocab_16e6.txt.gz"));
  CHECK(contains(missing.err, "--tokenizer"));
}

TEST_CASE("apps: texts that are too long are cut, which is said once") {
  const std::string model = golden_text("hf-clip");
  std::string words;
  for (int i = 0; i < 60; ++i) words += "model ";
  const TestFolder folder;
  const RunResult texts =
      run_vit({"embed", "--model", model, "--text", words, "--text", words, "--output", folder / "t.npy"});
  CHECK(texts.exit_code == 0);
  CHECK(texts.num_errors() == 1);
  CHECK(contains(texts.err, "are truncated, as in transformers"));
  write_npy(folder / "pixels.npy", Tensor<float>(Shape{1, 3, 16, 16}).view());
  const RunResult classes = run_vit(
      {"classify", "--model", model, "--classes", "a " + words + ",b " + words, folder / "pixels.npy"});
  CHECK(classes.exit_code == 0);
  CHECK(classes.num_errors() == 1);
}

TEST_CASE("apps: wrong classes, templates and texts are one clear line") {
  const std::string model = golden_text("hf-clip");
  const TestFolder folder;
  write_npy(folder / "pixels.npy", Tensor<float>(Shape{1, 3, 16, 16}).view());
  write_text(folder / "twice.txt", "cat\ndog\ncat\n");
  write_text(folder / "nameless.json", R"(["", "cat"])");
  write_text(folder / "nameless.jsonl", "{\"text\": \"cat\"}\n{\"text\": \"\"}\n");
  write_text(folder / "blank.txt", "\n \n");
  write_text(folder / "damaged.txt", "cat\nd\xFFg\n");
  write_text(folder / "template.txt", "a photo\n");
  write_text(folder / "broken.safetensors", "no");
  struct Wrong {
    std::vector<std::string> arguments;
    int exit_code;
    std::string said;
  };
  const std::string names = folder / "names.safetensors";
  for (const Wrong& wrong : std::vector<Wrong>{
           {{"--classes", ", ,"}, 2, "no classes"},
           {{"--classes", "a cat,,a dog"}, 2, "class 1 has no name"},
           {{"--classes", "a cat,a dog,"}, 2, "class 2 has no name"},
           {{"--classes-file", folder / "nameless.json"}, 1, "class 0 has no name"},
           {{"--classes-file", folder / "nameless.jsonl"}, 1, "class 1 has no name"},
           {{"--classes", "cat,dog,cat"}, 2, "'cat' appears twice"},
           {{"--classes", "c\xFFt"}, 2, "UTF-8"},
           {{"--classes-file", folder / "twice.txt"}, 1, "'cat' appears twice"},
           {{"--classes-file", folder / "blank.txt"}, 1, "no classes"},
           {{"--classes-file", folder / "damaged.txt"}, 1, "UTF-8"},
           {{"--classes-file", folder / "none.txt"}, 1, "none.txt"},
           {{"--classes-file", folder / "broken.safetensors"}, 1, "broken.safetensors"},
           {{"--classes", "cat", "--template", "a photo"}, 2, "has no {}"},
           {{"--classes", "cat", "--template-file", folder / "template.txt"}, 1, "has no {}"},
           {{"--template", "{}"}, 2, "--classes"},
           {{"--classes", "cat", "--classes-file", folder / "twice.txt"}, 2, "one of them"},
           {{"--classes", "cat", "--labels", folder / "twice.txt"}, 2, "--labels"},
           {{"--classes-file", names, "--template", "{}"}, 2, "ready"},
       }) {
    std::vector<std::string> arguments = wrong.arguments;
    CAPTURE(arguments[1]);
    arguments.push_back(folder / "pixels.npy");
    const RunResult result = run_with("classify", {"--model", model}, arguments);
    CHECK(result.exit_code == wrong.exit_code);
    CHECK(result.num_errors() == 1);
    CHECK_MESSAGE(contains(result.err, wrong.said), result.err);
    CHECK(result.out.empty());
  }
  const RunResult blind =
      run_vit({"classify", "--model", golden_model("rope-axial"), "--classes", "a", "x.npy"});
  CHECK(blind.exit_code == 1);
  CHECK(contains(blind.err, "text tower"));
  const RunResult damaged = run_vit({"embed", "--model", model, "--text-file", folder / "damaged.txt",
                                     "--output", folder / "some.safetensors"});
  CHECK(damaged.exit_code == 1);
  CHECK(damaged.num_errors() == 1);
  CHECK(open_safetensors(folder / "some.safetensors").at("text").shape[0] == 1);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--output", folder / "x.npy"},
        {"--text", "a", "--features", "pooled", "--output", folder / "x.npy"},
        {"--text", "a", folder / "pixels.npy", "--output", folder / "x.npy"},
        {"--text", "a", "--resume", "--output", folder / "x.jsonl"},
        {"--template", "{}", folder / "pixels.npy", "--output", folder / "x.npy"}}) {
    const RunResult result = run_with("embed", {"--model", model}, arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.num_errors() == 1);
  }
}

TEST_CASE("apps: blank lines among classes are left out, which is said; --text= is an empty text") {
  const std::string model = golden_text("hf-clip");
  const TestFolder folder;
  write_npy(folder / "pixels.npy", Tensor<float>(Shape{1, 3, 16, 16}).view());
  write_text(folder / "names.txt", "cat\n\ndog\n");
  const RunResult lines =
      run_vit({"classify", "--model", model, "--classes-file", folder / "names.txt", folder / "pixels.npy"});
  CAPTURE(lines.err);
  CHECK(lines.exit_code == 0);
  CHECK(contains(lines.err, "blank lines are no classes: 1 left out"));
  const auto vector_of = [&](std::vector<std::string> text) {
    text.insert(text.begin(), {"embed", "--model", model, "--output", folder / "text.npz"});
    const RunResult run = run_vit(text);
    CAPTURE(run.err);
    CHECK(run.exit_code == 0);
    return read_npz(folder / "text.npz").at("text").floats();
  };
  CHECK(vector_of({"--text="}) == vector_of({"--text", ""}));
  CHECK(vector_of({"--text=", "--text", "a cat"}).size() == 2 * vector_of({"--text", ""}).size());
}

TEST_CASE("apps: classes of another model's vectors are refused") {
  const TestFolder folder;
  write_npy(folder / "pixels.npy", Tensor<float>(Shape{1, 3, 16, 16}).view());
  REQUIRE(run_vit({"embed", "--model", golden_text("hf-siglip"), "--text", "cat", "--output",
                   folder / "other.safetensors"})
              .exit_code == 0);
  const RunResult result = run_vit({"classify", "--model", golden_text("hf-clip"), "--classes-file",
                                    folder / "other.safetensors", folder / "pixels.npy"});
  CHECK(result.exit_code == 1);
  CHECK(result.num_errors() == 1);
  CHECK_MESSAGE(contains(result.err, "hf-siglip"), result.err);
}

TEST_CASE("apps: evaluate compares images with custom classes") {
  const TestFolder folder;
  for (const char* const label : {"cat", "dog"}) {
    std::filesystem::create_directories(folder / "set" + std::string("/") + label);
    write_picture(folder / "set" + std::string("/") + label + "/0.ppm", 30, 40, 3);
  }
  std::filesystem::copy(golden_text("hf-clip"), folder / "model");
  write_text(folder / "model/preprocessor_config.json",
             R"({"image_processor_type": "CLIPImageProcessor", "size": 16, "crop_size": 16})");
  const RunResult result = run_vit(
      {"evaluate", "--model", folder / "model", "--classes", "cat,dog", "--format", "json", folder / "set"});
  REQUIRE_MESSAGE(result.exit_code == 0, result.err);
  const Json found = parse_json(result.out, "evaluate");
  CHECK(found.at("images").as_size() == 2);
  CHECK(found.at("top1").as_double() == 0.5);  // both images are the same
}

TEST_CASE("apps: info describes both towers, the tokenizer and its cleaning") {
  const RunResult json = run_vit({"info", "--json", "--tensors", "--model", golden_text("openclip-siglip")});
  REQUIRE(json.exit_code == 0);
  const Json model = parse_json(json.out, "info").at("model");
  const Json text = model.at("text");
  CHECK(text.at("config").at("context_length").as_size() == 20);
  CHECK(text.at("score").at("kind").as_string() == "sigmoid");
  CHECK(text.at("tokenizer").at("class").as_string() == "T5Tokenizer");
  CHECK(text.at("tokenizer").at("cleaning").as_string().find("punctuation removed") != std::string::npos);
  CHECK(model.at("config").at("embed_dim").as_size() > 0);
  for (std::size_t i = 0; i < model.at("ignored").size(); ++i)
    CHECK(model.at("ignored")[i].at("why").as_string() != "text tower");
  const RunResult people = run_vit({"info", "--model", golden_text("openclip-siglip")});
  for (const char* const line :
       {"text tower\n", "context_length: 20", "score.kind: sigmoid", "tokenizer.cleaning: "})
    CHECK(contains(people.out, line));

  const RunResult without = run_vit({"info", "--model", golden_text("openclip-clip")});
  CHECK(without.exit_code == 0);
  CHECK(contains(without.out, "bpe_simple_vocab_16e6.txt.gz"));
  CHECK(!contains(run_vit({"info", "--model", golden_model("rope-axial")}).out, "text tower"));
}

TEST_CASE("apps: NaFlex images have the probabilities of transformers' zero-shot pipeline") {
  SKIP_WITHOUT_SHARED("fixtures/text/hf-siglip2-naflex");
  const std::string model = shared_path("fixtures/text/hf-siglip2-naflex").string();
  const TensorFile expected = open_safetensors(model + "/expected.safetensors");
  const std::vector<std::string> classes = strings_of(load_json(model + "/case.json").at("labels"));
  const TestFolder folder;
  write_text(folder / "names.txt", lines_text(classes));
  const RunResult result =
      run_vit({"classify", "--model", model, "--classes-file", folder / "names.txt", "--format", "json",
               model + "/pictures/0.png", model + "/pictures/1.png"});
  REQUIRE_MESSAGE(result.exit_code == 0, result.err);
  for (std::size_t i = 0; i < 2; ++i) {
    const Scores scores = scores_of(lines_of(result.out)[i], classes);
    check_close(expected, "classes.logits", i, scores.logits);
    check_close(expected, "classes.probabilities", i, scores.probabilities);
  }
}
