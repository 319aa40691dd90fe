#include "apps/vit/outputs/parts_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/read_rest.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/outputs/array_writer.h"
#include "apps/vit/outputs/jsonl_writer.h"
#include "vit/base/check.h"

namespace vit::app {
using namespace internal;
namespace {

namespace fs = std::filesystem;

constexpr Where kWhere{"resume", ErrorKind::mismatch};
constexpr std::string_view kErrorKey = ", \"error\": ";

/// "part-00012"
std::string part_name(std::size_t part) {
  char name[40];
  std::snprintf(name, sizeof name, "part-%05zu", part);
  return name;
}

/// The number of a file named like a part; nothing for others.
std::optional<std::size_t> part_number(const fs::path& path) {
  const std::string extension = path.extension().string(), stem = path.stem().string();
  if (extension != ".npy" && extension != ".safetensors" && extension != ".jsonl") return std::nullopt;
  std::size_t number = 0;
  if (std::sscanf(stem.c_str(), "part-%zu", &number) != 1 || part_name(number) != stem) return std::nullopt;
  return number;
}

/// Whether an interrupted run leaves files with such names: incomplete parts, scratch files.
bool is_left_over(const std::string& name) {
  return name.starts_with(".part-") || name.starts_with(".vit-scratch-") ||
         (name.starts_with("part-") && name.find(".part-") != name.npos);
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files = entries_of(folder, error);
  VIT_CHECK(!error, kWhere.with(ErrorKind::io), folder.string(), ": ", error.message());
  return files;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  VIT_CHECK(!error, kWhere.with(ErrorKind::io), path.string(), ": cannot be removed: ", error.message());
}

}  // namespace

/// The part that rows are added to.
struct PartsFolder::Part {
  Part(const fs::path& lines_path, const ResultWriterOptions& options)
      : path(options.path), lines(lines_path, "write"), arrays(options) {}

