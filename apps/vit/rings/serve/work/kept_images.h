// Features of images that prompts asked about: a further prompt of such an image needs neither its decoding
// nor the image tower. The least recently used ones are dropped first.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "vit/image/image.h"

namespace vit {
class PromptFeatures;
}

namespace vit::app {

class LoadedPrompts;

/// An image as a model of prompts looked at it.
struct KeptImage {
  std::shared_ptr<const PromptFeatures> features;
  ImageSize size;
  std::size_t num_bytes = 0;
  const LoadedPrompts* by = nullptr;  // what may use them; perhaps no longer there
};

/// Threads may share it.
class KeptImages {
 public:
  /// A client gets nothing out of what another one sent, not even that it is here.
  struct Key {
    std::size_t model = 0;  // index
    std::string client;
    std::string digest;  // of the file
    auto operator<=>(const Key&) const = default;
  };

  /// `budget`: bytes of all features; 0 keeps none.
  explicit KeptImages(std::size_t budget) : budget_(budget) {}

  bool has(const Key& key) const;
  /// Those of an image, which are now the most recently used ones; null without.
  std::shared_ptr<const KeptImage> find(const Key& key);
  /// Keeps features, unless they by themselves are more than the budget.
  void add(const Key& key, std::shared_ptr<const KeptImage> image);
  void drop(const Key& key);
  void clear();

  std::size_t num_images() const;
  std::size_t num_bytes() const;
  /// How often find() found something.
  std::size_t num_hits() const noexcept { return num_hits_.load(); }

 private:
  using Entry = std::pair<Key, std::shared_ptr<const KeptImage>>;

  void erase(std::map<Key, std::list<Entry>::iterator>::iterator place);

  const std::size_t budget_;
  mutable std::mutex mutex_;  // guards what follows
  std::list<Entry> entries_;  // most recently used first
  std::map<Key, std::list<Entry>::iterator> places_;
  std::size_t num_bytes_ = 0;
  std::atomic<std::size_t> num_hits_{0};
};

}  // namespace vit::app
