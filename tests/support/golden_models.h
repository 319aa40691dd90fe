// The folders of reference models: those of data/golden/models, and larger ones of the shared folder.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"
#include "vit/io/json.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit::test {
using namespace internal;

/// The folders in a folder, sorted.
inline std::vector<std::filesystem::path> folders_in(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

/// What the files of a publisher without configs do not contain: their name, and the heads of these small
/// models.
inline ModelOptions options_of(const std::filesystem::path& folder) {
  ModelOptions options;
  if (std::filesystem::exists(folder / "layout.json")) {
    options.layout = folder / "layout.json";
    return options;
  }
  if (std::filesystem::exists(config_file(folder))) return options;
  const Json facts = load_json(folder / "case.json");
  if (!facts.find("architecture")) return options;  // the names of its tensors say what it is
  options.architecture = facts.at("architecture").as_string();
  options.overrides["num_heads"] = std::to_string(facts.at("geometry").at("heads").as_size());
  return options;
}

}  // namespace vit::test
