// Google's own weights of ViT and SigLIP, as vision_transformer and big_vision store them: arrays of Flax,
// (in, out), heads apart. Source: google-research/vision_transformer, vit_jax/models_vit.py, and big_vision,
// big_vision/models/vit.py.
#include "vit/weights/families/google_vit.h"

#include <utility>

#include "vit/base/check.h"
#include "vit/base/dtype.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace google_vit {
namespace {

constexpr Where kWhere{"google_vit", ErrorKind::format};
constexpr std::string_view kAnchor = "embedding/kernel";
constexpr std::string_view kPrefixes[] = {"img/", ""};

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::flax_patch},
    {Part::patch_bias, "embedding/bias"},
    {Part::class_token, "cls"},
    {Part::position_table, "Transformer/posembed_input/pos_embedding"},
    {Part::norm1_gamma, "Transformer/encoderblock_{}/LayerNorm_0/scale"},
    {Part::norm1_beta, "Transformer/encoderblock_{}/LayerNorm_0/bias"},
    {Part::norm_gamma, "Transformer/encoder_norm/scale"},
    {Part::norm_beta, "Transformer/encoder_norm/bias"},
    {Part::pooler_weight, "pre_logits/kernel", Form::flax},
    {Part::pooler_bias, "pre_logits/bias"},
    {Part::head_weight, "head/kernel", Form::flax},
    {Part::head_bias, "head/bias"},
};
static_assert(is_sound(kRows));

constexpr Row flax(Row row) {
  row.form = Form::flax;
  return row;
}

#define VIT_FLAX_BLOCK(attention, norm2, mlp)                                                           \
  flax(joined(Part::qkv_weight, {0, 3}, "Transformer/encoderblock_{}/" attention "/query/kernel")),     \
      flax(joined(Part::qkv_weight, {1, 3}, "Transformer/encoderblock_{}/" attention "/key/kernel")),   \
      flax(joined(Part::qkv_weight, {2, 3}, "Transformer/encoderblock_{}/" attention "/value/kernel")), \
      flax(joined(Part::qkv_bias, {0, 3}, "Transformer/encoderblock_{}/" attention "/query/bias")),     \
      flax(joined(Part::qkv_bias, {1, 3}, "Transformer/encoderblock_{}/" attention "/key/bias")),       \
      flax(joined(Part::qkv_bias, {2, 3}, "Transformer/encoderblock_{}/" attention "/value/bias")),     \
      flax({Part::proj_weight, "Transformer/encoderblock_{}/" attention "/out/kernel"}),                \
      Row{Part::proj_bias, "Transformer/encoderblock_{}/" attention "/out/bias"},                       \
      Row{Part::norm2_gamma, "Transformer/encoderblock_{}/" norm2 "/scale"},                            \
      Row{Part::norm2_beta, "Transformer/encoderblock_{}/" norm2 "/bias"},                              \
      flax({Part::fc1_weight, "Transformer/encoderblock_{}/" mlp "/Dense_0/kernel"}),                   \
      Row{Part::fc1_bias, "Transformer/encoderblock_{}/" mlp "/Dense_0/bias"},                          \
      flax({Part::fc2_weight, "Transformer/encoderblock_{}/" mlp "/Dense_1/kernel"}), Row {             \
    Part::fc2_bias, "Transformer/encoderblock_{}/" mlp "/Dense_1/bias"                                  \
  }

/// vision_transformer counts all modules of a block, big_vision those of each kind.
constexpr Row kBlocks[] = {VIT_FLAX_BLOCK("MultiHeadDotProductAttention_1", "LayerNorm_2", "MlpBlock_3")};
constexpr Row kBigVisionBlocks[] = {
    VIT_FLAX_BLOCK("MultiHeadDotProductAttention_0", "LayerNorm_1", "MlpBlock_0")};
#undef VIT_FLAX_BLOCK

constexpr Row kTableAtTop[] = {{Part::position_table, "pos_embedding"}};
constexpr Row kAttentionPool[] = {
    {Part::pool_probe, "MAPHead_0/probe"},
    flax({Part::pool_q_weight, "MAPHead_0/MultiHeadDotProductAttention_0/query/kernel"}),
    flax({Part::pool_q_bias, "MAPHead_0/MultiHeadDotProductAttention_0/query/bias"}),
    flax(joined(Part::pool_kv_weight, {0, 2}, "MAPHead_0/MultiHeadDotProductAttention_0/key/kernel")),
    flax(joined(Part::pool_kv_weight, {1, 2}, "MAPHead_0/MultiHeadDotProductAttention_0/value/kernel")),
    flax(joined(Part::pool_kv_bias, {0, 2}, "MAPHead_0/MultiHeadDotProductAttention_0/key/bias")),
    flax(joined(Part::pool_kv_bias, {1, 2}, "MAPHead_0/MultiHeadDotProductAttention_0/value/bias")),
    flax({Part::pool_proj_weight, "MAPHead_0/MultiHeadDotProductAttention_0/out/kernel"}),
    {Part::pool_proj_bias, "MAPHead_0/MultiHeadDotProductAttention_0/out/bias"},
    {Part::pool_norm_gamma, "MAPHead_0/LayerNorm_0/scale"},
    {Part::pool_norm_beta, "MAPHead_0/LayerNorm_0/bias"},
    flax({Part::pool_fc1_weight, "MAPHead_0/MlpBlock_0/Dense_0/kernel"}),
    {Part::pool_fc1_bias, "MAPHead_0/MlpBlock_0/Dense_0/bias"},
    flax({Part::pool_fc2_weight, "MAPHead_0/MlpBlock_0/Dense_1/kernel"}),
    {Part::pool_fc2_bias, "MAPHead_0/MlpBlock_0/Dense_1/bias"},
};
/// posemb="sincos2d" of big_vision: nothing is stored.
constexpr Row kSincos[] = {{.part = Part::position_table, .form = Form::sincos, .constant = 10000.0f}};
static_assert(is_sound(kBlocks) && is_sound(kBigVisionBlocks) && is_sound(kTableAtTop) &&
              is_sound(kAttentionPool) && is_sound(kSincos));

