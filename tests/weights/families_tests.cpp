// Family adapters: totals of published architectures, and what happens to checkpoints and configs that are
// not as they should be. The numbers that the families give are tested in model/fixture_tests.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/archive_writer.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/cpu_time.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/golden_models.h"
#include "tests/support/shared_data.h"
#include "vit/base/error.h"
#include "vit/io/json.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/timm_args.h"

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;
using test::FileCopy;
using test::folders_in;
using test::options_of;
using test::ScratchFolder;

/// Numbers that a published file of this architecture holds: the k bias that Eva's attention does not have is
/// not one of them, and parallel blocks have one layer scale, as have those that scale only attention, and
/// one bias where one layer follows both branches.
std::size_t count_stored(const std::string& name) {
  const Architecture& architecture = find_architecture(name);
  const ModelConfig config = to_config(architecture.args, architecture);
  const bool no_k_bias =
      architecture.args.timm_class == TimmClass::eva && architecture.args.attn_type == TimmAttention::eva;
  ModelWeights weights;
  std::size_t total = 0;
  for_each_tensor(config, weights, [&](TensorId id, const Shape& shape, WeightTensor&) {
    total += shape.num_elements();
    if (no_k_bias && id.part == Part::qkv_bias) total -= config.embed_dim;
    const TimmArgs& args = architecture.args;
    if ((args.parallel || args.attn_only_layer_scale) && id.part == Part::scale2) total -= config.embed_dim;
    if (args.parallel && args.differential && id.part == Part::fc2_bias) total -= config.embed_dim;
  });
  return total;
}

struct Total {
  const char* name;
  std::size_t params;
};

/// Perception Encoder Core: timm's projection has a bias of zeros that Meta's has not.
constexpr Total kTotals[] = {
#include "tests/weights/architecture_parameters.inc"
};

/// Tensors worth mutating: those that the model uses, of block 1 and outside the blocks.
std::vector<std::string> names_to_mutate(const fs::path& folder, const ModelOptions& options) {
  std::vector<std::string> names;
  const LoadReport report = load_checkpoint(folder, options).report;
  for (const TensorUse& use : report.tensors) {
    if (use.feeds.empty()) continue;
    const std::size_t block = use.feeds.find("blocks.");
    if (block == std::string::npos || use.feeds.compare(block, 9, "blocks.1.") == 0)
      names.push_back(use.name);
  }
  return names;
}

/// "visual.conv1.weight" -> "conv1.weight": without a prefix the library cannot know which one it is.
std::string without_prefix(const std::string& name) {
  for (const char* prefix :
       {"vision_model.", "visual.", "vit.", "deit.", "dinov2.", "dinov2_with_registers."}) {
    if (name.starts_with(prefix)) return name.substr(std::strlen(prefix));
  }
  return name;
}

/// Whether the tensor identifies a family.
bool is_anchor(const std::string& name) {
  return std::ranges::any_of(families(),
                             [&](const Family* family) { return name.ends_with(family->anchor); });
}

void check_mutations(const fs::path& folder) {
  CAPTURE(folder.filename().string());
  const ModelOptions options = options_of(folder);
  const FileCopy original(folder);
  ScratchFolder scratch("mutations");
  original.write_to(scratch.path());
  REQUIRE_NOTHROW(load_checkpoint(scratch.path(), options));  // the copy itself is sound
  for (const std::string& name : names_to_mutate(folder, options)) {
    CAPTURE(name);
    const auto check = [&](const std::string& what, FileCopy copy) {
      CAPTURE(what);
      copy.write_to(scratch.path());
      const auto error = test::error_of([&] { load_checkpoint(scratch.path(), options); });
      REQUIRE(error);
      // without its patch embedding a file is of no family
      const bool hides_family = (what == "missing" || what == "renamed") && is_anchor(name);
      CAPTURE(std::string(error->what()));
      CHECK((error->kind() == ErrorKind::mismatch ||
             (hides_family && error->kind() == ErrorKind::unsupported)));
      CHECK(test::contains(error->what(), without_prefix(name)));
    };
    check("missing", FileCopy(original).remove(name));
    check("renamed", FileCopy(original).rename(name, name + "_other"));
    check("extra", FileCopy(original).add(name + ".extra", {3}));
    // a projection of any width is valid: nothing else in the file determines it
    if (name != "visual.proj") check("misshaped", FileCopy(original).widen(name));
  }
}

/// Two checkpoints of one config hold the same numbers.
void check_same_weights(const fs::path& folder, const fs::path& reference) {
  LoadedTower checkpoint = load_checkpoint(folder), original = load_checkpoint(reference);
  std::vector<Tensor<float>> expected;
  for_each_tensor(original.config, original.weights,
                  [&](TensorId, const Shape&, WeightTensor& tensor) { expected.push_back(tensor.load()); });
  std::size_t next = 0;
  for_each_tensor(checkpoint.config, checkpoint.weights,
                  [&](TensorId id, const Shape&, WeightTensor& tensor) {
                    CAPTURE(canonical_name(id));
                    CHECK(std::ranges::equal(tensor.load().flat(), expected.at(next++).flat()));
                  });
  CHECK(next == expected.size());
}

/// The configuration of an architecture with these model_args of timm's config.json.
ModelConfig with_model_args(const std::string& name, const std::string& model_args) {
  const Architecture& architecture = find_architecture(name);
  TimmArgs args = architecture.args;
  apply_timm_config(args, parse_json("{\"model_args\": " + model_args + "}", "config.json"));
  return to_config(args, architecture, "config.json");
}

/// Of a gated MLP in transformers' DINOv2 the joined matrix becomes two, as release 5 has them in memory.
void split_gates(FileCopy& copy) {
  std::vector<FileCopy::Entry> split;
  for (FileCopy::Entry& entry : copy.entries()) {
    if (entry.name.find("mlp.weights_in.") == std::string::npos) continue;
    FileCopy::Entry value = entry;
    value.name = test::replaced(value.name, "weights_in", "up_proj");
    entry.name = test::replaced(entry.name, "weights_in", "gate_proj");
    entry.shape[0] = value.shape[0] /= 2;
    const auto half = static_cast<std::ptrdiff_t>(entry.bytes.size() / 2);
    value.bytes.erase(value.bytes.begin(), value.bytes.begin() + half);
    entry.bytes.erase(entry.bytes.begin() + half, entry.bytes.end());
    split.push_back(std::move(value));
  }
  std::ranges::move(split, std::back_inserter(copy.entries()));
}

