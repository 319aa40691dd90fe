#include "vit/text/word_piece.h"

#include <algorithm>
#include <map>

#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/source_file.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_tokenizer", ErrorKind::format};
constexpr std::size_t kMaxListBytes = std::size_t{1} << 28;

std::size_t count_characters(std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < word.size(); at += character_bytes(word[at])) ++count;
  return count;
}

/// The longest token that `text` starts with, of more than the `least` bytes in front of it.
struct Longest {
  TokenId id = kNoToken;
  std::size_t bytes = 0;
};
Longest longest_token(const Vocabulary& vocabulary, std::string_view text, std::size_t least) {
  Longest longest;
  PrefixHash hash;
  const std::size_t limit = std::min(text.size(), vocabulary.longest_bytes());
  std::size_t hashed = 0;
  const auto hash_until = [&](std::size_t end) {
    for (; hashed < end; ++hashed) hash.add(text[hashed]);
  };
  for (std::size_t end = least; end < text.size();) {
    end += character_bytes(text[end]);
    if (end > limit) break;
    hash_until(end);
    if (const auto id = vocabulary.find(text.data(), end, hash.value())) longest = {*id, end};
  }
  return longest;
}

}  // namespace

Vocabulary load_token_list(const std::filesystem::path& path) {
  const SourceFile file(path, kWhere);
  refuse_download_leftovers(file, path.string(), kWhere);
  VIT_CHECK(file.size() <= kMaxListBytes, kWhere, path.string(), ": ", file.size(), " bytes, more than the ",
            kMaxListBytes, " allowed");
  return parse_token_list(file.text(), path.string());
}

Vocabulary parse_token_list(std::string_view text, const std::string& name) {
  VIT_CHECK(valid_utf8_bytes(text) == text.size(), kWhere, name, ": is not UTF-8");
  std::map<std::string_view, TokenId> ids;
  TokenId next = 0;
  for (std::string_view rest = text; !rest.empty(); ++next) {
    const std::size_t end = rest.find_first_of("\r\n");
    if (end != 0) ids[rest.substr(0, end)] = next;
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  Vocabulary vocabulary(kWhere, name);
  for (const auto& [token, id] : ids) vocabulary.add(token, id);
  vocabulary.finish();
  return vocabulary;
}

void encode_pieces(const WordPieceModel& model, const Vocabulary& vocabulary, std::string_view word,
                   std::vector<TokenId>& ids) {
  if (word.empty()) return;
  if (count_characters(word) > model.max_characters) {
    ids.push_back(model.unknown);
    return;
  }
  // Tokens inside of the word are searched with the continuation in front of them, where what is already
  // encoded makes room for it.
  const std::size_t extra = model.continuation.size();
  std::string text = model.continuation;
  text += word;
  const std::size_t before = ids.size();
  for (std::size_t at = extra; at < text.size();) {
    const bool inside = at != extra;
    if (inside) std::ranges::copy(model.continuation, text.begin() + static_cast<std::ptrdiff_t>(at - extra));
    const std::size_t least = inside ? extra : 0;
    const Longest found = longest_token(vocabulary, std::string_view(text).substr(at - least), least);
    if (found.id == kNoToken) {
      ids.resize(before);
      ids.push_back(model.unknown);
      return;
    }
    ids.push_back(found.id);
    at += found.bytes - least;
  }
}

}  // namespace vit::internal
