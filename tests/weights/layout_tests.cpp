// Layout files: what they say is done, what they leave out is inferred or reported by name, and what is
// wrong is refused by name. The numbers of the models are tested in model/fixture_tests.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/golden_models.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/config_json.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/families/layout.h"

namespace vit::internal {
namespace {

namespace fs = std::filesystem;
using test::FileCopy;
using test::TemporaryFolder;

fs::path golden(const std::string& name) {
  return test::data_path("golden/layouts") / name;
}

std::string own_layout() {
  return test::read_text(golden("own-rope") / "layout.json");
}

/// Loads `weights` by a layout of this text.
LoadedTower<ModelConfig> load_by(const std::string& layout, const fs::path& weights = golden("own-rope")) {
  const TemporaryFolder folder;
  return load_checkpoint(weights, {.layout = folder.write("layout.json", layout)});
}

void check_refused(const std::string& layout, ErrorKind kind, std::vector<std::string> names) {
  CAPTURE(layout);
  names.emplace_back("layout.json");
  CHECK(test::error_difference(test::error_of([&] { load_by(layout); }), kind, names) == "");
}

void check_same(LoadedTower<ModelConfig>& found, LoadedTower<ModelConfig>& expected) {
  std::vector<Tensor<float>> numbers;
  for_each_tensor(expected.config, expected.weights,
                  [&](TensorId, const Shape&, WeightTensor& tensor) { numbers.push_back(tensor.load()); });
  std::size_t next = 0;
  for_each_tensor(found.config, found.weights, [&](TensorId id, const Shape&, WeightTensor& tensor) {
    CAPTURE(canonical_name(id));
    CHECK(std::ranges::equal(tensor.load().flat(), numbers.at(next++).flat()));
  });
  CHECK(next == numbers.size());
}

void check_equal(const Json& a, const Json& b) {
  CAPTURE(a.where());
  REQUIRE(a.is_object() == b.is_object());
  REQUIRE(a.is_array() == b.is_array());
  if (!a.is_object() && !a.is_array()) {
    CHECK(a.is_string() == b.is_string());
    if (a.is_string()) CHECK(a.as_string() == b.as_string());
    return;
  }
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a.is_object()) CHECK(a[i].key() == b[i].key());
    check_equal(a[i], b[i]);
  }
}

}  // namespace

TEST_CASE(
    "layout: halves of a position table are the rows of prefix tokens and of patches, or two equal tables") {
  const Row first{.part = Part::position_table, .source = "a", .into = {0, 2}};
  const Row second{.part = Part::position_table, .source = "b", .into = {1, 2}};
  const FormSizes with_prefix{.prefix_rows = 1};
  CHECK(rows_of_share(first, 10, with_prefix) == 1);
  CHECK(rows_of_share(second, 10, with_prefix) == 9);
  const FormSizes of_axes{};  // one of the columns, one of the rows (NaFlexViT, parfac)
  CHECK(rows_of_share(first, 2, of_axes) == 1);
  CHECK(rows_of_share(second, 2, of_axes) == 1);
}

TEST_CASE("layouts: the files that are shipped are those of the golden models, but for sizes") {
  for (const std::string name : {"vit-pytorch-vit", "vit-pytorch-simple-vit"}) {
    const Json shipped = load_json(test::data_path("layouts") / (name + ".json"));
    const Json tested = load_json(golden(name) / "layout.json");
    for (const char* key : {"prefixes", "tensors"}) check_equal(shipped.at(key), tested.at(key));
    for (std::size_t i = 0; i < shipped.at("config").size(); ++i) {
      CHECK(tested.at("config").find(std::string(shipped.at("config")[i].key())));
    }
  }
}

