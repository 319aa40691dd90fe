// Replaces text_encoder.cpp in builds without texts (-DVIT_TEXT=OFF): no text tower can be loaded.
#include "vit/text_encoder.h"

#include "vit/base/check.h"

namespace vit {
namespace {

[[noreturn]] void refuse_towers() {
  fail(Where{"TextTower", ErrorKind::unsupported},
       "vit was built without texts (-DVIT_TEXT=OFF); vectors of texts that were saved can still be used");
}

}  // namespace

struct TextTower::Parts {};

TextTower::TextTower(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
TextTower::~TextTower() = default;

std::shared_ptr<const TextTower> TextTower::load(const std::filesystem::path& /*path*/,
                                                 const TextOptions& /*options*/) {
  refuse_towers();
}

const TextConfig& TextTower::config() const noexcept {
  refuse_towers();
}

const Tokenizer& TextTower::tokenizer() const noexcept {
  refuse_towers();
}

Precision TextTower::precision() const noexcept {
  refuse_towers();
}

const char* TextTower::kernels() const noexcept {
  refuse_towers();
}

const LoadReport& TextTower::report() const noexcept {
  refuse_towers();
}

TokenRow TextTower::tokenize(std::string_view /*text*/) const {
  refuse_towers();
}

ImageAndText ImageAndText::load(const std::filesystem::path& /*path*/, const ModelOptions& /*image_options*/,
                                const TextOptions& /*text_options*/) {
  refuse_towers();
}

struct TextEncoder::State {};

TextEncoder::TextEncoder(std::shared_ptr<const TextTower> /*tower*/, TextEncoderOptions /*options*/) {
  refuse_towers();
}
TextEncoder::TextEncoder(const std::filesystem::path& /*path*/, TextEncoderOptions /*options*/,
                         const TextOptions& /*text_options*/) {
  refuse_towers();
}
TextEncoder::~TextEncoder() = default;
TextEncoder::TextEncoder(TextEncoder&&) noexcept = default;
TextEncoder& TextEncoder::operator=(TextEncoder&&) noexcept = default;

const TextTower& TextEncoder::tower() const {
  refuse_towers();
}

const TextEncoderOptions& TextEncoder::options() const {
  refuse_towers();
}

void TextEncoder::encode(std::span<const std::string_view> /*texts*/, TextEmbeddings& /*embeddings*/,
                         const StreamOptions& /*options*/) {
  refuse_towers();
}

TextEmbeddings TextEncoder::encode(std::span<const std::string_view> /*texts*/,
                                   const StreamOptions& /*options*/) {
  refuse_towers();
}

Tensor<float> TextEncoder::encode(std::string_view /*text*/) {
  refuse_towers();
}

Tensor<float> TextEncoder::encode_ids(std::span<const TokenRow> /*rows*/, const StreamOptions& /*options*/) {
  refuse_towers();
}

}  // namespace vit
