// Publishers' layouts that no reference file shows: made here from timm's or transformers' reference models
// by renaming, as the publishers' code has it, and expected to give the same numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/checkpoint_files.h"
#include "tests/support/errors.h"
#include "tests/support/shared_data.h"
#include "tests/support/tiny_model.h"
#include "vit/config/output_table.h"
#include "vit/kernels/kernels.h"
#include "vit/towers/vision_transformer.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;
using test::FileCopy;
using test::ScratchFolder;

struct Results {
  std::vector<float> tokens, pooled, logits;
};

Results run(const LoadedTower<ModelConfig>& checkpoint, std::size_t height, std::size_t width) {
  const VisionTransformer model(checkpoint.config, checkpoint.weights, kernels::default_kernels());
  ForwardMemory memory;
  Outputs outputs;
  Request request{Output::pooled, Output::tokens};
  if (checkpoint.config.head.num_classes != 0) request.add(Output::logits);
  model.forward(test::random_pixels(1, height, width), request, /*threads=*/1, memory, outputs);
  const auto copy = [&](Output output) {
    const TensorView<const float> values = internal::OutputWriter(outputs).find(output);
    return std::vector<float>(values.data(),
                              values.empty() ? nullptr : values.data() + values.num_elements());
  };
  return {copy(Output::tokens), copy(Output::pooled), copy(Output::logits)};
}

Results run_native(const LoadedTower<ModelConfig>& checkpoint) {
  return run(checkpoint, checkpoint.config.image.height, checkpoint.config.image.width);
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

void rename_ending(FileCopy& copy, const std::string& from, const std::string& to) {
  for (FileCopy::Entry& entry : copy.entries()) {
    if (entry.name.ends_with(from)) entry.name = entry.name.substr(0, entry.name.size() - from.size()) + to;
  }
}

void add_prefix(FileCopy& copy, const std::string& prefix) {
  for (FileCopy::Entry& entry : copy.entries()) entry.name = prefix + entry.name;
}

std::string depth_and(const char* index, const char* rest) {
  return std::string("blocks.") + index + "." + rest;
}

/// The copy in a folder of its own without config.json, loaded by name.
LoadedTower<ModelConfig> load_bare(FileCopy& copy, const ScratchFolder& folder, const ModelOptions& options) {
  copy.set_config("").write_to(folder.path());
  return load_checkpoint(folder.path(), options);
}

ModelOptions named(const std::string& architecture, const std::string& num_heads) {
  return {.architecture = architecture, .overrides = {{"num_heads", num_heads}}};
}

}  // namespace

TEST_CASE("weights: Naver's frequencies are timm's, joined over heads") {
  const fs::path folder = test::data_path("golden/models/rope-mixed");
  const LoadedTower timm = load_checkpoint(folder);
  FileCopy copy(folder);
  FileCopy::Entry& freqs = copy.rename("rope.freqs", "freqs").at("freqs");
  freqs.shape = {2, freqs.shape[1], freqs.shape[2] * freqs.shape[3]};
  copy.add("freqs_t_x", {9}).add("freqs_t_y", {9});
  const ScratchFolder scratch("naver");
  const LoadedTower naver =
      load_bare(copy, scratch,
                named("rope_mixed_deit_small_patch16_LS", std::to_string(timm.config.attention.num_heads)));
  CHECK(naver.config.library == "Naver");
  CHECK(run(naver, 56, 40).logits ==
        run(timm, 56, 40).logits);  // no table: the file does not determine the native size
  // with timm's config.json timm's rules apply, whoever named the tensors
  const fs::path both = test::data_path("golden/models/rope-mixed-ape");
  FileCopy renamed(both);
  FileCopy::Entry& joined = renamed.rename("rope.freqs", "freqs").at("freqs");
  joined.shape = {2, joined.shape[1], joined.shape[2] * joined.shape[3]};
  const ScratchFolder by_timm("naver_timm");
  renamed.write_to(by_timm.path());
  CHECK(load_checkpoint(by_timm.path()).config.library == "timm");
  CHECK(run(load_checkpoint(by_timm.path()), 56, 40).logits == run(load_checkpoint(both), 56, 40).logits);
  CHECK(load_checkpoint(by_timm.path(), {.overrides = {{"rules", "publisher"}}}).config.position.resampling ==
        TableResampling::bicubic);
  // files without learned frequencies look like timm's: the name decides whose resampling applies
  FileCopy table(test::data_path("golden/models/rope-axial-ape"));
  const ScratchFolder other("naver_ape");
  const std::string heads = std::to_string(
      load_checkpoint(test::data_path("golden/models/rope-axial-ape")).config.attention.num_heads);
  const LoadedTower as_naver = load_bare(table, other, named("rope_axial_ape_deit_small_patch16_LS", heads));
  const LoadedTower as_timm = load_checkpoint(other.path(), named("vit_small_patch16_rope_ape_224", heads));
  CHECK(as_naver.config.position.resampling == TableResampling::bicubic);
  CHECK(as_timm.config.position.resampling == TableResampling::bicubic_antialias);
  CHECK(run_native(as_naver).logits == run_native(as_timm).logits);
  ModelOptions timm_rules = named("rope_axial_ape_deit_small_patch16_LS", heads);
  timm_rules.overrides["rules"] = "timm";
  CHECK(load_checkpoint(other.path(), timm_rules).config.position.resampling ==
        TableResampling::bicubic_antialias);
}

