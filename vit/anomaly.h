// Anomaly detection without training: the patch features of good images are stored, and an image is scored by
// the distance of its patches to them. The method is PatchCore (Roth et al. 2022) on the frozen features of a
// Vision Transformer, as in AnomalyDINO (Damm et al. 2025).
// Letters: h, w patches per column and row, C features of a patch, m patches kept, H, W pixels.
//
// ```
// vit::Session session(vit::Model::load("model"), {.input_size = {.kind = vit::InputSize::Kind::native}});
// vit::AnomalyBuilder builder(session, {.coreset = {.fraction = 0.1}});
// vit::Outputs outputs;
// for (const char* good : {"photo.jpg", "other.jpg"}) {
//   session.run(good, builder.request(), outputs);
//   builder.add(outputs[0], good);
// }
// const vit::AnomalyModel bank = builder.build();
// bank.save("bank.safetensors");
// session.run("photo.jpg", bank.request(session.model()), outputs);
// const vit::AnomalyResult result = bank.score(outputs[0]);  // result.score, result.is_anomalous()
// ```
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"
#include "vit/outputs.h"
#include "vit/session.h"

namespace vit {

/// How the distances of its patches are combined into the score of an image.
enum class AnomalyScore {
  top_percent,  // mean of the largest 1 % of the distances, at least one (AnomalyDINO)
  maximum,      // the largest distance
  reweighted,   // PatchCore, equation 7: the largest Euclidean distance times 1 - its softmax share among
                // the distances to the nine patches nearest to the one found
};

/// "top-percent", "maximum" or "reweighted".
VIT_API const char* to_string(AnomalyScore score);

/// How many patches of the good images are kept: all, or a subset chosen by greedy k-center.
struct CoresetSize {
  double fraction = 1.0;  // of the patches, above 0
  std::size_t count = 0;  // patches; 0 = by the fraction
};

/// Settings of a bank of good patches.
struct AnomalyOptions {
  /// Blocks whose tokens are the features, 0 .. depth - 1; for several, the vectors of length 1 are
  /// concatenated. Empty = the patch tokens after the final norm.
  std::vector<std::size_t> layers{};
  /// Edge of the square of patches whose mean is the feature of the center patch, 3 in PatchCore;
  /// odd. At the edges of an image, the mean is over existing patches.
  std::size_t neighborhood = 1;
  CoresetSize coreset{};                           // how many patches are kept
  AnomalyScore score = AnomalyScore::top_percent;  // of an image, from its patches
  /// Patches on the background side of the first principal component of the good images count as good. The
  /// foreground is the side of the center of the images.
  bool foreground = false;
  /// The threshold is at least as large as this share of the held-out scores of good images.
  double quantile = 0.95;
  /// Number of patches collected before the coreset is chosen: bounds memory to this many times
  /// 8 C + 24 bytes. If the images have more, they are added in parts.
  std::size_t max_patches = std::size_t{1} << 20;
  int threads = 0;  // 0 = all; results do not depend on it
};

/// The result for an image.
struct AnomalyResult {
  float score = 0.0f;                // larger is more anomalous
  std::optional<float> threshold{};  // of the bank
  Tensor<float> distances;           // (h, w): 1 - cosine to the nearest good patch
  /// Nothing without a threshold.
  std::optional<bool> is_anomalous() const {
    return threshold ? std::optional(score > *threshold) : std::nullopt;
  }
};

/// A bank of good patches, which is built, saved, loaded, and scores images. Immutable; share it between
/// threads.
class VIT_API AnomalyModel {
 public:
  /// Reads a bank. Throws Error naming the file and its defect.
  static AnomalyModel load(const std::filesystem::path& path);
  /// Writes the bank to a safetensors file, atomically: `patches` (m, C), `images` (m) and, with a
  /// foreground, `background` (2, C) are its tensors, everything else is in the metadata.
  void save(const std::filesystem::path& path) const;

  /// The request for `model`. Throws Error naming both models if the bank belongs to another one.
  Request request(const Model& model) const;
  /// Compares the patches of an image, run with request(), with the bank. Throws Error for features that are
  /// not finite and for those of another width. `threads`: 0 = all; the result does not depend on it.
  AnomalyResult score(const ImageOutputs& outputs, int threads = 0) const;

