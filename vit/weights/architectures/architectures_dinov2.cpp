// DINOv2 and the backbones that took over its blocks, as timm names them: TIPSv2 and RADIO. Values: the
// papers and timm's registry.
#include <utility>

#include "vit/weights/architectures/architecture_list.h"

namespace vit::internal::architecture_list {
namespace {

constexpr Size kGiant{"giant", 1536, 40, 24};

/// Blocks of DINOv2 on patches of 14 pixels. With registers timm adds the class position to the token.
Architecture make_dinov2(std::string name, std::string family, const Size& size, std::size_t image,
                         std::size_t registers) {
  Architecture a = make(std::move(name), std::move(family), size, 14, image);
  a.args.reg_tokens = registers;
  a.args.no_embed_class = registers != 0;
  a.args.layer_scale = true;
  a.args.num_classes = 0;
  a.crop_pct = 1.0;
  if (size.embed_dim == kGiant.embed_dim) {
    a.args.mlp_ratio = 5.33334;  // counts gate and value: 2 x 4096
    a.args.swiglu = true;
  }
  return a;
}

/// DINOv2 (Oquab et al. 2023) and its form with registers (Darcet et al. 2024).
void add_dinov2(std::vector<Architecture>& list) {
  for (const std::size_t registers : {0, 4}) {
    for (const Size& size : {kSmall, kBase, kLarge, kGiant}) {
      list.push_back(make_dinov2(
          std::string("vit_") + size.name + "_patch14_" + (registers != 0 ? "reg4_" : "") + "dinov2",
          "dinov2", size, 518, registers));
    }
  }
}

/// TIPSv2 (2026): DINOv2's blocks with one register; pictures are not normalised.
void add_tipsv2(std::vector<Architecture>& list) {
  for (const Size& size : {kBase, kLarge, kSo400m, kGiant}) {
    Architecture a =
        make_dinov2(std::string("vit_") + size.name + "_patch14_reg1_tipsv2", "tipsv2", size, 448, 1);
    if (size.embed_dim == kSo400m.embed_dim) a.args.mlp_ratio = 4304.0 / 1152;
    a.mean = kZero;
    a.std = kOne;
    list.push_back(std::move(a));
  }
}

/// The backbones of C-RADIO v3 and v4 (NVIDIA, 2024 and 2026). The class tokens of all teachers but the first
/// count as registers.
void add_radio(std::vector<Architecture>& list) {
  struct Row {
    Size size;
    const char* version;
    std::size_t registers;
    bool layer_scale = false;
  };
  for (const Row& row : {Row{kBase, "v3", 7, true}, Row{kLarge, "v3", 7, true}, Row{kHuge, "v3", 7},
                         Row{kGiant, "v3", 7}, Row{kSo400m, "v4", 9}, Row{kHuge, "v4", 9}}) {
    Architecture a = make(std::string("vit_") + row.size.name + "_patch16_radio_" + row.version, "radio",
                          row.size, 16, 512);
    if (row.size.embed_dim == kSo400m.embed_dim) a.args.mlp_ratio = 4304.0 / 1152;
    a.args.reg_tokens = row.registers;
    a.args.no_embed_class = true;
    a.args.layer_scale = row.layer_scale;
    a.args.post_norm = false;
    a.args.num_classes = 0;
    a.mean = kClipMean;
    a.std = kClipStd;
    a.crop_pct = 1.0;
    list.push_back(std::move(a));
  }
}

}  // namespace

void add_backbones(std::vector<Architecture>& list) {
  add_dinov2(list);
  add_tipsv2(list);
  add_radio(list);
}

}  // namespace vit::internal::architecture_list
