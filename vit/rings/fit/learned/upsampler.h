// What NAF, AnyUp and JAFAR have in common: queries of pixels and keys of patches, made of the image by small
// networks, and attention whose values are the features of the patches. Letters: h, w patches, D channels of
// queries and keys, C features.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vit/config/load_report.h"
#include "vit/image/image.h"
#include "vit/io/tensor_file.h"
#include "vit/pixel_upsampler.h"
#include "vit/rings/fit/learned/tiled_network.h"

namespace vit {

namespace internal {

/// Pixels [begin, end) along an axis, and the patches that they attend to; a patch may occur twice.
struct AxisWindow {
  std::size_t begin = 0, end = 0;
  std::vector<std::uint32_t> patches;
};
/// Adds the patches of the next pixel, which joins the last window if they are the same.
void add_pixel(std::vector<std::uint32_t> patches, std::vector<AxisWindow>& windows);

/// The features of patches (h w, C).
struct PatchMap {
  MapSize grid;
  TensorView<const float> features;
};

/// Reads the tensors of a file by name and shape.
class UpsamplerTensors {
 public:
  UpsamplerTensors(const TensorFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  bool has(const std::string& name) const { return file_.find(prefix_ + name) != nullptr; }
  /// Throws Error naming the tensor, the shape expected and that found, and for numbers that are not finite.
  Tensor<float> take(const std::string& name, const std::vector<std::size_t>& shape);
  /// The length of a dimension, 1 to 4096.
  std::size_t dim(const std::string& name, std::size_t axis) const;
  /// Throws Error for a tensor of the network that was not taken: of more layers than those of the release.
  void refuse_unread() const;
  /// The tensors taken.
  const LoadReport& taken() const { return taken_; }
  [[noreturn]] void fail_format(const std::string& message) const;

 private:
  const TensorEntry& at(const std::string& name) const;

  const TensorFile& file_;
  std::string prefix_;
  LoadReport taken_;
};

}  // namespace internal

struct PixelUpsampler::Network {
  virtual ~Network() = default;

  std::string name, fingerprint;
  std::filesystem::path path;                   // absolute
  std::vector<internal::TiledNetwork> queries;  // of the normalized image; joined: (D)
  internal::PixelRotation rotation;             // of the joined queries, or empty
  std::size_t num_heads = 4;
  bool own_channels = false;  // each head is for C / num_heads of the features; else their mean is for all

  std::size_t query_dim() const {
    std::size_t sum = 0;
    for (const internal::TiledNetwork& of : queries) sum += of.out_channels();
    return sum;
  }
  /// Throws Error for an image or features that it cannot be used for.
  virtual void check(internal::MapSize image, const internal::PatchMap& patches) const = 0;
  /// Networks of the image whose means over the patches are for keys(); none: the queries.
  virtual const internal::TiledNetwork* key_network() const { return nullptr; }
  /// Keys (h w, D), of the means of the key network (h w, ...).
  virtual Tensor<float> keys(Tensor<float> means, const internal::PatchMap& patches, int threads) const = 0;
  /// The patches that the pixels along an axis attend to.
  virtual std::vector<internal::AxisWindow> windows(std::size_t num_pixels,
                                                    std::size_t num_patches) const = 0;
};

namespace internal {

std::unique_ptr<PixelUpsampler::Network> load_naf(UpsamplerTensors& tensors);
std::unique_ptr<PixelUpsampler::Network> load_anyup(UpsamplerTensors& tensors);
std::unique_ptr<PixelUpsampler::Network> load_jafar(UpsamplerTensors& tensors);

/// A convolution with a norm before it. `bias`: whether it has one.
NetworkStage convolution_stage(UpsamplerTensors& tensors, const std::string& name, std::size_t out,
                               std::size_t in, std::size_t edge, bool bias);
/// gamma and beta of a group norm followed by SiLU, of the input of a stage.
void add_group_norm(UpsamplerTensors& tensors, const std::string& name, NetworkStage& stage);

}  // namespace internal
}  // namespace vit
