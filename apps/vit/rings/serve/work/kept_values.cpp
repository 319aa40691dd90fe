#include "apps/vit/rings/serve/work/kept_values.h"

#include <array>
#include <cstdio>
#include <functional>
#include <random>
#include <utility>

namespace vit::app {
namespace {

std::string random_key() {
  std::random_device device;
  std::string out;
  for (int i = 0; i < 4; ++i) {
    std::array<char, 9> digits;
    std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>(device()));
    out += digits.data();
  }
  return out;
}

}  // namespace

std::string KeptValues::add(std::shared_ptr<const KeptValue> value) {
  Entry entry{.key = random_key(), .value = std::move(value)};
  entry.bytes = entry.value->bytes();
  const std::string key = entry.key;
  Entries dropped;  // freed without the lock
  const std::lock_guard lock(mutex_);
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  places_.emplace(key, entries_.begin());
  while (bytes_ > max_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    places_.erase(entries_.back().key);
    dropped.splice(dropped.end(), entries_, std::prev(entries_.end()));
  }
  return key;
}

std::shared_ptr<const KeptValue> KeptValues::find_any(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->value;
}

std::size_t KeptValues::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace vit::app
