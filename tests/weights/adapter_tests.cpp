#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/golden_models.h"
#include "tests/support/shared_data.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit {
using namespace internal;

namespace {

namespace fs = std::filesystem;
using test::FileCopy;
using test::TemporaryFolder;

fs::path base() {
  return test::data_path("golden/models/hf-vit");
}

/// Writes an adapter whose A and B hold known numbers.
class AdapterFiles {
 public:
  AdapterFiles& add(const std::string& name, std::vector<std::size_t> shape, float start) {
    std::size_t count = 1;
    for (const std::size_t size : shape) count *= size;
    std::vector<float>& values = numbers_[name];
    for (std::size_t i = 0; i < count; ++i) values.push_back(start + 0.01f * static_cast<float>(i % 7));
    shapes_[name] = std::move(shape);
    return *this;
  }
  const std::vector<float>& at(const std::string& name) const { return numbers_.at(name); }

  void write_to(const fs::path& folder, const std::string& config) const {
    fs::create_directories(folder);
    test::write_text(folder / "adapter_config.json", config);
    std::vector<TensorToWrite> tensors;
    for (const auto& [name, values] : numbers_)
      tensors.push_back({name, Dtype::f32, shapes_.at(name), std::as_bytes(std::span(values))});
    write_safetensors(folder / "adapter_model.safetensors", tensors);
  }

 private:
  std::map<std::string, std::vector<float>> numbers_;
  std::map<std::string, std::vector<std::size_t>> shapes_;
};

constexpr const char* kLora =
    R"({"peft_type": "LORA", "r": 2, "lora_alpha": 3, "base_model_name_or_path": "publisher/base"})";
constexpr std::size_t kRank = 2;

/// q, k and v of block 0, stacked.
Tensor<float> qkv_of(const ModelOptions& options, const fs::path& path) {
  LoadedTower<ModelConfig> checkpoint = load_checkpoint(path, options);
  return checkpoint.weights.blocks.at(0).qkv.weight.load();
}

std::size_t width() {
  return load_checkpoint(base()).config.embed_dim;
}

/// B A at (row, column).
double product(const AdapterFiles& files, const std::string& module, std::size_t row, std::size_t column,
               std::size_t columns) {
  double sum = 0.0;
  for (std::size_t k = 0; k < kRank; ++k)
    sum += double{files.at(module + ".lora_B.weight")[row * kRank + k]} *
           files.at(module + ".lora_A.weight")[k * columns + column];
  return sum;
}

}  // namespace

TEST_CASE("adapters: W + s B A, under the names of every release of the library") {
  const std::size_t dim = width();
  const Tensor<float> plain = qkv_of({}, base());
  struct Case {
    const char *module, *config;
    double scale;
  };
  const std::string published = "base_model.model.vit.encoder.layer.0.attention.attention.value";
  const std::string in_memory = "base_model.model.vit.layers.0.attention.v_proj";
  const std::string stabilized = R"({"peft_type": "LORA", "lora_alpha": 3, "use_rslora": true})";
  const std::string pattern =
      R"({"peft_type": "LORA", "lora_alpha": 3, "alpha_pattern": {"value": 8, "layers.0.attention.v_proj": 8}})";
  const Case cases[] = {{published.c_str(), kLora, 1.5},
                        {in_memory.c_str(), kLora, 1.5},
                        {published.c_str(), stabilized.c_str(), 3.0 / std::sqrt(2.0)},
                        {in_memory.c_str(), pattern.c_str(), 4.0}};
  for (const Case& row : cases) {
    CAPTURE(row.module);
    CAPTURE(row.config);
    AdapterFiles files;
    files.add(std::string(row.module) + ".lora_A.weight", {kRank, dim}, 0.3f);
    files.add(std::string(row.module) + ".lora_B.weight", {dim, kRank}, -0.2f);
    const TemporaryFolder folder;
    files.write_to(folder.path() / "adapter", row.config);
    const Tensor<float> joined = qkv_of({.adapter = folder.path() / "adapter"}, base());
    for (std::size_t i = 0; i < joined.flat().size(); ++i) {
      const std::size_t r = i / dim;
      const double expected =
          r < 2 * dim ? double{plain.data()[i]}
                      : plain.data()[i] + row.scale * product(files, row.module, r - 2 * dim, i % dim, dim);
      CHECK(joined.data()[i] == doctest::Approx(expected).epsilon(1e-6));
    }
    const LoadedTower<ModelConfig> loaded = load_checkpoint(base(), {.adapter = folder.path() / "adapter"});
    CHECK(loaded.report.fingerprint != load_checkpoint(base()).report.fingerprint);
    CHECK(test::contains(loaded.report.notes.back(), "adapter"));
  }
}

TEST_CASE("adapters: biases and modules_to_save take the place of those of the base") {
  const LoadedTower<ModelConfig> plain = load_checkpoint(base());
  const std::size_t dim = plain.config.embed_dim;
  AdapterFiles files;
  files.add("base_model.model.classifier.modules_to_save.default.weight", {4, dim}, 0.5f);
  files.add("base_model.model.classifier.bias", {4}, 0.25f);
  files.add("base_model.model.vit.encoder.layer.0.attention.attention.query.bias", {dim}, 0.75f);
  const TemporaryFolder folder;
  files.write_to(folder.path() / "adapter", kLora);
  FileCopy copy(base());
  copy.set_config(test::read_text(base() / "config.json"));
  LoadedTower<ModelConfig> joined = load_checkpoint(base(), {.adapter = folder.path() / "adapter"});
  CHECK(joined.config.head.num_classes == 4);
  CHECK(joined.weights.head.weight.load().data()[0] == 0.5f);
  CHECK(joined.weights.blocks[0].qkv.bias.load().data()[0] == 0.75f);
}