/// All numeric members of a JSON text: positions of their digits.
std::vector<std::pair<std::size_t, std::size_t>> numbers_in(const std::string& json) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i + 1 < json.size(); ++i) {
    const bool after_key = json[i] == ':' || json[i] == '[' || json[i] == ',';
    if (!after_key) continue;
    std::size_t start = i + 1;
    while (start < json.size() && std::isspace(static_cast<unsigned char>(json[start])) != 0) ++start;
    std::size_t end = start;
    while (end < json.size() && std::string_view("0123456789.eE+-").find(json[end]) != std::string_view::npos)
      ++end;
    if (end > start) found.emplace_back(start, end - start);
  }
  return found;
}

/// Numbers of the config replaced by absurd ones: refused, or without effect on the depth.
void check_absurd_numbers(const fs::path& folder) {
  const fs::path config = test::config_file(folder);
  if (!fs::exists(config)) return;
  CAPTURE(folder.filename().string());
  ScratchFolder scratch("absurd");
  FileCopy(folder).write_to(scratch.path());
  const std::string sound = test::read_text(config);
  const std::size_t depth = load_checkpoint(folder).config.encoder.depth;
  for (const auto& [start, length] : numbers_in(sound)) {
    for (const char* absurd : {"0", "-1", "1e300", "1000000000", "0.5", "null", "\"4\"", "[[]]"}) {
      std::string text = sound;
      text.replace(start, length, absurd);
      test::write_text(scratch.path() / config.filename(), text);
      std::size_t found = depth;  // accepted: a number that means nothing here
      try {
        found = load_checkpoint(scratch.path()).config.encoder.depth;
      } catch (const Error& error) {
        CHECK(std::string(error.what()).size() < 2000);
      }
      CHECK(found == depth);
    }
  }
}

/// A folder of transformers loads as well under the names of transformers 5's modules.
void check_module_names(const fs::path& folder) {
  // what save_pretrained(save_original_format=False) of transformers 5.23 writes; blocks of DINOv2 stay
  const std::pair<std::string, std::string> renamings[] = {
      {"attention.attention.query.", "attention.q_proj."},
      {"attention.attention.key.", "attention.k_proj."},
      {"attention.attention.value.", "attention.v_proj."},
      {"attention.output.dense.", "attention.o_proj."},
      {"intermediate.dense.", "mlp.fc1."},
      {".output.dense.", ".mlp.fc2."},
      {"mlp.weights_out.", "mlp.down_proj."}};
  CAPTURE(folder.filename().string());
  const bool is_dinov2 = folder.filename().string().starts_with("hf-dinov2");
  FileCopy copy(folder);
  for (FileCopy::Entry& entry : copy.entries()) {
    if (entry.name.find("encoder.layer.") == std::string::npos) continue;
    for (const auto& [published, module] : renamings) {
      if (entry.name.find(published) == std::string::npos) continue;
      entry.name = test::replaced(entry.name, published, module);
      break;
    }
    if (!is_dinov2) entry.name = test::replaced(entry.name, "encoder.layer.", "layers.");
  }
  split_gates(copy);
  ScratchFolder scratch("modules");
  copy.write_to(scratch.path());
  check_same_weights(scratch.path(), folder);
  check_mutations(scratch.path());
}

}  // namespace

TEST_CASE("weights: every architecture of timm has the number of parameters that timm counts") {
  for (const Total& total : kTotals) {
    CAPTURE(total.name);
    CHECK(count_stored(total.name) == total.params);
  }
  const auto is_timm = [](const Architecture& a) { return a.library == "timm"; };
  CHECK(std::ranges::count_if(architectures(), is_timm) == std::ssize(kTotals));
}

TEST_CASE("weights: every architecture validates, and publishers' names map to timm's") {
  std::string_view previous;
  for (const Architecture& a : architectures()) {
    CAPTURE(a.name);
    CHECK_NOTHROW(validate(to_config(a.args, a)));
    CHECK(previous < a.name);
    previous = a.name;
    CHECK(find_known_architecture(a.name) == &a);  // no former name hides it
    CHECK((a.library == "timm") == a.timm_name.empty());
    if (a.timm_name.empty()) continue;
    const Architecture& timm = find_architecture(a.timm_name);
    CHECK(timm.library == "timm");
    CHECK(timm.args.embed_dim == a.args.embed_dim);
    CHECK(find_published(a.library, a.timm_name) != nullptr);
  }
  CHECK(find_published("BAAI", "eva02_base_patch14_448")->name == "eva02_B_pt_in21k_ft_in1k_p14");
  CHECK(find_published("Meta", "vit_base_patch16_224") == nullptr);
  CHECK(&find_architecture("timm/vit_base_patch16_rope_224.naver_in1k") ==
        &find_architecture("vit_base_patch16_rope_224"));
  CHECK(find_architecture("PE-Core-L14-336").args.embed_dim == 1024);
}

TEST_CASE("weights: names that timm has deprecated map to an architecture and a tag") {
  const Architecture& dino = find_architecture("vit_base_patch16_224_dino");
  CHECK(dino.name == "vit_base_patch16_224.dino");
  CHECK(&find_architecture("timm/vit_base_patch16_224.dino") == &dino);
  CHECK(&find_architecture("vit_base_patch16_224.augreg_in1k") == &find_architecture("vit_base_patch16_224"));
  CHECK(dino.args.num_classes == 0);
  CHECK(find_architecture("vit_tiny_patch16_224_in21k").args.num_classes == 21843);
  CHECK(find_architecture("vit_large_patch14_224_clip_laion2b").args.num_classes == 768);
  const auto mean_of = [](const std::string& name) {
    return architecture_preprocess(random_checkpoint(name).config).mean;
  };
  CHECK(mean_of("vit_base_patch16_224_dino") == std::vector{0.485, 0.456, 0.406});
  CHECK(mean_of("vit_base_patch16_224") == std::vector{0.5, 0.5, 0.5});
  const auto edge_of = [](const std::string& name) {
    return architecture_preprocess(random_checkpoint(name).config).resize_height;
  };
  CHECK(edge_of("deit3_small_patch16_224_in21ft1k") == 224);
  CHECK(edge_of("deit3_small_patch16_224") == 248);
}