  const AnomalyOptions& options() const noexcept { return options_; }      // as the bank was built
  const InputSize& input_size() const noexcept { return input_size_; }     // what its images were run with
  std::size_t num_patches() const noexcept { return patches_.dim(0); }     // m
  std::size_t num_features() const noexcept { return patches_.dim(1); }    // C
  std::size_t num_patches_seen() const noexcept { return num_seen_; }      // before the coreset
  std::span<const std::string> images() const noexcept { return names_; }  // good images, as they were named
  /// Score of each image against the patches of the others; empty if there was only one.
  std::span<const float> held_out_scores() const noexcept { return held_out_; }
  /// The threshold, if images were held out.
  std::optional<float> threshold() const noexcept { return threshold_; }
  /// Whether it was given by with_threshold().
  bool is_threshold_given() const noexcept { return is_threshold_given_; }
  /// The same bank with another threshold, or none: std::move(bank).with_threshold(0.3f). It stays when
  /// images are added. Throws Error unless it is a number from 0 to 1e9.
  AnomalyModel with_threshold(std::optional<float> threshold) &&;
  /// Confidence that at least options().quantile of all good images have a score up to the threshold: the
  /// binomial confidence of an order statistic, independent of the distribution.
  double confidence() const noexcept { return confidence_; }
  const std::string& model_name() const noexcept { return model_; }         // for messages
  const std::string& fingerprint() const noexcept { return fingerprint_; }  // LoadReport::fingerprint
  /// Free text from the builder of the bank, such as how the model was loaded.
  const std::string& source() const noexcept { return source_; }
  /// The same bank with that text: std::move(bank).with_source(...).
  AnomalyModel with_source(std::string source) &&;

 private:
  friend class AnomalyBuilder;
  struct Search;
  AnomalyModel() = default;
  /// Patches [skip_begin, skip_end) of the bank are ignored.
  AnomalyResult judge(TensorView<const float> features, GridSize grid, std::size_t skip_begin,
                      std::size_t skip_end, int threads) const;
  void prepare();       // the search structures, from patches_
  void set_quantile();  // threshold_ and confidence_, from held_out_, unless the threshold is given

  AnomalyOptions options_;
  InputSize input_size_;
  std::string model_, fingerprint_, source_;
  std::vector<std::string> names_;
  std::vector<float> held_out_;
  std::size_t num_seen_ = 0;
  std::optional<float> threshold_;
  bool is_threshold_given_ = false;  // by with_threshold(), not by a quantile
  double confidence_ = 0;
  Tensor<float> patches_;                // (m, C) of length 1, image after image
  std::vector<std::uint32_t> of_image_;  // (m) index into names_ of the image of a patch
  Tensor<float> background_;             // (2, C): mean and first component, towards the foreground; or none
  std::shared_ptr<const Search> search_;
};

/// Collects good images and builds a bank from them.
class VIT_API AnomalyBuilder {
 public:
  /// For images that a session of this model and input size runs. Throws Error for invalid options, and for
  /// layers that the model does not have.
  explicit AnomalyBuilder(const Session& session, AnomalyOptions options = {});
  /// Continues from a bank, with its options: images are added to its patches. Throws Error if it belongs to
  /// another model or was built with another input size.
  static AnomalyBuilder resume(const Session& session, AnomalyModel bank, int threads = 0);
  ~AnomalyBuilder();
  AnomalyBuilder(AnomalyBuilder&&) noexcept;
  AnomalyBuilder& operator=(AnomalyBuilder&&) noexcept;

  /// The request for the model.
  Request request() const;
  /// Adds the outputs of a good image. Consecutive calls with one name add views of one image, its rotations
  /// for example, which are held out together; the first one is scored. Throws Error for features
  /// that are not finite.
  void add(const ImageOutputs& outputs, const std::string& name);
  std::size_t num_images() const noexcept;  // added so far
  /// Chooses the coreset and scores each image with the patches of the others. Throws Error without an image.
  AnomalyModel build();

 private:
  struct State;
  explicit AnomalyBuilder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The distances (h, w) of an image resampled to its pixels: (H, W) = size, bilinear between the centers of
/// patches, and smoothed by a Gaussian of `sigma` pixels (0 = none; truncated at 4 sigma, mirrored at the
/// edges, as scipy's gaussian_filter). `map`: position of the model's input on the image; pixels outside have
/// the value of the nearest patch. `patch_size`: edge of a patch in pixels of the input.
VIT_API Tensor<float> anomaly_map(TensorView<const float> distances, ImageSize size, const SourceMap& map,
                                  std::size_t patch_size, double sigma = 4.0);

}  // namespace vit
