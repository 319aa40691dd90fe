// Search by first byte.
#include "vit/text/added_tokens.h"

#include <algorithm>

#include "vit/text/unicode.h"

namespace vit::internal {

void AddedTokens::add(AddedToken token) {
  if (token.text.empty()) return;
  const auto same = std::find_if(tokens_.begin(), tokens_.end(),
                                 [&](const AddedToken& other) { return other.text == token.text; });
  if (same != tokens_.end()) {
    *same = std::move(token);
  } else {
    tokens_.push_back(std::move(token));
  }
}

void AddedTokens::finish() {
  for (auto& bucket : by_first_byte_) bucket.clear();
  any_[0] = any_[1] = false;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    by_first_byte_[static_cast<unsigned char>(tokens_[i].text[0])].push_back(i);
    any_[tokens_[i].normalized ? 1 : 0] = true;
  }
  for (auto& bucket : by_first_byte_) {
    std::stable_sort(bucket.begin(), bucket.end(), [this](std::size_t a, std::size_t b) {
      return tokens_[a].text.size() > tokens_[b].text.size();
    });
  }
}

const AddedToken* AddedTokens::match(std::string_view text, bool normalized) const {
  for (const std::size_t i : by_first_byte_[static_cast<unsigned char>(text[0])]) {
    if (tokens_[i].normalized == normalized && text.starts_with(tokens_[i].text)) return &tokens_[i];
  }
  return nullptr;
}

std::vector<Stretch> AddedTokens::split(std::string_view text, bool normalized) const {
  std::vector<Stretch> stretches;
  if (text.empty()) return stretches;
  if (!any_[normalized ? 1 : 0]) return {{text, kNoToken}};
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* const token = match(text.substr(at), normalized);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t start = at;
    std::size_t end = at + token->text.size();
    if (token->strip_left) start = done + strip_right(text.substr(done, start - done)).size();
    if (token->strip_right) end = text.size() - strip_left(text.substr(end)).size();
    if (start > done) stretches.push_back({text.substr(done, start - done), kNoToken});
    stretches.push_back({text.substr(start, end - start), token->id});
    at = done = end;
  }
  if (done < text.size()) stretches.push_back({text.substr(done), kNoToken});
  return stretches;
}

}  // namespace vit::internal
