// What a training script noted next to the tensors: the arguments of the run say which architecture was
// trained.
#pragma once

#include <span>
#include <string>

#include "vit/weights/architectures/timm_args.h"
#include "vit/weights/families/source_files.h"

namespace vit::internal {

/// The name of a known architecture under a key such as "arch", "args.model" or
/// "hyper_parameters.model_name", or inside the name of a run of OpenCLIP; "" if none is noted.
std::string noted_architecture(const SourceFiles& files);

/// The tensors of the projector that such a script trains in the place of a classifier; none in other files.
std::span<const Ignored> noted_projector(const SourceFiles& files);

/// Applies what timm's train.py noted of the arguments of its model ("args.gp", "args.model_kwargs"), MAE's
/// fine-tuning ("args.global_pool") and MoCo v3 of the heads of its models.
void apply_noted_args(const SourceFiles& files, TimmArgs& args);

}  // namespace vit::internal
