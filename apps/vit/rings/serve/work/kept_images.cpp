#include "apps/vit/rings/serve/work/kept_images.h"

namespace vit::app {

bool KeptImages::has(const Key& key) const {
  const std::lock_guard lock(mutex_);
  return places_.contains(key);
}

std::shared_ptr<const KeptImage> KeptImages::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, place->second);
  ++num_hits_;
  return place->second->second;
}

void KeptImages::add(const Key& key, std::shared_ptr<const KeptImage> image) {
  if (image->num_bytes > budget_) return;
  const std::lock_guard lock(mutex_);
  if (const auto place = places_.find(key); place != places_.end()) erase(place);
  while (num_bytes_ + image->num_bytes > budget_) erase(places_.find(entries_.back().first));
  num_bytes_ += image->num_bytes;
  entries_.emplace_front(key, std::move(image));
  places_.emplace(key, entries_.begin());
}

void KeptImages::drop(const Key& key) {
  const std::lock_guard lock(mutex_);
  if (const auto place = places_.find(key); place != places_.end()) erase(place);
}

void KeptImages::clear() {
  const std::lock_guard lock(mutex_);
  places_.clear();
  entries_.clear();
  num_bytes_ = 0;
}

std::size_t KeptImages::num_images() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t KeptImages::num_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_bytes_;
}

/// With the lock held.
void KeptImages::erase(std::map<Key, std::list<Entry>::iterator>::iterator place) {
  num_bytes_ -= place->second->second->num_bytes;
  entries_.erase(place->second);
  places_.erase(place);
}

}  // namespace vit::app
