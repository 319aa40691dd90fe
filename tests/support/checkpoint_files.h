// Copies of a checkpoint folder in memory, to be changed and written elsewhere.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "vit/base/check.h"
#include "vit/io/pickle.h"
#include "vit/io/safetensors.h"
#include "vit/io/shards.h"
#include "vit/weights/checkpoint/find_model.h"

namespace vit::test {
using namespace internal;

/// Former name of a TemporaryFolder in memory.
class ScratchFolder : public TemporaryFolder {
 public:
  explicit ScratchFolder(const std::string& /*name*/) : TemporaryFolder(Place::memory) {}
};

/// The file of a folder that says what its model is; config.json where there is none.
inline std::filesystem::path config_file(const std::filesystem::path& folder) {
  const bool open_clip = std::filesystem::exists(folder / "open_clip_config.json");
  return folder / (open_clip ? "open_clip_config.json" : "config.json");
}

/// The config and all tensors of a folder, whatever the format of its weights.
class FileCopy {
 public:
  struct Entry {
    std::string name;
    Dtype dtype;
    std::vector<std::size_t> shape;
    std::vector<std::byte> bytes;
  };

  explicit FileCopy(const std::filesystem::path& folder) {
    config_name_ = config_file(folder).filename();
    if (std::filesystem::exists(folder / config_name_)) config_ = read_text(folder / config_name_);
    const TensorFile file = open_weights(folder);
    for (const TensorEntry& entry : file.entries()) {
      VIT_CHECK(entry.strides.empty(), "FileCopy", entry.describe(), " is not row-major");
      entries_.push_back({entry.name, entry.dtype, entry.shape, entry.bytes.copy()});
    }
  }

  FileCopy& remove(const std::string& name) {
    entries_.erase(entries_.begin() + (&at(name) - entries_.data()));
    return *this;
  }
  FileCopy& rename(const std::string& name, const std::string& other) {
    at(name).name = other;
    return *this;
  }
  /// A float32 tensor of zeros.
  FileCopy& add(const std::string& name, std::vector<std::size_t> shape) {
    std::size_t size = sizeof(float);
    for (const std::size_t edge : shape) size *= edge;
    entries_.push_back({name, Dtype::f32, std::move(shape), std::vector<std::byte>(size)});
    return *this;
  }
  /// One more column, all zeros.
  FileCopy& widen(const std::string& name) {
    Entry& entry = at(name);
    entry.shape.back() += 1;
    std::size_t elements = 1;
    for (const std::size_t edge : entry.shape) elements *= edge;
    entry.dtype = Dtype::f32;
    entry.bytes.assign(elements * sizeof(float), std::byte{0});
    return *this;
  }
  Entry& at(const std::string& name) {
    const auto found = std::ranges::find(entries_, name, &Entry::name);
    VIT_CHECK(found != entries_.end(), "FileCopy", "no tensor ", name);
    return *found;
  }
  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }
  FileCopy& set_config(std::string config) {
    config_ = std::move(config);
    return *this;
  }

  /// model.safetensors and, where there is one, the config.
  void write_to(const std::filesystem::path& folder) const {
    std::vector<TensorToWrite> tensors;
    for (const Entry& entry : entries_)
      tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
    write_safetensors(folder / "model.safetensors", tensors);
    if (!config_.empty()) write_text(folder / config_name_, config_);
  }

 private:
  static TensorFile open_weights(const std::filesystem::path& folder) {
    if (std::filesystem::exists(folder / "model.safetensors"))
      return open_safetensors(folder / "model.safetensors");
    if (std::filesystem::exists(folder / "open_clip_model.safetensors"))
      return open_safetensors(folder / "open_clip_model.safetensors");
    if (std::filesystem::exists(folder / "model.pth"))
      return find_model(open_pickle(folder / "model.pth"), "").tensors;
    return open_shards(folder / "model.safetensors.index.json", open_safetensors);
  }

  std::filesystem::path config_name_;
  std::string config_;
  std::vector<Entry> entries_;
};

}  // namespace vit::test
