// Vectors of pages and of questions to them, as commands use them; the ring pages makes them. Letters: t
// vectors of a page, m of a question, E numbers of a vector.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "apps/vit/options/options.h"
#include "apps/vit/outputs/run_facts.h"
#include "vit/base/tensor.h"
#include "vit/model.h"
#include "vit/outputs.h"

namespace vit::app {

/// The name of the feature.
inline constexpr const char* kPageFeature = "page";

/// A model of pages ready to run, for one thread at a time.
class PageVectors {
 public:
  /// The score of a page (t, E); threads may share it.
  using Score = std::function<float(TensorView<const float> page)>;

  virtual ~PageVectors() = default;
  /// The image tower, which runs Output::merged.
  virtual const std::shared_ptr<const Model>& image() const = 0;
  virtual std::size_t dim() const = 0;             // E
  virtual std::size_t num_parameters() const = 0;  // besides those of the image tower
  /// The record of results of these options: its fingerprint is that of tower and encoder.
  virtual RunModel record(const CommonOptions& options) const = 0;
  /// (t, E) of an image whose visual tokens were requested. Throws Error if they are not finite.
  virtual Tensor<float> page(const ImageOutputs& outputs) = 0;
  virtual Tensor<float> question(std::string_view text) = 0;  // (m, E)
};

/// Loads --model. Throws Error (unsupported) for a model that gives no vectors of pages.
using LoadPageVectors = std::unique_ptr<PageVectors> (*)(const CommonOptions& options);

}  // namespace vit::app