TEST_CASE("weights: prefixes of training scripts and wrappers") {
  const fs::path folder = test::data_path("golden/models/timm-vit");
  const std::vector<float> expected = run_native(load_checkpoint(folder)).logits;
  for (const char* prefix : {"module.", "model.", "timm_model.", "visual.", "visual.trunk.",
                             "module.visual.trunk.", "backbone.", "module.backbone.", "_orig_mod.",
                             "_orig_mod.module.", "module._orig_mod.", "model._orig_mod._orig_mod."}) {
    CAPTURE(std::string(prefix));
    FileCopy copy(folder);
    add_prefix(copy, prefix);
    const ScratchFolder scratch("prefix");
    copy.write_to(scratch.path());
    CHECK(run_native(load_checkpoint(scratch.path())).logits == expected);
    // belongs to no program if it lies with the model; next to it, to the script
    const bool is_script = std::string(prefix).starts_with("model.") ||
                           std::string(prefix).find("backbone.") != std::string::npos ||
                           std::string(prefix) == "timm_model.";
    copy.add("stray", {2}).write_to(scratch.path());
    if (is_script) {
      CHECK_NOTHROW(load_checkpoint(scratch.path()));
    } else {
      CHECK_ERROR(ErrorKind::mismatch, ("\"stray\""), load_checkpoint(scratch.path()));
    }
  }
  // transformers' classifiers are next to the tower, which torch.compile may wrap with or without them
  const fs::path hf = test::data_path("golden/models/hf-vit");
  for (const bool only_tower : {false, true}) {
    FileCopy compiled(hf);
    for (FileCopy::Entry& entry : compiled.entries()) {
      if (!only_tower) entry.name = "_orig_mod." + entry.name;
      if (only_tower && entry.name.starts_with("vit.")) entry.name.insert(4, "_orig_mod.");
    }
    const ScratchFolder scratch("compiled");
    compiled.write_to(scratch.path());
    CHECK(run_native(load_checkpoint(scratch.path())).logits == run_native(load_checkpoint(hf)).logits);
  }
  // self-supervised trainings store their heads next to the backbone
  FileCopy trained(folder);
  add_prefix(trained, "backbone.");
  trained.add("dino_head.mlp.0.weight", {4, 4}).add("ibot_head.last_layer.weight_v", {4, 4});
  const ScratchFolder teacher("teacher");
  trained.write_to(teacher.path());
  CHECK(run_native(load_checkpoint(teacher.path())).logits == expected);
  // masked image modelling leaves its token and its head in the backbone: iBOT's student, BEiT's files
  FileCopy masked(folder);
  const std::size_t width = masked.at("cls_token").shape.back();
  masked.add("masked_embed", {1, width}).add("lm_head.weight", {5, width}).add("lm_head.bias", {5});
  const ScratchFolder student("masked");
  masked.write_to(student.path());
  CHECK(run_native(load_checkpoint(student.path())).logits == expected);
  // OpenCLIP keeps the projection outside the trunk, without a bias
  FileCopy copy(folder);
  copy.remove("head.bias");
  add_prefix(copy, "visual.trunk.");
  copy.rename("visual.trunk.head.weight", "visual.head.proj.weight")
      .add("text.ln_final.weight", {4})
      .add("logit_scale", {1});
  const ScratchFolder scratch("open_clip");
  copy.write_to(scratch.path());
  CHECK(load_checkpoint(scratch.path()).config.head.num_classes ==
        load_checkpoint(folder).config.head.num_classes);
}

