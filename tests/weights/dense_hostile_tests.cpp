// Models with dense heads whose files contradict themselves, declare too much, or are cut off: each is an
// Error that says what is wrong, and none crashes.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/base/error.h"
#include "vit/io/safetensors.h"
#include "vit/model.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/open_weights.h"

namespace vit {
namespace {

namespace fs = std::filesystem;

/// A folder of data/golden/dense with another value in its config.json.
struct ConfigCase {
  const char* folder;
  const char* from;  // what the file has
  const char* to;
  const char* words;  // of the message; "" = the model loads
};

void copy_model(const std::string& name, const test::TemporaryFolder& to) {
  for (const auto& entry : fs::directory_iterator(test::data_path("golden/dense/" + name)))
    fs::copy_file(entry.path(), to.path() / entry.path().filename());
}

std::string failure_of(const fs::path& folder, const ModelOptions& options = {}) {
  try {
    Model::load(folder, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The bytes of a float32 tensor in a .safetensors file.
std::size_t place_of(const std::string& file, const std::string& name) {
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  const std::size_t entry = file.find("\"" + name + "\"");
  REQUIRE(entry != std::string::npos);
  const std::size_t offsets = file.find("data_offsets\":[", entry) + std::strlen("data_offsets\":[");
  return sizeof header + header + std::stoul(file.substr(offsets));
}

}  // namespace

TEST_CASE("weights: configurations of dense heads that cannot be are refused") {
  constexpr ConfigCase kCases[] = {
      {"hf-eomt", "\"num_queries\": 5", "\"num_queries\": 6", "query.weight"},
      {"hf-eomt", "\"num_queries\": 5", "\"num_queries\": 0", "0 queries"},
      {"hf-eomt", "\"num_queries\": 5", "\"num_queries\": -1", "num_queries"},
      {"hf-eomt", "\"num_queries\": 5", "\"num_queries\": 100000000", "num_late_tokens"},
      {"hf-eomt", "\"num_blocks\": 2", "\"num_blocks\": 0", "last 0"},
      {"hf-eomt", "\"num_blocks\": 2", "\"num_blocks\": 9", "last 9"},
      {"hf-eomt", "\"num_blocks\": 2", "\"num_blocks\": 3", "attn_mask_probs"},
      {"hf-eomt", "\"num_upscale_blocks\": 1", "\"num_upscale_blocks\": 2", "upscale_block.block.1"},
      {"hf-eomt", "\"num_upscale_blocks\": 1", "\"num_upscale_blocks\": 60", "doublings"},
      {"hf-eomt", "\"num_register_tokens\": 1", "\"num_register_tokens\": 2", "register_tokens"},
      {"hf-eomt", "\"2\": \"dog\"", "\"2\": \"dog\", \"3\": \"cow\"", "class_predictor"},
      {"hf-eomt", "\"image_size\": 12", "\"image_size\": 16", "position_embeddings"},
      {"hf-eomt", "\"image_size\": 12", "\"image_size\": 1000000000", "image_size"},
      {"hf-eomt", "\"mlp_ratio\": 2", "\"mlp_ratio\": -2", "mlp_ratio"},
      {"hf-eomt", "\"model_type\": \"eomt\"", "\"model_type\": \"eomt_dinov3\"", "missing"},
      {"hf-depth-anything", "\"out_indices\": [", "\"out_indices\": [9, ", "stage 9"},
      {"hf-depth-anything", "\"fusion_hidden_size\": 6", "\"fusion_hidden_size\": 0", "features"},
      {"hf-depth-anything", "\"fusion_hidden_size\": 6", "\"fusion_hidden_size\": 7", "neck"},
      {"hf-depth-anything", "\"head_hidden_size\": 5", "\"head_hidden_size\": 1000000000", "hidden"},
      {"hf-depth-anything", "\"max_depth\": 20", "\"max_depth\": 0", "largest depth"},
      {"hf-depth-anything", "\"max_depth\": 20", "\"max_depth\": 1e300", "finite"},
      {"hf-depth-anything", "\"head_in_index\": -1", "\"head_in_index\": 2", "head_in_index"},
      {"hf-depth-anything", "\"metric\"", "\"absolute\"", "absolute"},
  };
  for (const ConfigCase& c : kCases) {
    CAPTURE(c.to);
    const test::TemporaryFolder folder;
    copy_model(c.folder, folder);
    folder.write("config.json", test::replaced(test::read_text(folder / "config.json"), c.from, c.to));
    const std::string message = failure_of(folder.path());
    CAPTURE(message);
    CHECK(!message.empty());
    CHECK(message.find(c.words) != std::string::npos);
  }
}

TEST_CASE("weights: classes of dense heads that config.json counts and does not name") {
  const test::TemporaryFolder folder;
  copy_model("hf-eomt", folder);
  const std::string config = test::read_text(folder / "config.json");
  const std::size_t names = config.find("\"id2label\"");
  REQUIRE(names != std::string::npos);
  const auto with = [&](const std::string& count) {
    folder.write("config.json", config.substr(0, names) + "\"num_labels\": " + count + "}");
    return failure_of(folder.path());
  };
  CHECK(with("3") == "");
  CHECK(with("4").find("class_predictor") != std::string::npos);
}

TEST_CASE("weights: DPT on its own ViT ignores no stages, and its classes show in the tensors") {
  const test::TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "dpt", "is_hybrid": false, "neck_ignore_stages": [0, 1],
                                  "architectures": ["DPTForDepthEstimation"]})");
  const auto head_of = [&] {
    const internal::CheckpointFolder checkpoint(folder.path());
    return checkpoint.parsed<ModelConfig>()->dense.value().config;
  };
  CHECK(head_of().find(Output::depth) != nullptr);
  const auto has_bias = [&](const std::string& value) {
    folder.write("config.json", R"({"model_type": "dpt", "is_hybrid": false, "qkv_bias": )" + value + "}");
    return internal::CheckpointFolder(folder.path()).parsed<ModelConfig>()->config.attention.qkv_bias;
  };
  CHECK(has_bias("true"));
  CHECK_FALSE(has_bias("false"));
  CHECK_FALSE(has_bias("null"));
  const std::array<std::byte, 4 * 12> zeros{};
  const auto tensor = [&](const char* name, std::vector<std::size_t> shape) {
    std::size_t bytes = 4;
    for (const std::size_t edge : shape) bytes *= edge;
    return internal::TensorToWrite{name, internal::Dtype::f32, std::move(shape),
                                   std::span(zeros).first(bytes)};
  };
  folder.write("config.json", R"({"model_type": "dpt", "architectures": null})");
  internal::write_safetensors(
      folder / "model.safetensors",
      std::vector<internal::TensorToWrite>{
          tensor("dpt.embeddings.patch_embeddings.projection.weight", {1, 3, 2, 2}),
          tensor("head.head.1.running_mean", {2}), tensor("head.head.4.weight", {3, 2, 1, 1})});
  const DenseConfig head = head_of();
  const MapOutput* const classes = head.find(Output::classes);
  REQUIRE(classes != nullptr);
  CHECK(classes->channels == 3);
}

TEST_CASE("weights: CHMv2 that normalizes only the last block is refused") {
  const test::TemporaryFolder folder;
  const auto failure_with = [&](const std::string& taps, const char* norm) {
    folder.write("config.json", R"({"model_type": "chmv2", "backbone_config": {"model_type": "dinov3_vit",
                                    "num_hidden_layers": 5, "out_indices": )" +
                                    taps + R"(, "apply_layernorm": )" + norm + "}}");
    return test::message_of([&] { internal::CheckpointFolder(folder.path()).model_config(); });
  };
  CHECK(failure_with("[1, 2, 3, 5]", "true") == "");
  CHECK(failure_with("[1, 2, 3, 4]", "false") == "");
  CHECK(failure_with("[1, 2, 3, 5]", "false").find("apply_layernorm") != std::string::npos);
}

TEST_CASE("weights: queries that are masked at random are refused, and NaN is") {
  for (const float share : {0.5f, 2.0f, -1.0f, NAN}) {
    CAPTURE(share);
    const test::TemporaryFolder folder;
    copy_model("hf-eomt", folder);
    std::string weights = test::read_text(folder / "model.safetensors");
    std::memcpy(weights.data() + place_of(weights, "attn_mask_probs"), &share, sizeof share);
    folder.write("model.safetensors", weights);
    CHECK(failure_of(folder.path()).find("attn_mask_probs[0]") != std::string::npos);
  }
}

TEST_CASE("weights: head files that are cut off anywhere are an Error") {
  const fs::path golden = test::data_path("golden/dense/dinov2-heads");
  for (const char* const head : {"voc2012_ms_head.safetensors", "nyu_linear_head.safetensors"}) {
    const std::string whole = test::read_text(golden / head);
    const test::TemporaryFolder folder;
    ModelOptions options;
    for (std::size_t size = 0; size < whole.size(); size += whole.size() / 23 + 1) {
      CAPTURE(size);
      options.dense.head = folder.write(head, whole.substr(0, size));
      CHECK(!failure_of(golden / "model.safetensors", options).empty());
    }
  }
}

TEST_CASE("weights: a file with backbone and head is either of them, and both") {
  const fs::path golden = test::data_path("golden/dense/dinov2-heads");
  const auto add = [](const internal::TensorFile& file, const std::string& prefix,
                      std::vector<internal::TensorToWrite>& tensors,
                      std::vector<std::vector<std::byte>>& bytes) {
    for (const internal::TensorEntry& entry : file.entries()) {
      bytes.push_back(entry.bytes.copy());
      tensors.push_back({prefix + entry.name, entry.dtype, entry.shape, bytes.back()});
    }
  };
  const internal::TensorFile backbone = internal::open_safetensors(golden / "model.safetensors"),
                             head = internal::open_safetensors(golden / "nyu_linear_head.safetensors");
  std::vector<internal::TensorToWrite> tensors;
  std::vector<std::vector<std::byte>> bytes;
  add(backbone, "backbone.", tensors, bytes);
  add(head, "", tensors, bytes);
  const test::TemporaryFolder folder;
  const fs::path whole = folder.path() / "nyu_linear_whole.safetensors";
  internal::write_safetensors(whole, tensors);
  for (const fs::path& model : {golden / "model.safetensors", whole}) {
    for (const fs::path& with : {golden / "nyu_linear_head.safetensors", whole}) {
      CAPTURE(model.string() + " " + with.string());
      const internal::TensorFile found = internal::open_with_head(model, with);
      CHECK(found.entries().size() == tensors.size());
      for (const internal::TensorFile* part : {&backbone, &head}) {
        for (const internal::TensorEntry& entry : part->entries())
          CHECK(found.at(entry.name).bytes.copy() == entry.bytes.copy());
      }
    }
  }
  ModelOptions options;
  options.dense.head = whole;
  CHECK(failure_of(golden / "model.safetensors", options).empty());
}

TEST_CASE("weights: of DINOv2's heads no blocks are guessed, and a depth without bins is refused") {
  const fs::path golden = test::data_path("golden/dense/dinov2-heads");
  const std::size_t width =
      internal::open_safetensors(golden / "model.safetensors").at("layernorm.weight").shape.front();
  const auto failure = [&](std::size_t bins, std::size_t taps, std::vector<std::size_t> chosen) {
    const std::vector<float> zeros(bins * taps * 2 * width);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(zeros));
    const std::vector<internal::TensorToWrite> tensors = {
        {"decode_head.conv_depth.weight", internal::Dtype::f32, {bins, taps * 2 * width, 1, 1}, bytes},
        {"decode_head.conv_depth.bias", internal::Dtype::f32, {bins}, bytes.first(bins * sizeof(float))}};
    const test::TemporaryFolder folder;
    ModelOptions options;
    options.dense.head = folder.path() / "nyu_linear_head.safetensors";
    options.dense.taps = std::move(chosen);
    internal::write_safetensors(options.dense.head, tensors);
    return failure_of(golden / "model.safetensors", options);
  };
  CHECK(failure(16, 1, {}).empty());
  CHECK(failure(2, 2, {0, 1}).empty());
  CHECK(failure(16, 2, {}).find("reads 2 blocks") != std::string::npos);
  CHECK(failure(1, 1, {}).find("without bins") != std::string::npos);
}

TEST_CASE("weights: processors of EoMT that cannot be are refused") {
  const std::pair<const char*, const char*> cases[] = {
      {"\"do_pad\": true", "\"do_pad\": 3"},
      {"\"longest_edge\": 12", "\"longest_edge\": 20"},
      {"\"longest_edge\": 12", "\"longest_edge\": 0"},
      {"\"shortest_edge\": 12, \"longest_edge\": 12", "\"height\": 12, \"width\": 12"},
      {"\"do_split_image\": false", "\"do_split_image\": \"yes\""},
  };
  for (const auto& [from, replacement] : cases) {
    const std::string to = replacement;
    CAPTURE(to);
    const test::TemporaryFolder folder;
    copy_model("hf-eomt", folder);
    std::string text = test::read_text(folder / "preprocessor_config.json");
    std::erase(text, '\n');
    for (std::size_t at = text.find("  "); at != std::string::npos; at = text.find("  ", at))
      text.erase(at, 1);
    text = test::replaced(text, "{ \"shortest_edge\"", "{\"shortest_edge\"");
    folder.write("preprocessor_config.json", test::replaced(text, from, to));
    CHECK(!failure_of(folder.path()).empty());
  }
}

}  // namespace vit