  fs::path path;  // of the arrays before they are renamed
  AtomicFile lines;
  ArrayWriter arrays;
  std::size_t num_rows = 0;
};

bool means_folder(const fs::path& path) {
  std::error_code error;
  return path.native().ends_with('/') || fs::is_directory(path, error);
}

PartsFolder::PartsFolder(PartsOptions options, std::span<const Input> inputs)
    : options_(std::move(options)), num_inputs_(inputs.size()) {
  options_.facts.others.emplace_back("format", extension() + 1);
  options_.facts.others.emplace_back("part_size", std::to_string(options_.part_size));
  for (const ResultArray& row : options_.row_shapes)
    not_numbers_.emplace_back(row.shape.num_elements(), std::numeric_limits<float>::quiet_NaN());
  std::error_code error;
  fs::create_directories(options_.folder, error);
  std::error_code unknown;
  VIT_CHECK(fs::is_directory(options_.folder, unknown), (Where{"write", ErrorKind::io}),
            options_.folder.string(), ": the folder cannot be created: ", error.message());
  open();
  if (options_.resume) take_over(inputs);
  num_rows_ = num_kept_;
  remove_rest();
}

PartsFolder::~PartsFolder() = default;

const char* PartsFolder::extension() const {
  return options_.format == ResultFormat::npy ? ".npy" : ".safetensors";
}

fs::path PartsFolder::path_of(std::size_t part, const char* extension) const {
  return options_.folder / (part_name(part) + extension);
}

std::size_t PartsFolder::rows_of(std::size_t part) const {
  const std::size_t first = part * options_.part_size;
  return first >= num_inputs_ ? 0 : std::min(options_.part_size, num_inputs_ - first);
}

void PartsFolder::open() {
  const fs::path path = run_record_path(options_.folder, /*is_folder=*/true);
  run_ = open_locked(path, O_CREAT);
  std::ifstream file(path, std::ios::binary);
  const std::string found = read_rest(file, path);
  bool has_parts = false;
  for (const fs::path& entry : files_of(options_.folder)) has_parts = has_parts || part_number(entry);
  if (has_parts && !options_.resume)
    fail_usage("--output: ", options_.folder.string(),
               " contains parts of an earlier run; continue it with --resume, or give another folder");
  if (options_.resume && !found.empty())
    return parse_run_facts(found, path.string()).check_same(options_.facts, options_.folder.string());
  VIT_CHECK(!has_parts, kWhere, path.string(),
            ": is empty or missing, so the origin of the parts is unknown; ", "give another folder");
  const std::string json = options_.facts.json();
  const int descriptor = ::fileno(run_.get());
  VIT_CHECK(::ftruncate(descriptor, 0) == 0 &&
                ::pwrite(descriptor, json.data(), json.size(), 0) == std::ssize(json) &&
                ::fsync(descriptor) == 0,
            (Where{"write", ErrorKind::io}), path.string(), ": writing failed: ", std::strerror(errno));
}

void PartsFolder::take_over(std::span<const Input> inputs) {
  for (const fs::path& entry : files_of(options_.folder)) {
    const std::optional<std::size_t> number = part_number(entry);
    VIT_CHECK(!number || rows_of(*number) > 0, kWhere, entry.string(),
              ": is from a run over more inputs than the ", num_inputs_, " of this one; give another folder");
  }
  std::size_t part = 0;
  while (rows_of(part) > 0 && take_over_part(part, inputs)) ++part;
}

bool PartsFolder::take_over_part(std::size_t part, std::span<const Input> inputs) {
  const fs::path path = path_of(part, ".jsonl");
  std::error_code error;
  if (!fs::exists(path, error) || !fs::exists(path_of(part, extension()), error)) return false;
  std::ifstream file(path, std::ios::binary);
  file.exceptions(std::ios::badbit);  // out of memory must not look like the end
  std::vector<InputFailure> failures;
  std::size_t row = 0;
  for (std::string line; std::getline(file, line); ++row) {
    const std::string place = text(path.string(), ": line ", row + 1);
    const std::string_view rest = std::string_view(line).substr(std::min(kLineStart.size(), line.size()));
    const std::string_view name = leading_json_string(rest);
    VIT_CHECK(line.starts_with(kLineStart) && !name.empty(), kWhere.with(ErrorKind::format), place,
              " was not written by vit embed");
    VIT_CHECK(row < rows_of(part), kWhere, path.string(), ": is from a run over more inputs than the ",
              num_inputs_, " of this one; give another folder");
    const std::string& expected = inputs[num_kept_ + row].name;
    VIT_CHECK(name == json_string(expected), kWhere, place, " is ", name, ", but this input of the run is ",
              json_string(expected), "; give the same inputs or another folder");
    if (rest.substr(name.size()).starts_with(kErrorKey))
      failures.push_back({expected, std::string(parse_json(line, place).at("error").as_string())});
  }
  if (row != rows_of(part)) return false;  // the last part of a run over fewer inputs, or interrupted
  num_kept_ += row;
  kept_failures_.insert(kept_failures_.end(), failures.begin(), failures.end());
  return true;
}

void PartsFolder::remove_rest() {
  for (const fs::path& entry : files_of(options_.folder)) {
    const std::optional<std::size_t> number = part_number(entry);
    const bool is_behind = number && *number * options_.part_size >= num_kept_;
    if (is_behind || is_left_over(entry.filename().string())) remove_file(entry);
  }
}

std::string PartsFolder::add(const std::string& file, ImageSize size, const std::string& digest,
                             std::span<const ResultArray> arrays) {
  if (options_.format == ResultFormat::npy && arrays.front().shape != options_.row_shapes.front().shape) {
    const std::string cause =
        text(options_.names.front(), " is ", arrays.front().shape.to_string(), ", expected ",
             options_.row_shapes.front().shape.to_string(), ", but .npy holds one shape; use safetensors");
    add_failed(file, cause);
    return cause;
  }
  std::string line;
  JsonWriter(line).member("width", size.width).member("height", size.height).member("sha256", digest);
  add_line(std::string(kLineStart) + json_string(file) + ", " + line);
  const std::string failure = part_->arrays.add(file, arrays);
  VIT_CHECK(failure.empty(), "write", failure);
  if (part_->num_rows == options_.part_size) write_part();
  return "";
}

void PartsFolder::add_failed(const std::string& file, const std::string& cause) {
  add_line(std::string(kLineStart) + json_string(file) + std::string(kErrorKey) +
           json_string(without_repeated_name(file, cause)));
  std::vector<ResultArray> arrays = options_.row_shapes;
  for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].data = not_numbers_[i].data();
  const std::string failure = part_->arrays.add(file, arrays);
  VIT_CHECK(failure.empty(), "write", failure);
  if (part_->num_rows == options_.part_size) write_part();
}

void PartsFolder::add_line(const std::string& line) {
  if (!part_) {
    const std::size_t number = num_rows_ / options_.part_size;
    const fs::path hidden = options_.folder / ("." + part_name(number) + extension());
    part_ = std::make_unique<Part>(
        path_of(number, ".jsonl"),
        ResultWriterOptions{.path = hidden, .format = options_.format, .names = options_.names});
  }
  const std::string whole = line + "}\n";
  part_->lines.write(std::as_bytes(std::span(whole)));
  ++part_->num_rows;
  ++num_rows_;
}

void PartsFolder::write_part() {
  const std::size_t number = (num_rows_ - 1) / options_.part_size;
  part_->arrays.finish();
  // Both files are on disk; now they get their names, the arrays last: a part whose arrays exist has
  // its lines.
  part_->lines.commit();
  const fs::path path = path_of(number, extension());
  VIT_CHECK(std::rename(part_->path.c_str(), path.c_str()) == 0, (Where{"write", ErrorKind::io}),
            path.string(), ": cannot be renamed: ", std::strerror(errno));
  part_.reset();
}

void PartsFolder::finish() {
  if (part_) write_part();
}

std::string PartsFolder::summary() const {
  std::string names;
  for (const std::string& name : options_.names) names += (names.empty() ? "" : ", ") + name;
  return text(names, " of ", num_rows_ - num_kept_, " inputs",
              num_kept_ == 0 ? "" : text(", ", num_kept_, " already existed"));
}

}  // namespace vit::app