TEST_CASE("weights: BEiT's pretraining has one table of distances, which is that of each block") {
  const auto with_tables = [](const std::vector<std::string>& names) {
    FileCopy copy(test::data_path("golden/models/timm-vit"));
    copy.remove("pos_embed").remove("blocks.0.attn.qkv.bias").remove("blocks.1.attn.qkv.bias");
    for (const std::string& name : names) {
      copy.add(name + "relative_position_bias_table", {5 * 5 + 3, 3});
      std::vector<float> values(28 * 3);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
      std::memcpy(copy.at(name + "relative_position_bias_table").bytes.data(), values.data(),
                  values.size() * sizeof(float));
    }
    const ScratchFolder scratch("beit");
    return run_native(load_bare(copy, scratch,
                                {.architecture = "beit_base_patch16_224",
                                 .overrides = {{"global_pool", "token"}, {"img_size", "24x24"}}}))
        .logits;
  };
  const std::vector<float> shared = with_tables({"rel_pos_bias."});
  CHECK(shared == with_tables({"blocks.0.attn.", "blocks.1.attn."}));
}

TEST_CASE("weights: --set img_size moves the native size and leaves the table, as timm does") {
  for (const char* name : {"timm-vit", "rope-axial-ape", "timm-deit-distilled"}) {
    CAPTURE(std::string(name));
    const fs::path folder = test::data_path(std::string("golden/models/") + name);
    const LoadedTower stored = load_checkpoint(folder);
    const std::size_t patch = stored.config.patch.size;
    const GridSize grid = stored.config.native_grid();
    const std::size_t height = (grid.rows + 2) * patch, width = (grid.columns + 1) * patch;
    ModelOptions options;
    options.overrides["img_size"] = std::to_string(height) + "x" + std::to_string(width);
    const LoadedTower larger = load_checkpoint(folder, options);
    CHECK(larger.config.image.height == height);
    CHECK(larger.config.image.width == width);
    CHECK(larger.config.position.added_grid == grid);
    CHECK(run_native(larger).logits == run(stored, height, width).logits);
    options.overrides["img_size"] =
        std::to_string(patch) + "x" + std::to_string(grid.rows * grid.columns * patch);
    CHECK(load_checkpoint(folder, options).config.position.added_grid == grid);
  }
  // of a bare file with a table that is not square the option gives the grid
  FileCopy copy(test::data_path("golden/models/timm-vit"));
  FileCopy::Entry& table = copy.at("pos_embed");
  REQUIRE(table.shape[1] == 1 + 3 * 3);
  table.bytes.resize(table.bytes.size() / 10 * 13);
  table.shape[1] = 1 + 3 * 4;
  const ScratchFolder scratch("rectangle");
  ModelOptions options = named("vit_tiny_patch16_224", "3");
  options.overrides["img_size"] = "24x32";
  CHECK(load_bare(copy, scratch, options).config.position.added_grid == GridSize{3, 4});
}

TEST_CASE("weights: --set img_size resamples the tables of FlexiViT and RADIO as timm does while loading") {
  FileCopy copy(test::data_path("golden/models/timm-vit"));
  FileCopy::Entry& table = copy.at("pos_embed");
  REQUIRE(table.shape[1] == 1 + 3 * 3);
  table.bytes.resize(table.bytes.size() / 10 * 9);
  table.shape[1] = 3 * 3;
  const ScratchFolder scratch("bilinear");
  const auto rule = [&](const char* architecture, const char* size) {
    ModelOptions options = named(architecture, "3");
    if (size != nullptr) options.overrides["img_size"] = size;
    return load_bare(copy, scratch, options).config.position.resampling;
  };
  CHECK(rule("flexivit_base", "40x32") == TableResampling::bilinear);
  CHECK(rule("flexivit_base", nullptr) == TableResampling::bicubic_antialias);
  copy.remove("norm.weight").remove("norm.bias").add("reg_token", {1, 7, copy.at("pos_embed").shape[2]});
  CHECK(rule("vit_large_patch16_radio_v3", "40x32") == TableResampling::bilinear);
  CHECK(rule("vit_base_patch16_radio_v3", "40x32") == TableResampling::bilinear_aligned);
  CHECK(rule("vit_base_patch16_radio_v3", nullptr) == TableResampling::bicubic_antialias);
}