TEST_CASE("adapters: a tensor is replaced or updated, not both") {
  const std::size_t dim = width();
  const std::string module = "base_model.model.vit.encoder.layer.0.attention.attention.query";
  AdapterFiles files;
  files.add(module + ".lora_A.weight", {kRank, dim}, 0.5f);
  files.add(module + ".lora_B.weight", {dim, kRank}, 0.5f);
  files.add(module + ".modules_to_save.default.weight", {dim, dim}, 0.25f);
  const TemporaryFolder folder;
  files.write_to(folder.path() / "adapter", kLora);
  CHECK_ERROR(ErrorKind::mismatch, ("adapter", "query.weight", "replaced"),
              load_checkpoint(base(), {.adapter = folder.path() / "adapter"}));
}

TEST_CASE("adapters: the base is found by its name, in the adapter's folder or above") {
  const std::size_t dim = width();
  AdapterFiles files;
  const std::string module = "base_model.model.vit.encoder.layer.0.attention.attention.query";
  files.add(module + ".lora_A.weight", {kRank, dim}, 0.3f).add(module + ".lora_B.weight", {dim, kRank}, 0.1f);
  const auto copy_base = [](const fs::path& folder) {
    fs::create_directories(folder);
    for (const char* name : {"config.json", "model.safetensors"}) fs::copy_file(base() / name, folder / name);
  };
  const TemporaryFolder folder;
  const fs::path root = folder.path();
  SUBCASE("next to it, by name") {
    copy_base(root / "base");
    files.write_to(root / "adapter",
                   R"({"peft_type": "LORA", "lora_alpha": 3, "base_model_name_or_path": "base"})");
    CHECK(CheckpointFolder(root / "adapter").path().filename() == "base");
  }
  SUBCASE("in the same folder") {
    copy_base(root / "adapter");
    files.write_to(root / "adapter", kLora);
    CHECK_NOTHROW(load_checkpoint(root / "adapter"));
  }
  SUBCASE("above") {
    copy_base(root);
    files.write_to(root / "adapter", kLora);
    CHECK_NOTHROW(load_checkpoint(root / "adapter"));
  }
  SUBCASE("nowhere") {
    files.write_to(root / "adapter", kLora);
    CHECK_ERROR(ErrorKind::io, ("\"publisher/base\"", "ModelOptions::adapter"),
                load_checkpoint(root / "adapter"));
  }
}

TEST_CASE("adapters: other kinds are refused by their names") {
  const std::size_t dim = width();
  struct Case {
    const char *config, *name;
  };
  constexpr Case kCases[] = {
      {R"({"peft_type": "IA3"})", "\"IA3\""},
      {R"({"peft_type": "LORA", "use_dora": true})", "use_dora"},
      {R"({"peft_type": "LORA", "use_qalora": true})", "use_qalora"},
      {R"({"peft_type": "LORA", "lora_bias": true})", "lora_bias"},
      {R"({"peft_type": "LORA", "init_lora_weights": "pissa"})", "\"pissa\""},
      {R"({"peft_type": "LORA", "alpha_pattern": {"(q|v)_proj": 4}})", "(q|v)_proj"},
      {R"({"peft_type": "LORA", "layer_replication": [[0, 2]]})", "layer_replication"},
  };
  AdapterFiles files;
  const std::string module = "base_model.model.vit.encoder.layer.0.attention.attention.query";
  files.add(module + ".lora_A.weight", {kRank, dim}, 0.3f).add(module + ".lora_B.weight", {dim, kRank}, 0.1f);
  const TemporaryFolder folder;
  for (const Case& row : kCases) {
    CAPTURE(row.config);
    files.write_to(folder.path() / "adapter", row.config);
    CHECK_ERROR(ErrorKind::unsupported, ("adapter_config.json", row.name),
                load_checkpoint(base(), {.adapter = folder.path() / "adapter"}));
  }
  SUBCASE("a module that the base lacks") {
    files.add("base_model.model.vit.encoder.layer.99.attention.attention.query.lora_A.weight", {kRank, dim},
              0.1f);
    files.write_to(folder.path() / "adapter", kLora);
    CHECK_ERROR(ErrorKind::mismatch, ("layer.99"),
                load_checkpoint(base(), {.adapter = folder.path() / "adapter"}));
  }
  SUBCASE("another width") {
    AdapterFiles wide;
    wide.add(module + ".lora_A.weight", {kRank, dim + 1}, 0.3f)
        .add(module + ".lora_B.weight", {dim, kRank}, 0.1f);
    wide.write_to(folder.path() / "adapter", kLora);
    CHECK_ERROR(ErrorKind::mismatch, ("lora_A"),
                load_checkpoint(base(), {.adapter = folder.path() / "adapter"}));
  }
}

}  // namespace vit
