// Which tensors of a file are the model. A training script keeps it under names of its own, in a dictionary
// beside the optimizer, inside wrappers, or twice: here its place is found by the tensor that cuts patches.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// What wrappers of modules put into names is left out, wherever it occurs: DistributedDataParallel,
/// torch.compile, FSDP, activation checkpoints. Blocks that DINOv2 trains in chunks lose the number of their
/// chunk. Names that would become equal stay as they are.
TensorFile without_wrappers(TensorFile file);

/// Where the model of a file lies.
struct ModelPlace {
  std::string prefix;  // in front of the tensor that cuts patches, and with it of all of the image tower
  std::string root;    // in front of the whole model, which may have more than an image tower
};

struct FoundModel {
  TensorFile tensors;               // of the dictionary that holds the model, called as there
  std::optional<ModelPlace> place;  // nothing if no tensor cuts patches
  std::string chosen{};             // the prefix in the whole file, by which ModelOptions::prefix calls it
  std::string container{};          // the dictionary, "" for the whole file
  std::vector<std::string> passed_by{};  // other members of the file, for reports
  std::vector<std::string> others{};     // prefixes of other models in the file
};

/// The only model of the file, or the one that `wanted` names. Of several the averaged one (ema, swa), else
/// the teacher; copies that training keeps for itself (momentum) do not count. `anchor` is the patch tensor
/// of a layout file, "" to look for those of the families. Throws Error (argument) that lists the models if
/// none of them goes first, or if `wanted` names none.
FoundModel find_model(const TensorFile& file, std::string_view wanted, std::string_view anchor);

}  // namespace vit::internal