TEST_CASE("weights: the classifier next to a backbone of Meta reads class token and mean of the patches") {
  FileCopy copy(test::data_path("golden/models/timm-vit"));
  const std::size_t width = copy.at("norm.weight").shape.front(), classes = 3;
  copy.remove("head.weight").remove("head.bias");
  for (const char* block : {"blocks.0.", "blocks.1."}) {
    for (const char* gamma : {"ls1.gamma", "ls2.gamma"}) {
      copy.add(block + std::string(gamma), {width});
      std::vector<float> ones(width, 1.0f);
      std::memcpy(copy.at(block + std::string(gamma)).bytes.data(), ones.data(), width * sizeof(float));
    }
  }
  const auto joined = [&](std::size_t vectors) {
    FileCopy both = copy;
    add_prefix(both, "backbone.");
    both.add("linear_head.weight", {classes, vectors * width}).add("linear_head.bias", {classes});
    std::vector<float> weight(classes * vectors * width);
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = std::sin(static_cast<float>(i));
    std::memcpy(both.at("linear_head.weight").bytes.data(), weight.data(), weight.size() * sizeof(float));
    return std::pair(both, weight);
  };
  const ScratchFolder scratch("hub_classifier");
  auto [file, weight] = joined(2);
  const LoadedTower<ModelConfig> model = load_bare(file, scratch, named("dinov2_vits14", "3"));
  REQUIRE(model.config.head.num_classes == classes);
  const Results results = run_native(model);
  const std::size_t patches = results.tokens.size() / width - 1;
  for (std::size_t k = 0; k < classes; ++k) {
    double expected = 0.0;
    for (std::size_t c = 0; c < width; ++c) {
      double mean = 0.0;
      for (std::size_t patch = 1; patch <= patches; ++patch) mean += results.tokens[patch * width + c];
      mean /= static_cast<double>(patches);
      expected += weight[k * 2 * width + c] * static_cast<double>(results.tokens[c]) +
                  weight[(k * 2 + 1) * width + c] * mean;
    }
    CHECK(results.logits[k] == doctest::Approx(expected).epsilon(1e-4));
  }
  // that of four blocks is left out
  FileCopy four = joined(5).first;
  const LoadedTower<ModelConfig> features = load_bare(four, scratch, named("dinov2_vits14", "3"));
  CHECK(features.config.head.num_classes == 0);
  CHECK(run_native(features).tokens == results.tokens);
}

TEST_CASE("weights: Meta's DINOv2 has timm's names and a table of its own") {
  SKIP_WITHOUT_SHARED("fixtures/models/timm-dinov2");
  const fs::path folder = test::shared_path("fixtures/models/timm-dinov2");
  const LoadedTower timm = load_checkpoint(folder);
  FileCopy copy(folder);
  copy.add("mask_token", {1, timm.config.embed_dim});
  const ScratchFolder scratch("dinov2");
  const LoadedTower meta = load_bare(copy, scratch, named("dinov2_vits14", "3"));
  CHECK(meta.config.library == "Meta");
  CHECK(meta.config.position.resampling == TableResampling::bicubic_plus_tenth);
  CHECK(meta.config.position.reuse == TableReuse::equal_count_and_square);
  CHECK(run_native(meta).tokens == run_native(timm).tokens);
  CHECK(largest_difference(run(meta, 84, 70).tokens, run(timm, 84, 70).tokens) > 1e-4);
  ModelOptions rules = named("vit_small_patch14_dinov2", "3");
  rules.overrides["rules"] = "timm";
  CHECK(run(load_checkpoint(scratch.path(), rules), 84, 70).tokens == run(timm, 84, 70).tokens);
}

TEST_CASE("weights: with timm's config.json a DINOv2 file follows timm's rules, whoever named its tensors") {
  SKIP_WITHOUT_SHARED("fixtures/models/timm-dinov2");
  SKIP_WITHOUT_SHARED("fixtures/models/timm-dinov2-reg4");
  const fs::path folder = test::shared_path("fixtures/models/timm-dinov2");
  const fs::path registers = test::shared_path("fixtures/models/timm-dinov2-reg4");
  const ScratchFolder scratch("dinov2_timm");
  const auto tokens = [](const fs::path& path, const ModelOptions& options) {
    return run(load_checkpoint(path, options), 84, 70).tokens;
  };
  for (const fs::path& original : {folder, registers}) {
    FileCopy copy(original);
    copy.add("mask_token", {1, load_checkpoint(original).config.embed_dim}).write_to(scratch.path());
    CHECK(tokens(scratch.path(), {}) == tokens(original, {}));
  }
  FileCopy copy(folder);
  copy.add("mask_token", {1, load_checkpoint(folder).config.embed_dim}).write_to(scratch.path());
  CHECK(largest_difference(tokens(scratch.path(), {.overrides = {{"rules", "publisher"}}}),
                           tokens(folder, {})) > 1e-4);

  FileCopy meta(registers);  // a row for the class token, and Meta's name of the registers
  meta.add("mask_token", {1, load_checkpoint(registers).config.embed_dim});
  FileCopy::Entry& table = meta.rename("reg_token", "register_tokens").at("pos_embed");
  table.bytes.insert(table.bytes.begin(), table.shape[2] * sizeof(float), std::byte{0});
  table.shape[1] += 1;
  meta.write_to(scratch.path());
  const ModelConfig config = load_checkpoint(scratch.path()).config;
  CHECK(config.library == "timm");
  CHECK(config.position.reuse == TableReuse::equal_grid);
  CHECK(tokens(scratch.path(), {}) == tokens(registers, {}));
}

