// The table of merges, and the two orders of work that give the same result for short and for long words.
#include "vit/text/byte_pair.h"

#include <array>
#include <queue>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
/// Up to this length checking all pairs for each merge costs less than a heap.
constexpr std::size_t kFew = 32;

constexpr std::uint64_t pair_of(TokenId left, TokenId right) {
  return (std::uint64_t{left} << 32) | right;
}

}  // namespace

std::size_t MergeTable::home_of(std::uint64_t pair) const {
  std::uint64_t hash = pair * 0x9E3779B97F4A7C15u;
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93u;
  return (hash ^ (hash >> 32)) & (slots_.size() - 1);
}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = home_of(pair);
  while (slots_[slot].pair != pair && slots_[slot].pair != kEmpty) slot = (slot + 1) & mask;
  return slot;
}

MergeTable::MergeTable(const std::vector<Pair>& pairs, const Where& where, std::string_view name)
    : count_(pairs.size()) {
  constexpr std::size_t kAhead = 8;  // prefetch distance for the memory of later pairs
  std::size_t wanted = 64;
  while (2 * wanted < 3 * count_) wanted *= 2;
  slots_.resize(wanted);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i + kAhead < pairs.size()) {
      const Pair& ahead = pairs[i + kAhead];
      __builtin_prefetch(&slots_[home_of(pair_of(ahead.left, ahead.right))]);
    }
    const std::uint64_t pair = pair_of(pairs[i].left, pairs[i].right);
    Slot& slot = slots_[slot_of(pair)];
    VIT_CHECK(slot.pair != pair, where, name, ": merges ", slot.merge.rank, " and ", i,
              " are of the same tokens");
    slot = {pair, {static_cast<std::uint32_t>(i), pairs[i].merged}};
  }
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const {
  if (slots_.empty()) return {};
  const Slot& slot = slots_[slot_of(pair_of(left, right))];
  return slot.pair == kEmpty ? Merge{} : slot.merge;
}

void MergeTable::merge(std::vector<TokenId>& symbols) const {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kFew) {
    merge_few(symbols);
  } else {
    merge_many(symbols);
  }
}

void MergeTable::merge_few(std::vector<TokenId>& symbols) const {
  std::array<Merge, kFew> pairs;  // pairs[i]: symbols i and i + 1
  std::size_t count = symbols.size();
  for (std::size_t i = 0; i + 1 < count; ++i) pairs[i] = find(symbols[i], symbols[i + 1]);
  for (;;) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (count < 2 || pairs[best].rank == kNone) break;
    symbols[best] = pairs[best].merged;
    --count;
    for (std::size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (std::size_t i = best + 1; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best + 1 < count) pairs[best] = find(symbols[best], symbols[best + 1]);
    if (best > 0) pairs[best - 1] = find(symbols[best - 1], symbols[best]);
  }
  symbols.resize(count);
}

void MergeTable::merge_many(std::vector<TokenId>& symbols) const {
  struct Link {
    std::uint32_t previous, next;
    bool gone;
  };
  struct Candidate {
    std::uint32_t rank, at;
    std::uint64_t pair;
    TokenId merged;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<Link> links(count);
  for (std::uint32_t i = 0; i < count; ++i) links[i] = {i - 1, i + 1, false};
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto offer = [&](std::uint32_t left) {
    const std::uint32_t right = links[left].next;
    if (right >= count) return;
    const Merge merge = find(symbols[left], symbols[right]);
    if (merge.rank != kNone) {
      heap.push({merge.rank, left, pair_of(symbols[left], symbols[right]), merge.merged});
    }
  };
  for (std::uint32_t i = 0; i + 1 < count; ++i) offer(i);
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    if (links[top.at].gone) continue;
    const std::uint32_t right = links[top.at].next;
    // Offers whose symbols have merged since are stale.
    if (right >= count || pair_of(symbols[top.at], symbols[right]) != top.pair) continue;
    symbols[top.at] = top.merged;
    links[right].gone = true;
    links[top.at].next = links[right].next;
    if (links[right].next < count) links[links[right].next].previous = top.at;
    if (top.at > 0) offer(links[top.at].previous);
    offer(top.at);
  }
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i < count; i = links[i].next) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

MergeTable::Pair merge_pair(const Vocabulary& vocabulary, std::string_view left, std::string_view right,
                            const Where& where) {
  VIT_CHECK(!left.empty() && !right.empty(), where, vocabulary.name(), ": a merge has an empty token");
  std::string joined(left);
  joined += right;
  return {vocabulary.at(left), vocabulary.at(right), vocabulary.at(joined)};
}

}  // namespace vit::internal
