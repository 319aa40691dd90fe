// Embedding images for an index: one vector of length 1 for each.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/commands/index/index_folder.h"
#include "apps/vit/options/features.h"
#include "apps/vit/run/image_run.h"
#include "vit/config/output_table.h"

namespace vit::app {

/// What `features`, "" for the default, and the options of a run give. Throws UsageError unless it is one
/// vector for each image.
struct VectorFeature {
  VectorFeature(const std::string& features, const ModelConfig& config);

  /// The vector of an image, normalized. Throws Error if it is not finite or zero.
  std::vector<float> vector(const ImageOutputs& outputs) const;

  /// C: numbers of a vector.
  std::size_t dim(const ModelConfig& config) const { return internal::vector_width(output, config); }

  Output output;
};

/// The model, feature and preprocessing of a run, as index.json keeps them.
IndexModel index_model(const CommonOptions& options, const Model& model, const VectorFeature& feature);
/// Takes from the index in `folder` what the command line leaves open: the model, how it is loaded, the size
/// and the precision.
void inherit_options(const IndexFacts& facts, const std::filesystem::path& folder, CommonOptions& options);

/// --trust-index, and what it means for reading an index.
Option trust_option(bool& trusts_index);
inline IndexTrust index_trust(bool trusts_index) {
  return trusts_index ? IndexTrust::trusted : IndexTrust::checked;
}

/// confine() of a command whose page `html`, if it is to write one, shows images of an index.
void confine_collection(const CommonOptions& options, std::span<const Input> inputs,
                        std::span<const IndexedFile> indexed, const std::filesystem::path& html);

/// What the file system tells about an input; width and height are left open. Throws Error if it is gone.
IndexedFile describe_input(const Input& input);

/// Calls consume(index, file, vector) for each input of a run that could be embedded.
void embed_all(ImageRun& run, const VectorFeature& feature,
               const std::function<void(std::size_t, const IndexedFile&, std::vector<float>)>& consume);

}  // namespace vit::app
