#include "vit/weights/checkpoint/resolve_folder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/file_status.h"
#include "vit/io/folder.h"
#include "vit/io/foreign_files.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"
#include "vit/weights/checkpoint/open_weights.h"

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

bool holds_weights(const fs::path& folder) {
  return is_folder(folder) && !find_weights(folder).empty();
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
  if (!name.starts_with(kStem)) return std::nullopt;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + kStem.size(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::optional<fs::path> find_last_checkpoint(const fs::path& folder) {
  std::optional<std::size_t> last;
  for (const std::string& name : names_in(folder)) {
    const auto number = checkpoint_number(name);
    const bool later = number && (!last || *number > *last);
    if (later && (holds_weights(folder / name) || is_file(folder / name / "adapter_config.json")))
      last = number;
  }
  if (!last) return std::nullopt;
  return folder / ("checkpoint-" + std::to_string(*last));
}

/// The name and what it is.
std::string named(const std::string& name, const ForeignFile& foreign) {
  return in_quotes(name) + " is " + describe(foreign);
}

}  // namespace

fs::path resolve_checkpoint(const fs::path& path) {
  constexpr int kMaxSteps = 4;  // a snapshot may hold modules, a module checkpoints
  fs::path at = path;
  for (int step = 0; step < kMaxSteps && is_folder(at); ++step) {
    if (is_file(at / "adapter_config.json")) return at;
    std::optional<fs::path> next = find_module(at);
    if (!next && !holds_weights(at)) next = find_snapshot(at);
    if (!next && find_weights(at).size() != 1) next = find_noted_step(at);
    if (!next && !holds_weights(at)) next = find_last_checkpoint(at);
    if (!next) break;
    at = *std::move(next);
  }
  return at;
}

std::string foreign_weights(const fs::path& folder) {
  std::vector<std::string> below;
  for (const std::string& name : names_in(folder)) {
    if (const ForeignFile* const foreign = foreign_by_name(name)) return named(name, *foreign);
    if (holds_weights(resolve_checkpoint(folder / name))) below.push_back(in_quotes(name));
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

std::string foreign_format(const fs::path& file) {
  const std::string name = file.filename().string();
  if (const ForeignFile* const foreign = foreign_by_name(name)) return named(name, *foreign);
  if (!is_file(file)) return "";
  constexpr std::size_t kFirstBytes = 512;
  const ForeignFile* const foreign = foreign_by_content(SourceFile(file, kWhere).text(0, kFirstBytes));
  const bool is_zip = foreign != nullptr && foreign->what.find("zip") != std::string_view::npos;
  return foreign == nullptr || is_zip ? "" : named(name, *foreign);  // PyTorch's own files are zip archives
}

}  // namespace vit::internal