TEST_CASE("layouts: the example of the page loads, with its preprocessing and its classes") {
  const std::string page = test::read_text(test::data_path("../vit/weights/layouts.md"));
  const std::size_t begin = page.find("```json\n") + 8;
  const TemporaryFolder folder;
  const CheckpointFolder checkpoint(
      golden("own-rope"),
      {.layout = folder.write("layout.json", page.substr(begin, page.find("```", begin) - begin))});
  LoadedTower loaded = checkpoint.load<ModelConfig>(), expected = load_by(own_layout());
  check_same(loaded, expected);
  CHECK(loaded.config.image.width == 24);
  CHECK(loaded.config.head.labels.at(3) == "yew");
  const auto preprocess = checkpoint.preprocess_config();
  REQUIRE(preprocess);
  CHECK(preprocess->resize == ResizeRule::squash);
  CHECK(preprocess->resize_width == 24);
  CHECK(preprocess->crop_height == 24);
  CHECK(preprocess->mean == std::vector{0.5, 0.5, 0.5});
}

TEST_CASE("layouts: the tensors give sizes and parts") {
  const ModelConfig own = load_by(own_layout()).config;
  CHECK(own.embed_dim == 28);
  CHECK(own.encoder.depth == 2);
  CHECK(own.head_width() == 20);
  CHECK(own.mlp.dim == 38);
  CHECK(own.mlp.kind == MlpKind::gated);
  CHECK(own.tokens.num_registers == 3);
  CHECK(own.head.num_classes == 6);
  CHECK(!own.tokens.class_token);
  CHECK(!own.attention.qkv_bias);
  CHECK(!own.attention.proj_bias);
  CHECK(own.mlp.bias);
  const fs::path folder = golden("vit-pytorch-vit");
  const ModelConfig plain = load_checkpoint(folder, test::options_of(folder)).config;
  CHECK(plain.attention.num_heads == 3);
  CHECK(plain.patch.norm);
  CHECK(plain.patch.embed_norm);
  CHECK(plain.tokens.class_token);
  CHECK(plain.attention.proj_bias);
  CHECK(plain.position.added == AddedTable::prefix_and_patches);
  CHECK(plain.position.added_grid == GridSize{2, 3});
}

TEST_CASE("layouts: a classifier under another name is found as in the files of families") {
  const fs::path folder = golden("vit-pytorch-vit");
  for (const char* name : {"mlp_head.1", "head", "fc"}) {
    CAPTURE(name);
    test::FileCopy copy(folder);
    copy.rename("mlp_head.weight", std::string(name) + ".weight")
        .rename("mlp_head.bias", std::string(name) + ".bias");
    const TemporaryFolder changed;
    copy.write_to(changed.path());
    ModelOptions options = test::options_of(folder);
    const LoadedTower<ModelConfig> found = load_checkpoint(changed.path() / "model.safetensors", options);
    CHECK(found.config.head.num_classes == load_checkpoint(folder, options).config.head.num_classes);
    CHECK(found.config.head.num_classes != 0);
  }
}

TEST_CASE("layouts: what the tensors do not give is required by name") {
  for (const auto& [text, name] :
       {std::pair{"\"num_heads\": 2,", "num_heads"}, std::pair{"\"norm_eps\": 1e-5,", "norm_eps"},
        std::pair{"\"activation\": \"silu\",", "activation"},
        std::pair{"\"pooling\": \"patch_mean\",", "pooling"},
        std::pair{"\"rope\": \"axial\",", "position.rope"},
        std::pair{"\"coordinates\": \"index\",", "position.coordinates"},
        std::pair{"\"axis_order\": \"y_then_x\",", "position.axis_order"},
        std::pair{"\"pairing\": \"halves\",", "position.pairing"}}) {
    check_refused(test::replaced(own_layout(), text, ""), ErrorKind::mismatch, {name});
  }
  check_refused(test::replaced(own_layout(), ",\n      \"theta\": 30", ""), ErrorKind::mismatch,
                {"position.theta"});
  const std::string sizes = "\"image_height\": 24,\n    \"image_width\": 24,";
  check_refused(test::replaced(own_layout(), sizes, ""), ErrorKind::mismatch, {"image_height"});
}

TEST_CASE("layouts: a buffer that the layout does not name is an error that names the remedy") {
  check_refused(test::replaced(own_layout(), R"("ignore": {"trunk.frequencies": "computed from theta"})",
                               R"("ignore": {})"),
                ErrorKind::mismatch, {"trunk.frequencies", "\"ignore\""});
}

