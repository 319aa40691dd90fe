// vit_by_hand MODEL.safetensors IMAGE: a Vision Transformer with 2D axial RoPE, put together by hand from the
// parts of the library: rope-vit (Heo et al. 2024) as timm stores it, with the sizes of the model of this
// project.
#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "vit/vit.h"

// Letters: B images, P patch edge, N patches, T = 1 + N tokens, C channels of a token.
class RopeVit {
 public:
  using View = vit::TensorView<const float>;
  static constexpr std::size_t kPatchSize = 4, kHeads = 5;

  explicit RopeVit(const std::string& file)
      : tensors_(vit::read_safetensors(file)),
        patch_embed_(linear("patch_embed.proj")),
        fc_norm_(norm("fc_norm")),
        head_(linear("head")) {
    for (int i = 0; tensors_.count("blocks." + std::to_string(i) + ".gamma_1") != 0; ++i) {
      const std::string name = "blocks." + std::to_string(i) + ".";
      blocks_.push_back({norm(name + "norm1"), norm(name + "norm2"), linear(name + "attn.qkv"),
                         linear(name + "attn.proj"), linear(name + "mlp.fc1"), linear(name + "mlp.fc2"),
                         tensor(name + "gamma_1").flat(), tensor(name + "gamma_2").flat()});
    }
  }

  /// pixels (B, 3, H, W) -> logits (B, classes)
  vit::Tensor<float> forward(View pixels) const {
    const vit::GridSize grid{pixels.dim(2) / kPatchSize, pixels.dim(3) / kPatchSize};
    const std::size_t batch = pixels.dim(0), patches = grid.rows * grid.columns;
    const std::size_t tokens = 1 + patches, width = patch_embed_.out_features();

    // patches -> tokens (B, 1 + N, C), the class token first
    const vit::Tensor<float> rows = vit::patchify(pixels, kPatchSize);  // (B, N, 3 P P)
    vit::Tensor<float> x(vit::Shape{batch, tokens, width});
    for (std::size_t image = 0; image < batch; ++image) {
      std::copy_n(tensor("cls_token").data(), width, x.view()[image].data());
      patch_embed_.forward(rows.view()[image], x.view()[image].part(1, patches));
    }

    // grid -> coordinates (t_x, t_y) -> frequencies of both axes side by side -> complex factors
    using namespace vit::position;
    const auto frequencies = RopeFrequencies::from_theta(num_axial_frequencies(width / kHeads), 100.0);
    const auto factors = build_axial_table<float>(grid_coords(grid), frequencies);

    // blocks: x += g1 * attention(norm1(x)); x += g2 * mlp(norm2(x))
    vit::Tensor<float> normed(x.shape()), heads(x.shape()), qkv(vit::Shape{batch, tokens, 3 * width});
    vit::Tensor<float> hidden(vit::Shape{batch, tokens, blocks_.front().fc1.out_features()});
    vit::Workspace memory;
    const auto part = [&](std::size_t i) { return View(qkv.data() + i * width, x.shape(), 3 * width); };
    for (const Block& block : blocks_) {
      block.norm1.forward(x, normed);
      block.qkv.forward(normed, qkv);
      vit::attention(part(0), part(1), part(2), factors, /*num_prefix=*/1, heads, memory,
                     {.num_heads = kHeads});
      block.proj.forward(heads, x, {.scale = block.gamma1, .residual = x});
      block.norm2.forward(x, normed);
      block.fc1.forward(normed, hidden, {.activation = vit::Activation::gelu});
      block.fc2.forward(hidden, x, {.scale = block.gamma2, .residual = x});
    }

    // mean of the patches -> norm -> classifier
    vit::Tensor<float> pooled(vit::Shape{batch, width}), logits(vit::Shape{batch, head_.out_features()});
    vit::pool_mean(x, 1, pooled);
    fc_norm_.forward(pooled, pooled);
    head_.forward(pooled, logits);
    return logits;
  }

 private:
  struct Block {
    vit::LayerNorm norm1, norm2;
    vit::Linear qkv, proj, fc1, fc2;
    std::span<const float> gamma1, gamma2;
  };

  View tensor(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw vit::Error("vit_by_hand", "no tensor " + name);
    return found->second;
  }
  vit::Linear linear(const std::string& name) const {
    return vit::Linear(tensor(name + ".weight"), tensor(name + ".bias").flat());
  }
  vit::LayerNorm norm(const std::string& name) const {
    return vit::LayerNorm(tensor(name + ".weight").flat(), tensor(name + ".bias").flat(), 1e-6f);
  }

  std::map<std::string, vit::Tensor<float>> tensors_;
  vit::Linear patch_embed_;
  std::vector<Block> blocks_;
  vit::LayerNorm fc_norm_;
  vit::Linear head_;
};

/// Resize to 40 x 40 pixels, subtract the mean, divide by the deviation.
vit::Preprocessor preprocessor() {
  vit::PreprocessConfig config;
  config.mean = {0.4914, 0.4822, 0.4465}, config.std = {0.247, 0.2435, 0.2616};
  config.resize_height = config.resize_width = config.crop_height = config.crop_width = 40;
  return vit::Preprocessor(config);
}

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: vit_by_hand MODEL.safetensors IMAGE\n"), 2;
  try {
    const vit::Image image = vit::decode_file(argv[2]);
    const vit::Tensor<float> pixels = preprocessor().run(image);  // (3, 40, 40)
    const vit::Tensor<float> logits = RopeVit(argv[1]).forward({pixels.data(), vit::Shape{1, 3, 40, 40}});
    for (const float logit : logits.flat()) std::printf("%.9g\n", static_cast<double>(logit));
  } catch (const vit::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
  return 0;
}
