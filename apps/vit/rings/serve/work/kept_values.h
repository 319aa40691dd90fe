// What requests leave in memory for later ones: features of images. Once all of them are larger than the
// bound, those that were not used for the longest time are dropped; whoever asks for one brings its image
// again.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace vit::app {

/// A value of its own kind, which only whoever kept it knows.
struct KeptValue {
  virtual ~KeptValue() = default;
  virtual std::size_t bytes() const = 0;
};

/// In any thread.
class KeptValues {
 public:
  /// The newest value stays, however large it is.
  explicit KeptValues(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Keeps a value under a key of 128 random bits, which it returns: no client guesses that of another.
  std::string add(std::shared_ptr<const KeptValue> value);
  /// Null for what was never there, is of another kind, or was dropped.
  template <typename Value>
  std::shared_ptr<const Value> find(std::string_view key) {
    return std::dynamic_pointer_cast<const Value>(find_any(key));
  }
  std::size_t bytes() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const KeptValue> value;
    std::size_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  std::shared_ptr<const KeptValue> find_any(std::string_view key);

  const std::size_t max_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  Entries entries_;           // most recently used first
  std::map<std::string, Entries::iterator, std::less<>> places_;
  std::size_t bytes_ = 0;
};

}  // namespace vit::app
