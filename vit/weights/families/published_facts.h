// What a file of a published architecture says beyond its name: what the tensors decide, whatever a name or a
// config.json says; and what a training script noted next to them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "vit/weights/architectures/timm_args.h"
#include "vit/weights/families/layout.h"
#include "vit/weights/families/source_files.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

// stored_facts.cpp: what the tensors decide, and what has to be asked for because they contradict it.

/// Sets what the shapes and the presence of tensors decide: a packed SwiGLU, layer scale, biases, registers,
/// and whether the position table has rows for prefix tokens.
void settle_by_tensors(const SourceFiles& files, const Layout& layout, TimmArgs& args);

/// Throws Error (argument) naming the override that helps where the position table fits no image of the
/// configured size, or where the last norm lies elsewhere than the pooling says. A model that was saved for
/// only its features, without any last norm, loses norm and pooling, which a note says.
void check_facts(const SourceFiles& files, const Layout& layout, ModelConfig& config,
                 std::vector<std::string>& notes);

/// Whether what the layout calls a classifier is the projection of a tower that was trained with texts, whose
/// published width is projection_dim (0 = this architecture has none): it is as wide, or its bias is zero,
/// and its outputs have no names.
bool head_projects(const SourceFiles& files, const Layout& layout, std::size_t projection_dim,
                   const ModelConfig& config);

// noted_facts.cpp: the arguments of a training run, which say what was trained.

/// The name of a known architecture under a key such as "arch", "args.model" or
/// "hyper_parameters.model_name", or inside the name of a run of OpenCLIP; "" if none is noted.
std::string noted_architecture(const SourceFiles& files);

/// The tensors of the projector that such a script trains in the place of a classifier; none in other files.
std::span<const Ignored> noted_projector(const SourceFiles& files);

/// Applies what timm's train.py noted of the arguments of its model ("args.gp", "args.model_kwargs"), MAE's
/// fine-tuning ("args.global_pool") and MoCo v3 of the heads of its models.
void apply_noted_args(const SourceFiles& files, TimmArgs& args);

}  // namespace vit::internal
