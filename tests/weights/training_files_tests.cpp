#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/golden_models.h"
#include "tests/support/shared_data.h"
#include "tests/support/training_files.h"
#include "vit/io/safetensors.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/find_model.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit {
using namespace internal;

namespace {

namespace fs = std::filesystem;
namespace op = test::opcode;
using test::FileCopy;
using test::PickledModel;
using test::TemporaryFolder;

fs::path golden(const std::string& name) {
  return test::data_path("golden/models") / name;
}

const PickledModel& tiny() {
  static const PickledModel model{FileCopy(golden("timm-vit"))};
  return model;
}

/// What a bare file of timm-vit needs.
ModelOptions bare() {
  return {.architecture = "vit_tiny_patch16_224", .overrides = {{"num_heads", "3"}}};
}

std::vector<Tensor<float>> numbers_of(LoadedTower<ModelConfig>& checkpoint) {
  std::vector<Tensor<float>> numbers;
  for_each_tensor(checkpoint.config, checkpoint.weights,
                  [&](TensorId, const Shape&, WeightTensor& tensor) { numbers.push_back(tensor.load()); });
  return numbers;
}

/// The checkpoint has the tensors of the golden model.
void check_is_tiny(LoadedTower<ModelConfig> found) {
  static LoadedTower<ModelConfig> expected = load_checkpoint(golden("timm-vit"));
  static const std::vector<Tensor<float>> numbers = numbers_of(expected);
  const std::vector<Tensor<float>> others = numbers_of(found);
  REQUIRE(others.size() == numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    CHECK(std::ranges::equal(numbers[i].flat(), others[i].flat()));
}

LoadedTower<ModelConfig> load(const std::string& program, ModelOptions options = bare()) {
  const TemporaryFolder folder;
  return load_checkpoint(folder.write("last.ckpt", tiny().file(program)), options);
}

/// A name whose part `from`, if it has it, is `to`.
std::string substituted(std::string name, const std::string& from, const std::string& to) {
  const std::size_t at = name.find(from);
  return at == name.npos ? name : name.replace(at, from.size(), to);
}

std::string member(const std::string& key, const std::string& value) {
  return PickledModel::member(key, value);
}

}  // namespace

TEST_CASE("training files: wrappers are stripped wherever they occur in a name") {
  struct Case {
    const char* what;
    const char* from;
    const char* to;
  };
  constexpr Case kCases[] = {
      {"DistributedDataParallel", "", "module."},
      {"torch.compile", "", "_orig_mod."},
      {"FSDP", "", "_fsdp_wrapped_module."},
      {"FSDP before 1.13", "", "_fpw_module."},
      {"Lightning's strategies", "", "_forward_module."},
      {"several", "", "_orig_mod.module._fsdp_wrapped_module."},
      {"a script's name after them", "", "module.net."},
      {"compiled blocks", "blocks.0.", "blocks.0._orig_mod."},
      {"activation checkpoints", "blocks.1.", "blocks.1._checkpoint_wrapped_module."},
      {"wrapped blocks", "blocks.0.", "blocks.0._fsdp_wrapped_module._checkpoint_wrapped_module."},
      {"chunks of DINOv2", "blocks.", "blocks.0."},
  };
  for (const Case& row : kCases) {
    CAPTURE(row.what);
    check_is_tiny(
        load(tiny().dict([&](const std::string& name) { return substituted(name, row.from, row.to); })));
  }
}

TEST_CASE("training files: the model is found under any prefix, in any dictionary") {
  for (const char* prefix : {"net.", "vit.", "model.", "self.model.backbone.", "encoder.", "a.b.c.d."}) {
    CAPTURE(prefix);
    check_is_tiny(load(tiny().dict(prefix)));
    check_is_tiny(load(op::dict(member("state_dict", tiny().dict(prefix)))));
  }
  for (const char* key : {"weights", "model_state_dict", "params", "my_net", "module", "checkpoint"}) {
    CAPTURE(key);
    check_is_tiny(load(op::dict(member("epoch", "K\x05") + member(key, tiny().dict()))));
  }
  const LoadedTower<ModelConfig> nested =
      load(op::dict(member("epoch", "K\x05") +
                    member("trainer", op::dict(member("model", tiny().dict()) + member("step", "K\x07")))));
  check_is_tiny(nested);
  const std::string& note = nested.report.notes.back();
  CHECK(test::contains(note, "\"trainer.model\""));
  CHECK(test::contains(note, "\"epoch\""));
}

TEST_CASE(
    "training files: what lies outside of the model is left out and listed, inside all is used or refused") {
  const auto with = [](const std::string& prefix, const std::string& name) {
    std::string program = tiny().dict(prefix);
    program.pop_back();  // "u"
    return program + op::string(name) +
           op::tensor({.storage_elements = static_cast<std::int64_t>(tiny().storage().size() / 4),
                       .shape = {3},
                       .strides = {1}}) +
           "u";
  };
  for (const char* name : {"criterion.weight", "train_acc.correct", "momentum_backbone.cls_token",
                           "projector.0.weight", "decoder.weight", "n_averaged"}) {
    CAPTURE(name);
    const LoadedTower<ModelConfig> found = load(with("net.", name));
    const auto use = std::ranges::find(found.report.tensors, std::string(name), &TensorUse::name);
    REQUIRE(use != found.report.tensors.end());
    CHECK(test::contains(use->ignored_because, "\"net.\""));
    check_is_tiny(found);
  }
  CHECK_ERROR(ErrorKind::mismatch, ("last.ckpt", "\"net.extra.weight\""),
              load(with("net.", "net.extra.weight")));
  CHECK_ERROR(ErrorKind::mismatch, ("last.ckpt", "\"criterion.weight\""), load(with("", "criterion.weight")));
}

TEST_CASE("training files: the counter of an averaged model is no tensor of it") {
  std::string program = tiny().dict("module.");
  program.pop_back();  // "u"
  program += op::string("n_averaged") +
             op::tensor({.storage_elements = static_cast<std::int64_t>(tiny().storage().size() / 4),
                         .shape = {},
                         .strides = {}}) +
             "u";
  check_is_tiny(load(program));
}

TEST_CASE("training files: of several models the averaged, then the teacher, then the only one") {
  struct Case {
    const char *wanted, *other;
  };
  // in front of all names; a model that lies at other places of the storage is another
  constexpr Case kCases[] = {
      {"state_dict_ema.", "state_dict."},
      {"model_ema.", "model."},
      {"ema.", "net."},
      {"swa_model.", "model."},
      {"averaged_model.", "model."},
      {"ema_model.online.", "model."},
      {"teacher.backbone.", "student.backbone."},
      {"target_encoder.", "encoder."},
      {"backbone.", "momentum_backbone."},
      {"encoder_q.", "encoder_k."},
      {"model_ema.", "teacher."},
      {"ema.ema_model.", "ema.online_model."},
      {"ema.teacher.", "ema.student."},
  };
  FileCopy both(golden("timm-vit"));
  const std::vector<FileCopy::Entry> own = both.entries();
  for (const Case& row : kCases) {
    CAPTURE(row.wanted);
    both.entries().clear();
    for (FileCopy::Entry entry : own) {
      entry.name = row.wanted + entry.name;
      both.entries().push_back(entry);
      entry.name = row.other + entry.name.substr(std::string(row.wanted).size());
      std::ranges::fill(entry.bytes, std::byte{0});
      both.entries().push_back(std::move(entry));
    }
    const TemporaryFolder folder;
    FileCopy(both).set_config("").write_to(folder.path());
    const fs::path file = folder.path() / "model.safetensors";
    check_is_tiny(load_checkpoint(file, bare()));
    ModelOptions other = bare();
    other.prefix = row.other;
    LoadedTower<ModelConfig> zeros = load_checkpoint(file, other);
    CHECK(numbers_of(zeros).front().flat()[0] == 0.0f);
  }
  SUBCASE("equal ones are listed, and --prefix chooses") {
    both.entries().clear();
    for (FileCopy::Entry entry : own) {
      for (const char* prefix : {"left.", "right."}) {
        entry.name = prefix + entry.name.substr(entry.name.starts_with("left.") ? 5 : 0);
        both.entries().push_back(entry);
      }
    }
    const TemporaryFolder folder;
    FileCopy(both).set_config("").write_to(folder.path());
    const fs::path file = folder.path() / "model.safetensors";
    CHECK_ERROR(ErrorKind::argument, ("\"left.\"", "\"right.\"", "ModelOptions::prefix"),
                load_checkpoint(file, bare()));
    ModelOptions chosen = bare();
    for (const char* prefix : {"right.", "right", "module.right"}) {
      chosen.prefix = prefix;
      check_is_tiny(load_checkpoint(file, chosen));
    }
    chosen.prefix = "middle.";
    CHECK_ERROR(ErrorKind::argument, ("\"middle.\"", "\"left.\""), load_checkpoint(file, chosen));
  }
}

TEST_CASE("training files: the file notes its architecture") {
  const std::string args = op::global("argparse", "Namespace") + ")\x81" +
                           op::dict(member("model", op::string("vit_tiny_patch16_224"))) + "b";
  for (const std::string& noted :
       {member("arch", op::string("vit_tiny_patch16_224")), member("args", args),
        member("hyper_parameters", op::dict(member("model_name", op::string("vit_tiny_patch16_224")))),
        member("args", args) + member("arch", op::string("resnet50")),
        member("arch", op::string("vit_tiny")) + member("patch_size", "K\x10"),
        member("model", op::string("vit_tiny_patch16"))}) {
    CAPTURE(noted);
    const LoadedTower<ModelConfig> found = load(op::dict(noted + member("state_dict", tiny().dict())), {});
    CHECK(found.config.attention.num_heads == 3);
    check_is_tiny(found);
  }
  CHECK_ERROR(
      ErrorKind::argument, ("last.ckpt", "ModelOptions::architecture"),
      load(op::dict(member("arch", op::string("resnet50")) + member("state_dict", tiny().dict())), {}));
}

TEST_CASE("training files: MoCo v3 and MAE by what their files note") {
  const auto load_noted = [](const std::string& noted, const std::string& key, const std::string& weights,
                             std::map<std::string, std::string> overrides = {}) {
    return load(op::dict(noted + member(key, weights)), {.overrides = std::move(overrides)});
  };
  const std::string small = member("arch", op::string("vit_small"));
  SUBCASE("the projector of MoCo's pretraining is left out; its ViT-S has 12 heads") {
    const std::string weights = tiny().dict([](const std::string& name) {
      return "module.base_encoder." +
             substituted(substituted(name, "head.weight", "head.0.weight"), "head.bias", "head.1.bias");
    });
    CHECK(load_noted(small, "state_dict", weights, {{"num_heads", "3"}}).config.head.num_classes == 0);
    CHECK_ERROR(ErrorKind::format, ("12"), load_noted(small, "state_dict", weights));  // 30 channels
  }
  SUBCASE("a name that the caller gives and the file contradicts is refused, unless the heads are given") {
    const std::string weights =
        tiny().dict([](const std::string& name) { return "module.base_encoder." + name; });
    const auto named = [&](std::map<std::string, std::string> overrides) {
      return load(op::dict(small + member("state_dict", weights)),
                  {.architecture = "vit_tiny_patch16_224", .overrides = std::move(overrides)});
    };
    CHECK_ERROR(ErrorKind::argument, ("vit_small", "12 heads", "vit_tiny_patch16_224 has 3"), named({}));
    CHECK(named({{"num_heads", "3"}}).config.attention.num_heads == 3);
  }
  SUBCASE("another vit_small needs its name") {
    CHECK_ERROR(ErrorKind::argument, ("ModelOptions::architecture"),
                load_noted(small, "state_dict", tiny().dict()));
  }
  SUBCASE("MAE") {
    const auto args = [](const char* name, const std::string& more = "") {
      return member("args", op::global("argparse", "Namespace") + ")\x81" +
                                op::dict(member("model", op::string(name)) + more) + "b");
    };
    for (const char* name : {"mae_vit_base_patch16", "mae_vit_base_patch16_dec512d8b"}) {
      CAPTURE(name);
      check_is_tiny(load_noted(args(name), "model", tiny().dict(), {{"num_heads", "3"}}));
    }
    const std::string pooled =
        tiny().dict([](const std::string& name) { return name.starts_with("norm.") ? "fc_" + name : name; });
    const ModelConfig config = load_noted(args("vit_base_patch16", member("global_pool", "\x88")), "model",
                                          pooled, {{"num_heads", "3"}})
                                   .config;
    CHECK(config.head.pooling == Pooling::patch_mean);
    CHECK(config.head.pooled_norm);
  }
}

TEST_CASE("training files: a linear classifier under any name and inside a Sequential is the head") {
  const auto renamed = [](const std::string& stem) {
    return tiny().dict([&](const std::string& name) { return substituted(name, "head.", stem + "."); });
  };
  for (const char* stem :
       {"fc", "classifier", "head.1", "head.fc", "classifier.1", "mlp_head.0", "cls_head"}) {
    CAPTURE(stem);
    const LoadedTower<ModelConfig> found = load(renamed(stem));
    check_is_tiny(found);
    CHECK(test::contains(found.report.notes.back(), "\"" + std::string(stem) + "\""));
  }
  SUBCASE("others are refused with the argument that leaves them out") {
    FileCopy copy(golden("timm-vit"));
    copy.rename("head.weight", "head.0.weight").rename("head.bias", "head.0.bias");
    copy.add("head.2.weight", {4, 9}).add("head.2.bias", {4}).set_config("");
    const TemporaryFolder folder;
    copy.write_to(folder.path());
    const fs::path file = folder.path() / "model.safetensors";
    CHECK_ERROR(ErrorKind::mismatch, ("\"head.2.weight\"", "no single matrix", "num_classes"),
                load_checkpoint(file, bare()));
    CHECK_ERROR(ErrorKind::argument, ("num_classes", "deit_tiny_patch16_224"), load_checkpoint(file, {}));
    ModelOptions features = bare();
    features.overrides["num_classes"] = "0";
    const LoadedTower<ModelConfig> found = load_checkpoint(file, features);
    CHECK(found.config.head.num_classes == 0);
    const auto use = std::ranges::find(found.report.tensors, std::string("head.0.weight"), &TensorUse::name);
    REQUIRE(use != found.report.tensors.end());
    CHECK(test::contains(use->ignored_because, "num_classes"));
  }
  SUBCASE("two of them are no head") {
    FileCopy copy(golden("timm-vit"));
    copy.rename("head.weight", "fc.weight").rename("head.bias", "fc.bias").add("classifier.weight", {9, 30});
    const TemporaryFolder folder;
    copy.write_to(folder.path());
    CHECK_ERROR(ErrorKind::mismatch, ("\"fc.weight\"", "\"classifier.weight\""),
                load_checkpoint(folder.path()));
  }
  SUBCASE("of transformers") {
    FileCopy copy(golden("hf-vit"));
    const TemporaryFolder folder;
    copy.rename("classifier.weight", "classifier.1.weight").rename("classifier.bias", "classifier.1.bias");
    copy.write_to(folder.path());
    CHECK(load_checkpoint(folder.path()).config.head.num_classes ==
          load_checkpoint(golden("hf-vit")).config.head.num_classes);
    CHECK(load_checkpoint(folder.path(), {.overrides = {{"num_classes", "0"}}}).config.head.num_classes == 0);
  }
}

TEST_CASE("training files: a bare file without class token gets the arguments with which it fits") {
  FileCopy copy(golden("timm-vit"));
  copy.remove("cls_token").remove("pos_embed").add("pos_embed", {1, 9, 30}).set_config("");
  const TemporaryFolder folder;
  copy.write_to(folder.path());
  const fs::path file = folder.path() / "model.safetensors";
  CHECK_ERROR(ErrorKind::argument, ("vit_betwixt_patch16_gap_256"), load_checkpoint(file, {}));
  CHECK_ERROR(ErrorKind::mismatch, ("\"cls_token\"", "class_token", "\"avg\"", "\"first_token\""),
              load_checkpoint(file, bare()));
  ModelOptions first = bare();
  first.overrides["class_token"] = "false";
  first.overrides["global_pool"] = "first_token";
  CHECK(load_checkpoint(file, first).config.head.pooling == Pooling::first_token);
}

TEST_CASE("training files: no message takes an unknown prefix for transformers") {
  const std::string message = test::message_of([] {
    load(tiny().dict(
        [](const std::string& name) { return "x." + substituted(name, "patch_embed.proj", "stem"); }));
  });
  CHECK(test::contains(message, "last.ckpt"));
  CHECK(!test::contains(message, "transformers"));
}

TEST_CASE("training files: libraries that a layout file describes are named with it") {
  struct Case {
    const char *patch, *layout;
  };
  for (const Case& row : {Case{"to_patch_embedding.2", "vit-pytorch-vit.json"},
                          {"to_patch_embedding.1", "vit-pytorch-old-vit.json"},
                          {"patch_embedding.patch_embeddings", "monai-vit.json"},
                          {"backbone.patch_embed.projection", "mmpretrain-vit.json"}}) {
    CAPTURE(row.patch);
    CHECK(fs::exists(test::data_path("layouts") / row.layout));
    CHECK_ERROR(ErrorKind::unsupported, ("last.ckpt", row.layout),
                load(tiny().dict([&](const std::string& name) {
                  return "net." + substituted(name, "patch_embed.proj", row.patch);
                })));
  }
}

TEST_CASE("training files: what a configuration leaves out the tensors decide") {
  const auto config_of = [](FileCopy& copy) {
    const TemporaryFolder folder;
    copy.write_to(folder.path());
    return load_checkpoint(folder.path()).config;
  };
  FileCopy copy(golden("timm-vit"));
  SUBCASE("a packed SwiGLU: fc1 has twice the rows that fc2 has columns") {
    for (const char* block : {"blocks.0.", "blocks.1."}) {
      copy.remove(block + std::string("mlp.fc1.weight")).remove(block + std::string("mlp.fc1.bias"));
      copy.add(block + std::string("mlp.fc1.weight"), {150, 30})
          .add(block + std::string("mlp.fc1.bias"), {150});
    }
    const std::string text = test::read_text(golden("timm-vit") / "config.json");
    const ModelConfig config =
        config_of(copy.set_config(test::replaced(text, "\"mlp_ratio\": 2.5", "\"mlp_ratio\": 5.0")));
    CHECK(config.mlp.kind == MlpKind::gated);
    CHECK(config.mlp.dim == 75);
    CHECK(config.mlp.activation == Activation::silu);
  }
  SUBCASE("channels: timm takes them from input_size") {
    const std::string text =
        test::replaced(test::read_text(golden("timm-vit") / "config.json"), "\"in_chans\": 3,", "");
    const std::size_t at = text.find('3', text.find("\"input_size\""));
    const ModelConfig config = config_of(copy.remove("patch_embed.proj.weight")
                                             .add("patch_embed.proj.weight", {30, 5, 8, 8})
                                             .set_config(std::string(text).replace(at, 1, "5")));
    CHECK(config.image.num_channels == 5);
  }
  SUBCASE("layer scale") {
    for (const char* name :
         {"blocks.0.ls1.gamma", "blocks.0.ls2.gamma", "blocks.1.ls1.gamma", "blocks.1.ls2.gamma"})
      copy.add(name, {30});
    CHECK(config_of(copy).encoder.layer_scale);
  }
  SUBCASE("no bias of q, k and v") {
    CHECK(!config_of(copy.remove("blocks.0.attn.qkv.bias").remove("blocks.1.attn.qkv.bias"))
               .attention.qkv_bias);
  }
  SUBCASE("a table without row for the class token") {
    const ModelConfig config = config_of(copy.remove("pos_embed").add("pos_embed", {1, 9, 30}));
    CHECK(config.position.added == AddedTable::patches);
  }
  SUBCASE("registers") {
    copy.remove("pos_embed").add("pos_embed", {1, 13, 30}).add("reg_token", {1, 3, 30});
    CHECK(config_of(copy).tokens.num_registers == 3);
  }
}

TEST_CASE("training files: missing facts are named with the option that gives them") {
  FileCopy copy(golden("timm-vit"));
  copy.set_config("");
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "model.safetensors";
  SUBCASE("a rectangle") {
    copy.remove("pos_embed").add("pos_embed", {1, 13, 30});
    copy.write_to(folder.path());
    CHECK_ERROR(ErrorKind::argument, ("model.safetensors", "img_size", "24x32"),
                load_checkpoint(file, bare()));
    ModelOptions sized = bare();
    sized.overrides["img_size"] = "24x32";
    CHECK(load_checkpoint(file, sized).config.position.added_grid == GridSize{3, 4});
  }
  SUBCASE("a norm after pooling") {
    copy.rename("norm.weight", "fc_norm.weight").rename("norm.bias", "fc_norm.bias").write_to(folder.path());
    CHECK_ERROR(ErrorKind::argument, ("model.safetensors", "global_pool", "fc_norm"),
                load_checkpoint(file, bare()));
    ModelOptions pooled = bare();
    pooled.overrides["global_pool"] = "avg";
    CHECK(load_checkpoint(file, pooled).config.head.pooled_norm);
  }
  SUBCASE("a model for features only") {
    copy.remove("norm.weight").remove("norm.bias").remove("head.weight").remove("head.bias");
    copy.write_to(folder.path());
    const LoadedTower<ModelConfig> found = load_checkpoint(file, bare());
    CHECK(!found.config.encoder.token_norm);
    CHECK(found.config.head.pooling == Pooling::none);
    CHECK(test::contains(found.report.notes.front(), "features_only"));
  }
  SUBCASE("norms of queries and keys") {
    for (const char* block : {"blocks.0.", "blocks.1."}) {
      for (const char* norm : {"attn.q_norm.", "attn.k_norm."})
        copy.add(std::string(block) + norm + "weight", {10}).add(std::string(block) + norm + "bias", {10});
    }
    copy.write_to(folder.path());
    const ModelConfig config = load_checkpoint(file, bare()).config;
    CHECK(config.attention.qk_norm == NormKind::layer);
  }
  SUBCASE("counters of profilers") {
    copy.add("total_ops", {1}).add("blocks.0.total_params", {1}).write_to(folder.path());
    CHECK_NOTHROW(load_checkpoint(file, bare()));
  }
  SUBCASE("norms without bias") {
    for (const char* name : {"norm", "blocks.0.norm1", "blocks.0.norm2", "blocks.1.norm1", "blocks.1.norm2"})
      copy.remove(std::string(name) + ".bias");
    copy.write_to(folder.path());
    CHECK_ERROR(ErrorKind::argument, ("model.safetensors", "RMSNorm", "norm_layer", "rmsnorm"),
                load_checkpoint(file, bare()));
    ModelOptions rms = bare();
    rms.overrides["norm_layer"] = "rmsnorm";
    CHECK(load_checkpoint(file, rms).config.encoder.norm.kind == NormKind::rms);
  }
  SUBCASE("class token and mean of the patches side by side") {
    copy.remove("head.weight").remove("head.bias").write_to(folder.path());
    ModelOptions both = bare();
    both.overrides["global_pool"] = "cls+mean";
    const ModelConfig config = load_checkpoint(file, both).config;
    CHECK(config.head.pooling == Pooling::class_and_patch_mean);
    CHECK(config.pooled_dim() == 60);
  }
}

TEST_CASE("training files: the head of a tower that was trained with texts projects") {
  FileCopy copy(golden("timm-vit"));  // 9 rows
  std::string architecture = "vit_base_patch32_clip_224";
  bool projects = true;
  const auto set_bias = [&](float value) {
    std::vector<float> bias(9, 0.0f);
    bias.back() = value;
    std::memcpy(copy.at("head.bias").bytes.data(), bias.data(), bias.size() * sizeof(float));
  };
  SUBCASE("as timm converts it, with a bias of zeros") {
    set_bias(0.0f);
  }
  SUBCASE("as wide as the published ones") {
    copy.remove("head.weight").remove("head.bias").add("head.weight", {512, 30}).add("head.bias", {512});
    copy.at("head.bias").bytes.back() = std::byte{0x3f};
  }
  SUBCASE("fine-tuned: classes") {
    set_bias(0.5f);
    projects = false;
  }
  SUBCASE("of an architecture that is not published so") {
    set_bias(0.0f);
    architecture = "vit_tiny_patch16_224";
    projects = false;
  }
  // the tower of a CLIP has a norm in front and no bias of patches
  if (projects || architecture != "vit_tiny_patch16_224")
    copy.remove("patch_embed.proj.bias").add("norm_pre.weight", {30}).add("norm_pre.bias", {30});
  const TemporaryFolder folder;
  copy.write_to(folder.path());
  const ModelConfig config =
      load_checkpoint(folder.path() / "model.safetensors",
                      {.architecture = architecture, .overrides = {{"num_heads", "3"}}})
          .config;
  CHECK((config.head.logits == LogitKind::joint_space) == projects);
  CHECK(config.has_classes() == !projects);
}

TEST_CASE("training files: a module is a part of its model, a dictionary is around it") {
  // OpenAI's TorchScript archives have "visual" as a module, next to the tensors of the text tower
  const test::TemporaryFolder folder;
  const float number = 1.0f;
  const auto bytes = std::as_bytes(std::span(&number, 1));
  std::vector<TensorToWrite> tensors;
  for (const char* name : {"input_resolution", "visual.conv1.weight",
                           "visual.transformer.resblocks.0.ln_1.bias", "transformer.resblocks.0.ln_1.bias"})
    tensors.push_back({name, Dtype::f32, {1}, bytes});
  write_safetensors(folder / "model.safetensors", tensors);
  TensorFile::Contents contents = open_safetensors(folder / "model.safetensors").contents();

  contents.members = {"training", "visual", "visual.training", "transformer"};
  const FoundModel module = find_model(TensorFile(contents), "");
  REQUIRE(module.place.has_value());
  CHECK(module.place->prefix == "visual.");
  CHECK(module.place->root == "");
  CHECK(module.container == "");
  CHECK(module.has_neighbors);
  CHECK(module.tensors.find("input_resolution") != nullptr);
  CHECK(module.tensors.find("transformer.resblocks.0.ln_1.bias") != nullptr);

  contents.members = {"visual", "transformer"};
  const FoundModel dictionary = find_model(TensorFile(contents), "");
  CHECK(dictionary.container == "visual");
  CHECK(dictionary.has_neighbors);
  CHECK(dictionary.tensors.find("input_resolution") == nullptr);
}

}  // namespace vit
