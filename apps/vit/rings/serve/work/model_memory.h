// Which models are in memory: all of them, or as many as a budget holds, the least recently used unloaded
// first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/rings/serve/work/served_model.h"

namespace vit::app {

/// For the thread that computes, but for what is said.
class ModelMemory {
 public:
  /// `budget`: bytes of all models in memory; 0 = any. `models` must outlive it.
  ModelMemory(std::span<ServedModel> models, std::size_t budget);

  /// Loads every model once, so that its facts are known. Throws Error as loading does, and for a model that
  /// by itself is larger than the budget.
  void load_all();
  /// The model in memory, for which others may be unloaded. Throws Error as loading does.
  LoadedModel& load(std::size_t model);
  /// What became of a reload, or of one model in it.
  using ReloadNote = std::function<void(bool is_failure, const std::string& text)>;
  /// Reads all files again; `note` is called for each model that stays as it was, and at the end.
  void reload_all(const ReloadNote& note);
  void unload_all();
  /// That a model computes. In any thread.
  void note_use(std::size_t model) { last_use_[model] = ++num_uses_; }
  /// Models in memory, and their bytes as they were when one was loaded last. In any thread.
  std::size_t num_loaded() const noexcept { return num_loaded_.load(); }
  std::size_t bytes() const noexcept { return bytes_.load(); }

 private:
  std::size_t count_bytes() const;
  void make_room(std::size_t model, std::size_t needed);
  void update();

  std::span<ServedModel> models_;
  const std::size_t budget_;
  std::vector<std::size_t> needed_;  // bytes of each model when it was loaded last
  std::vector<std::atomic<std::uint64_t>> last_use_;
  std::atomic<std::uint64_t> num_uses_{0};
  std::atomic<std::size_t> num_loaded_{0}, bytes_{0};
};

}  // namespace vit::app