TEST_CASE("weights: a config.json with a name that timm has deprecated keeps its own values") {
  const fs::path folder = test::data_path("golden/models/timm-vit");
  ScratchFolder scratch("former");
  FileCopy(folder).write_to(scratch.path());
  std::string text = test::read_text(folder / "config.json");
  text = test::replaced(text, "\"vit_tiny_patch16_224\"", "\"vit_tiny_patch16_224_in21k\"");
  test::write_text(scratch.path() / "config.json", text);
  const ModelConfig config = load_checkpoint(scratch.path()).config;
  CHECK(config.architecture == "vit_tiny_patch16_224.augreg_in21k");
  CHECK(config.head.num_classes == load_checkpoint(folder).config.head.num_classes);
  CHECK(load_preprocess_config(scratch.path()).crop_pct == load_preprocess_config(folder).crop_pct);
}

TEST_CASE("weights: a tensor missing, renamed, superfluous or misshaped is refused by name (golden models)") {
  for (const fs::path& folder : folders_in(test::data_path("golden/models"))) check_mutations(folder);
}

TEST_CASE(
    "weights: a tensor missing, renamed, superfluous or misshaped is refused by name (reference models)") {
  SKIP_WITHOUT_SHARED("fixtures/models");
  const fs::path root = test::shared_path("fixtures/models");
  for (const fs::path& folder : folders_in(root)) check_mutations(folder);
}

TEST_CASE("weights: absurd numbers in the config are refused or without effect (golden models)") {
  for (const fs::path& folder : folders_in(test::data_path("golden/models"))) check_absurd_numbers(folder);
}

TEST_CASE("weights: absurd numbers in the config are refused or without effect (reference models)") {
  SKIP_WITHOUT_SHARED("fixtures/models");
  for (const fs::path& folder : folders_in(test::shared_path("fixtures/models")))
    check_absurd_numbers(folder);
}

TEST_CASE("weights: blocks may be outside of the image tower, as in transformers' classifier of MSN") {
  const fs::path folder = test::data_path("golden/models/hf-vit");
  ScratchFolder scratch("outside");
  FileCopy copy(folder);
  std::size_t num_renamed = 0;
  for (FileCopy::Entry& entry : copy.entries()) {
    if (!entry.name.starts_with("vit.encoder.")) continue;
    entry.name.erase(0, std::string("vit.").size());
    ++num_renamed;
  }
  REQUIRE(num_renamed > 0);
  copy.write_to(scratch.path());
  check_same_weights(scratch.path(), folder);
}

TEST_CASE("weights: ViT loads under the names of transformers 5's modules") {
  for (const char* name : {"hf-vit", "hf-vit-bare", "hf-deit", "hf-mae"})
    check_module_names(test::data_path(std::string("golden/models/") + name));
}

TEST_CASE("weights: I-JEPA and DINOv2 load under the names of transformers 5's modules") {
  SKIP_WITHOUT_SHARED("fixtures/models");
  const fs::path root = test::shared_path("fixtures/models");
  for (const char* name :
       {"hf-ijepa", "hf-dinov2", "hf-dinov2-classifier", "hf-dinov2-registers", "hf-dinov2-swiglu"})
    check_module_names(root / name);
}

TEST_CASE("weights: MetaCLIP 2 holds the image tower of CLIP, with and without the rest") {
  SKIP_WITHOUT_SHARED("fixtures/models");
  for (const char* name : {"hf-clip", "hf-clip-vision-projection"}) {
    CAPTURE(name);
    const fs::path folder = test::shared_path("fixtures/models") / name;
    const bool whole = std::string_view(name) == "hf-clip";
    std::string config = test::read_text(folder / "config.json");
    config = test::replaced(
        config, whole ? "\"model_type\": \"clip\"" : "\"model_type\": \"clip_vision_model\"",
        whole ? "\"model_type\": \"metaclip_2\"" : "\"model_type\": \"metaclip_2_vision_model\"");
    config = test::replaced(config, "\"CLIP", "\"MetaClip2");
    ScratchFolder scratch("metaclip");
    FileCopy(folder).set_config(config).write_to(scratch.path());
    check_same_weights(scratch.path(), folder);
    CHECK(load_checkpoint(scratch.path()).config.projection_dim() ==
          load_checkpoint(folder).config.projection_dim());
  }
}

TEST_CASE("weights: SigLIP 2 NaFlex takes a number of patches, and no other override") {
  const fs::path folder = test::data_path("golden/models/hf-siglip2-naflex");
  const auto patches = [&](const std::string& number) {
    return CheckpointFolder(folder, {.overrides = {{"max_num_patches", number}}})
        .preprocess_config()
        .value()
        .max_patches;
  };
  CHECK(CheckpointFolder(folder).preprocess_config().value().max_patches == 16);
  CHECK(patches("100") == 100);
  for (const char* const number : {"0", "-1", "many", "1e9", "[1]"}) {
    CAPTURE(number);
    CHECK_ERROR(ErrorKind::argument, ("max_num_patches"), patches(number));
  }
  CHECK_ERROR(ErrorKind::argument, ("num_heads"),
              load_checkpoint(folder, {.overrides = {{"num_heads", "4"}}}));
  std::string config = test::read_text(folder / "config.json");
  config = test::replaced(config, "\"num_patches\": 9", "\"num_patches\": 10");
  const ScratchFolder scratch("naflex");
  FileCopy(folder).set_config(config).write_to(scratch.path());
  CHECK_ERROR(ErrorKind::format, ("config.json", "num_patches", "10"), load_checkpoint(scratch.path()));
  CHECK_FALSE(load_checkpoint(folder).config.patch.drops_remainder);  // the library cuts whole patches only
}

TEST_CASE("weights: of ViT and DeiT for masked images the decoder is left out") {
  for (const std::string family : {"vit", "deit"}) {
    CAPTURE(family);
    const fs::path folder = test::data_path("golden/models/hf-" + family);
    FileCopy copy(folder);
    std::erase_if(copy.entries(), [](const FileCopy::Entry& entry) {
      return entry.name.find("classifier.") != std::string::npos;
    });
    std::string config = test::read_text(folder / "config.json");
    const std::string name = family == "vit" ? "ViT" : "DeiT";
    config = test::replaced(config, name + "ForImageClassification" + (family == "vit" ? "" : "WithTeacher"),
                            name + "ForMaskedImageModeling");
    copy.set_config(config);
    const std::size_t width = load_checkpoint(folder).config.embed_dim;
    ScratchFolder scratch("masked");
    copy.add("decoder.0.weight", {768, width, 1, 1}).add("decoder.0.bias", {768});
    copy.add(family + ".embeddings.mask_token", {1, 1, width}).write_to(scratch.path());
    CHECK(load_checkpoint(scratch.path()).config.head.num_classes == 0);
    copy.add("decoder.1.weight", {3}).write_to(scratch.path());
    CHECK_ERROR(ErrorKind::mismatch, ("\"decoder.1.weight\""), load_checkpoint(scratch.path()));
  }
}

