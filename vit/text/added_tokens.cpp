// Search by first byte and length.
#include "vit/text/added_tokens.h"

#include <algorithm>

#include "vit/text/unicode.h"

namespace vit::internal {

void AddedTokens::add(AddedToken token) {
  if (token.text.empty()) return;
  const auto [same, is_new] = by_text_.try_emplace(token.text, tokens_.size());
  if (is_new) {
    tokens_.push_back(std::move(token));
  } else {
    tokens_[same->second] = std::move(token);
  }
}

void AddedTokens::finish() {
  for (auto& lengths : lengths_) lengths.clear();
  any_[0] = any_[1] = false;
  for (const AddedToken& token : tokens_) {
    lengths_[static_cast<unsigned char>(token.text[0])].push_back(token.text.size());
    any_[token.normalized ? 1 : 0] = true;
  }
  for (auto& lengths : lengths_) {
    std::ranges::sort(lengths, std::greater<>());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
}

const AddedToken* AddedTokens::match(std::string_view text, bool normalized) const {
  for (const std::size_t length : lengths_[static_cast<unsigned char>(text[0])]) {
    if (length > text.size()) continue;
    const auto found = by_text_.find(text.substr(0, length));
    if (found == by_text_.end()) continue;
    const AddedToken& token = tokens_[found->second];
    if (token.normalized == normalized) return &token;
  }
  return nullptr;
}

std::vector<Stretch> AddedTokens::split(std::string_view text, bool normalized) const {
  std::vector<Stretch> stretches;
  if (text.empty()) return stretches;
  if (!any_[normalized ? 1 : 0]) return {{text, kNoToken}};
  std::size_t done = 0, space_from = 0, space_to = 0;  // of the white space that was stripped last
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* const token = match(text.substr(at), normalized);
    if (token == nullptr) {
      ++at;
      continue;
    }
    const std::size_t next = at + token->text.size();
    std::size_t start = at, end = next;
    if (token->strip_left && start > done) start = done + strip_right(text.substr(done, start - done)).size();
    if (token->strip_right) {
      if (next < space_from || next > space_to)
        space_to = text.size() - strip_left(text.substr(space_from = next)).size();
      end = space_to;
    }
    if (start > done) stretches.push_back({text.substr(done, start - done), kNoToken});
    stretches.push_back({text.substr(start, end - start), token->id});
    // White space that was stripped may hold the next token, as in tokenizers.
    at = next;
    done = end;
  }
  if (done < text.size()) stretches.push_back({text.substr(done), kNoToken});
  return stretches;
}

}  // namespace vit::internal
