#include "vit/rings/fit/learned/upsampler.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/fingerprint.h"
#include "vit/weights/checkpoint/open_weights.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kUpsampler{"pixel upsampler", ErrorKind::format};

/// What is before `name` in the first tensor that ends with it, if there is one.
std::optional<std::string> prefix_before(const TensorFile& file, const std::string& name) {
  for (const TensorEntry& entry : file.entries()) {
    if (entry.name == name || entry.name.ends_with("." + name))
      return entry.name.substr(0, entry.name.size() - name.size());
  }
  return std::nullopt;
}

}  // namespace

const TensorEntry& UpsamplerTensors::at(const std::string& name) const {
  const TensorEntry* const found = file_.find(prefix_ + name);
  VIT_CHECK(found != nullptr, kUpsampler.with(ErrorKind::mismatch), file_.path().string(), ": no tensor ",
            in_quotes(prefix_ + name), "; is it the whole file of the release?");
  return *found;
}

void UpsamplerTensors::fail_format(const std::string& message) const {
  fail(kUpsampler.with(ErrorKind::mismatch), file_.path().string(), ": ", message);
}

std::size_t UpsamplerTensors::dim(const std::string& name, std::size_t axis) const {
  const TensorEntry& entry = at(name);
  constexpr std::size_t kMost = 4096;
  VIT_CHECK(axis < entry.shape.size() && entry.shape[axis] >= 1 && entry.shape[axis] <= kMost,
            kUpsampler.with(ErrorKind::mismatch), entry.describe(), ": dimension ", axis, " must be 1 to ",
            kMost);
  return entry.shape[axis];
}

Tensor<float> UpsamplerTensors::take(const std::string& name, const std::vector<std::size_t>& shape) {
  const TensorEntry& entry = at(name);
  VIT_CHECK(entry.shape == shape, kUpsampler.with(ErrorKind::mismatch), entry.describe(),
            ": expected the shape ", shape_text(shape));
  Tensor<float> out = to_float(entry);
  VIT_CHECK(std::ranges::all_of(out.flat(), [](float x) { return std::isfinite(x); }), kUpsampler,
            entry.describe(), ": not all numbers are finite; a damaged file?");
  taken_.tensors.emplace_back().name = entry.name;
  return out;
}

void UpsamplerTensors::refuse_unread() const {
  // Values are the features themselves.
  constexpr std::string_view kOfValues[] = {".norm_v.weight", ".v_proj_weight", ".out_proj.weight",
                                            ".out_proj.bias"};
  std::set<std::string_view> taken, parts;
  for (const TensorUse& use : taken_.tensors) {
    taken.insert(use.name);
    parts.insert(std::string_view(use.name).substr(0, use.name.find('.', prefix_.size())));
  }
  for (const TensorEntry& entry : file_.entries()) {
    const std::string_view name = entry.name;
    const bool is_of_network =
        name.starts_with(prefix_) && parts.contains(name.substr(0, name.find('.', prefix_.size())));
    const bool is_of_values = std::ranges::any_of(kOfValues, [&](auto end) { return name.ends_with(end); });
    VIT_CHECK(!is_of_network || is_of_values || taken.contains(name), kUpsampler.with(ErrorKind::unsupported),
              entry.describe(), ": the network of the release has no such tensor");
  }
}

void internal::add_pixel(std::vector<std::uint32_t> patches, std::vector<AxisWindow>& windows) {
  const std::size_t pixel = windows.empty() ? 0 : windows.back().end;
  if (windows.empty() || windows.back().patches != patches)
    windows.push_back({.begin = pixel, .end = pixel, .patches = std::move(patches)});
  windows.back().end = pixel + 1;
}

NetworkStage internal::convolution_stage(UpsamplerTensors& tensors, const std::string& name, std::size_t out,
                                         std::size_t in, std::size_t edge, bool bias) {
  const Tensor<float> weight = tensors.take(name + ".weight", {out, in, edge, edge});
  const Tensor<float> added = bias ? tensors.take(name + ".bias", {out}) : Tensor<float>();
  return {.convolution = Convolution(weight, added.flat(), 1, kernels::default_kernels()), .reflects = true};
}

void internal::add_group_norm(UpsamplerTensors& tensors, const std::string& name, NetworkStage& stage) {
  const std::size_t channels = stage.convolution.in_channels();
  const Tensor<float> gamma = tensors.take(name + ".weight", {channels});
  const Tensor<float> beta = tensors.take(name + ".bias", {channels});
  stage.norm = StageNorm::group_silu;
  stage.gamma.assign(gamma.flat().begin(), gamma.flat().end());
  stage.beta.assign(beta.flat().begin(), beta.flat().end());
}

std::shared_ptr<const PixelUpsampler> PixelUpsampler::load(const std::filesystem::path& path) {
  const TensorFile file = open_weights(path);
  struct Kind {
    const char* name;
    const char* sign;  // a tensor that only this network has
    std::unique_ptr<PixelUpsampler::Network> (*load)(UpsamplerTensors&);
  };
  constexpr Kind kKinds[]{{"NAF", "image_encoder.sem_encoder.0.weight", load_naf},
                          {"AnyUp", "key_features_encoder.0.basis", load_anyup},
                          {"JAFAR", "sft_key.gamma.weight", load_jafar}};
  for (const Kind& kind : kKinds) {
    const auto found = prefix_before(file, kind.sign);
    if (!found) continue;
    UpsamplerTensors tensors(file, *found);
    std::unique_ptr<PixelUpsampler::Network> network = kind.load(tensors);
    tensors.refuse_unread();
    network->name = kind.name;
    network->path = std::filesystem::absolute(path).lexically_normal();
    network->fingerprint = internal::fingerprint(tensors.taken(), file);
    return std::make_shared<const PixelUpsampler>(std::move(network));
  }
  fail(kUpsampler.with(ErrorKind::unsupported), file.path().string(),
       ": no upsampler that is known; NAF, AnyUp and JAFAR are, by the tensors of their releases");
}

PixelUpsampler::PixelUpsampler(std::unique_ptr<const Network> network) : network_(std::move(network)) {}
PixelUpsampler::~PixelUpsampler() = default;

const std::string& PixelUpsampler::name() const noexcept {
  return network_->name;
}
const std::string& PixelUpsampler::fingerprint() const noexcept {
  return network_->fingerprint;
}
const std::filesystem::path& PixelUpsampler::path() const noexcept {
  return network_->path;
}

}  // namespace vit
