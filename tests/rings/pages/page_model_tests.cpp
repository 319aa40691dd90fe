// Vectors of pages and of questions next to those of the library, their scores, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/pages.h"
#include "vit/rings/pages/page_text.h"
#include "vit/text/clip_words.h"
#include "vit/text/tokenizer.h"

TEST_SUITE_BEGIN("pages");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::filesystem::path model_folder() {
  return data_path("golden/pages/colmodernvbert");
}
std::filesystem::path image_path(const std::string& name) {
  return data_path("golden/pages/images/" + name);
}

/// What the library gave.
struct Expected {
  TensorFile file = open_safetensors(model_folder() / "expected.safetensors");
  Json facts = load_json(model_folder() / "case.json");

  Tensor<float> floats(const std::string& name) const {
    const TensorEntry& entry = file.at(name);
    Tensor<float> out(Shape{entry.shape[0], entry.shape[1]});
    for (std::size_t row = 0; row < entry.shape[0]; ++row)
      convert_row(entry, row, std::span(out.view().row(row), entry.shape[1]));
    return out;
  }
  std::vector<std::int32_t> ids(const std::string& name) const {
    const TensorEntry& entry = file.at(name + ".ids");
    std::vector<std::int32_t> out(entry.shape[0]);
    entry.bytes.read(0, std::as_writable_bytes(std::span(out)));
    return out;
  }
  double own_error() const { return facts.at("largest_float32").as_double(); }
};

double largest_difference(TensorView<const float> a, TensorView<const float> b) {
  REQUIRE(a.shape() == b.shape());
  double largest = 0;
  for (std::size_t row = 0; row < a.num_rows(); ++row) {
    for (std::size_t c = 0; c < a.num_columns(); ++c)
      largest = std::max(largest, std::abs(double{a.row(row)[c]} - double{b.row(row)[c]}));
  }
  return largest;
}

}  // namespace

TEST_CASE("pages: vectors of pages and questions and their scores are the library's") {
  const Expected expected;
  PageEncoder encoder(PageModel::load(model_folder()), {.threads = 2});
  CHECK(encoder.model().dim() == 16);
  const double limit = std::max(3e-6, 2 * expected.own_error());
  const Json pages = expected.facts.at("pages"), questions = expected.facts.at("questions");
  std::vector<Tensor<float>> found;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    CAPTURE(i);
    found.push_back(encoder.encode(image_path(std::string(pages[i].as_string()))));
    CHECK(largest_difference(found.back(), expected.floats("page." + std::to_string(i))) <= limit);
  }
  const Tensor<float> scores = expected.floats("scores");
  for (std::size_t i = 0; i < questions.size(); ++i) {
    CAPTURE(i);
    const Tensor<float> vectors = encoder.encode_query(questions[i].as_string());
    CHECK(largest_difference(vectors, expected.floats("query." + std::to_string(i))) <= limit);
    const PageQuery query(vectors);
    for (std::size_t page = 0; page < found.size(); ++page) {
      const double score = double{query.score(found[page])}, wanted = double{scores.view().row(i)[page]};
      // An inner product is off by at most the differences of both vectors, of length 1 and 16 numbers each.
      CHECK(std::abs(score - wanted) <= static_cast<double>(vectors.dim(0)) * 2 * 4 * limit);
    }
  }
}

TEST_CASE("pages: the image tower says who reads the rest of the file") {
  const auto model = Model::load(data_path("golden/pages/colmodernvbert"));
  std::size_t count = 0;
  for (const TensorUse& use : model->report().tensors) {
    if (contains(use.ignored_because, "--features page")) ++count;
  }
  CHECK(count == 28);
  CHECK(contains(model->report().notes.back(), "model of pages"));
}

TEST_CASE("pages: texts are tokenized as by the library's byte level tokenizer") {
  const Expected expected;
  const Tokenizer tokenizer = Tokenizer::load(model_folder());
  const PageText text = read_page_text(model_folder());
  CHECK(text.tokens_of_tile == 16);
  const Json questions = expected.facts.at("questions");
  for (std::size_t i = 0; i < questions.size(); ++i) {
    CHECK(tokenizer.encode(text.of_query(questions[i].as_string())) ==
          expected.ids("query." + std::to_string(i)));
  }
  CHECK(tokenizer.encode(text.of_page({.rows = 3, .columns = 4})) == expected.ids("page.0"));
  CHECK(tokenizer.encode(text.of_page({.rows = 4, .columns = 1})) == expected.ids("page.1"));
  CHECK(tokenizer.encode(text.of_page({.rows = 4, .columns = 4})) == expected.ids("page.2"));
  CHECK(text.of_page({.rows = 1, .columns = 1})
            .find("User:<fake_token_around_image><global-img><image><image>") !=
        std::string::npos);  // not cut: the whole image only
}

