// Text towers and custom labels: bits that depend only on the text, what is refused, files of vectors.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/allocation_count.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/api/layers_of.h"
#include "vit/checkpoint.h"
#include "vit/classifier.h"
#include "vit/io/safetensors.h"
#include "vit/text_encoder.h"
#include "vit/towers/text_transformer.h"
#include "vit/zero_shot.h"

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

const char* const kCases[] = {"hf-clip", "hf-siglip", "hf-tipsv2"};

fs::path golden(const std::string& name) {
  return test::data_path("golden/text/" + name);
}

/// Texts of different lengths, one without tokens among them; enough for tasks of several threads.
std::vector<std::string> many_texts() {
  std::vector<std::string> texts;
  for (int i = 0; i < 150; ++i) {
    std::string& text = texts.emplace_back();
    for (int word = 0; word < i % 11; ++word) text += "cat " + std::to_string(i * word % 97) + " ";
  }
  return texts;
}

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

std::vector<float> row_of(const Tensor<float>& vectors, std::size_t i) {
  return {vectors.view().row(i), vectors.view().row(i) + vectors.dim(1)};
}

double length_of(std::span<const float> vector) {
  double sum = 0.0;
  for (const float x : vector) sum += double{x} * x;
  return std::sqrt(sum);
}

/// A copy of a golden folder, of whose weights `change` may alter a list.
class ChangedFolder {
 public:
  using Tensors = std::vector<TensorToWrite>;

  ChangedFolder(const std::string& name, const std::function<void(Tensors&)>& change) {
    for (const auto& entry : fs::directory_iterator(golden(name))) {
      if (entry.path().filename() != "model.safetensors")
        fs::copy_file(entry.path(), folder_.path() / entry.path().filename());
    }
    const TensorFile file = open_safetensors(golden(name) / "model.safetensors");
    Tensors tensors;
    std::vector<std::vector<std::byte>> bytes;
    for (const TensorEntry& entry : file.entries()) {
      bytes.push_back(entry.bytes.copy());
      tensors.push_back(
          {.name = entry.name, .dtype = entry.dtype, .shape = entry.shape, .bytes = bytes.back()});
    }
    change(tensors);
    write_safetensors(folder_.path() / "model.safetensors", tensors, {{"format", "pt"}});
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

TensorToWrite& tensor(ChangedFolder::Tensors& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorToWrite::name);
  REQUIRE(found != tensors.end());
  return *found;
}

}  // namespace

TEST_CASE("text: a vector has the same bits for any number of texts, order and number of threads") {
  const std::vector<std::string> texts = many_texts();
  for (const char* name : kCases) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      CAPTURE(name);
      const auto tower = TextTower::load(golden(name), {.precision = precision});
      TextEncoder one(tower, {.threads = 1}), four(tower, {.threads = 4});
      const Tensor<float> together = one.encode(views(texts)).vectors;
      std::vector<std::string> reversed(texts.rbegin(), texts.rend());
      const Tensor<float> back = four.encode(views(reversed)).vectors;
      for (std::size_t i = 0; i < texts.size(); ++i) {
        REQUIRE(row_of(together, i) == row_of(back, texts.size() - 1 - i));
        if (i % 10 != 3) continue;
        const Tensor<float> alone = four.encode(texts[i]);
        REQUIRE(row_of(together, i) == std::vector<float>(alone.flat().begin(), alone.flat().end()));
      }
    }
  }
}

TEST_CASE("text: rounded precisions stay close to float32") {
  const std::vector<std::string> texts = many_texts();
  TextEncoder exact(golden("hf-clip"));
  const Tensor<float> expected = exact.encode(views(texts)).vectors;
  for (const Precision precision : {Precision::bfloat16, Precision::int8}) {
    TextEncoder rounded(golden("hf-clip"), {}, {.precision = precision});
    CHECK(rounded.tower().precision() == precision);
    const Tensor<float> found = rounded.encode(views(texts)).vectors;
    double lowest = 1.0;
    for (std::size_t i = 0; i < texts.size(); ++i)
      lowest = std::min(lowest, cosine_similarity(row_of(expected, i), row_of(found, i)));
    CHECK(lowest > 0.999);
  }
}