TEST_CASE("weights: a tensor without numbers is left out in any family, one with numbers is not") {
  for (const char* const name : {"timm-vit", "hf-vit"}) {
    CAPTURE(name);
    FileCopy copy(test::data_path("golden/models") / name);
    ScratchFolder scratch("empty_tensor");
    copy.add("register_tokens", {1, 0, 30}).write_to(scratch.path());
    const LoadReport report = load_checkpoint(scratch.path()).report;
    const auto use = std::ranges::find(report.tensors, std::string("register_tokens"), &TensorUse::name);
    REQUIRE(use != report.tensors.end());
    CHECK(!use->ignored_because.empty());
    copy.remove("register_tokens").add("register_tokens", {1, 1, 30}).write_to(scratch.path());
    CHECK_ERROR(ErrorKind::mismatch, ("unexpected", "register_tokens"), load_checkpoint(scratch.path()));
  }
}

TEST_CASE("weights: DINOv2 with registers may have none of them") {
  SKIP_WITHOUT_SHARED("fixtures/models/hf-dinov2-registers");
  const fs::path folder = test::shared_path("fixtures/models/hf-dinov2-registers");
  std::string config = test::read_text(folder / "config.json");
  config = test::replaced(config, "\"num_register_tokens\": 4", "\"num_register_tokens\": 0");
  FileCopy copy(folder);
  copy.set_config(config).remove("embeddings.register_tokens");
  ScratchFolder scratch("registers");
  copy.write_to(scratch.path());
  CHECK(load_checkpoint(scratch.path()).config.tokens.num_registers == 0);
  copy.add("embeddings.register_tokens", {1, 0, 48}).write_to(scratch.path());
  CHECK(load_checkpoint(scratch.path()).config.tokens.num_registers == 0);
}

TEST_CASE("weights: a timm model that transformers wrapped loads, with its classifier and without") {
  const fs::path folder = test::data_path("golden/models/rope-axial");
  FileCopy copy(folder);
  for (FileCopy::Entry& entry : copy.entries()) entry.name = "timm_model." + entry.name;
  ScratchFolder scratch("wrapped");
  copy.write_to(scratch.path());
  const ModelConfig whole = load_checkpoint(scratch.path()).config;
  CHECK(whole.head.num_classes == load_checkpoint(folder).config.head.num_classes);

  copy.remove("timm_model.head.weight").remove("timm_model.head.bias").write_to(scratch.path());
  CHECK_ERROR(ErrorKind::mismatch, ("head.weight"), load_checkpoint(scratch.path()));
  std::string text = test::read_text(folder / "config.json");
  text = test::replaced(text, "{",
                        "{\"architectures\": [\"TimmWrapperModel\"], \"model_type\": \"timm_wrapper\",");
  test::write_text(scratch.path() / "config.json", text);
  CHECK(load_checkpoint(scratch.path()).config.head.num_classes == 0);
}

TEST_CASE("weights: DeiT-III loads with the names of its own repository") {
  SKIP_WITHOUT_SHARED("fixtures/models/timm-deit3");
  const fs::path folder = test::shared_path("fixtures/models/timm-deit3");
  FileCopy copy(folder);
  std::size_t num_renamed = 0;
  for (FileCopy::Entry& entry : copy.entries()) {
    for (const char* const digit : {"1", "2"}) {
      const std::string timm = std::string("ls") + digit + ".gamma";
      if (!entry.name.ends_with(timm)) continue;
      entry.name.replace(entry.name.size() - timm.size(), timm.size(), std::string("gamma_") + digit);
      ++num_renamed;
    }
  }
  REQUIRE(num_renamed > 0);
  ScratchFolder scratch("deit3");
  copy.write_to(scratch.path());
  const LoadedTower renamed = load_checkpoint(scratch.path()), original = load_checkpoint(folder);
  REQUIRE(renamed.config.encoder.layer_scale);
  const auto scale = [](const LoadedTower<ModelConfig>& from) {
    return from.weights.blocks.at(1).scale2.load();
  };
  CHECK(std::ranges::equal(scale(renamed).flat(), scale(original).flat()));
}

TEST_CASE("weights: of timm's config.json global_pool counts in model_args, not at the top") {
  const fs::path folder = test::data_path("golden/models/rope-axial-avg");
  ScratchFolder scratch("global_pool");
  FileCopy(folder).write_to(scratch.path());
  const std::string sound = test::read_text(folder / "config.json"), mean = "\"global_pool\": \"avg\"";
  REQUIRE(sound.find(mean) < sound.find("model_args"));
  std::string text = sound;
  text = test::replaced(text, mean, "\"global_pool\": \"token\"");
  test::write_text(scratch.path() / "config.json", text);
  CHECK(load_checkpoint(scratch.path()).config.head.pooling == Pooling::patch_mean);
}

