// The model that the shared options name: loading it, and confining the process to its files.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/options.h"
#include "vit/text_encoder.h"

namespace vit::app {

/// Throws UsageError for a command that needs weights if only --architecture is given.
void check_has_weights(const CommonOptions& options);
/// Throws UsageError if an output is one of the weight files, which the results would replace.
void check_no_weights(std::span<const std::filesystem::path> outputs,
                      std::span<const std::filesystem::path> weights);

/// --model, or the model shipped with the program. Throws Error if that is missing.
std::filesystem::path model_path(const CommonOptions& options);
/// With --sandbox: from now on this process reads only the model, the inputs and `others`, and writes next to
/// the outputs. See enter_sandbox().
void confine(const CommonOptions& options, std::span<const Input> inputs,
             std::vector<std::filesystem::path> others, std::vector<std::filesystem::path> outputs);
/// The options for loading the text tower of the model of `options`.
TextOptions text_options(const CommonOptions& options);

// These load --model; they throw UsageError as check_has_weights() does.
std::shared_ptr<const Model> load_model(const CommonOptions& options);
std::shared_ptr<const TextTower> load_text_tower(const CommonOptions& options);
ImageAndText load_both_towers(const CommonOptions& options);

}  // namespace vit::app
