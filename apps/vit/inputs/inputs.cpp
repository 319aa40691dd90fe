#include "apps/vit/inputs/inputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <compare>
#include <cstdint>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/folder.h"
#include "vit/io/foreign_files.h"

namespace vit::app {
using namespace internal;
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kImageExtensions[] = {
    ".jpg", ".jpeg", ".jpe", ".jfif", ".mpo",   ".jp2",  ".j2k",  ".j2c", ".jpf", ".jpx",
    ".png", ".apng", ".bmp", ".dib",  ".tif",   ".tiff", ".webp", ".ppm", ".pgm", ".pbm",
    ".pnm", ".pfm",  ".gif", ".avif", ".avifs", ".heic", ".heif", ".hif", ".ico"};

constexpr std::size_t kMaxPixelImages = 1'000'000;  // each has its own name: 100 MB in total
constexpr std::size_t kMaxPathBytes = 4096;         // PATH_MAX of Linux, with the terminating zero

std::string lower_extension(const fs::path& path) {
  return internal::lower_ascii(path.extension().string());
}

/// What was found below a folder.
struct Found {
  std::set<fs::path> folders;  // canonical paths; each is read once
  std::vector<std::string> images;
  std::map<std::string, std::size_t> others;  // skipped files, by extension or kind
};

/// The type of a link's target, or one that the folder does not record. A dangling link is no folder; it is
/// reported when it is read as an image.
fs::file_type resolved_type(const fs::path& path, fs::file_type listed) {
  if (listed != fs::file_type::symlink && listed != fs::file_type::unknown) return listed;
  std::error_code unreadable;
  return fs::status(path, unreadable).type();
}

/// Adds the contents of `folder` unless it was visited before, and the folders that cannot be read.
void collect(const fs::path& folder, Found& found, std::vector<InputFailure>& failures) {
  std::error_code error;
  const fs::path canonical = fs::canonical(folder, error);
  if (!error && !found.folders.insert(canonical).second) return;
  std::vector<FolderEntry>
      entries;  // sorted: of several links to one folder the same one counts in every run
  if (!error) entries = list_folder(folder, error);
  if (error) failures.push_back({folder.string(), error.message()});
  for (const FolderEntry& entry : entries) {
    if (const char* const kind = left_by_others(entry.name); kind != nullptr) {
      ++found.others[kind];
      continue;
    }
    const fs::path path = folder / entry.name;
    const fs::file_type type = resolved_type(path, entry.type);
    if (type == fs::file_type::directory) {
      collect(path, found, failures);
    } else if (has_image_extension(path)) {
      found.images.push_back(path.string());
    } else if (type == fs::file_type::regular) {
      ++found.others[lower_extension(path)];
    }
  }
}

/// "3 files are skipped: 2 .mov, 1 without extension", most frequent first.
std::string passed_over(const std::map<std::string, std::size_t>& others) {
  std::vector<std::pair<std::string, std::size_t>> kinds(others.begin(), others.end());
  std::ranges::stable_sort(kinds, std::greater(), [](const auto& kind) { return kind.second; });
  constexpr std::size_t kMaxKinds = 10;
  std::size_t total = 0, rest = 0;
  std::string list;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto& [extension, count] = kinds[i];
    total += count;
    if (i >= kMaxKinds) {
      rest += count;
      continue;
    }
    list += text(i == 0 ? "" : ", ", count, " ", extension.empty() ? "without extension" : extension);
  }
  if (rest > 0) list += text(", ", rest, " of other kinds");
  return text(total, total == 1 ? " file is" : " files are", " skipped, not images: ", list);
}

/// Whether a path names a compressed .tar file, whose members cannot be read in place.
bool is_compressed_tar(const fs::path& path) {
  const std::string name = internal::lower_ascii(path.filename().string());
  return std::ranges::any_of(
      std::initializer_list<const char*>{".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz",
                                         ".tar.zst", ".tzst", ".tar.lz4", ".tar.z"},
      [&](const char* ending) { return name.ends_with(ending); });
}

/// left_by_others() of a part of a path inside an archive.
const char* left_by_others_inside(const std::string& path) {
  for (const fs::path& part : fs::path(path)) {
    if (part == "." || part == "..") continue;
    if (const char* const kind = left_by_others(part.string()); kind != nullptr) return kind;
  }
  return nullptr;
}

