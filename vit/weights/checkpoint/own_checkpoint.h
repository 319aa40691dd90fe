// Checkpoints of the caller's own: a configuration with random numbers, or with tensors in memory.
#pragma once

#include <map>
#include <string>

#include "vit/weights/checkpoint/loader.h"

namespace vit::internal {

/// Fills the weights of a valid configuration with numbers that depend only on the seed.
void fill_randomly(LoadedTower<ModelConfig>& checkpoint, unsigned seed);
/// A tensor of seeded nearly normal numbers, made when they are loaded: near 1, or of a variance that keeps
/// sums of `num_inputs` products with them of order one; of vectors small ones.
WeightTensor random_tensor(const Shape& shape, bool near_one, std::size_t num_inputs, unsigned seed);

/// A configuration with seeded random weights. Throws Error for one that is not valid.
LoadedTower<ModelConfig> random_checkpoint_of(const ModelConfig& config, const ModelOptions& options,
                                              unsigned seed = 0);

/// Tensors in memory by their canonical names, which must outlive the weights. Throws Error naming all that
/// are missing, misshaped or left over.
LoadedTower<ModelConfig> checkpoint_of_tensors(const ModelConfig& config,
                                               const std::map<std::string, TensorView<const float>>& tensors,
                                               const ModelOptions& options);

}  // namespace vit::internal
