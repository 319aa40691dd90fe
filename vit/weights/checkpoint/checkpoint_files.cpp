#include "vit/weights/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/file_status.h"
#include "vit/io/folder.h"
#include "vit/io/foreign_files.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/io/pickle.h"
#include "vit/io/source_file.h"
#include "vit/weights/architectures/architecture.h"
#include "vit/weights/checkpoint/adapter_config.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::io};
namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) && !error;
}
bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && !error;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const FolderEntry& entry : list_folder(folder, error)) names.push_back(entry.name);
  return names;
}

// ------------------------------------------------------------------------------- weight files of a folder

constexpr const char* kNames[] = {"model.safetensors",           "model.safetensors.index.json",
                                  "pytorch_model.bin",           "pytorch_model.bin.index.json",
                                  "pytorch_model.pth",           "model.pth",
                                  "open_clip_model.safetensors", "open_clip_pytorch_model.bin",
                                  "consolidated.safetensors",    "consolidated.safetensors.index.json"};

std::optional<std::size_t> parse_number(std::string_view digits) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// The weight file with the first of the names that timm, Hugging Face and OpenCLIP write; else all files
/// that are called as weights are.
std::vector<fs::path> find_weights(const fs::path& folder) {
  for (const char* name : kNames) {
    if (fs::exists(load_status(folder / name, kWhere))) return {folder / name};
  }
  return list_weights(folder);
}

bool holds_weights(const fs::path& folder) {
  return is_folder(folder) && !find_weights(folder).empty();
}

/// The two of dino.txt among these files, the image tower's first; nothing if they are not there.
std::vector<fs::path> dinotxt_pair(const std::vector<fs::path>& files) {
  std::vector<fs::path> tops, backbones;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    if (!has_pickle_ending(file) || !name.starts_with("dinov3_")) continue;
    (name.find("_dinotxt_") != name.npos ? tops : backbones).push_back(file);
  }
  if (tops.size() != 1 || backbones.size() != 1) return {};
  return {backbones.front(), tops.front()};
}

/// Whether these are all shards of one checkpoint, "model-00001-of-00003.safetensors" and so on. Throws Error
/// (io) that names those which are missing.
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

// ------------------------------------------------------------------------------------------- other layouts

/// sentence-transformers lists its modules; the first that holds weights is the model.
std::optional<fs::path> find_module(const fs::path& folder) {
  const fs::path list = folder / "modules.json";
  if (!is_file(list)) return std::nullopt;
  const Json modules = load_json(list);
  modules.expect(Json::Kind::array);
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const std::string name(modules[i].at("path").as_string());
    if (name.empty()) continue;  // the folder itself
    const bool inside = name.find("..") == name.npos && name.front() != '/';
    VIT_CHECK(inside, kWhere.with(ErrorKind::format), modules[i].where(), ".path is ", in_quotes(name),
              ", expected a folder below");
    if (holds_weights(folder / name)) return folder / name;
  }
  return std::nullopt;
}

/// The name that a file of one line holds; "" if it is none of an entry in a folder.
std::string noted_name(const fs::path& file) {
  constexpr std::size_t kMaxName = 200;
  if (!is_file(file)) return "";
  std::string name = SourceFile(file, kWhere).text(0, kMaxName);
  name = name.substr(0, name.find_first_of("\r\n \t"));
  return name.find('/') == name.npos && name != ".." && name != "." ? name : "";
}

/// models--OWNER--NAME of the cache: refs/main holds the name of a folder of snapshots.
std::optional<fs::path> find_snapshot(const fs::path& folder) {
  const fs::path snapshots = folder / "snapshots";
  if (!is_folder(snapshots)) return std::nullopt;
  const std::string main = noted_name(folder / "refs" / "main");
  if (!main.empty() && is_folder(snapshots / main)) return snapshots / main;
  const std::vector<std::string> names = names_in(snapshots);
  if (names.size() == 1 && is_folder(snapshots / names.front())) return snapshots / names.front();
  return std::nullopt;
}