TEST_CASE("weights: null among timm's model_args replaces the architecture's own value, as None does") {
  const std::string clip = "vit_base_patch16_clip_224", dinov3 = "vit_base_patch16_dinov3",
                    eva = "eva02_base_patch14_224", relpos = "vit_relpos_base_patch16_224";
  CHECK(with_model_args(clip, "{}").encoder.norm.eps == 1e-5f);
  CHECK(with_model_args(clip, R"({"norm_layer": null})").encoder.norm.eps == 1e-6f);
  CHECK(with_model_args(clip, "{}").encoder.norm_pre);
  CHECK_FALSE(with_model_args(clip, R"({"pre_norm": null})").encoder.norm_pre);
  CHECK_FALSE(with_model_args(clip, R"({"qkv_bias": null})").attention.qkv_bias);
  CHECK_FALSE(with_model_args(clip, R"({"final_norm": null})").encoder.token_norm);
  for (const char* const name : {"vit_base_patch16_clip_quickgelu_224", "vit_giant_patch14_dinov2"}) {
    CAPTURE(std::string(name));
    CHECK(with_model_args(name, "{}").mlp.activation != Activation::gelu);
    CHECK(with_model_args(name, R"({"act_layer": null})").mlp.activation == Activation::gelu);
  }

  CHECK(with_model_args(dinov3, "{}").encoder.layer_scale);
  CHECK_FALSE(with_model_args(dinov3, R"({"init_values": null})").encoder.layer_scale);
  CHECK_FALSE(with_model_args(dinov3, "{}").head.pooled_norm);
  CHECK(with_model_args(dinov3, R"({"use_fc_norm": null})").head.pooled_norm);
  CHECK(with_model_args(dinov3, "{}").position.pairing == RopePairing::halves);
  CHECK(with_model_args(dinov3, R"({"rope_rotate_half": null})").position.pairing == RopePairing::neighbors);
  CHECK(with_model_args(dinov3, R"({"use_rot_pos_emb": null})").position.rope == RopeKind::none);
  CHECK_FALSE(with_model_args(dinov3, R"({"class_token": null})").tokens.class_token);
  CHECK(with_model_args(eva, "{}").position.coordinates == CoordinateRule::scaled_to_reference);
  CHECK(with_model_args(eva, R"({"ref_feat_shape": null})").position.coordinates !=
        CoordinateRule::scaled_to_reference);
  CHECK(with_model_args(eva, "{}").mlp.kind == MlpKind::gated);
  CHECK(with_model_args(eva, R"({"swiglu_mlp": null})").mlp.kind == MlpKind::plain);
  CHECK(with_model_args(relpos, "{}").head.pooled_norm);
  CHECK_FALSE(with_model_args(relpos, R"({"fc_norm": null})").head.pooled_norm);
  CHECK(
      with_model_args("naflexvit_base_patch16_gap", R"({"pos_embed_antialias": null})").position.resampling ==
      TableResampling::bicubic);
  for (const char* const key : {"rope_type", "rope_temperature", "rope_grid_offset"}) {  // it has no rotation
    CHECK_NOTHROW(with_model_args("eva_giant_patch14_224", std::string("{\"") + key + "\": null}"));
  }
  CHECK_NOTHROW(with_model_args("vit_base_patch16_rope_mixed_224", R"({"rope_grid_offset": null})"));

  const auto check_refused = [](const std::string& name, const std::string& key) {
    CAPTURE(name);
    CAPTURE(key);
    CHECK_ERROR(ErrorKind::format, ("config.json", key), with_model_args(name, "{\"" + key + "\": null}"));
  };
  for (const char* const key :
       {"img_size", "patch_size", "in_chans", "embed_dim", "depth", "num_heads", "mlp_ratio", "num_classes",
        "global_pool", "reg_tokens", "pos_embed", "mlp_layer", "embed_layer", "block_fn", "attn_layer"})
    check_refused(clip, key);
  for (const char* const key :
       {"norm_layer", "num_reg_tokens", "rope_type", "rope_temperature", "rope_grid_offset", "global_pool"})
    check_refused(dinov3, key);
  check_refused("beit_base_patch16_224", "norm_layer");
  check_refused(relpos, "rel_pos_type");
  check_refused("naflexvit_base_patch16_gap", "pos_embed_interp_mode");
  check_refused("naflexvit_base_patch16_gap", "rope_type");  // other blocks, which ignore act_layer
  CHECK_ERROR(ErrorKind::format, ("global_pool", "class token"),
              with_model_args(clip, R"({"class_token": null})"));
  CHECK_ERROR(ErrorKind::unsupported, ("no_such_argument"),
              with_model_args(clip, R"({"no_such_argument": null})"));
}

TEST_CASE("weights: a number of classes that is null next to model_args leaves the architecture's") {
  TimmArgs args = find_architecture("vit_base_patch16_224").args;
  apply_timm_config(
      args, parse_json(R"({"num_classes": null, "pretrained_cfg": {"num_classes": null}})", "config.json"));
  CHECK(args.num_classes == 1000);
}

TEST_CASE("weights: layer scales of 0 are none in BEiT, and scales in Eva") {
  const char* const zero = R"({"use_rel_pos_bias": false, "init_values": 0.0})";
  CHECK(with_model_args("beit_base_patch16_224", "{}").encoder.layer_scale);
  CHECK_FALSE(with_model_args("beit_base_patch16_224", zero).encoder.layer_scale);
  CHECK(with_model_args("eva02_base_patch14_224", R"({"init_values": 0.0})").encoder.layer_scale);
}

TEST_CASE("weights: rotation in NaFlexViT is refused, and aligned corners but of plain bilinear tables") {
  const std::string naflex = "naflexvit_base_patch16_gap";
  for (const char* const type : {"dinov3", "axial", "mixed", "mrope"}) {
    CAPTURE(std::string(type));
    CHECK_ERROR(ErrorKind::unsupported, ("config.json", "rope_type", type),
                with_model_args(naflex, std::string("{\"rope_type\": \"") + type + "\"}"));
  }
  CHECK_NOTHROW(with_model_args(naflex, R"({"rope_type": ""})"));
  CHECK_NOTHROW(with_model_args(naflex, R"({"rope_type": "none"})"));

  const auto aligned = [&](const std::string& rest) {
    return with_model_args(naflex, "{\"pos_embed_align_corners\": true" + rest + "}").position.resampling;
  };
  const std::string bilinear = R"(, "pos_embed_interp_mode": "bilinear")",
                    plain = R"(, "pos_embed_antialias": false)";
  CHECK(aligned(bilinear + plain) == TableResampling::bilinear_aligned);
  CHECK(aligned(R"(, "pos_embed": "factorized")") == TableResampling::bilinear);
  CHECK(with_model_args("naflexvit_base_patch16_radio_v3", "{}").position.resampling ==
        TableResampling::bilinear_aligned);
  CHECK_ERROR(ErrorKind::unsupported, ("config.json", "pos_embed_align_corners", "bilinear", "antialias"),
              aligned(bilinear));
  CHECK_ERROR(ErrorKind::unsupported, ("config.json", "pos_embed_align_corners", "bicubic"), aligned(plain));
  CHECK_ERROR(ErrorKind::unsupported, ("config.json", "pos_embed_align_corners", "bicubic"), aligned(""));
}

TEST_CASE("weights: blocks of Eva in NaFlexViT are refused by the argument that asks for them") {
  const std::string naflex = "naflexvit_base_patch16_gap";
  for (const char* const argument :
       {R"("swiglu_mlp": true)", R"("attn_type": "eva")", R"("attn_type": "rope")",
        R"("attn_only_layer_scale": true)", R"("num_kv_heads": 4)"}) {
    CAPTURE(std::string(argument));
    CHECK_ERROR(ErrorKind::unsupported, ("config.json", "blocks of Eva"),
                with_model_args(naflex, "{" + std::string(argument) + "}"));
  }
  CHECK_ERROR(ErrorKind::unsupported, ("attn_gated"), with_model_args(naflex, R"({"attn_gated": true})"));
  CHECK_NOTHROW(
      with_model_args(naflex, R"({"swiglu_mlp": false, "attn_type": "standard", "num_kv_heads": null,
                                            "attn_gated": false, "enable_patch_interpolator": false})"));
  CHECK(with_model_args(naflex, R"({"scale_attn_inner_norm": true})").attention.norm);
  CHECK_FALSE(with_model_args(naflex, R"({"scale_attn_inner_norm": null})").attention.norm);
}

