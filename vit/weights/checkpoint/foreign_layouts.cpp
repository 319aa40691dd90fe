#include "vit/weights/checkpoint/loading_steps.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

/// Tensors that only the files of one repository have, all of them; an entry matches names that hold it.
struct OtherLayout {
  std::string_view first, second;
  std::string_view sentence;
};
constexpr OtherLayout kLayouts[] = {
    {"mask_head.", "class_head.",
     "these are the names of EoMT's own training; the folder of transformers is read (hf download "
     "tue-mps/...), or convert the file with transformers' convert_eomt_to_hf.py"},
    {"keypoint_head.", "backbone.",
     "these are the names of mmpose; the folder of transformers is read (hf download "
     "usyd-community/vitpose-...)"},
    {"decode_head.", "backbone.",
     "these are the names of mmsegmentation, whose heads are not read; the backbone is one if its names are "
     "timm's"},
    {"bbox_head.", "backbone.", "these are the names of mmdetection, whose heads are not read"},
    {"backbone.layers.0.ln1.", "backbone.patch_embed.projection.",
     "these are the names of mmpretrain; take the checkpoint that it was made from, of timm or the "
     "publisher"},
    {"vision_backbone.trunk.", "vision_backbone.",
     "these are the names of the publisher's sam3.pt; those of transformers in the same repository are read: "
     "hf download facebook/sam3 --exclude sam3.pt --local-dir sam3"},
    {"image_encoder.patch_embed.", "mask_decoder.",
     "these are the names of the publisher's Segment Anything; its encoder is read in the files of "
     "transformers: hf download facebook/sam-vit-base --local-dir sam"},
    {"image_encoder.trunk.", "sam_mask_decoder.",
     "these are the names of Segment Anything 2, whose hierarchical encoder is not read"},
};

bool holds(std::span<const TensorEntry> entries, std::string_view part) {
  return std::ranges::any_of(
      entries, [&](const TensorEntry& entry) { return entry.name.find(part) != entry.name.npos; });
}

}  // namespace

std::string foreign_layout(const TensorFile& tensors) {
  const std::span<const TensorEntry> entries = tensors.entries();
  const auto num_empty = std::ranges::count_if(
      entries, [](const TensorEntry& entry) { return entry.shape == std::vector<std::size_t>{0}; });
  if (num_empty > 0)  // small tensors stay whole
    return text(
        num_empty, num_empty == 1 ? " tensor is" : " tensors are",
        " empty: placeholders of DeepSpeed's ZeRO-3, whose shards were not gathered; join them with "
        "zero_to_fp32.py of the checkpoint's folder, or save with stage3_gather_16bit_weights_on_model_save");
  const auto format = tensors.metadata().find("format");
  if (format != tensors.metadata().end() && format->second == "mlx")
    return "the file was converted for MLX, which keeps the channels of convolutions last; take the PyTorch "
           "or safetensors checkpoint that it was made from";
  for (const OtherLayout& layout : kLayouts) {
    if (holds(entries, layout.first) && holds(entries, layout.second)) return std::string(layout.sentence);
  }
  return "";
}

}  // namespace vit::internal
