#include "vit/weights/checkpoint/open_weights.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/file_status.h"
#include "vit/io/folder.h"
#include "vit/io/pickle.h"
#include "vit/io/safetensors.h"
#include "vit/io/shards.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::io};
namespace fs = std::filesystem;

constexpr const char* kNames[] = {"model.safetensors",           "model.safetensors.index.json",
                                  "pytorch_model.bin",           "pytorch_model.bin.index.json",
                                  "pytorch_model.pth",           "model.pth",
                                  "open_clip_model.safetensors", "open_clip_pytorch_model.bin"};

/// Whether the name is one of PyTorch's own files: .pth, .pt, .bin, .ckpt, .pth.tar.
bool is_pickle(const fs::path& file) {
  const fs::path ending = file.extension();
  return ending == ".pth" || ending == ".pt" || ending == ".bin" || ending == ".ckpt" ||
         file.filename().string().ends_with(".pth.tar");
}

/// torch.compile wraps a module and puts its own name into those of the tensors, which say the same without.
constexpr std::string_view kCompiled = "_orig_mod.";

std::string without_compiler(std::string_view name) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = name.find(kCompiled); at != name.npos; at = name.find(kCompiled, at + 1)) {
    if (at != 0 && name[at - 1] != '.') continue;
    out += name.substr(done, at - done);
    done = at + kCompiled.size();
  }
  return out.append(name.substr(done));
}

TensorFile open_by_name(const fs::path& file, WantsTensor wants) {
  const std::string name = file.filename().string();
  if (name.ends_with(".bin.index.json")) return open_shards(file, open_pickle, wants);
  if (name.ends_with(".index.json")) return open_shards(file, open_safetensors, wants);
  if (name.ends_with(".safetensors")) return open_safetensors(file);
  if (is_pickle(file)) return open_pickle(file);
  fail(kWhere.with(ErrorKind::unsupported), file.string(),
       ": unknown kind of weight file; .safetensors, .pth, .pt, .pth.tar, .ckpt, .bin or the .index.json of "
       "shards expected");
}

}  // namespace

std::vector<fs::path> find_weights(const fs::path& folder) {
  for (const char* name : kNames) {
    if (fs::exists(load_status(folder / name, kWhere))) return {folder / name};
  }
  return list_weights(folder);
}

std::vector<fs::path> list_weights(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const FolderEntry& entry : list_folder(folder, error)) {
    const fs::path path = folder / entry.name;
    if (path.extension() != ".safetensors" && !is_pickle(path)) continue;
    if (fs::is_regular_file(load_status(path, kWhere))) found.push_back(path);
  }
  VIT_CHECK(!error, kWhere, folder.string(), ": cannot be listed: ", error.message());
  return found;
}

std::vector<fs::path> dinotxt_pair(const std::vector<fs::path>& files) {
  std::vector<fs::path> tops, backbones;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    if (!is_pickle(file) || !name.starts_with("dinov3_")) continue;
    (name.find("_dinotxt_") != name.npos ? tops : backbones).push_back(file);
  }
  if (tops.size() != 1 || backbones.size() != 1) return {};
  return {backbones.front(), tops.front()};
}

bool is_open_clip_name(const fs::path& file) {
  return file.filename() == "open_clip_model.safetensors" || file.filename() == "open_clip_pytorch_model.bin";
}

TensorFile open_weights(const fs::path& path, WantsTensor wants) {
  TensorFile file = open_by_name(path, wants);
  const bool is_compiled = std::ranges::any_of(file.entries(), [](const TensorEntry& entry) {
    return entry.name.find(kCompiled) != std::string::npos;
  });
  if (!is_compiled) return file;
  TensorFile::Contents contents = file.contents();
  for (TensorEntry& entry : contents.entries) entry.name = without_compiler(entry.name);
  return TensorFile(std::move(contents));
}

TensorFile open_together(const std::vector<fs::path>& files, const fs::path& path) {
  TensorFile::Contents all{.path = path, .entries = {}, .metadata = {}, .container = {}, .ignored = {}};
  for (const fs::path& file : files) {
    const TensorFile one = open_weights(file);
    all.entries.insert(all.entries.end(), one.entries().begin(), one.entries().end());
  }
  return TensorFile(std::move(all));
}

}  // namespace vit::internal