TEST_CASE("weights: layer scales of the tensors are none of a model whose model_args say that it has none") {
  const fs::path folder = test::data_path("golden/models/timm-vit");
  FileCopy copy(folder);
  for (const char* const name :
       {"blocks.0.ls1.gamma", "blocks.0.ls2.gamma", "blocks.1.ls1.gamma", "blocks.1.ls2.gamma"})
    copy.add(name, {30});
  const ScratchFolder scratch("no_layer_scale");
  copy.write_to(scratch.path());
  CHECK(load_checkpoint(scratch.path()).config.encoder.layer_scale);  // model_args say nothing
  std::string text = test::read_text(folder / "config.json");
  text =
      test::replaced(text, "\"dynamic_img_size\": true", "\"dynamic_img_size\": true, \"init_values\": null");
  copy.set_config(text).write_to(scratch.path());
  CHECK_ERROR(ErrorKind::mismatch, ("unexpected", "blocks.0.ls1.gamma"), load_checkpoint(scratch.path()));
}

TEST_CASE("weights: the head of a distilled DeiT leaves fc_norm out, as timm's does") {
  const fs::path folder = test::data_path("golden/models/timm-deit-distilled");
  std::string text = test::read_text(folder / "config.json");
  text = test::replaced(text, "\"dynamic_img_size\": true", "\"dynamic_img_size\": true, \"fc_norm\": true");
  const ScratchFolder scratch("distilled");
  FileCopy(folder)
      .rename("norm.weight", "fc_norm.weight")
      .rename("norm.bias", "fc_norm.bias")
      .set_config(text)
      .write_to(scratch.path());
  const ModelConfig config = load_checkpoint(scratch.path()).config;
  CHECK_FALSE(config.encoder.token_norm);
  CHECK_FALSE(config.head.pooled_norm);
  CHECK(config.head.num_classes == 6);
}

TEST_CASE("weights: attention of Eva has the tensors that model_args say, not the architecture") {
  const fs::path folder = test::data_path("golden/models/timm-eva02");
  const std::string sound = test::read_text(folder / "config.json");
  const LoadedTower original = load_checkpoint(folder);
  REQUIRE(original.config.attention.qkv_bias);
  const auto check = [&](const FileCopy& copy, const std::string& argument) {
    CAPTURE(argument);
    std::string text = sound;
    text = test::replaced(text, "\"dynamic_img_size\": true", "\"dynamic_img_size\": true, " + argument);
    const ScratchFolder scratch("eva_attention");
    FileCopy(copy).set_config(text).write_to(scratch.path());
    const LoadedTower changed = load_checkpoint(scratch.path());
    REQUIRE(changed.config.attention.qkv_bias);
    for (std::size_t block = 0; block < original.weights.blocks.size(); ++block) {
      const auto &a = original.weights.blocks[block], &b = changed.weights.blocks[block];
      CHECK(std::ranges::equal(a.qkv.weight.load().flat(), b.qkv.weight.load().flat()));
      CHECK(std::ranges::equal(a.qkv.bias.load().flat(), b.qkv.bias.load().flat()));
    }
  };
  FileCopy rope(folder), fused(folder);
  for (std::size_t block = 0; block < original.weights.blocks.size(); ++block) {
    const std::string attention = "blocks." + std::to_string(block) + ".attn.";
    rope.add(attention + "k_proj.bias", {original.config.embed_dim});
    FileCopy::Entry joined = fused.at(attention + "q_proj.weight");
    joined.name = attention + "qkv.weight";
    for (const char* const part : {"k_proj.weight", "v_proj.weight"}) {
      const FileCopy::Entry& entry = fused.at(attention + part);
      joined.bytes.insert(joined.bytes.end(), entry.bytes.begin(), entry.bytes.end());
    }
    joined.shape[0] *= 3;
    for (const char* const part : {"q_proj", "k_proj", "v_proj"}) fused.remove(attention + part + ".weight");
    fused.entries().push_back(std::move(joined));
    fused.rename(attention + "q_proj.bias", attention + "q_bias")
        .rename(attention + "v_proj.bias", attention + "v_bias");
  }
  check(rope, "\"attn_type\": \"rope\"");
  check(fused, "\"qkv_fused\": true");
}

TEST_CASE("weights: a model that was saved with no labels has no classifier") {
  ScratchFolder scratch("no-labels");
  FileCopy copy(test::data_path("golden/models/hf-vit"));
  copy.remove("classifier.weight").remove("classifier.bias");
  const std::string config = test::read_text(test::data_path("golden/models/hf-vit/config.json"));
  const std::size_t begin = config.find("\"id2label\": {");
  REQUIRE(begin != std::string::npos);
  copy.set_config(
      std::string(config).replace(begin, config.find('}', begin) + 1 - begin, "\"id2label\": {}"));
  copy.write_to(scratch.path());
  CHECK(load_checkpoint(scratch.path()).config.head.num_classes == 0);
}

TEST_CASE("weights: sizes that contradict the tensors are refused") {
  const fs::path folder = test::data_path("golden/models/hf-vit");
  ScratchFolder scratch("contradictions");
  FileCopy(folder).write_to(scratch.path());
  const std::string sound = test::read_text(folder / "config.json");
  const Json json = load_json(folder / "config.json");
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "intermediate_size", "patch_size", "image_size"}) {
    CAPTURE(key);
    std::string text = sound;
    const std::string value = std::to_string(json.at(key).as_size());
    const std::string quoted = std::string("\"") + key + "\": ";
    text = test::replaced(text, quoted + value, quoted + std::to_string(json.at(key).as_size() * 2));
    test::write_text(scratch.path() / "config.json", text);
    CHECK_ERROR(ErrorKind::mismatch, ("model.safetensors"), load_checkpoint(scratch.path()));
  }
  std::string heads = sound;
  heads = test::replaced(
      heads, "\"num_attention_heads\": " + std::to_string(json.at("num_attention_heads").as_size()),
      "\"num_attention_heads\": 7");
  test::write_text(scratch.path() / "config.json", heads);
  CHECK_ERROR(ErrorKind::format, ("config.json", "num_heads", "7"), load_checkpoint(scratch.path()));
}

