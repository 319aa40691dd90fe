// Embeds images for an index: one vector of length 1 per image, or many per page.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/options/features.h"
#include "apps/vit/rings/index/index_folder.h"
#include "apps/vit/run/run_images.h"
#include "vit/config/output_table.h"

namespace vit::app {

/// The output that `features` ("" for the default) and the options select. Throws UsageError unless it is one
/// vector for each image.
struct VectorFeature {
  VectorFeature(const std::string& features, const Model& model);

  /// The vector of an image, normalized. Throws Error if it is not finite or zero.
  std::vector<float> vector(const ImageOutputs& outputs) const;

  /// C: length of a vector.
  std::size_t dim(const ModelConfig& config) const { return internal::vector_width(output, config); }

  Output output;
};

/// The model, feature and preprocessing of a run, as recorded in index.json.
IndexModel index_model(const CommonOptions& options, const Model& model, const VectorFeature& feature);
/// The same of pages.
IndexModel index_model(const CommonOptions& options, const PageVectors& pages);
/// The option --trust-index.
Option trust_option(bool& trusts_index);
inline IndexTrust index_trust(bool trusts_index) {
  return trusts_index ? IndexTrust::trusted : IndexTrust::checked;
}

/// The files of the index in `folder`, and the images in it, that a run with a page `html` reads or may not
/// replace; none without a page, or for a new one outside of a sandbox.
std::vector<std::filesystem::path> files_of_index(const CommonOptions& options,
                                                  const std::filesystem::path& folder,
                                                  std::span<const IndexedFile> indexed,
                                                  const std::filesystem::path& html);

/// The file system's data about an input; width and height are not set. Throws Error if it is gone.
IndexedFile describe_input(const Input& input);

/// A run that embeds its inputs.
class IndexWork : public ImageWork {
 public:
  std::string add(ImageRun& run, const StreamedImage& image) final;

 protected:
  /// Takes the vector of an input that could be embedded, or the vectors of a page.
  virtual void take(std::size_t index, const IndexedFile& file, std::vector<float> vectors) = 0;

  /// The files of the inputs as they were before they were read, if load() notes them: what changes later is
  /// embedded again by the next run.
  std::vector<IndexedFile> before_;
  // one of these is set by load()
  std::optional<VectorFeature> feature_;
  std::unique_ptr<PageVectors> pages_;
};

}  // namespace vit::app