/// Runs note their last step: DeepSpeed the folder in `latest`, detectron2's kin the file in last_checkpoint.
/// A step whose weights are in parts for each process is left to the program that merges them.
std::optional<fs::path> find_noted_step(const fs::path& folder) {
  for (const char* note : {"latest", "last_checkpoint"}) {
    const std::string name = noted_name(folder / note);
    if (name.empty()) continue;
    if (is_folder(folder / name) && find_weights(folder / name).size() == 1) return folder / name;
    if (is_file(folder / name)) return folder / name;
  }
  return std::nullopt;
}

/// N of "checkpoint-N".
std::optional<std::size_t> checkpoint_number(std::string_view name) {
  constexpr std::string_view kStem = "checkpoint-";
  return name.starts_with(kStem) ? parse_number(name.substr(kStem.size())) : std::nullopt;
}

std::optional<fs::path> find_last_checkpoint(const fs::path& folder) {
  std::optional<std::size_t> last;
  for (const std::string& name : names_in(folder)) {
    const auto number = checkpoint_number(name);
    const bool later = number && (!last || *number > *last);
    if (later && (holds_weights(folder / name) || is_file(folder / name / kAdapterConfigName))) last = number;
  }
  if (!last) return std::nullopt;
  return folder / ("checkpoint-" + std::to_string(*last));
}

/// The folder or file that `path` means, itself if it is none of the layouts above.
fs::path resolve(const fs::path& path) {
  constexpr int kMaxSteps = 4;  // a snapshot may hold modules, a module checkpoints
  fs::path at = path;
  for (int step = 0; step < kMaxSteps && is_folder(at); ++step) {
    if (is_file(at / kAdapterConfigName)) return at;
    std::optional<fs::path> next = find_module(at);
    if (!next && !holds_weights(at)) next = find_snapshot(at);
    if (!next && find_weights(at).size() != 1) next = find_noted_step(at);
    if (!next && !holds_weights(at)) next = find_last_checkpoint(at);
    if (!next) break;
    at = *std::move(next);
  }
  return at;
}

// ------------------------------------------------------------------------------------------------ adapters

/// Whether a folder contains an adapter of PEFT, or a file is one.
bool is_adapter(const fs::path& path) {
  const fs::path folder = adapter_folder(path);
  return is_there(folder / kAdapterConfigName) &&
         (folder == path || path.filename().string().starts_with("adapter_model."));
}

/// The base of an adapter: the folder that adapter_config.json names, the adapter's own, or the one above.
/// Throws Error (io) that names the base if it is none of these.
fs::path find_adapter_base(const fs::path& adapter) {
  const fs::path folder = adapter_folder(adapter);
  const std::string name = read_adapter_config(folder).base;
  std::vector<fs::path> places;
  if (!name.empty())
    places = {name, folder / name, folder.parent_path() / name, fs::absolute(folder).parent_path() / name};
  places.push_back(folder);
  places.push_back(fs::absolute(folder).parent_path());
  for (const fs::path& place : places) {
    if (!is_there(place)) continue;
    std::error_code error;
    if (!fs::is_directory(place, error) || !find_weights(place).empty()) return place;
  }
  fail(Where("read_adapter", ErrorKind::io), folder.string(), ": a LoRA adapter of PEFT, whose base is ",
       in_quotes(name),
       " and is not in a nearby folder; load the folder of the base with ModelOptions::adapter = ",
       folder.string());
}

// -------------------------------------------------------------------------------- what was found in its
// place

/// What a missing path may have been meant as.
std::string missing_model_hint(const std::string& path) {
  std::string hint = missing_hint(path);
  if (!hint.empty() || path.find('/') != path.npos) return hint;
  const std::string name = path.substr(0, path.find('.'));
  if (find_known_architecture(name) == nullptr) return "";
  const std::string tag = name == path ? ".TAG" : path.substr(name.size());
  return "; it is the name of an architecture of timm, whose weights are downloaded by: hf download timm/" +
         name + tag + " --local-dir " + name;
}

