// What a training script noted beside the tensors: the arguments of the run tell which architecture was
// trained.
#pragma once

#include <string>

#include "vit/weights/architectures/timm_args.h"
#include "vit/weights/families/source_files.h"

namespace vit::internal {

/// The name of a known architecture under a key such as "arch", "args.model" or
/// "hyper_parameters.model_name", or inside the name of a run of OpenCLIP; "" if none is noted.
std::string noted_architecture(const SourceFiles& files);

/// Applies what timm's train.py noted of the arguments of its model ("args.gp", "args.model_kwargs").
void apply_noted_args(const SourceFiles& files, TimmArgs& args);

}  // namespace vit::internal