TEST_CASE("text: a warm pass allocates nothing") {
  const auto tower = TextTower::load(golden("hf-clip"));
  const std::vector<std::string> texts = many_texts();
  std::vector<TokenRow> rows;
  for (const std::string& text : texts) rows.push_back(tower->tokenize(text));
  std::vector<TextIds> ids;
  for (const TokenRow& row : rows) ids.push_back({.ids = row.ids, .count = row.count});
  Tensor<float> out(Shape{texts.size(), tower->config().embedding_dim()});
  for (const int threads : {1, 2}) {
    TextMemory memory;
    for (int i = 0; i < 2; ++i) internal::LayersOf::text(*tower).forward(ids, out, threads, memory);
    const std::size_t before = test::allocation_count();
    internal::LayersOf::text(*tower).forward(ids, out, threads, memory);
    CHECK(test::allocation_count() == before);
  }
}

TEST_CASE("text: many texts report progress, and a call that is cancelled gives the first vectors") {
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    TextEncoder encoder(golden("hf-clip"), {.threads = threads});
    std::vector<std::string> texts;
    for (int i = 0; i < 12; ++i) {
      for (const std::string& text : many_texts()) texts.push_back(text + " " + std::to_string(i));
    }
    const Tensor<float> expected = encoder.encode(views(texts)).vectors;
    std::vector<double> reports;
    const StreamOptions watched{.on_progress = [&](double done, std::size_t count) {
      CHECK(count == texts.size());
      reports.push_back(done);
    }};
    const Tensor<float> found = encoder.encode(views(texts), watched).vectors;
    CHECK(std::ranges::equal(found.flat(), expected.flat()));
    CHECK(reports.size() > 2);
    CHECK(std::ranges::is_sorted(reports));
    CHECK(reports.back() == static_cast<double>(texts.size()));

    bool enough = false;
    const TextEmbeddings part =
        encoder.encode(views(texts), {.on_progress = [&](double done, std::size_t) { enough = done >= 1; },
                                      .is_cancelled = [&] { return enough; }});
    const std::size_t done = part.vectors.dim(0);
    CHECK(done > 0);
    CHECK(done < texts.size());
    CHECK(std::ranges::equal(part.vectors.flat(), expected.view().part(0, done).flat()));
    CHECK(encoder.encode(views(texts), {.is_cancelled = [] { return true; }}).vectors.dim(0) == 0);
    CHECK(std::ranges::equal(encoder.encode(views(texts)).vectors.flat(), expected.flat()));
  }
}

TEST_CASE("text: no texts give no vectors, long ones are cut and counted, no tokens give zeros") {
  TextEncoder encoder(golden("hf-tipsv2"));
  CHECK(encoder.encode(std::span<const std::string_view>()).vectors.num_elements() == 0);
  std::string longer;
  for (int i = 0; i < 60; ++i) longer += "word ";
  const std::vector<std::string> texts{"a cat", "", longer};
  const TextEmbeddings found = encoder.encode(views(texts));
  CHECK(found.num_cut == 1);
  CHECK(length_of(row_of(found.vectors, 0)) > 0.1);
  CHECK(length_of(row_of(found.vectors, 1)) == 0.0);
}

TEST_CASE("text: a text that is not UTF-8 and ids beyond the table are refused") {
  TextEncoder encoder(golden("hf-clip"));
  const std::vector<std::string> texts{"a cat", "\xff\xfe"};
  CHECK_ERROR(ErrorKind::argument, ("text 1 of 2"), encoder.encode(views(texts)));
  TokenRow row = encoder.tower().tokenize("a cat");
  row.ids[3] = static_cast<std::int32_t>(encoder.tower().config().vocabulary_size);
  CHECK_ERROR(ErrorKind::mismatch, (std::to_string(row.ids[3]), "token table"),
              encoder.encode_ids(std::span(&row, 1)));
  row.ids[3] = -1;
  CHECK_ERROR(ErrorKind::mismatch, ("-1"), encoder.encode_ids(std::span(&row, 1)));
  row.ids.pop_back();
  CHECK_ERROR(ErrorKind::mismatch, ("positions"), encoder.encode_ids(std::span(&row, 1)));
}