TEST_CASE("weights: a bare file needs its architecture, and the message lists those that fit") {
  ScratchFolder scratch("bare");
  FileCopy(test::data_path("golden/models/rope-mixed")).write_to(scratch.path());
  fs::remove(scratch.path() / "config.json");
  CHECK_ERROR(ErrorKind::argument,
              ("model.safetensors", "vit_small_patch16_rope_mixed_224", "ModelOptions::architecture"),
              load_checkpoint(scratch.path()));
  // a weight file that is only called model is known by its folder
  const fs::path named = scratch.path() / "vit_base_patch16_rope_ape_224.naver_in1k";
  fs::create_directory(named);
  fs::copy(scratch.path() / "model.safetensors", named / "model.safetensors");
  CHECK_ERROR(ErrorKind::argument, (" vit_base_patch16_rope_ape_224"), load_checkpoint(named));
  CHECK_ERROR(ErrorKind::argument,
              ("\"vit_smal_patch16_rope_mixed_224\"", " vit_small_patch16_rope_mixed_224"),
              load_checkpoint(scratch.path(), {.architecture = "vit_smal_patch16_rope_mixed_224"}));
  CHECK_NOTHROW(load_checkpoint(scratch.path(), {.architecture = "vit_small_patch16_rope_mixed_224"}));
  // the wrong kind is refused with the tensors that do not fit
  CHECK_ERROR(ErrorKind::mismatch, ("model.safetensors", "blocks.0.gamma_1"),
              load_checkpoint(scratch.path(), {.architecture = "vit_small_patch16_224"}));
  const ModelOptions nonsense{.architecture = "vit_small_patch16_rope_mixed_224",
                              .overrides = {{"nonsense", "1"}}};
  CHECK_ERROR(ErrorKind::argument, ("nonsense"), load_checkpoint(scratch.path(), nonsense));
}

TEST_CASE("weights: a bare file of a size that is no multiple of its patches keeps that size") {
  SKIP_WITHOUT_SHARED("fixtures/models/timm-siglip");
  const fs::path folder = test::shared_path("fixtures/models/timm-siglip");
  FileCopy copy(folder);
  const auto reshape = [&](const std::string& name, std::vector<std::size_t> shape) {
    FileCopy::Entry& entry = copy.at(name);
    std::size_t elements = 1;
    for (const std::size_t size : shape) elements *= size;
    entry.shape = std::move(shape);
    entry.bytes.assign(elements * sizeof(float), std::byte{0});
  };
  reshape("patch_embed.proj.weight", {72, 3, 14, 14});
  const ScratchFolder scratch("rest");
  const ModelOptions options{.architecture = "vit_so400m_patch14_siglip_384",
                             .overrides = {{"num_heads", "1"}}};
  const auto edge_with = [&](std::size_t patches) {
    reshape("pos_embed", {1, patches, 72});
    copy.set_config("").write_to(scratch.path());
    return load_checkpoint(scratch.path(), options).config.image.height;
  };
  CHECK(edge_with(27 * 27) == 384);  // 27 patches and 6 pixels
  CHECK(edge_with(26 * 26) == 364);
  reshape("patch_embed.proj.weight", {72, 3, 0, 0});
  CHECK_ERROR(ErrorKind::mismatch, ("patch_embed.proj.weight"), edge_with(27 * 27));
}

TEST_CASE("weights: transformers' tensors need their config.json, and the message says so") {
  const ScratchFolder scratch("no_config");
  FileCopy(test::data_path("golden/models/hf-vit")).set_config("").write_to(scratch.path());
  for (const char* architecture : {"", "vit_tiny_patch16_224"}) {
    CHECK_ERROR(ErrorKind::mismatch,
                ("model.safetensors", "embeddings.patch_embeddings.projection.weight", "config.json"),
                load_checkpoint(scratch.path(), {.architecture = architecture}));
  }
}

TEST_CASE("weights: a config.json of another model of transformers is refused by its type") {
  const fs::path folder = test::data_path("golden/models/hf-vit");
  std::string config = test::read_text(folder / "config.json");
  config = test::replaced(config, "\"model_type\": \"vit\"", "\"model_type\": \"swin\"");
  const ScratchFolder scratch("swin");
  FileCopy(folder).set_config(config).write_to(scratch.path());
  CHECK_ERROR(ErrorKind::unsupported, ("config.json", "\"swin\""), load_checkpoint(scratch.path()));
}

TEST_CASE("weights: the type and the architecture of a config.json are named before the names of tensors") {
  const ScratchFolder scratch("other_type");
  FileCopy(test::data_path("golden/models/timm-vit"))
      .set_config(R"({"model_type": "of_no_family"})")
      .write_to(scratch.path());
  const std::string message = test::message_of([&] { load_checkpoint(scratch.path()); });
  CHECK(test::contains(message, "\"of_no_family\", which no supported family"));
  CHECK_FALSE(test::contains(message, "there is no config.json"));
  const ScratchFolder other("other_architecture");
  FileCopy(test::data_path("golden/models/hf-vit"))
      .set_config(R"({"architecture": "resnet50"})")
      .write_to(other.path());
  CHECK_ERROR(ErrorKind::unsupported, ("\"resnet50\"", "none of the Vision Transformers"),
              load_checkpoint(other.path()));
}

TEST_CASE("weights: a norm that timm's arguments name has its own epsilon") {
  CHECK(random_checkpoint("vit_base_patch16_clip_224").config.encoder.norm.eps == 1e-5f);
  CHECK(random_checkpoint("vit_base_patch16_clip_224", {.overrides = {{"norm_layer", "layernorm"}}})
            .config.encoder.norm.eps == 1e-6f);
}

TEST_CASE("weights: PyTorch's files are known by their endings, and the member that was read is reported") {
  SKIP_WITHOUT_SHARED("fixtures/models/orig-naver-rope-mixed");
  const fs::path folder = test::shared_path("fixtures/models/orig-naver-rope-mixed");
  const ScratchFolder scratch("endings");
  for (const char* name : {"x.pth", "x.pt", "x.bin", "x.pth.tar", "x.ckpt"}) {
    CAPTURE(std::string(name));
    fs::copy_file(folder / "model.pth", scratch.path() / name);
    const LoadedTower checkpoint = load_checkpoint(scratch.path() / name, options_of(folder));
    CHECK(std::ranges::count_if(checkpoint.report.notes, [](const std::string& note) {
            return note.starts_with("the weights are the member \"model\" of the file");
          }) == 1);
  }
  fs::copy_file(folder / "model.pth", scratch.path() / "x.tar");
  CHECK_ERROR(ErrorKind::unsupported, ("x.tar"), load_checkpoint(scratch.path() / "x.tar"));
}