/// The name and what it is.
std::string named(const std::string& name, const ForeignFile& foreign) {
  return in_quotes(name) + " is " + describe(foreign);
}

/// What a folder without readable weights has of other programs' weights, or where below it weights lie, and
/// what to do about it; "" if nothing is known.
std::string foreign_weights(const fs::path& folder) {
  std::vector<std::string> below;
  for (const std::string& name : names_in(folder)) {
    if (const ForeignFile* const foreign = foreign_by_name(name)) return named(name, *foreign);
    if (holds_weights(resolve(folder / name))) below.push_back(in_quotes(name));
  }
  for (const std::string& name : names_in(folder)) {  // onnx/model.onnx next to config.json
    if (!below.empty() || !is_folder(folder / name)) continue;
    for (const std::string& inner : names_in(folder / name)) {
      if (const ForeignFile* const foreign = foreign_by_name(inner))
        return named(name + "/" + inner, *foreign);
    }
  }
  return below.empty()
             ? ""
             : "weights lie in its folder" + std::string(below.size() == 1 ? " " : "s ") + listed(below);
}

}  // namespace

bool CheckpointFiles::has_open_clip_name() const {
  const std::string name = weights.size() == 1 ? weights.front().filename().string() : "";
  return name == "open_clip_model.safetensors" || name == "open_clip_pytorch_model.bin";
}

std::vector<fs::path> CheckpointFiles::all_weights() const {
  if (!has_weights()) return {};
  if (weights.front().extension() != ".json") return weights;
  return list_weights(folder.empty() ? fs::path(".") : folder);
}

void CheckpointFiles::require_weights() const {
  const std::string foreign = weights.empty() ? foreign_weights(path) : "";
  VIT_CHECK(foreign.empty(), kWhere.with(ErrorKind::unsupported), path.string(), ": ", foreign);
  VIT_CHECK(!weights.empty(), kWhere, path.string(),
            " contains no weights: model.safetensors, model.safetensors.index.json, pytorch_model.bin or "
            "model.pth expected");
  VIT_CHECK(has_weights(), kWhere.with(ErrorKind::argument), path.string(), " holds ", weights.size(),
            " weight files, none named model.safetensors; give one of them");
}

CheckpointFiles find_checkpoint(const fs::path& path, const fs::path& adapter) {
  VIT_CHECK(fs::exists(load_status(path, kWhere)), kWhere, "no such file or folder: ", path.string(),
            missing_model_hint(path.string()));
  CheckpointFiles files{.path = resolve(path), .folder = {}, .adapter = adapter, .weights = {}};
  if (is_adapter(files.path)) {
    VIT_CHECK(adapter.empty(), kWhere.with(ErrorKind::argument), files.path.string(),
              ": is an adapter itself; give the folder of its base to ModelOptions::adapter");
    files.adapter = std::exchange(files.path, resolve(find_adapter_base(files.path)));
  }
  const bool is_folder = fs::is_directory(load_status(files.path, kWhere));
  files.folder = is_folder ? files.path : files.path.parent_path();
  files.weights = is_folder ? find_weights(files.path) : std::vector<fs::path>{files.path};
  if (std::vector<fs::path> pair = dinotxt_pair(files.weights); !pair.empty()) {
    files.weights = std::move(pair);
    files.set = WeightSet::dino_text;
  } else if (is_folder && !files.weights.empty() && are_all_shards(files.weights)) {
    files.set = WeightSet::shards;
  } else if (!files.weights.empty()) {
    files.set = files.weights.size() == 1 ? WeightSet::one : WeightSet::several;
  }
  return files;
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
    if (is_other ||
        (path.extension() != ".safetensors" && path.extension() != ".npz" && !has_pickle_ending(path)))
      continue;
    if (fs::is_regular_file(load_status(path, kWhere))) found.push_back(path);
  }
  VIT_CHECK(!error, kWhere, folder.string(), ": cannot be listed: ", error.message());
  return found;
}

}  // namespace vit::internal