/// Adds the members that are images, and counts the others; members before damage are kept.
void add_tar(const std::string& argument, InputList& list) {
  const auto archive = std::make_shared<const TarArchive>(argument);
  std::map<std::string, std::size_t> others;
  const std::size_t before = list.inputs.size() + list.failures.size();
  try {
    archive->list([&](const TarEntry& entry) {
      if (entry.kind == TarEntry::Kind::folder) return;
      const std::string name = argument + "/" + entry.name;
      if (entry.kind == TarEntry::Kind::other) {
        ++others["links and devices"];
      } else if (const char* const kind = left_by_others_inside(entry.name); kind != nullptr) {
        ++others[kind];
      } else if (!has_image_extension(entry.name)) {
        ++others[lower_extension(entry.name)];
      } else if (entry.kind == TarEntry::Kind::sparse) {
        list.failures.push_back({name, "is stored as a sparse file, which is not supported"});
      } else {
        list.inputs.push_back({.name = name,
                               .path = archive->path().string(),
                               .pixels = nullptr,
                               .archive = archive,
                               .member = entry.range});
      }
    });
  } catch (const Error& error) {
    list.failures.push_back({argument, error.what()});
  }
  if (!others.empty()) list.notes.push_back({argument, passed_over(others)});
  VIT_CHECK(list.inputs.size() + list.failures.size() > before, "read archive", "no images in this archive");
}

void add_path(const std::string& argument, InputList& list) {
  const fs::path path(argument);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::is_directory(status) && has_image_extension(path)) {
    list.inputs.push_back(
        {.name = argument, .path = argument, .pixels = nullptr});  // if missing, reading reports it
    return;
  }
  VIT_CHECK(status.type() != fs::file_type::not_found, "open", "no such file or folder",
            missing_hint(argument));
  VIT_CHECK(!error, "open", error.message());
  if (fs::is_directory(status)) {
    const std::size_t failures_before = list.failures.size();
    const std::vector<std::string> images = images_below(path, list);
    VIT_CHECK(!images.empty() || list.failures.size() > failures_before, "read folder",
              "no images in this folder");
    for (const std::string& image : images)
      list.inputs.push_back({.name = image, .path = image, .pixels = nullptr});
  } else if (lower_extension(path) == ".npy") {
    const auto pixels = std::make_shared<const PixelFile>(path);
    VIT_CHECK(pixels->num_images() <= kMaxPixelImages, "npy", "holds ", pixels->num_images(),
              " images, expected ", kMaxPixelImages, " at most; split the file");
    for (std::size_t i = 0; i < pixels->num_images(); ++i) {
      list.inputs.push_back(
          {.name = text(argument, "[", i, "]"), .path = argument, .pixels = pixels, .pixels_index = i});
    }
  } else if (lower_extension(path) == ".tar") {
    add_tar(argument, list);
  } else {
    VIT_CHECK(!is_compressed_tar(path), (Where{"tar", ErrorKind::unsupported}),
              "compressed archives are not supported, because members are read in place; decompress it to a "
              ".tar first");
    list.inputs.push_back({.name = argument, .path = argument, .pixels = nullptr});
  }
}

void try_path(const std::string& argument, InputList& list) {
  try {
    add_path(argument, list);
  } catch (const Error& error) {
    list.failures.push_back({argument.empty() ? "''" : argument, error.what()});
  }
}

/// Throws Error if the folders are the parts of a data set, train and val and the like, each with folders of
/// classes: their names would be taken for those of classes.
void check_no_splits(const fs::path& root, std::span<const fs::path> folders, const std::string& operation) {
  constexpr std::string_view kSplits[] = {"train", "training", "val",     "valid", "validation",
                                          "test",  "testing",  "holdout", "dev",   "eval"};
  const auto is_split = [&](const fs::path& folder) {
    if (std::ranges::find(kSplits, internal::lower_ascii(folder.filename().string())) == std::end(kSplits))
      return false;
    std::error_code error;
    return std::ranges::any_of(entries_of(folder, error), [](const fs::path& entry) {
      std::error_code unreadable;
      return left_by_others(entry.filename().string()) == nullptr && fs::is_directory(entry, unreadable);
    });
  };
  std::vector<fs::path> splits;
  std::ranges::copy_if(folders, std::back_inserter(splits), is_split);
  if (splits.size() < 2) return;
  fail(Where(operation).with(ErrorKind::mismatch), root.string(), ": its folders ",
       printable(splits[0].filename().string()), " and ", printable(splits[1].filename().string()),
       " are parts of a data set, not classes; give one of them, such as ", splits[0].string());
}

}  // namespace

