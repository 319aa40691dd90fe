#include "vit/weights/checkpoint/folder_files.h"

#include <system_error>
#include <vector>

#include "vit/base/error.h"
#include "vit/weights/files/file_status.h"

namespace vit::internal {
namespace {

constexpr const char* kWhere = "load_checkpoint";
constexpr const char* kOpenClipNames[] = {"open_clip_model.safetensors", "open_clip_pytorch_model.bin"};
namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  return fs::exists(load_status(path, kWhere));
}

/// The weight file with a well-known name, or nothing.
std::optional<fs::path> find_named_weights(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json", "pytorch_model.pth", "model.pth",
                           kOpenClipNames[0], kOpenClipNames[1]}) {
    if (is_there(folder / name)) return folder / name;
  }
  return std::nullopt;
}

/// All files that are called as weights are.
std::vector<fs::path> list_weights(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() != ".safetensors" && !is_pickle(entry->path())) continue;
    if (fs::is_regular_file(load_status(entry->path(), kWhere))) found.push_back(entry->path());
  }
  VIT_CHECK(!error, kWhere, folder.string(), ": cannot be listed: ", error.message());
  return found;
}

}  // namespace

bool is_pickle(const fs::path& file) {
  const fs::path ending = file.extension();
  return ending == ".pth" || ending == ".pt" || ending == ".bin" || ending == ".ckpt" ||
         file.filename().string().ends_with(".pth.tar");
}

fs::path find_weights(const fs::path& folder) {
  if (const auto named = find_named_weights(folder)) return *named;
  const std::vector<fs::path> others = list_weights(folder);
  VIT_CHECK(!others.empty(), kWhere, folder.string(),
            " holds no weights: model.safetensors, model.safetensors.index.json, pytorch_model.bin or "
            "model.pth expected");
  VIT_CHECK(others.size() == 1, kWhere, folder.string(), " holds ", others.size(),
            " weight files and none is called model.safetensors; name one of them");
  return others.front();
}

std::vector<fs::path> weight_files(const fs::path& path) {
  fs::path weights = path;
  if (fs::is_directory(load_status(path, kWhere))) {
    const auto named = find_named_weights(path);
    const std::vector<fs::path> others = named ? std::vector<fs::path>() : list_weights(path);
    if (!named && others.size() != 1) return {};
    weights = named ? *named : others.front();
  }
  if (weights.extension() != ".json") return {weights};
  return list_weights(weights.has_parent_path() ? weights.parent_path() : fs::path("."));
}

std::optional<fs::path> find_open_clip_config(const fs::path& path) {
  const bool is_folder = fs::is_directory(load_status(path, kWhere));
  const fs::path folder = is_folder ? path : path.parent_path();
  const fs::path config = folder / "open_clip_config.json";
  if (!is_there(config)) return std::nullopt;
  if (!is_there(folder / "config.json")) return config;
  const fs::path weights = is_folder ? find_named_weights(folder).value_or(fs::path()) : path;
  for (const char* name : kOpenClipNames) {
    if (weights.filename() == name) return config;
  }
  return std::nullopt;
}

}  // namespace vit::internal