TEST_CASE("weights: Meta's DINOv2 with registers keeps the class row that timm folds into the class token") {
  SKIP_WITHOUT_SHARED("fixtures/models/timm-dinov2-reg4");
  const fs::path folder = test::shared_path("fixtures/models/timm-dinov2-reg4");
  const LoadedTower timm = load_checkpoint(folder);
  FileCopy copy(folder);
  copy.add("mask_token", {1, timm.config.embed_dim}).rename("reg_token", "register_tokens");
  FileCopy::Entry& table = copy.at("pos_embed");
  FileCopy::Entry& token = copy.at("cls_token");
  std::vector<float> row(timm.config.embed_dim), values(timm.config.embed_dim);
  std::memcpy(values.data(), token.bytes.data(), token.bytes.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = 0.01f * static_cast<float>(i % 5);
    values[i] -= row[i];
  }
  std::memcpy(token.bytes.data(), values.data(), token.bytes.size());
  const auto* const first = reinterpret_cast<const std::byte*>(row.data());
  table.bytes.insert(table.bytes.begin(), first, first + row.size() * sizeof(float));
  table.shape[1] += 1;
  const ScratchFolder scratch("dinov2_reg");
  const LoadedTower meta = load_bare(copy, scratch, named("dinov2_vits14_reg", "2"));
  CHECK(meta.config.position.resampling == TableResampling::bicubic_antialias);
  CHECK(largest_difference(run_native(meta).tokens, run_native(timm).tokens) < 1e-5);
}

TEST_CASE("weights: Meta's gated DINOv2 packs gate and value") {
  SKIP_WITHOUT_SHARED("fixtures/models/hf-dinov2-swiglu");
  const fs::path folder = test::shared_path("fixtures/models/hf-dinov2-swiglu");
  const LoadedTower hf = load_checkpoint(folder);
  FileCopy copy(folder);
  rename_ending(copy, "layer_scale1.lambda1", "ls1.gamma");
  rename_ending(copy, "layer_scale2.lambda1", "ls2.gamma");
  for (const std::string ending : {".weight", ".bias"}) {
    rename_ending(copy, ".mlp.weights_in" + ending, ".mlp.w12" + ending);
    rename_ending(copy, ".mlp.weights_out" + ending, ".mlp.w3" + ending);
    rename_ending(copy, ".attention.output.dense" + ending, ".attn.proj" + ending);
    for (const char* index : {"0", "1"}) {
      const std::string attention = std::string("encoder.layer.") + index + ".attention.attention.";
      FileCopy::Entry joined = copy.at(attention + "query" + ending);
      joined.name = std::string("encoder.layer.") + index + ".attn.qkv" + ending;
      joined.shape[0] *= 3;
      for (const char* part : {"key", "value"}) {
        const FileCopy::Entry& more = copy.at(attention + part + ending);
        joined.bytes.insert(joined.bytes.end(), more.bytes.begin(), more.bytes.end());
      }
      for (const char* part : {"query", "key", "value"}) copy.remove(attention + part + ending);
      copy.entries().push_back(std::move(joined));
    }
  }
  for (FileCopy::Entry& entry : copy.entries()) {
    if (entry.name.starts_with("encoder.layer.")) entry.name = "blocks." + entry.name.substr(14);
    if (entry.name.starts_with("embeddings.patch_embeddings.projection."))
      entry.name = "patch_embed.proj." + entry.name.substr(39);
    if (entry.name.starts_with("layernorm.")) entry.name = "norm." + entry.name.substr(10);
  }
  copy.rename("embeddings.cls_token", "cls_token").rename("embeddings.mask_token", "mask_token");
  copy.rename("embeddings.position_embeddings", "pos_embed");
  const ScratchFolder scratch("dinov2_giant");
  const LoadedTower meta = load_bare(copy, scratch, named("dinov2_vitg14", "3"));
  CHECK(run_native(meta).tokens == run_native(hf).tokens);
}