TEST_CASE("text: tensors missing, misshaped, superfluous or absurd are refused by name") {
  const std::string table = "text_model.embeddings.token_embedding.weight";
  const std::string fc1 = "text_model.encoder.layers.1.mlp.fc1.weight";
  const auto load = [](const std::function<void(ChangedFolder::Tensors&)>& change) {
    const ChangedFolder folder("hf-clip", change);
    return TextTower::load(folder.path());
  };
  CHECK(load([](auto&) {}) != nullptr);
  CHECK_ERROR(ErrorKind::mismatch, (fc1), load([&](auto& t) {
                std::erase_if(t, [&](const TensorToWrite& one) { return one.name == fc1; });
              }));
  CHECK_ERROR(ErrorKind::mismatch, (fc1),
              load([&](auto& t) { std::swap(tensor(t, fc1).shape[0], tensor(t, fc1).shape[1]); }));
  CHECK_ERROR(ErrorKind::mismatch, (table), load([&](auto& t) {  // half of the rows
                TensorToWrite& one = tensor(t, table);
                one.shape[0] /= 2;
                one.bytes = one.bytes.first(one.shape[0] * one.shape[1] * sizeof(float));
              }));
  CHECK_ERROR(ErrorKind::mismatch, ("text_model.extra"), load([&](auto& t) {
                t.push_back(tensor(t, fc1));
                t.back().name = "text_model.extra";
              }));
  const float infinite = INFINITY;
  CHECK_ERROR(ErrorKind::format, ("logit_scale"), load([&](auto& t) {
                tensor(t, "logit_scale").bytes = std::as_bytes(std::span(&infinite, 1));
              }));
}

TEST_CASE("text: CLIPSeg's text tower is CLIP's, by itself and below its decoder") {
  const std::vector<std::string> texts = many_texts();
  const Tensor<float> expected = TextEncoder(golden("hf-clip")).encode(views(texts)).vectors;
  for (const std::string prefix : {"", "clip."}) {
    CAPTURE(prefix);
    const ChangedFolder folder("hf-clip", [&](auto& tensors) {
      for (TensorToWrite& one : tensors) one.name = prefix + one.name;
      if (prefix.empty()) return;
      tensors.push_back(tensors.front());
      tensors.back().name = "decoder.film_mul.weight";
    });
    const auto config = folder.path() / "config.json";
    test::write_text(config, test::replaced(test::read_text(config), "\"model_type\": \"clip\"",
                                            "\"model_type\": \"clipseg\""));
    TextEncoder encoder(folder.path());
    CHECK(std::ranges::equal(encoder.encode(views(texts)).vectors.flat(), expected.flat()));
  }
}

TEST_CASE("text: a checkpoint without a text tower, or without a vocabulary, says so") {
  const fs::path image_alone = test::data_path("golden/models/hf-vit");
  CHECK_ERROR(ErrorKind::unsupported, ("hf-vit", "text tower"), TextTower::load(image_alone));
  CHECK(!vit::Checkpoint(image_alone).describe_text());
  const fs::path bare = golden("openai-clip") / "ViT-B-32.pt";
  CHECK_ERROR(ErrorKind::io, ("bpe_simple_vocab_16e6.txt.gz"), TextTower::load(bare));
  const auto found = vit::Checkpoint(bare).describe_text();
  REQUIRE(found);
  CHECK(!found->tokenizer);
  CHECK(test::contains(found->tokenizer_missing, "bpe_simple_vocab_16e6.txt.gz"));
  CHECK(found->config.num_heads == 1);
  CHECK_ERROR(ErrorKind::argument, ("architecture"),
              TextTower::load(golden("meta-pe") / "PE-Core-T16-384.pt",
                              {.architecture = "no such name", .tokenizer = golden("hf-clip")}));
}

TEST_CASE("text: text_config_dict counts where a configuration has both, as older ones do") {
  const ChangedFolder folder("hf-clip", [](auto&) {});
  const auto config = folder.path() / "config.json";
  test::write_text(config,
                   test::replaced(test::read_text(config), "\"text_config\": {",
                                  "\"text_config\": {\"num_hidden_layers\": 7}, \"text_config_dict\": {"));
  CHECK(TextTower::load(folder.path())->config().depth == 2);
}