TEST_CASE("text: words of GPT-2 keep their white space, the last of which goes to the next word") {
  const auto words = [](std::string_view text) {
    std::vector<std::string> out;
    for (const std::string_view word : gpt2_words(text)) out.emplace_back(word);
    return out;
  };
  using Words = std::vector<std::string>;
  CHECK(words("Hello  world, it's 2024!") == Words{"Hello", " ", " world", ",", " it", "'s", " 2024", "!"});
  CHECK(words("a\n\n b\t") == Words{"a", "\n\n", " b", "\t"});
  CHECK(words("  ") == Words{"  "});
  CHECK(words(" 's") == Words{" '", "s"});
  CHECK(words("\t\tx") == Words{"\t", "\t", "x"});
  CHECK(words("é̃x ½") == Words{"é", "̃", "x", " ½"});
  CHECK(words("").empty());
}

TEST_CASE("pages: bits do not depend on threads, and neighbors out of reach do not matter") {
  const auto model = PageModel::load(model_folder());
  PageEncoder one(model, {.threads = 1}), two(model, {.threads = 2});
  const auto path = image_path("wide.png");
  const Tensor<float> a = one.encode(path), b = two.encode(path);
  CHECK(std::ranges::equal(a.flat(), b.flat()));
  CHECK(std::ranges::equal(one.encode(path).flat(), a.flat()));  // warm
  const Tensor<float> query = one.encode_query("two");           // a shorter sequence, of longer tables
  CHECK(std::ranges::equal(query.flat(), PageEncoder(model).encode_query("two").flat()));
  for (std::size_t row = 0; row < a.dim(0); ++row) {
    double square = 0;
    for (std::size_t c = 0; c < a.dim(1); ++c)
      square += double{a.view().row(row)[c]} * double{a.view().row(row)[c]};
    CHECK(square == doctest::Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("pages: fast types are near float32") {
  const Tensor<float> exact = PageEncoder(PageModel::load(model_folder())).encode(image_path("tall.png"));
  for (const auto& [precision, limit] :
       {std::pair(Precision::bfloat16, 0.1), std::pair(Precision::int8, 0.2)}) {
    ModelOptions options;
    options.precision = precision;
    const Tensor<float> fast =
        PageEncoder(PageModel::load(model_folder(), options)).encode(image_path("tall.png"));
    CHECK(largest_difference(exact, fast) < limit);
  }
}

TEST_CASE("pages: a score is the sum of the best inner products, for any numbers of vectors") {
  Rng random(3);
  for (const auto& [m, t, width] :
       {std::array<std::size_t, 3>{1, 1, 1}, {3, 130, 16}, {17, 64, 5}, {70, 65, 128}}) {
    Tensor<float> question(Shape{m, width}), page(Shape{t, width});
    for (float& x : question.flat()) x = random.normal();
    for (float& x : page.flat()) x = random.normal();
    double sum = 0, magnitude = 0;
    for (std::size_t i = 0; i < m; ++i) {
      double best = -1e30;
      for (std::size_t j = 0; j < t; ++j) {
        double product = 0, size = 0;
        for (std::size_t c = 0; c < width; ++c) {
          const double term = double{question.view().row(i)[c]} * double{page.view().row(j)[c]};
          product += term;
          size += std::abs(term);
        }
        best = std::max(best, product);
        magnitude += size / static_cast<double>(t);
      }
      sum += best;
    }
    const double tolerance = 1.2e-7 * static_cast<double>(width + 2) * (magnitude + std::abs(sum)) + 1e-30;
    CHECK(std::abs(double{PageQuery(question).score(page)} - sum) <= 4 * tolerance);
  }
  const Tensor<float> vectors(Shape{2, 4});
  CHECK_ERROR(ErrorKind::argument, ("expected (t, 4)"), PageQuery(vectors).score(Tensor<float>(Shape{3, 5})));
  CHECK_ERROR(ErrorKind::argument, ("expected (m, E)"), PageQuery(Tensor<float>(Shape{4})));
}

/// The golden model with one part of one of its files replaced.
PageEncoder encoder_with(const std::string& file, const std::string& from, const std::string& to) {
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  std::filesystem::copy(model_folder(), folder.path(), std::filesystem::copy_options::recursive);
  folder.write(file, replaced(read_text(folder / file), from, to));
  return PageEncoder(PageModel::load(folder.path()));
}

TEST_CASE("pages: former names of the base of the rotation and of the reach count as in the library") {
  const auto vectors = [](const std::string& from, const std::string& to) {
    return encoder_with("config.json", from, to).encode_query("revenue by quarter, 2024");
  };
  const auto equal = [](const Tensor<float>& a, const Tensor<float>& b) {
    return std::ranges::equal(a.flat(), b.flat());
  };
  const std::string parameters = "\"rope_parameters\": {", reach = "\"local_attention\": 24";
  const auto parameters_of = [&](const std::string& theta) {
    return parameters + R"("full_attention": {"rope_type": "default", "rope_theta": )" + theta +
           R"(}, "sliding_attention": {"rope_type": "default", "rope_theta": )" + theta + "}}, \"unused\": {";
  };
  const Tensor<float> plain = vectors(parameters, parameters_of("100.0"));
  CHECK_FALSE(equal(plain, vectors(reach, reach)));
  CHECK(equal(plain,
              vectors(parameters,
                      R"("rope_scaling": {"rope_type": "default", "rope_theta": 100.0}, )" + parameters)));
  const Tensor<float> near = vectors(reach, "\"local_attention\": 6");
  CHECK_FALSE(equal(near, vectors(reach, reach)));
  CHECK(equal(near, vectors(reach, reach + ", \"sliding_window\": 3")));
}

TEST_CASE("pages: models without an encoder of pages, and files that contradict each other, are refused") {
  CHECK(PageModel::is_at(model_folder()));
  CHECK_ERROR(ErrorKind::argument, ("<image>"),
              PageEncoder(PageModel::load(model_folder())).encode_query("an <image>"));
  CHECK_FALSE(PageModel::is_at(data_path("golden/models/hf-siglip")));
  CHECK_ERROR(ErrorKind::unsupported, ("ColModernVBERT"),
              PageModel::load(data_path("golden/models/hf-siglip")));
  const auto changed = [](const std::string& file, const std::string& from, const std::string& to) {
    return message_of([&] { encoder_with(file, from, to).encode(image_path("square.png")); });
  };
  CHECK(contains(changed("processor_config.json", "\"image_seq_len\": 16", "\"image_seq_len\": 12"),
                 "image_seq_len"));
  CHECK(contains(changed("processor_config.json", "User:<image>", "User:"), "exactly one image"));
  CHECK(contains(changed("config.json", "\"image_token_id\": 7", "\"image_token_id\": 8"), "image_token_id"));
  CHECK(contains(changed("config.json", "\"rope_type\": \"default\"", "\"rope_type\": \"yarn\""), "yarn"));
  CHECK(contains(changed("config.json", "\"rope_type\": \"default\"", "\"type\": \"linear\""), "linear"));
  CHECK(contains(
      changed("config.json", "\"rope_parameters\": {",
              "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.0}, \"rope_parameters\": {"),
      "rope_scaling.rope_type is \"linear\""));
  CHECK(
      contains(changed("config.json", "\"rope_parameters\": {", "\"rope_parameters\": {\"rope_theta\": 7.0,"),
               "rope_theta"));
  CHECK(contains(changed("config.json", "\"sliding_attention\",", "\"linear_attention\","),
                 "linear_attention"));
  CHECK(
      contains(changed("config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 5"), "heads"));
  CHECK(contains(changed("config.json", "\"embedding_dim\": 16", "\"embedding_dim\": 17"),
                 "embedding_proj_layer"));
  CHECK(contains(changed("config.json", "\"vocab_size\": 398", "\"vocab_size\": 399"), "tok_embeddings"));
}

TEST_SUITE_END();
