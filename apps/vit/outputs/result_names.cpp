#include "apps/vit/outputs/result_names.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "apps/vit/ground/usage_error.h"
#include "vit/base/check.h"

namespace vit::app {
using namespace internal;
namespace fs = std::filesystem;
namespace {

constexpr Where kWhere{"write", ErrorKind::io};

/// The folder of a path, "" for none.
fs::path folder_of(const std::string& name) {
  return fs::path(name).lexically_normal().parent_path();
}

/// What `a` and `b` begin with, whole names of folders.
fs::path common_folder(const fs::path& a, const fs::path& b) {
  fs::path out;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end() && *i == *j; ++i, ++j) out /= *i;
  return out;
}

/// Of the results of a frame, in a form that other programs number frames in, too: -000012.
std::string frame_number(std::size_t index) {
  char out[32];
  std::snprintf(out, sizeof out, "-%06zu", index);
  return out;
}

/// The path without what would lead out of a folder.
fs::path harmless(const fs::path& path) {
  fs::path out;
  for (const fs::path& part : path.relative_path()) {
    if (part != ".." && part != ".") out /= part;
  }
  return out;
}

/// Throws UsageError if two names have a file in common: where one ending is the end of another, a name can
/// be another name and what is left.
void check_names_differ(const char* option, std::span<const fs::path> names,
                        std::span<const std::string_view> endings) {
  std::vector<std::string_view> sorted;
  for (const std::string_view longer : endings) {
    for (const std::string_view shorter : endings) {
      if (longer.size() <= shorter.size() || !longer.ends_with(shorter)) continue;
      if (sorted.empty()) {
        for (const fs::path& name : names) sorted.push_back(name.native());
        std::ranges::sort(sorted);
      }
      const std::string_view left = longer.substr(0, longer.size() - shorter.size());
      for (const fs::path& name : names) {
        const std::string other = name.native() + std::string(left);
        if (std::ranges::binary_search(sorted, std::string_view(other)))
          fail_usage(option, ": ", other, shorter, " would be a file of two inputs, ", name.native(), " and ",
                     other, "; name fewer formats, or run them into folders of their own");
      }
    }
  }
}

}  // namespace

std::vector<fs::path> result_names(std::span<const Input> inputs) {
  if (inputs.empty()) return {};
  fs::path shared = folder_of(inputs.front().name);
  for (const Input& input : inputs) shared = common_folder(shared, folder_of(input.name));
  struct Name {
    fs::path full, plain;  // with the extension of the input, and without
  };
  std::vector<Name> candidates;
  std::map<std::string, std::size_t> counts;
  for (const Input& input : inputs) {
    fs::path full = fs::path(input.video ? input.path : input.name).lexically_normal();
    if (!shared.empty()) full = full.lexically_relative(shared);
    full = harmless(full);
    fs::path plain = full.parent_path() / full.stem();
    if (input.video) {
      full += frame_number(input.pixels_index);
      plain += frame_number(input.pixels_index);
    }
    ++counts[plain.string()];
    candidates.push_back({std::move(full), std::move(plain)});
  }
  std::map<std::string, std::size_t> seen;
  std::vector<fs::path> names;
  for (Name& name : candidates) {
    names.push_back(counts[name.plain.string()] == 1 ? std::move(name.plain) : std::move(name.full));
    // one file given twice
    if (const std::size_t number = seen[names.back().string()]++; number != 0)
      names.back() += text("_", number + 1);
  }
  return names;
}

void check_result_files(const char* option, const fs::path& folder, std::span<const fs::path> names,
                        std::span<const std::string_view> endings, std::span<const Input> inputs) {
  const InputFiles files(inputs);
  for (const fs::path& name : names) {
    for (const std::string_view ending : endings) {
      const fs::path path = folder / (name.native() + std::string(ending));
      if (const Input* const input = files.find(path))
        fail_usage(option, ": ", path.string(), " would replace the input ", input->name,
                   "; name another folder");
    }
  }
  check_names_differ(option, names, endings);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  VIT_CHECK(!error && fs::is_directory(folder, error), kWhere, folder.string(),
            ": the folder cannot be made: ", error ? error.message() : "a file has that name");
}

fs::path result_path(const fs::path& folder, const fs::path& name, std::string_view ending) {
  fs::path path = folder / (name.native() + std::string(ending));
  make_folder(path.parent_path());
  return path;
}

}  // namespace vit::app