TEST_CASE("zero-shot: classes and templates that make no sense are refused") {
  TextEncoder encoder(golden("hf-clip"));
  const std::vector<std::string> plain{"{}"}, none{"a photo"};
  CHECK(encode_classes(encoder, {"a", "b"}, plain).vectors.dim(0) == 2);
  CHECK_ERROR(ErrorKind::argument, ("no classes"), encode_classes(encoder, {}, plain));
  CHECK_ERROR(ErrorKind::argument, ("\"b\"", "twice"), encode_classes(encoder, {"b", "a", "b"}, plain));
  CHECK_ERROR(ErrorKind::argument, ("without a name"), encode_classes(encoder, {"a", ""}, plain));
  CHECK_ERROR(ErrorKind::argument, ("a photo", "{}"), encode_classes(encoder, {"a"}, none));
  CHECK(fill_template("{} and {}.", "x") == "x and x.");
  TextEncoder without_tokens(golden("hf-tipsv2"));
  CHECK_ERROR(ErrorKind::argument, ("no direction"), encode_classes(without_tokens, {" "}, plain));
}

TEST_CASE("zero-shot: vectors kept in a file classify as before, broken files are refused") {
  TextEncoder encoder(golden("hf-siglip"));
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "classes.safetensors";
  const ClassVectors fresh = encode_classes(encoder, {"a cat", "caf\u00e9 \"x\"", "dog"});
  const TextScore score = *encoder.tower().config().score;
  CHECK(score.kind == TextScore::Kind::sigmoid);
  CHECK(vit::Checkpoint(golden("hf-siglip")).text_score().scale == score.scale);
  save_class_vectors(fresh, file);
  const ClassVectors kept = load_class_vectors(file);
  CHECK(kept.names == fresh.names);
  std::vector<float> image(fresh.vectors.dim(1), 0.25f), a(3), b(3);
  image[1] = -3.0f;
  fresh.compare(image, score, a);
  kept.compare(image, score, b);
  for (std::size_t i = 0; i < 3; ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-6));
  const std::vector<Prediction> top = ClassSelection(2).of(b, kept.names, score.kind);
  REQUIRE(top.size() == 2);
  CHECK(top[0].logit >= top[1].logit);
  CHECK(top[0].probability == doctest::Approx(1.0 / (1.0 + std::exp(-double{top[0].logit}))));
  CHECK_ERROR(ErrorKind::mismatch, ("5 numbers"), kept.compare(std::vector<float>(5), score, b));

  const std::vector<float> numbers(6, 1.0f), zeros(6, 0.0f);
  const auto write = [&](std::span<const float> values, const std::map<std::string, std::string>& metadata) {
    const TensorToWrite one{
        .name = "text", .dtype = Dtype::f32, .shape = {2, 3}, .bytes = std::as_bytes(values)};
    write_safetensors(file, std::span(&one, 1), metadata);
  };
  write(numbers, {});
  CHECK_ERROR(ErrorKind::format, ("classes.safetensors", "names"), load_class_vectors(file));
  write(numbers, {{"names", "[\"a\"]"}});
  CHECK_ERROR(ErrorKind::format, ("(2, 3)", "1 names"), load_class_vectors(file));
  write(zeros, {{"names", "[\"a\", \"b\"]"}});
  CHECK_ERROR(ErrorKind::format, ("\"a\"", "direction"), load_class_vectors(file));
  write(numbers, {{"names", "[\"a\", \"a\"]"}});
  CHECK_ERROR(ErrorKind::format, ("twice"), load_class_vectors(file));
}

TEST_CASE("zero-shot: an image is prepared and compared by a session over the tower of the same file") {
  const fs::path file = golden("openai-clip") / "ViT-B-32.pt";
  const ImageAndText both =
      ImageAndText::load(file, {}, {.tokenizer = test::data_path("golden/tokenizers/clip-merges")});
  CHECK(both.text->config().score->kind == TextScore::Kind::softmax);
  CHECK(both.image->preprocess_config().crop_height == 16);
  const Classifier classifier = Classifier::of_texts(both, {"cat", "dog", "bird"});
  CHECK(std::ranges::equal(classifier.labels(), std::vector<std::string>{"cat", "dog", "bird"}));
  Session session(both.image, {.threads = 1});
  std::vector<unsigned char> pixels(3 * 20 * 24);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<unsigned char>(i * 31 % 251);
  const ImageView image(pixels.data(), 20, 24);
  const auto top = classifier.classify(session, image, 5);
  REQUIRE(top.size() == 3);
  CHECK(top[0].probability + top[1].probability + top[2].probability == doctest::Approx(1.0));
  Outputs outputs;
  session.run(image, classifier.request(), outputs);
  std::vector<float> logits(3);
  classifier.values(outputs[0], logits);
  CHECK(top[0].logit == *std::ranges::max_element(logits));
}

}  // namespace vit
