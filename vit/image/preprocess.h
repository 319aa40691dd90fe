// From a picture to what a model sees: resize, crop, pad, normalise, by the rules of the library that a
// checkpoint comes from. The rules are PreprocessConfig; reading them from a checkpoint's files is
// weights/checkpoint/preprocess_config.h.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "vit/base/tensor.h"
#include "vit/config.h"
#include "vit/image/decode.h"
#include "vit/image/image.h"

namespace vit {

/// The rules of `config` for another target size (see InputSize). `patch_size` matters to native alone.
/// A resize that was followed by a crop keeps its margin: floor(target / crop_pct) in timm's rules, the ratio
/// of resize to crop elsewhere (for a shortest edge, that of the longer edges). Throws Error where the rules
/// have no target to replace.
PreprocessConfig with_input_size(const PreprocessConfig& config, const InputSize& size,
                                 std::size_t patch_size);

/// "bicubic" for ResizeFilter::bicubic, as Pillow's documentation spells it.
const char* filter_name(ResizeFilter filter);

/// Immutable; one object may serve many threads.
class Preprocessor {
 public:
  /// Throws Error for rules that contradict themselves or that no resampler has.
  explicit Preprocessor(const PreprocessConfig& config);
  Preprocessor(const PreprocessConfig& config, const InputSize& size, std::size_t patch_size)
      : Preprocessor(with_input_size(config, size, patch_size)) {}

  const PreprocessConfig& config() const noexcept { return config_; }
  /// How files are to be decoded for these rules.
  DecodeOptions decode_options() const noexcept;

  /// Size of the result for a picture of `in`. Throws Error for a picture that the rules cannot handle.
  ImageSize output_size(ImageSize in) const;

  /// Normalised planes R, G, B of `image`, written to `out` (3, H, W) with (H, W) = output_size(). `threads`:
  /// 0 = all; the result does not depend on it.
  void run(ImageView image, TensorView<float> out, int threads = 1) const;
  /// The same as a new tensor.
  Tensor<float> run(ImageView image, int threads = 1) const;

  /// Whether the rules have an 8-bit picture before normalisation.
  bool has_crop_stage() const noexcept { return config_.normalize != NormalizeRule::rescale_first; }
  /// The 8-bit picture after resize, crop and padding, before normalisation. Throws Error for rules that
  /// resize in float (DINOv3 of Hugging Face) and so have none.
  Image crop_stage(ImageView image, int threads = 1) const;

  /// The rules in words, a few lines without a newline at the end.
  std::string describe() const;

 private:
  /// One edge: resized to `resized`, of which [begin, begin + count) lands at [at, at + count) of `out`
  /// pixels.
  struct EdgePlan {
    std::size_t resized = 0;
    std::size_t out = 0;
    std::size_t begin = 0;
    std::size_t at = 0;
    std::size_t count = 0;
  };
  struct Plan {
    EdgePlan rows;
    EdgePlan columns;
    bool padded() const { return rows.count < rows.out || columns.count < columns.out; }
  };

  Plan plan(ImageSize in) const;
  EdgePlan plan_edge(std::size_t resized, std::size_t crop) const;
  ImageSize resized_size(ImageSize in) const;
  void run_in_float(ImageView image, const Plan& plan, int threads, TensorView<float> out) const;
  float normalized(float value, std::size_t channel) const;

  PreprocessConfig config_;
  std::array<std::array<float, 256>, 3> levels_{};  // normalised value of every byte, per channel
};

}  // namespace vit