TEST_CASE("weights: Meta's gated DINOv3 calls its matrices w1, w2, w3, and timm gives k no bias") {
  SKIP_WITHOUT_SHARED("fixtures/models/timm-dinov3-plus-qkvb");
  const fs::path folder = test::shared_path("fixtures/models/timm-dinov3-plus-qkvb");
  const LoadedTower timm = load_checkpoint(folder);
  FileCopy copy(folder);
  copy.rename("reg_token", "storage_tokens").add("local_cls_norm.weight", {48});
  rename_ending(copy, "gamma_1", "ls1.gamma");
  rename_ending(copy, "gamma_2", "ls2.gamma");
  for (const std::string ending : {".weight", ".bias"}) {
    rename_ending(copy, ".mlp.fc1_g" + ending, ".mlp.w1" + ending);
    rename_ending(copy, ".mlp.fc1_x" + ending, ".mlp.w2" + ending);
    rename_ending(copy, ".mlp.fc2" + ending, ".mlp.w3" + ending);
  }
  for (const char* index : {"0", "1"}) {
    FileCopy::Entry joined = copy.at(depth_and(index, "attn.q_bias"));
    joined.name = depth_and(index, "attn.qkv.bias");
    joined.shape[0] *= 3;
    joined.bytes.resize(2 * joined.bytes.size());  // k's third: zeros
    const FileCopy::Entry& value = copy.at(depth_and(index, "attn.v_bias"));
    joined.bytes.insert(joined.bytes.end(), value.bytes.begin(), value.bytes.end());
    copy.remove(depth_and(index, "attn.q_bias")).remove(depth_and(index, "attn.v_bias"));
    copy.entries().push_back(std::move(joined));
  }
  const ScratchFolder scratch("dinov3_gated");
  ModelOptions options = named("dinov3_vits16plus", "2");
  copy.set_config("").write_to(scratch.path());
  CHECK_ERROR(ErrorKind::mismatch, ("rope_embed.periods"), load_checkpoint(scratch.path(), options));
  options.overrides["rope_periods"] = "recomputed";
  const LoadedTower meta = load_checkpoint(scratch.path(), options);
  CHECK(meta.config.head.pooling == Pooling::class_token);
  CHECK(run(meta, 48, 64).tokens == run(timm, 48, 64).tokens);
  // with timm's config.json timm's rules apply: periods recomputed, patches pooled, the bias of k dropped
  for (const char* index : {"0", "1"}) {
    FileCopy::Entry& joined = copy.at(depth_and(index, "attn.qkv.bias"));
    const std::size_t third = joined.bytes.size() / 3;
    std::memcpy(joined.bytes.data() + third, joined.bytes.data(), third);
  }
  copy.set_config("").write_to(scratch.path());
  CHECK(run(load_checkpoint(scratch.path(), options), 48, 64).tokens != run(timm, 48, 64).tokens);
  options.overrides["rules"] = "timm";
  CHECK(run(load_checkpoint(scratch.path(), options), 48, 64).tokens == run(timm, 48, 64).tokens);
  copy.set_config(test::read_text(folder / "config.json")).write_to(scratch.path());
  CHECK(run_native(load_checkpoint(scratch.path())).pooled == run_native(timm).pooled);
}

TEST_CASE("weights: DINOv3 trained without a mask keeps its bias of k, and Meta's RMSNorm its own epsilon") {
  FileCopy copy(test::data_path("golden/models/meta-dinov3"));
  const ScratchFolder scratch("dinov3_unmasked");
  const ModelOptions options = named("dinov3_vits16plus", "2");
  const std::string bias = "attn.qkv.bias", mask = "attn.qkv.bias_mask";
  const std::vector<float> masked = run(load_bare(copy, scratch, options), 48, 64).tokens;
  for (const char* index : {"0", "1"}) {
    FileCopy::Entry& ones = copy.at(depth_and(index, mask.c_str()));
    const std::size_t third = ones.bytes.size() / 3;
    std::memcpy(ones.bytes.data() + third, ones.bytes.data(), third);
  }
  const std::vector<float> expected = run(load_bare(copy, scratch, options), 48, 64).tokens;
  CHECK(expected != masked);
  for (const char* index : {"0", "1"}) copy.remove(depth_and(index, mask.c_str()));
  CHECK(run(load_bare(copy, scratch, options), 48, 64).tokens == expected);
  for (const char* index : {"0", "1"}) {
    FileCopy::Entry& zeros = copy.at(depth_and(index, bias.c_str()));
    const std::size_t third = zeros.bytes.size() / 3;
    std::memset(zeros.bytes.data() + third, 0, third);
  }
  CHECK(run(load_bare(copy, scratch, options), 48, 64).tokens == masked);
  std::erase_if(copy.entries(), [](const FileCopy::Entry& entry) {
    return entry.name.ends_with("norm1.bias") || entry.name.ends_with("norm2.bias") ||
           entry.name == "norm.bias";
  });
  ModelOptions rms = options;
  rms.overrides["norm_layer"] = "rmsnorm";
  CHECK(load_bare(copy, scratch, rms).config.encoder.norm.eps == 1e-5f);
  rms.overrides["rules"] = "timm";
  CHECK(load_bare(copy, scratch, rms).config.encoder.norm.eps == 1e-6f);
}