bool counts_kinds(const SourceFiles& files) {
  return files.any_block_has("Transformer/encoderblock_{}/MlpBlock_0/Dense_0/kernel");
}

bool computes_positions(const SourceFiles& files, bool is_big_vision) {
  return is_big_vision && files.find("pos_embedding") == nullptr &&
         files.find("Transformer/posembed_input/pos_embedding") == nullptr;
}

Layout layout_of(const SourceFiles& files) {
  Layout layout = {kRows};
  const bool is_big_vision = counts_kinds(files);
  layout.add(is_big_vision ? std::span<const Row>(kBigVisionBlocks) : kBlocks);
  if (files.find("MAPHead_0/probe") != nullptr) layout.add(kAttentionPool);
  if (files.find("pos_embedding") != nullptr) layout.add(kTableAtTop);
  if (computes_positions(files, is_big_vision)) layout.add(kSincos);
  return layout;
}

/// FlexiViT's files have patches of 32, which timm resizes to those of its architectures, 16; here they keep
/// their size, which the caller must have asked for.
void check_patch_size(const SourceFiles& files, const Architecture& architecture, const Published& model) {
  if (!architecture.name.starts_with("flexivit")) return;
  const std::size_t stored = model.stored.patch_size;
  const std::size_t asked =
      files.options.overrides.contains("patch_size") ? model.args.patch_size : architecture.args.patch_size;
  VIT_CHECK(asked == stored, kWhere.with(ErrorKind::unsupported), files.weights_name, ": patches of ", stored,
            ", which timm resizes to ", asked,
            ", are computed in their own size only: ", override_name("patch_size"), " = \"", stored, "\"");
}

ParsedModel read_as(const SourceFiles& files, const Architecture& architecture) {
  Layout layout = layout_of(files);
  Published model = read_published(files, architecture, stored_args(files, architecture, layout), "timm");
  check_patch_size(files, architecture, model);
  std::vector<std::string> notes = {"arrays of Flax; all other rules are timm's, which converts them"};
  if (computes_positions(files, counts_kinds(files))) {
    notes.push_back(
        "positions are sines and cosines, which are not stored (sincos2d); other sizes resample them");
  } else if (files.options.overrides.contains("img_size")) {
    model.config.position.resampling = TableResampling::bilinear;
    notes.push_back("the table is resampled bilinearly, as timm does while loading for another img_size");
  }
  model.config.head.pooler = files.find("pre_logits/kernel") != nullptr;
  if (model.config.mlp.activation == Activation::gelu)
    notes.push_back("GELU is exact, as in timm; Google's code computes its form with tanh: " +
                    override_name("act_layer") + " = \"gelu_tanh\"");
  if (model.config.head.pooler) notes.push_back("pooled is tanh of pre_logits, which timm leaves out");
  return finish(files, architecture, std::move(model), std::move(layout), {}, std::move(notes));
}

/// Block `index` of all that one tensor holds.
TensorEntry block_of(const TensorEntry& stack, std::size_t index) {
  TensorEntry block = rows_of(stack, index, 1);
  block.first_row = 0;
  block.shape.erase(block.shape.begin());
  if (!block.strides.empty()) block.strides.erase(block.strides.begin());
  if (block.strides.empty())
    block.bytes = block.bytes.part(0, block.num_elements() * dtype_bytes(block.dtype));
  return block;
}

std::optional<Match> match(const SourceFiles& files) {
  return files.has_weights ? match_anchor(files, kAnchor, kPrefixes) : std::nullopt;
}

}  // namespace
}  // namespace google_vit

TensorFile with_blocks_apart(TensorFile file) {
  constexpr std::string_view kStack = "encoderblock/";
  constexpr std::size_t kMaxBlocks = 4096, kMaxTensors = std::size_t{1} << 18;
  TensorFile::Contents contents = file.contents();
  contents.entries.clear();
  for (const TensorEntry& entry : file.entries()) {
    const std::size_t at = entry.name.find(kStack);
    const bool is_stack = at != entry.name.npos && (at == 0 || entry.name[at - 1] == '/') &&
                          !entry.shape.empty() && entry.shape.front() <= kMaxBlocks;
    if (!is_stack) {
      contents.entries.push_back(entry);
      continue;
    }
    VIT_CHECK(contents.entries.size() + entry.shape.front() <= kMaxTensors, google_vit::kWhere,
              file.path().string(), ": more than ", kMaxTensors, " tensors");
    const std::string front = entry.name.substr(0, at + kStack.size() - 1);
    const std::string back = entry.name.substr(at + kStack.size() - 1);
    for (std::size_t i = 0; i < entry.shape.front(); ++i) {
      contents.entries.push_back(google_vit::block_of(entry, i));
      contents.entries.back().name = front + "_" + std::to_string(i) + back;
    }
  }
  return TensorFile(std::move(contents));
}

constinit const Family kGoogleFamily{.name = "google_vit",
                                     .anchor = google_vit::kAnchor,
                                     .prefixes = google_vit::kPrefixes,
                                     .library = "Google",
                                     .match = google_vit::match,
                                     .read_as = google_vit::read_as};

}  // namespace vit::internal