void for_each_path(std::istream& standard_input, InputList& list,
                   const std::function<void(const std::string&)>& add) {
  struct stat status;
  if (&standard_input == &std::cin && ::fstat(STDIN_FILENO, &status) == 0 && S_ISDIR(status.st_mode)) {
    list.failures.push_back({"-", "standard input is a folder, expected paths, one per line"});
    return;
  }
  const std::size_t before = list.inputs.size() + list.failures.size();
  std::vector<char> line(kMaxPathBytes);
  std::size_t number = 0;
  const auto refuse = [&](std::string_view why) {
    list.failures.push_back({"-", text("line ", number, " of standard input is not a path: ", why)});
  };
  while (!standard_input.eof()) {
    standard_input.getline(line.data(), static_cast<std::streamsize>(line.size()));
    ++number;
    if (standard_input.bad()) return refuse("it cannot be read");
    const bool is_whole = standard_input.eof() || !standard_input.fail();
    // The number of characters read, without the counted end of line.
    const auto length =
        static_cast<std::size_t>(standard_input.gcount()) - (standard_input.eof() || !is_whole ? 0 : 1);
    std::string_view path(line.data(), length);
    if (number == 1) path = internal::without_byte_order_mark(path);
    if (path.ends_with('\r')) path.remove_suffix(1);
    if (!is_whole) {
      refuse(text("longer than ", kMaxPathBytes - 1, " bytes"));
      standard_input.clear();
      standard_input.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    } else if (path.find('\0') != std::string_view::npos) {
      refuse("it contains a zero byte; expected one path per line");
    } else if (!path.empty()) {
      add(std::string(path));
    }
  }
  if (list.inputs.size() + list.failures.size() == before) {
    list.failures.push_back({"-", "standard input contains no paths"});
  }
}

namespace {

/// Removes duplicates and keeps the first.
void take_once(InputList& list) {
  struct Place {
    dev_t device = 0;
    ino_t file = 0;
    std::uint64_t image = 0;  // of those in the file
    auto operator<=>(const Place&) const = default;
  };
  std::set<Place> known;
  std::string former;  // many inputs may share one file
  struct stat status {};
  bool exists = false;
  const std::size_t before = list.inputs.size();
  std::string example;
  std::erase_if(list.inputs, [&](const Input& input) {
    if (former != input.path || former.empty()) {
      exists = ::stat(input.path.c_str(), &status) == 0;  // a missing file is reported when it is read
      former = input.path;
    }
    const std::uint64_t image = input.archive ? input.member.offset : input.pixels_index;
    const bool is_new = !exists || known.insert({status.st_dev, status.st_ino, image}).second;
    if (!is_new && example.empty()) example = input.name;
    return !is_new;
  });
  const std::size_t left_out = before - list.inputs.size();
  if (left_out == 0) return;
  const std::string others =
      left_out == 1 ? ""
                    : text(", as ", left_out - 1, left_out == 2 ? " other file was" : " other files were");
  list.notes.push_back(
      {example, text("was already reached by another path or link", others, "; each is used once")});
}

}  // namespace

std::size_t Shard::begin(std::size_t size) const {
  return size / count * index + std::min(size % count, index);
}

std::size_t Shard::end(std::size_t size) const {
  return begin(size) + size / count + (index < size % count ? 1 : 0);
}

InputFiles::InputFiles(std::span<const Input> inputs) : inputs_(inputs) {
  const std::string* former = nullptr;  // many inputs may share one file
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (former != nullptr && *former == inputs[i].path) continue;
    former = &inputs[i].path;
    struct stat found {};
    if (::stat(inputs[i].path.c_str(), &found) == 0)
      files_.push_back({.device = found.st_dev, .number = found.st_ino, .input = i});
  }
  std::ranges::sort(files_);
}

