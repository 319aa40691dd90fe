// Analysis of features without labels: their principal components, and which rows of two sets belong
// together. Letters: n rows, C features, K components.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

// Principal components of rows added in parts, such as the patches of one image after another.

/// mean_, components_ and explained_variance_ of scikit-learn's PCA.
struct VIT_API PrincipalComponents {
  Tensor<float> mean;             // (C)
  Tensor<float> components;       // (K, C), of length 1; the loading of largest magnitude is positive
  std::vector<double> variances;  // (K), largest first, of n - 1 degrees of freedom

  /// The coordinates (n, K) of rows (..., C): (row - mean) . components. Throws Error for other widths.
  Tensor<float> transform(TensorView<const float> rows) const;
};

/// Collects mean and covariance in double precision; memory is C x C numbers, independent of the number of
/// rows. Must not be shared between threads.
/// ```
/// vit::FeatureExtractor extractor("model");
/// vit::PcaAccumulator pca;
/// for (const char* const image : {"photo.jpg", "other.jpg"}) pca.add(extractor.extract(image).patches());
/// const vit::PrincipalComponents components = pca.fit(3);
/// ```
class VIT_API PcaAccumulator {
 public:
  PcaAccumulator();
  ~PcaAccumulator();
  PcaAccumulator(PcaAccumulator&&) noexcept;
  PcaAccumulator& operator=(PcaAccumulator&&) noexcept;

  /// Adds rows (..., C). Throws Error if C differs from the rows before.
  void add(TensorView<const float> rows);
  std::size_t num_rows() const noexcept;  // added so far
  /// The first `num_components` principal components of all rows. Throws Error for more components than there
  /// are rows or features.
  PrincipalComponents fit(std::size_t num_components) const;

 private:
  struct Moments;
  std::unique_ptr<Moments> moments_;
};

/// Row `first` of one set and row `second` of another, each the nearest of its set to the other.
struct NearestPair {
  std::size_t first = 0;   // row of a
  std::size_t second = 0;  // row of b
  double cosine = 0;       // of the two rows
};

/// Pairs of rows of a (..., C) and b (..., C), each of which has the largest cosine with the other among its
/// set, in the order of a. For equal cosines the first row is used; the cosine with a zero row is 0. Cosines
/// are computed in double, in blocks: memory is linear in the rows. `threads`: 0 = all; the result does not
/// depend on it. Throws Error if the widths differ or a set is empty.
VIT_API std::vector<NearestPair> mutual_nearest(TensorView<const float> a, TensorView<const float> b,
                                                int threads = 0);

}  // namespace vit
