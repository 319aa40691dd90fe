#include "vit/rings/fit/learned/upsampler.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/open_weights.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kUpsampler{"pixel upsampler", ErrorKind::format};

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return out + ")";
}

/// FNV-1a over names, shapes and numbers.
std::string fingerprint_of(const std::vector<std::pair<std::string, Tensor<float>>>& tensors) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](const void* data, std::size_t size) {
    const auto* const bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  };
  for (const auto& [name, tensor] : tensors) {
    add(name.data(), name.size());
    add(tensor.data(), tensor.num_elements() * sizeof(float));
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

/// What is before `name` in the only tensor that ends with it, if there is one.
const std::string* prefix_before(const TensorFile& file, const std::string& name, std::string& memory) {
  for (const TensorEntry& entry : file.entries()) {
    const bool is_whole = entry.name == name;
    if (!is_whole && !entry.name.ends_with("." + name)) continue;
    memory = entry.name.substr(0, entry.name.size() - name.size());
    return &memory;
  }
  return nullptr;
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
  taken_.emplace_back(name, to_float(entry));
  return out;
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

std::shared_ptr<const PixelUpsampler> internal::read_upsampler(const TensorFile& file,
                                                               const std::string& prefix) {
  struct Kind {
    const char* name;
    const char* sign;  // a tensor that only this network has
    std::unique_ptr<PixelUpsampler::Network> (*load)(UpsamplerTensors&);
  };
  constexpr Kind kKinds[]{{"NAF", "image_encoder.sem_encoder.0.weight", load_naf},
                          {"AnyUp", "key_features_encoder.0.basis", load_anyup},
                          {"JAFAR", "sft_key.gamma.weight", load_jafar}};
  for (const Kind& kind : kKinds) {
    std::string found;
    if (prefix_before(file, prefix + kind.sign, found) == nullptr) continue;
    UpsamplerTensors tensors(file, found + prefix);
    std::unique_ptr<PixelUpsampler::Network> network = kind.load(tensors);
    network->name = kind.name;
    network->tensors = std::move(tensors.taken());
    network->fingerprint = fingerprint_of(network->tensors);
    return std::make_shared<const PixelUpsampler>(std::move(network));
  }
  fail(kUpsampler.with(ErrorKind::unsupported), file.path().string(),
       ": no upsampler that is known; NAF, AnyUp and JAFAR are, by the tensors of their releases");
}

PixelUpsampler::PixelUpsampler(std::unique_ptr<const Network> network) : network_(std::move(network)) {}
PixelUpsampler::~PixelUpsampler() = default;

std::shared_ptr<const PixelUpsampler> PixelUpsampler::load(const std::filesystem::path& path) {
  return read_upsampler(open_weights(path));
}

const std::string& PixelUpsampler::name() const noexcept {
  return network_->name;
}
const std::string& PixelUpsampler::fingerprint() const noexcept {
  return network_->fingerprint;
}

}  // namespace vit
