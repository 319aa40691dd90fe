// Open addressing over one block of text.
#include "vit/text/vocabulary.h"

#include <algorithm>
#include <cstring>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"

namespace vit::internal {
namespace {

std::uint64_t hash_of(std::string_view token) {
  PrefixHash hash;
  for (const char byte : token) hash.add(byte);
  return hash.value();
}

constexpr std::size_t kFirstSlots = 1024;

}  // namespace

void Vocabulary::add(std::string_view token, TokenId id) {
  VIT_CHECK(count_ < kMaxVocabulary, where_.with(ErrorKind::unsupported), name_, ": more than ",
            kMaxVocabulary, " tokens");
  VIT_CHECK(id < 2 * kMaxVocabulary, where_, name_, ": the token ", in_quotes(token), " has the id ", id,
            ", beyond the largest vocabulary");
  VIT_CHECK(!has(id), where_, name_, ": the id ", id, " is given to ", in_quotes(this->token(id)), " and to ",
            in_quotes(token));
  VIT_CHECK(!find(token), where_, name_, ": the token ", in_quotes(token), " occurs twice");
  VIT_CHECK(text_.size() + sizeof(Header) + token.size() < kNone, where_, name_, ": the tokens are too long");
  if (id >= records_.size()) records_.resize(id + 1, kNone);
  const auto record = static_cast<std::uint32_t>(text_.size());
  records_[id] = record;
  const Header header{id, static_cast<std::uint32_t>(token.size())};
  text_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  text_ += token;
  longest_ = std::max(longest_, token.size());
  ++count_;
  if (3 * count_ > 2 * slots_.size()) {
    grow();
  } else {
    insert(record);
  }
}

Vocabulary::Header Vocabulary::header(std::uint32_t record) const {
  Header header;
  std::memcpy(&header, text_.data() + record, sizeof(header));
  return header;
}

std::string_view Vocabulary::bytes(std::uint32_t record) const {
  return std::string_view(text_).substr(record + sizeof(Header), header(record).length);
}

void Vocabulary::finish() {
  VIT_CHECK(count_ > 0, where_, name_, ": the vocabulary is empty");
  VIT_CHECK(size() <= 2 * count_ + kFirstSlots, where_, name_, ": ids go to ", size() - 1,
            ", but there are only ", count_, " tokens");
}

void Vocabulary::grow() {
  slots_.assign(std::max(kFirstSlots, 2 * slots_.size()), Slot{});
  for (const std::uint32_t record : records_) {
    if (record != kNone) insert(record);
  }
}

void Vocabulary::insert(std::uint32_t record) {
  const std::uint64_t hash = hash_of(bytes(record));
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot].record != kNone) slot = (slot + 1) & mask;
  slots_[slot] = {static_cast<std::uint32_t>(hash >> 32), record};
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  return find(token.data(), token.size(), hash_of(token));
}

std::optional<TokenId> Vocabulary::find(const char* text, std::size_t length, std::uint64_t hash) const {
  if (slots_.empty()) return std::nullopt;
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t slot = hash & mask; slots_[slot].record != kNone; slot = (slot + 1) & mask) {
    if (slots_[slot].tag != tag) continue;
    const Header found = header(slots_[slot].record);
    if (found.length == length &&
        std::memcmp(text_.data() + slots_[slot].record + sizeof(Header), text, length) == 0) {
      return found.id;
    }
  }
  return std::nullopt;
}

TokenId Vocabulary::at(std::string_view token) const {
  const std::optional<TokenId> id = find(token);
  VIT_CHECK(id.has_value(), where_, name_, ": lacks the token ", in_quotes(token));
  return *id;
}

std::string_view Vocabulary::token(TokenId id) const {
  return has(id) ? bytes(records_[id]) : std::string_view();
}

ByteTokens byte_tokens(const Vocabulary& vocabulary) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  ByteTokens tokens;
  for (std::size_t byte = 0; byte < tokens.size(); ++byte) {
    const char name[] = {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
    tokens[byte] = vocabulary.find(std::string_view(name, sizeof(name))).value_or(kNoToken);
  }
  return tokens;
}

}  // namespace vit::internal
