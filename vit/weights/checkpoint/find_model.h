// Finds the model's tensors in a file. A training script stores it under its own names, in a dictionary
// next to the optimizer, inside wrappers, or twice: it is located by its patch embedding weight.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Removes name components added by wrappers of modules: DistributedDataParallel,
/// torch.compile, FSDP, activation checkpoints. Blocks that DINOv2 trains in chunks lose the number of their
/// chunk. Names that would become equal are unchanged.
TensorFile without_wrappers(TensorFile file);

/// The location of a model in a file.
struct ModelPlace {
  std::string prefix;  // before the patch embedding weight, and all names of the image tower
  std::string root;    // before the whole model, which may have more than an image tower
};

struct FoundModel {
  TensorFile tensors;                    // of the dictionary of the model, by their names in it
  std::optional<ModelPlace> place;       // nothing if there is no patch embedding
  std::string chosen{};                  // the prefix in the whole file, as in ModelOptions::prefix
  std::string container{};               // the dictionary, "" for the whole file
  bool has_neighbors = false;            // the model is a member of something, which may have others
  std::vector<std::string> passed_by{};  // other members of the file, for reports
  std::vector<std::string> others{};     // prefixes of other models in the file
  std::string head{};                    // of a classifier under a name of the user, that name
};

/// Names of a layout file.
struct OwnNames {
  std::string patch{};  // of the weight of the patch embedding; "" to look for those of the families
  std::string head{};   // of the classifier, without ".weight"; "" if there is none
};

/// The only model of the file, or the one selected by `wanted`. Of several the averaged one (ema, swa), else
/// the teacher; copies used only in training (momentum) are ignored. Throws Error (argument) that lists the
/// models if none of them is preferred, or if `wanted` selects none; Error (unsupported) if there are several
/// and config.json's model_type is `unknown_type`, which no family reads.
FoundModel find_model(const TensorFile& file, std::string_view wanted, const OwnNames& own = {},
                      std::string_view unknown_type = {});

}  // namespace vit::internal
