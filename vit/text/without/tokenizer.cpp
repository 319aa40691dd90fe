// Replaces this folder in builds without texts (-DVIT_TEXT=OFF): no tokenizer can be loaded.
#include "vit/text/tokenizer.h"

#include "vit/base/check.h"

namespace vit {
namespace {

[[noreturn]] void refuse_texts() {
  fail(Where{"load_tokenizer", ErrorKind::unsupported},
       "vit was built without texts (-DVIT_TEXT=OFF); vectors of texts that were saved can still be used");
}

}  // namespace

const char* to_string(TextLibrary /*library*/) {
  refuse_texts();
}

TextLibrary text_library(std::string_view /*name*/) {
  refuse_texts();
}

Tokenizer Tokenizer::load(const std::filesystem::path& /*path*/, const TokenizerOptions& /*options*/) {
  refuse_texts();
}

Tokenizer Tokenizer::load_for_model(const std::filesystem::path& /*model*/,
                                    const std::filesystem::path& /*tokenizer*/,
                                    const TokenizerOptions& /*options*/) {
  refuse_texts();
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view /*text*/) const {
  refuse_texts();
}

TokenRow Tokenizer::encode(std::string_view /*text*/, std::size_t /*context_length*/) const {
  refuse_texts();
}

std::string_view Tokenizer::token(std::int32_t /*id*/) const {
  refuse_texts();
}

std::int32_t Tokenizer::find(std::string_view /*token*/) const {
  refuse_texts();
}

std::size_t Tokenizer::vocabulary_size() const {
  refuse_texts();
}

std::size_t Tokenizer::context_length() const {
  refuse_texts();
}

std::int32_t Tokenizer::padding() const {
  refuse_texts();
}

bool Tokenizer::pads_left() const {
  refuse_texts();
}

const std::string& Tokenizer::name() const {
  refuse_texts();
}

TextLibrary Tokenizer::library() const {
  refuse_texts();
}

const std::string& Tokenizer::cleaning() const {
  refuse_texts();
}

}  // namespace vit