const Input* InputFiles::find(const fs::path& output) const {
  struct stat found {};
  if (::stat(output.c_str(), &found) != 0) return nullptr;
  const auto at =
      std::ranges::lower_bound(files_, File{.device = found.st_dev, .number = found.st_ino, .input = 0});
  const bool is_input = at != files_.end() && at->device == found.st_dev && at->number == found.st_ino;
  return is_input ? &inputs_[at->input] : nullptr;
}

void InputFiles::check_kept(const fs::path& output) const {
  const Input* const input = find(output);
  VIT_CHECK(input == nullptr, Where("write", ErrorKind::argument), output.string(),
            ": it would replace the input ", input->name, "; name another folder");
}

void check_no_input(const fs::path& output, std::span<const Input> inputs) {
  std::error_code error;
  if (!fs::exists(output, error)) return;
  if (const Input* const input = InputFiles(inputs).find(output))
    fail_usage(output.string(), " is the input ", input->name, "; name another file for the results");
}

const char* left_by_others(std::string_view name) {
  // of archives of macOS, thumbnails and waste of network disks, Windows and Linux
  constexpr const char* kKinds[] = {
      "__MACOSX",   "@eaDir",     "#recycle", "$RECYCLE.BIN", "System Volume Information",
      "lost+found", "__pycache__"};
  if (name.starts_with('.')) return "hidden";
  const auto* const found = std::ranges::find(kKinds, name);
  return found == std::end(kKinds) ? nullptr : *found;
}

bool are_images(std::span<const Input> inputs) {
  return !inputs.empty() &&
         std::ranges::all_of(inputs, [](const Input& input) { return input.pixels == nullptr; });
}

bool has_image_extension(const fs::path& path) {
  const std::string extension = lower_extension(path);
  return std::ranges::find(kImageExtensions, extension) != std::end(kImageExtensions);
}

std::vector<fs::path> entries_of(const fs::path& folder, std::error_code& error) {
  std::vector<fs::path> paths;
  for (const FolderEntry& entry : list_folder(folder, error)) paths.push_back(folder / entry.name);
  return paths;
}

std::vector<std::string> images_below(const fs::path& folder, InputList& list) {
  Found found;
  collect(folder, found, list.failures);
  if (!found.others.empty()) list.notes.push_back({folder.string(), passed_over(found.others)});
  std::ranges::sort(found.images);
  return found.images;
}

InputList list_inputs(std::span<const std::string> arguments, std::istream& standard_input) {
  InputList list;
  for (const std::string& argument : arguments) {
    if (argument != "-") {
      try_path(argument, list);
      continue;
    }
    for_each_path(standard_input, list, [&](const std::string& path) { try_path(path, list); });
  }
  return list;
}

InputList list_once(std::span<const std::string> arguments, std::istream& standard_input) {
  InputList list = list_inputs(arguments, standard_input);
  take_once(list);
  return list;
}

std::vector<fs::path> class_folders(const fs::path& root, const std::string& operation, InputList& list) {
  std::error_code error;
  VIT_CHECK(fs::exists(root, error), operation, root.string(), ": no such folder");
  VIT_CHECK(fs::is_directory(root, error), operation, root.string(),
            ": is a file; expected a folder with one subfolder of images per class; unpack archives first");
  std::vector<fs::path> folders = entries_of(root, error);
  VIT_CHECK(!error, operation, root.string(), ": ", error.message());
  std::size_t num_images = 0;
  std::erase_if(folders, [&](const fs::path& path) {
    std::error_code unreadable;
    if (left_by_others(path.filename().string()) != nullptr) return true;
    if (fs::is_directory(path, unreadable)) return false;
    if (has_image_extension(path)) ++num_images;
    return true;
  });
  VIT_CHECK(!folders.empty(), operation, root.string(), ": contains no folders; expected one per class");
  check_no_splits(root, folders, operation);
  if (num_images > 0)
    list.notes.push_back(
        {root.string(), text("images outside of the folders of classes are left out: ", num_images)});
  return folders;
}

}  // namespace vit::app