TEST_CASE("weights: a mask that is neither zero nor one is refused") {
  SKIP_WITHOUT_SHARED("fixtures/models/orig-meta-dinov3");
  const fs::path folder = test::shared_path("fixtures/models/orig-meta-dinov3");
  FileCopy copy(folder);
  FileCopy::Entry& mask = copy.at("blocks.1.attn.qkv.bias_mask");
  const float not_a_number = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(mask.bytes.data(), &not_a_number, sizeof not_a_number);
  const ScratchFolder scratch("mask");
  const LoadedTower checkpoint = load_bare(copy, scratch, named("dinov3_vits16", "2"));
  CHECK_ERROR(ErrorKind::format, ("blocks.1.attn.qkv.bias_mask"), run_native(checkpoint));
}

TEST_CASE(
    "weights: BAAI's CLIP towers are under visual. next to a text tower, its pretraining files end with "
    "norm") {
  SKIP_WITHOUT_SHARED("fixtures/models/timm-eva02-clip");
  SKIP_WITHOUT_SHARED("fixtures/models/timm-eva02-tiny");
  const fs::path clip = test::shared_path("fixtures/models/timm-eva02-clip");
  const fs::path tiny = test::shared_path("fixtures/models/timm-eva02-tiny");
  FileCopy copy(clip);
  for (const std::string ending : {".weight", ".bias"}) {
    rename_ending(copy, ".mlp.fc1_g" + ending, ".mlp.w1" + ending);
    rename_ending(copy, ".mlp.fc1_x" + ending, ".mlp.w2" + ending);
    rename_ending(copy, ".mlp.fc2" + ending, ".mlp.w3" + ending);
    rename_ending(copy, ".mlp.norm" + ending, ".mlp.ffn_ln" + ending);
    rename_ending(copy, ".attn.norm" + ending, ".attn.inner_attn_ln" + ending);
  }
  rename_ending(copy, ".attn.q_proj.bias", ".attn.q_bias");
  rename_ending(copy, ".attn.v_proj.bias", ".attn.v_bias");
  add_prefix(copy, "visual.");
  copy.add("text.positional_embedding", {8, 16})
      .add("logit_scale", {1})
      .add("visual.rope.freqs_cos", {9, 24});
  const ScratchFolder scratch("eva_clip");
  const LoadedTower baai = load_bare(copy, scratch, named("EVA02_CLIP_B_psz16_s8B", "2"));
  CHECK(baai.config.library == "BAAI");
  CHECK(baai.config.position.resampling == TableResampling::bicubic);
  CHECK(run_native(baai).logits == run_native(load_checkpoint(clip)).logits);
  copy.set_config(test::read_text(clip / "config.json")).write_to(scratch.path());
  CHECK(run(load_checkpoint(scratch.path()), 80, 48).logits == run(load_checkpoint(clip), 80, 48).logits);

  FileCopy pretrained(tiny);
  for (const std::string ending : {".weight", ".bias"}) {
    rename_ending(pretrained, ".mlp.fc1" + ending, ".mlp.w12" + ending);
    rename_ending(pretrained, ".mlp.fc2" + ending, ".mlp.w3" + ending);
    pretrained.rename("fc_norm" + ending, "norm" + ending);
  }
  {  // with a classifier it is no pretraining file: it was trained on the class token (--use_cls)
    const ScratchFolder use_cls("eva_use_cls");
    CHECK_ERROR(ErrorKind::argument, ("model.safetensors", "global_pool"),
                load_bare(pretrained, use_cls, named("eva02_tiny_patch14_224", "3")));
  }
  pretrained.remove("head.weight").remove("head.bias");
  pretrained.add("mask_token", {1, 1, 48}).add("lm_head.weight", {20, 48}).add("lm_head.bias", {20});
  const ScratchFolder other("eva_mim");
  const LoadedTower mim = load_bare(pretrained, other, named("eva02_tiny_patch14_224", "3"));
  CHECK(mim.config.head.num_classes == 0);
  CHECK(run_native(mim).pooled == run_native(load_checkpoint(tiny)).pooled);
}

