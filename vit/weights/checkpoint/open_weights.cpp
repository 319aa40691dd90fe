#include "vit/weights/checkpoint/open_weights.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/file_status.h"
#include "vit/io/folder.h"
#include "vit/io/npz.h"
#include "vit/io/pickle.h"
#include "vit/io/safetensors.h"
#include "vit/io/shards.h"
#include "vit/weights/checkpoint/find_model.h"
#include "vit/weights/checkpoint/resolve_folder.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::io};
namespace fs = std::filesystem;

constexpr const char* kNames[] = {"model.safetensors",           "model.safetensors.index.json",
                                  "pytorch_model.bin",           "pytorch_model.bin.index.json",
                                  "pytorch_model.pth",           "model.pth",
                                  "open_clip_model.safetensors", "open_clip_pytorch_model.bin",
                                  "consolidated.safetensors",    "consolidated.safetensors.index.json"};

/// Whether the name is one of PyTorch's own files: .pth, .pt, .bin, .ckpt, .pth.tar.
bool is_pickle(const fs::path& file) {
  const fs::path ending = file.extension();
  return ending == ".pth" || ending == ".pt" || ending == ".bin" || ending == ".ckpt" ||
         file.filename().string().ends_with(".pth.tar");
}

std::optional<std::size_t> parse_number(std::string_view digits) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

TensorFile open_by_name(const fs::path& file, WantsTensor wants) {
  const std::string name = file.filename().string();
  if (name.ends_with(".bin.index.json")) return open_shards(file, open_pickle, wants);
  if (name.ends_with(".index.json")) return open_shards(file, open_safetensors, wants);
  if (name.ends_with(".safetensors")) return open_safetensors(file);
  if (name.ends_with(".npz")) return open_npz(file);
  const std::string foreign = foreign_format(file);
  VIT_CHECK(foreign.empty(), kWhere.with(ErrorKind::unsupported), file.string(), ": ", foreign);
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
    const bool is_other = entry.name.starts_with("training_args") || entry.name.starts_with("optimizer.") ||
                          entry.name.starts_with("openvino_") || entry.name.starts_with("scheduler.") ||
                          entry.name.starts_with("rng_state") || entry.name.starts_with("adapter_model.") ||
                          entry.name.ends_with("_optim_states.pt");
    if (is_other || (path.extension() != ".safetensors" && path.extension() != ".npz" && !is_pickle(path)))
      continue;
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

bool are_all_shards(const std::vector<fs::path>& files) {
  static constexpr std::string_view kOf = "-of-";
  std::string first;
  std::vector<std::size_t> numbers;
  std::size_t total = 0;
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();  // NAME-00001-of-00003
    const std::size_t of = stem.rfind(kOf);
    const std::size_t dash = of == stem.npos || of == 0 ? stem.npos : stem.rfind('-', of - 1);
    if (dash == stem.npos) return false;
    const auto number = parse_number(std::string_view(stem).substr(dash + 1, of - dash - 1));
    const auto count = parse_number(std::string_view(stem).substr(of + kOf.size()));
    const std::string name = stem.substr(0, dash) + stem.substr(of) + file.extension().string();
    if (!number || !count || (!first.empty() && name != first)) return false;
    first = name;
    total = *count;
    numbers.push_back(*number);
  }
  VIT_CHECK(numbers.size() == total, kWhere, files.front().parent_path().string(), ": of ", total, " shards ",
            numbers.size(), " are there; download the others");
  return true;
}

bool is_open_clip_name(const fs::path& file) {
  return file.filename() == "open_clip_model.safetensors" || file.filename() == "open_clip_pytorch_model.bin";
}

TensorFile open_weights(const fs::path& path, WantsTensor wants) {
  return without_wrappers(open_by_name(path, wants));
}

TensorFile open_weights(std::span<const std::byte> file, const fs::path& name) {
  return without_wrappers(open_safetensors(file, name));
}

TensorFile open_together(const std::vector<fs::path>& files, const fs::path& path) {
  TensorFile::Contents all{.path = path};
  for (const fs::path& file : files) {
    const TensorFile one = find_model(open_weights(file), "").tensors;  // of its own dictionary
    all.entries.insert(all.entries.end(), one.entries().begin(), one.entries().end());
  }
  return TensorFile(std::move(all));
}

}  // namespace vit::internal
