// The contract of reproducible results: float32, and bfloat16 and int8 of NAME:portable, have the same bits
// under every table of kernels that fuses multiplications with additions, on this machine and on others,
// whose digests are in data/golden/bits.txt.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/golden_models.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/kernels/kernels.h"
#include "vit/machine.h"
#include "vit/model.h"
#include "vit/session.h"
#include "vit/text_encoder.h"

namespace vit {
using namespace internal;
namespace {

/// The names of the tables of this machine that keep the contract.
std::vector<std::string> portable_tables() {
  std::vector<std::string> names;
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    if (table->is_portable) names.emplace_back(table->name);
  }
  return names;
}

/// Pixels (3, height, width) in [-2, 2], the same on every machine.
Tensor<float> plain_pixels(std::size_t height, std::size_t width) {
  Tensor<float> pixels(Shape{1, 3, height, width});
  std::uint32_t state = 1;
  for (float& value : pixels.flat()) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int>(state >> 20) - 2048) / 1024.0f;
  }
  return pixels;
}

void append(std::string& bytes, std::span<const float> numbers) {
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
}

/// Digest of the tokens of an image model, and of its visual tokens, vector and logits where it has them.
std::string digest_of_images(const std::filesystem::path& folder, const std::string& kernels,
                             Precision precision) {
  ModelOptions options = test::options_of(folder);
  options.kernels = kernels;
  options.precision = precision;
  const auto model = Model::load(folder, options);
  Session session(model, {.threads = 1});
  const ModelConfig& config = model->config();
  std::vector<Output> wanted{Output::tokens};
  if (config.merger) wanted.push_back(Output::merged);
  if (config.head.pooling != Pooling::none) wanted.push_back(default_output(config));
  if (config.has_classes()) wanted.push_back(Output::logits);
  Request request;
  for (const Output output : wanted) request.add(output);
  Outputs outputs;
  session.forward(plain_pixels(config.image.height, config.image.width).view(), request, outputs);
  std::string bytes;
  for (const Output output : wanted) append(bytes, outputs[output].flat());
  return test::sha256(bytes.data(), bytes.size());
}

/// Digest of what a dense head gives.
std::string digest_of_maps(const std::filesystem::path& folder, const std::string& kernels,
                           Precision precision) {
  ModelOptions options;
  options.kernels = kernels;
  options.precision = precision;
  const auto model = Model::load(folder, options);
  Outputs outputs;
  Session(model, {.threads = 1})
      .forward(plain_pixels(32, 32).view(), model->dense_config()->request(), outputs);
  std::string bytes;
  for (const DenseBranch& branch : model->dense_config()->branches) {
    for (const MapOutput& output : branch.outputs) append(bytes, outputs[output.meaning].flat());
  }
  return test::sha256(bytes.data(), bytes.size());
}

std::string digest_of_texts(const std::filesystem::path& folder, const std::string& kernels,
                            Precision precision) {
  TextOptions options;
  options.kernels = kernels;
  options.precision = precision;
  TextEncoder encoder(folder, {.threads = 1}, options);
  std::string bytes;
  for (const std::string_view words : {"a photo of a cat", "two dogs and a yellow bus, seen from above"})
    append(bytes, encoder.encode(words).flat());
  return test::sha256(bytes.data(), bytes.size());
}

/// "models/rope-axial" -> digest.
std::map<std::string, std::string> stored_digests() {
  std::istringstream lines(test::read_text(test::data_path("golden/bits.txt")));
  std::map<std::string, std::string> digests;
  for (std::string name, digest; lines >> name >> digest;) digests[name] = digest;
  return digests;
}

/// "models/rope-axial" in float32, "models/rope-axial:int8" in int8.
template <typename Digest>
void check_folder(const std::string& folder, const Digest& digest_of,
                  Precision precision = Precision::float32) {
  static const std::map<std::string, std::string> stored = stored_digests();
  const bool is_float32 = precision == Precision::float32;
  const std::string name = is_float32 ? folder : folder + ":" + to_string(precision);
  CAPTURE(name);
  for (const std::string& table : portable_tables()) {
    CAPTURE(table);
    const auto expected = stored.find(name);
    const std::string digest =
        digest_of(test::data_path("golden/" + folder), is_float32 ? table : table + ":portable", precision);
    REQUIRE_MESSAGE(expected != stored.end(), "add this line to data/golden/bits.txt: ", name, " ", digest);
    CHECK(digest == expected->second);
  }
}

}  // namespace

TEST_CASE("bits: image towers have the same bits under all kernels that fuse, and on other machines") {
  for (const std::string room : {"models", "towers"}) {
    for (const std::filesystem::path& folder : test::folders_in(test::data_path("golden/" + room)))
      check_folder(room + "/" + folder.filename().string(), digest_of_images);
  }
}

TEST_CASE("bits: boxes of queries have the same bits under all kernels that fuse, and on other machines") {
  for (const char* name : {"rf-detr", "lw-detr"}) check_folder(std::string("boxes/") + name, digest_of_maps);
}

TEST_CASE("bits: text towers have the same bits under all kernels that fuse, and on other machines") {
  for (const char* name : {"hf-clip", "hf-siglip", "hf-metaclip2", "hf-tipsv2", "hf-chinese-clip"})
    check_folder(std::string("text/") + name, digest_of_texts);
}

TEST_CASE("bits: portable int8 and bfloat16 have the same bits under all kernels, and on other machines") {
  for (const Precision precision : {Precision::int8, Precision::bfloat16}) {
    for (const std::filesystem::path& folder : test::folders_in(test::data_path("golden/models")))
      check_folder("models/" + folder.filename().string(), digest_of_images, precision);
    check_folder("boxes/rf-detr", digest_of_maps, precision);
    check_folder("text/hf-clip", digest_of_texts, precision);
  }
}

TEST_CASE("bits: the contract is that of float32, of portable arithmetics, and of kernels that fuse") {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    CAPTURE(table->name);
    const BitsContract bits = bits_contract(Precision::float32, table->name);
    CHECK(bits.number == (table->is_portable ? 1 : 0));
    CHECK(bits.why_not.empty() == table->is_portable);
    const std::string name = std::string(table->name) + ":portable";
    if (!table->is_portable) {
      CHECK_THROWS_WITH_AS(kernels::find_kernels(name), doctest::Contains("do not fuse"), const Error&);
      continue;
    }
    CHECK(kernels::find_kernels(name).name == name);
    CHECK(bits_contract(Precision::int8, name).number == 1);
    CHECK(bits_contract(Precision::bfloat16, name).number == 1);
    // AVX2's own arithmetics are the portable ones; those of extensions are not
    const bool is_plain = std::string_view(table->name) == "avx2";
    if (is_plain) CHECK(bits_contract(Precision::int8, table->name).number == 1);
    if (std::string_view(table->name).find("vnni") != std::string_view::npos) {
      CHECK(bits_contract(Precision::int8, table->name).number == 0);
      CHECK(bits_contract(Precision::int8, table->name).why_not.find("--bits portable") != std::string::npos);
    }
  }
}

}  // namespace vit