TEST_CASE("weights: OpenAI's CLIP under its own names") {
  SKIP_WITHOUT_SHARED("fixtures/models/timm-clip-quickgelu");
  const fs::path folder = test::shared_path("fixtures/models/timm-clip-quickgelu");
  FileCopy copy(folder);
  for (const std::string ending : {".weight", ".bias"}) {
    rename_ending(copy, ".norm1" + ending, ".ln_1" + ending);
    rename_ending(copy, ".norm2" + ending, ".ln_2" + ending);
    rename_ending(copy, ".attn.proj" + ending, ".attn.out_proj" + ending);
    rename_ending(copy, ".mlp.fc1" + ending, ".mlp.c_fc" + ending);
    rename_ending(copy, ".mlp.fc2" + ending, ".mlp.c_proj" + ending);
    copy.rename("norm" + ending, "ln_post" + ending).rename("norm_pre" + ending, "ln_pre" + ending);
  }
  rename_ending(copy, ".attn.qkv.weight", ".attn.in_proj_weight");
  rename_ending(copy, ".attn.qkv.bias", ".attn.in_proj_bias");
  for (FileCopy::Entry& entry : copy.entries()) {
    if (entry.name.starts_with("blocks.")) entry.name = "transformer.resblocks." + entry.name.substr(7);
  }
  copy.rename("patch_embed.proj.weight", "conv1.weight").rename("cls_token", "class_embedding");
  copy.rename("pos_embed", "positional_embedding").remove("head.weight").remove("head.bias");
  copy.at("class_embedding").shape = {48};
  copy.at("positional_embedding").shape.erase(copy.at("positional_embedding").shape.begin());
  copy.add("proj", {48, 24});
  add_prefix(copy, "visual.");
  copy.add("positional_embedding", {8, 16})
      .add("transformer.resblocks.0.ln_1.weight", {16})
      .add("text_projection", {16, 24});
  copy.add("token_embedding.weight", {20, 16}).add("ln_final.weight", {16}).add("logit_scale", {1});
  const ScratchFolder scratch("openai");
  const LoadedTower openai = load_bare(copy, scratch, named("vit_base_patch16_clip_quickgelu_224", "2"));
  CHECK(openai.config.projection_dim() == 24);
  CHECK(run_native(openai).pooled == run_native(load_checkpoint(folder)).pooled);
}

TEST_CASE("weights: Perception Encoder off its native size, by Meta's rules and by timm's") {
  SKIP_WITHOUT_SHARED("fixtures/models/orig-meta-pe-core");
  SKIP_WITHOUT_SHARED("fixtures/models/timm-pe-core");
  const fs::path meta_folder = test::shared_path("fixtures/models/orig-meta-pe-core");
  const fs::path timm_folder = test::shared_path("fixtures/models/timm-pe-core");
  ModelOptions options = named("PE-Core-B16-224", "3");
  const LoadedTower meta = load_checkpoint(meta_folder, options);
  CHECK(meta.config.position.coordinates == CoordinateRule::index);
  CHECK(meta.config.position.coordinate_offset == 1.0);
  CHECK(meta.config.position.resampling == TableResampling::bilinear);
  options.overrides["rules"] = "timm";
  options.overrides["ref_feat_shape"] = "4x4";
  const std::vector<float> by_timm_rules = run(load_checkpoint(meta_folder, options), 80, 48).tokens;
  CHECK(by_timm_rules == run(load_checkpoint(timm_folder), 80, 48).tokens);
  CHECK(largest_difference(run(meta, 80, 48).tokens, by_timm_rules) > 1e-3);
}

TEST_CASE("weights: preprocessing of bare files is that of the publisher whose layout they have") {
  ModelConfig config;
  config.architecture = "vit_pe_core_base_patch16_224";
  config.library = "Meta";
  PreprocessConfig preprocess = architecture_preprocess(config);
  CHECK(preprocess.resize == ResizeRule::squash);
  CHECK(preprocess.filter == ResizeFilter::bilinear);
  config.library = "timm";
  preprocess = architecture_preprocess(config);
  CHECK(preprocess.resize == ResizeRule::shortest_edge);
  CHECK(preprocess.filter == ResizeFilter::bicubic);
  CHECK(preprocess.resize_height == 224);
  config.architecture = "dinov2_vitb14";
  config.library = "Meta";
  config.image.height = config.image.width = 518;
  preprocess = architecture_preprocess(config);
  CHECK(preprocess.resize_height == 256);
  CHECK(preprocess.crop_height == 224);
  config.architecture = "vit_base_patch16_rope_reg1_gap_256";
  config.library = "timm";
  config.image.height = config.image.width = 256;
  CHECK(architecture_preprocess(config).resize_height == 269);
}

TEST_CASE("weights: transformers' DINOv3 without registers stores a tensor of none") {
  SKIP_WITHOUT_SHARED("fixtures/models/hf-dinov3");
  const fs::path shared = test::shared_path("fixtures/models/hf-dinov3");
  FileCopy copy(shared);
  copy.at("embeddings.register_tokens").shape[1] = 0;
  copy.at("embeddings.register_tokens").bytes.clear();
  std::string config = test::read_text(shared / "config.json");
  const std::string key = "\"num_register_tokens\": 4";
  REQUIRE(config.find(key) != std::string::npos);
  copy.set_config(config.replace(config.find(key), key.size(), "\"num_register_tokens\": 0"));
  const ScratchFolder scratch("no_registers");
  copy.write_to(scratch.path());
  CHECK(load_checkpoint(scratch.path()).config.tokens.num_registers == 0);
}

}  // namespace vit