TEST_CASE("layouts: names in the spelling of 0.2 are read") {
  for (const char* word : {"neighbors", "neighbours"}) {
    const std::string layout =
        test::replaced(own_layout(), R"("pairing": "halves")", std::string(R"("pairing": ")") + word + '"');
    CHECK(load_by(layout).config.position.pairing == RopePairing::neighbors);
  }
  for (const char* word : {"centered", "centred"}) {
    const std::string layout = test::replaced(own_layout(), R"("coordinates": "index")",
                                              std::string(R"("coordinates": ")") + word + '"');
    CHECK(load_by(layout).config.position.coordinates == CoordinateRule::centered);
  }
}

TEST_CASE("layouts: flags that exclude each other are one choice under their own names") {
  const std::string pooling = "\"pooling\": \"patch_mean\",", theta = "\"theta\": 30";
  const auto with = [&](const std::string& flags) {
    return test::replaced(own_layout(), pooling, pooling + flags);
  };
  const ModelConfig config =
      load_by(with(R"("multi_label": true, "regression": false, "unit_pixels": true,)")).config;
  CHECK(config.head.logits == LogitKind::tags);
  CHECK(config.patch.pixels == PixelRule::centered);
  const std::string written = config_json(config);
  for (const char* member : {R"("multi_label":true)", R"("unit_pixels":true)", R"("stored_periods":false)"})
    CHECK(test::contains(written, member));
  for (const char* member : {"regression", "head_projects", "input_norm", "frequencies", "branch_norm"})
    CHECK_FALSE(test::contains(written, member));
  const auto alternating =
      load_by(test::replaced(own_layout(), theta, theta + R"(, "frequencies": "alternating")"));
  CHECK(alternating.config.position.frequencies == AxisFrequencies::alternating);
  CHECK(test::contains(config_json(alternating.config), R"("frequencies":"alternating")"));

  check_refused(with(R"("multi_label": true, "regression": true,)"), ErrorKind::format, {"regression"});
  check_refused(with(R"("branch_norm": true, "post_norm": true,)"), ErrorKind::format, {"post_norm"});
  check_refused(test::replaced(own_layout(), theta,
                               theta + R"(, "frequencies": "alternating", "stored_periods": true)"),
                ErrorKind::format, {"stored_periods"});
}

TEST_CASE("layouts: what is not understood is refused by its key") {
  const auto check = [](const std::string& from, const std::string& to, const std::string& name) {
    check_refused(test::replaced(own_layout(), from, to), ErrorKind::format, {name});
  };
  check("\"prefixes\"", "\"prefix\"", "prefix");
  check("\"num_heads\"", "\"heads\"", "heads");
  check("\"rope\"", "\"rotation\"", "rotation");
  check("\"silu\"", "\"swish\"", "activation");
  check("\"theta\": 30", "\"theta\": \"30\"", "theta");
  check("\"fc2\"", "\"fc3\"", "fc3");
  check("\"trunk.memory\"", "\"trunk.memory.*\"", "register_tokens");
  check("\"trunk.memory\"", "\"trunk.{block}.memory\"", "register_tokens");
  check("trunk.stem.*", "trunk.stem.weight", "patch");
  check("trunk.stage.{block}.ln_a.*", "trunk.stage.0.ln_a.*", "norm1");
  check("trunk.stage.{block}.ln_a.*", "trunk.stage.{layer}.ln_a.*", "norm1");
  check("trunk.stage.{block}.ln_a.*", "trunk.stage.{0*block}.ln_a.*", "norm1");
  check("\"rows\": [0, 2]", "\"rows\": [2, 2]", "rows");
  check("\"rows\": [0, 2]", "\"columns\": [0, 2]", "columns");
  check("\"rows\": [0, 2]", "\"sincos_2d\": 100", "gate");
  check("\"norm\":", "\"norm.gamma\": \"trunk.ln_out.weight\", \"norm\":", "tensors");
  check("\"computed from theta\"", "\"\"", "ignore");
  check("\"num_heads\": 2", "\"num_heads\": 3", "num_heads");
  check("\"num_heads\": 2", "\"num_heads\": 1e9", "num_heads");
  check("\"tensors\"", "\"labels\": [\"oak\"], \"tensors\"", "class names");
}

TEST_CASE("layouts: every tensor of the file is used or ignored, every one of the model found") {
  for (const std::string name : {"own-rope", "vit-pytorch-vit", "vit-pytorch-simple-vit"}) {
    const fs::path folder = golden(name);
    const ModelOptions options = test::options_of(folder);
    const FileCopy original(folder);
    const auto check = [&](const std::string& what, FileCopy copy, const std::string& tensor) {
      CAPTURE(what);
      CAPTURE(tensor);
      const TemporaryFolder scratch(TemporaryFolder::Place::memory);
      copy.write_to(scratch.path());
      const auto error = test::error_of([&] { load_checkpoint(scratch.path(), options); });
      REQUIRE(error);
      // a table of positions no longer fits, or a block more is left over
      const std::string expected = what == "extra"                         ? tensor
                                   : tensor == "cls_token"                 ? "position table"
                                   : tensor == "trunk.stage.1.ln_a.weight" ? "trunk.stage.1."
                                                                           : tensor;
      CHECK(test::contains(error->what(), expected));
    };
    for (const TensorUse& use : load_checkpoint(folder, options).report.tensors) {
      if (use.feeds.empty()) continue;
      check("renamed", FileCopy(original).rename(use.name, use.name + "_other"), use.name);
      check("extra", FileCopy(original).add(use.name + ".extra", {3}), use.name);
    }
  }
}

TEST_CASE("layouts: numbers are brought into the order of the model") {
  FileCopy copy(golden("own-rope"));
  // (C, M) -> (M, C); blocks 0, 1 at the places 1, 3 of a list
  for (const std::string block : {"0", "1"}) {
    FileCopy::Entry& entry = copy.at("trunk.stage." + block + ".ffn.shrink.weight");
    const std::size_t rows = entry.shape[0], columns = entry.shape[1];
    std::vector<std::byte> turned(entry.bytes.size());
    for (std::size_t i = 0; i < rows * columns; ++i) {
      std::copy_n(entry.bytes.data() + 4 * i, 4, turned.data() + 4 * (i % columns * rows + i / columns));
    }
    entry.bytes = std::move(turned);
    std::swap(entry.shape[0], entry.shape[1]);
  }
  for (const std::string ending : {".weight", ".bias"}) {
    copy.rename("trunk.stage.1.ln_a" + ending, "norms.3" + ending);
    copy.rename("trunk.stage.0.ln_a" + ending, "norms.1" + ending);
  }
  const TemporaryFolder folder;
  copy.write_to(folder.path());
  std::string layout = test::replaced(own_layout(), "\"trunk.stage.{block}.ffn.shrink.*\"",
                                      "\"trunk.stage.{block}.ffn.shrink.bias\"");
  layout = test::replaced(
      layout, "\"fc2\"",
      "\"fc2.weight\": {\"source\": \"trunk.stage.{block}.ffn.shrink.weight\", \"transposed\": "
      "true}, \"fc2.bias\"");
  layout = test::replaced(layout, "trunk.stage.{block}.ln_a.*", "norms.{2*block+1}.*");
  LoadedTower found = load_by(layout, folder.path()), expected = load_by(own_layout());
  check_same(found, expected);
}

TEST_CASE("layouts: nothing else may say what the model is") {
  ModelOptions options{.layout = golden("own-rope") / "layout.json"};
  options.architecture = "vit_tiny_patch16_224";
  CHECK_ERROR(ErrorKind::argument, ("ModelOptions::layout"), load_checkpoint(golden("own-rope"), options));
  options.architecture.clear();
  options.overrides = {{"heads", "2"}};
  CHECK_ERROR(ErrorKind::format, ("heads"), load_checkpoint(golden("own-rope"), options));
  options.overrides = {{"img_size", "24x16"}, {"position.theta", "50"}, {"pooling", "first_token"}};
  const ModelConfig changed = load_checkpoint(golden("own-rope"), options).config;
  CHECK(changed.image.width == 16);
  CHECK(changed.position.theta == 50.0);
  CHECK(changed.head.pooling == Pooling::first_token);
  CHECK_ERROR(ErrorKind::io, ("nowhere/layout.json"),
              load_checkpoint(golden("own-rope"), {.layout = "nowhere/layout.json"}));
}

}  // namespace vit::internal
