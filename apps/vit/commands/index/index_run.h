// Embeds images for an index: one vector of length 1 per image.
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

/// The output that `features` ("" for the default) and the options select. Throws UsageError unless it is one
/// vector for each image.
struct VectorFeature {
  VectorFeature(const std::string& features, const ModelConfig& config);

  /// The vector of an image, normalized. Throws Error if it is not finite or zero.
  std::vector<float> vector(const ImageOutputs& outputs) const;

  /// C: length of a vector.
  std::size_t dim(const ModelConfig& config) const { return internal::vector_width(output, config); }

  Output output;
};

/// The model, feature and preprocessing of a run, as recorded in index.json.
IndexModel index_model(const CommonOptions& options, const Model& model, const VectorFeature& feature);
/// Takes from the index in `folder` what the command line does not set: the model, how it is loaded, the size
/// and the precision.
void inherit_options(const IndexFacts& facts, const std::filesystem::path& folder, CommonOptions& options);

/// The option --trust-index.
Option trust_option(bool& trusts_index);
inline IndexTrust index_trust(bool trusts_index) {
  return trusts_index ? IndexTrust::trusted : IndexTrust::checked;
}

/// confine() for a command whose page `html`, if given, shows images of an index.
void confine_collection(const CommonOptions& options, std::span<const Input> inputs,
                        std::span<const IndexedFile> indexed, const std::filesystem::path& html);

/// The file system's data about an input; width and height are not set. Throws Error if it is gone.
IndexedFile describe_input(const Input& input);

/// Calls consume(index, file, vector) for each input of a run that could be embedded.
void embed_all(ImageRun& run, const VectorFeature& feature,
               const std::function<void(std::size_t, const IndexedFile&, std::vector<float>)>& consume);

}  // namespace vit::app