TEST_CASE("weights: files that the system does not show are an Error with its reason") {
  const fs::path sound = test::data_path("golden/models/rope-mixed");
  const auto check = [](const fs::path& checkpoint, const fs::path& hidden) {
    CHECK_ERROR(ErrorKind::io, (hidden.string() + ": "), load_checkpoint(checkpoint));
  };
  {
    const ScratchFolder scratch("loop_weights");
    fs::create_symlink("model.safetensors", scratch.path() / "model.safetensors");
    check(scratch.path(), scratch.path() / "model.safetensors");
    check(scratch.path() / "model.safetensors", scratch.path() / "model.safetensors");
  }
  {
    const ScratchFolder scratch("loop_other");
    fs::create_symlink("x.safetensors", scratch.path() / "x.safetensors");
    fs::create_symlink("notes.txt", scratch.path() / "notes.txt");  // not needed
    check(scratch.path(), scratch.path() / "x.safetensors");
  }
  {
    const ScratchFolder scratch("loop_config");
    FileCopy(sound).set_config("").write_to(scratch.path());
    fs::create_symlink("config.json", scratch.path() / "config.json");
    check(scratch.path(), scratch.path() / "config.json");
    const fs::path weights = scratch.path() / "model.safetensors";
    check(weights, scratch.path() / "config.json");
    // not needed
    CHECK_NOTHROW(load_checkpoint(weights, {.architecture = "vit_small_patch16_rope_mixed_224"}));
  }
  const fs::path too_long(std::string(300, 'x'));
  check(too_long, too_long);
}

TEST_CASE("weights: a table of no numbers but very many rows is refused at once") {
  namespace op = test::opcode;
  const ScratchFolder scratch("rows");
  std::string members;
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    members += op::string(name) + op::tensor({.storage_elements = 3,
                                              .shape = shape,
                                              .strides = std::vector<std::int64_t>(shape.size(), 0)});
  };
  add("patch_embed.proj.weight", {1, 3, 1, 1});
  add("blocks.0.ls1.gamma", {1});
  add("mask_token", {1, 1});
  add("pos_embed", {1, std::int64_t{1} << 62, 0});
  test::write_text(scratch.path() / "model.pth",
                   test::torch_archive(op::dict(members), test::floats({0, 0, 0})));
  for (const char* architecture : {"", "dinov2_vits14"}) {
    CAPTURE(architecture);
    const double seconds = test::cpu_seconds(
        [&] { CHECK_THROWS_AS(load_checkpoint(scratch.path(), {.architecture = architecture}), Error); });
    CHECK(seconds < 20);  // of no row; of all it never ends
  }
}

TEST_CASE("weights: many names and many blocks are no reason to search long") {
  const ScratchFolder scratch("names");
  const auto seconds = [&](int scale) {
    std::string header =
        R"({"patch_embed.proj.weight":{"dtype":"F32","shape":[24,0,16,16],"data_offsets":[0,0]})";
    const auto add = [&](const std::string& name, const char* shape) {
      header += ",\"" + name + "\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":[0,0]}";
    };
    add("storage_tokens", "[1,4,0]");
    add("rope_embed.periods", "[0]");
    add("blocks.0.attn.qkv.bias", "[0]");
    for (int i = 0; i < 100 * scale; ++i) add("blocks." + std::to_string(i) + ".norm1.weight", "[0]");
    for (int i = 0; i < 2000 * scale; ++i) add("x" + std::to_string(i), "[0]");
    test::write_text(scratch.path() / "model.safetensors", test::safetensors(header + "}", ""));
    return test::cpu_seconds([&] {
      CHECK_ERROR(ErrorKind::mismatch, ("model.safetensors"),
                  load_checkpoint(scratch.path(), {.architecture = "dinov3_vits16"}));
    });
  };
  CHECK(seconds(10) < 40 * seconds(1) + 0.5);  // each name searched in each block: 100 times
}

TEST_CASE("weights: attention pooling that leaves prefix tokens out is refused") {
  const ScratchFolder scratch("map");
  FileCopy(test::data_path("golden/models/timm-vit")).write_to(scratch.path());
  CHECK_ERROR(ErrorKind::unsupported, ("global_pool \"map\""),
              load_checkpoint(scratch.path(), {.architecture = "vit_tiny_patch16_224",
                                               .overrides = {{"global_pool", "map"}}}));
}

TEST_CASE("weights: of pooling with prefix tokens attention is computed, the mean is refused") {
  const auto pooling_of = [](const char* pool) {
    return random_checkpoint("test_vit2",
                             {.overrides = {{"global_pool", pool}, {"pool_include_prefix", "true"}}})
        .config.head.pooling;
  };
  CHECK(pooling_of("map") == Pooling::attention);
  CHECK_ERROR(ErrorKind::unsupported, ("global_pool \"avg\"", "pool_include_prefix"), pooling_of("avg"));
  CHECK_ERROR(ErrorKind::unsupported, ("pool"),
              random_checkpoint("test_vit3", {.overrides = {{"pool_include_prefix", "false"}}}));
}

TEST_CASE("weights: RADIO ends with the last block, TIPSv2 takes images that are not normalized") {
  const ModelConfig radio = random_checkpoint("vit_base_patch16_radio_v3").config;
  CHECK_FALSE(radio.encoder.token_norm);
  CHECK_FALSE(radio.head.pooled_norm);
  CHECK(radio.num_prefix_tokens() == 8);
  CHECK(radio.position.added == AddedTable::patches);
  CHECK(random_checkpoint("vit_giant_patch14_reg1_tipsv2").config.mlp.dim == 4096);
  const ModelConfig tips = random_checkpoint("vit_so400m_patch14_reg1_tipsv2").config;
  CHECK(tips.mlp.dim == 4304);
  const PreprocessConfig preprocess = architecture_preprocess(tips);
  CHECK(preprocess.crop_height == 448);
  CHECK(preprocess.mean == std::vector{0.0, 0.0, 0.0});
  CHECK(preprocess.std == std::vector{1.0, 1.0, 1.0});
}

}  // namespace vit
