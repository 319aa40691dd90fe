#include "apps/vit/outputs/jsonl_writer.h"

#include <fstream>

#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/read_rest.h"
#include "apps/vit/ground/text_format.h"
#include "vit/base/check.h"
#include "vit/io/atomic_file.h"
#include "vit/io/file_status.h"
#include "vit/io/json.h"

namespace vit::app {
using namespace internal;
namespace {

/// Numbers as nested lists: (2, 3) -> [[a, b, c], [d, e, f]]. Advances `data` past the written numbers.
void write_nested(JsonWriter& json, const float*& data, const Shape& shape, std::size_t dimension) {
  if (dimension == shape.rank()) {
    json.value(*data++);
    return;
  }
  json.begin_array();
  for (std::size_t i = 0; i < shape[dimension]; ++i) write_nested(json, data, shape, dimension + 1);
  json.end_array();
}

/// Numbers of a row: the length of the innermost list.
std::size_t innermost_size(Json value) {
  while (value.is_array() && value.size() > 0 && value[0].is_array()) value = value[0];
  return value.is_array() ? value.size() : 1;
}

}  // namespace

JsonlWriter::JsonlWriter(const ResultWriterOptions& options)
    : options_(options),
      file_(options.path, options.resume ? ResumableFile::Start::continued : ResumableFile::Start::empty) {
  if (!options_.resume) return;
  const bool continues_finished =
      file_.size() == 0 && std::filesystem::exists(load_status(options_.path, "resume"));
  if (continues_finished || file_.size() > 0) check_facts();
  if (continues_finished) {
    check_finished();
    file_.copy_finished();
  }
  take_over(continues_finished ? options_.path : ResumableFile::partial_path(options_.path));
}

void JsonlWriter::check_facts() {
  const std::filesystem::path path = run_record_path(options_.path, /*is_folder=*/false);
  std::ifstream file(path, std::ios::binary);
  if (!options_.facts) return;
  if (!file.is_open()) {  // an earlier release wrote none; a new one would say of all lines what is known of
                          // the new ones
    print_failure(options_.path.string(),
                  text("has no record of its run (", path.filename().string(),
                       "); whether its lines are of this model, size and precision is not known"));
    has_written_facts_ = true;
    return;
  }
  parse_run_facts(read_rest(file, path), path.string()).check_same(*options_.facts, options_.path.string());
}

void JsonlWriter::write_facts() {
  if (!options_.facts || has_written_facts_) return;
  AtomicFile file(run_record_path(options_.path, /*is_folder=*/false), "write");
  const std::string json = options_.facts->json();
  file.write(std::as_bytes(std::span(json)));
  file.commit();
  has_written_facts_ = true;
}

void JsonlWriter::check_finished() {
  std::ifstream finished(options_.path, std::ios::binary);
  VIT_CHECK(finished.is_open(), "resume", options_.path.string(), ": cannot be read");
  finished.exceptions(std::ios::badbit);
  // The rest of the line is read only if its start is valid: other files may be a single line.
  std::string line(kLineStart.size(), '\0'), rest;
  finished.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(finished.gcount()));
  if (line == kLineStart) {
    std::getline(finished, rest);
    if (finished.eof()) return;  // incomplete, to be dropped
  }
  if (!line.empty()) check_first_line(line + rest, options_.path.string());
}

void JsonlWriter::check_first_line(const std::string& line, const std::string& read_file) {
  const std::string place = read_file + ": line 1";
  VIT_CHECK(line.starts_with(kLineStart) && line.ends_with('}'), "resume", place,
            " was not written by vit embed");
  const Json first = parse_json(line, place);
  bool same_names = first.size() == options_.names.size() + 1;
  for (const std::string& name : options_.names) same_names = same_names && first.find(name).has_value();
  VIT_CHECK(same_names, "resume", read_file,
            ": contains other features than this run requests; give the same --features or another --output");
  for (const std::string& name : options_.names) kept_widths_[name] = innermost_size(first.at(name));
}

void JsonlWriter::take_over(const std::filesystem::path& read_path) {
  const std::string read_file = read_path.string();
  std::ifstream lines(ResumableFile::partial_path(options_.path), std::ios::binary);
  lines.exceptions(std::ios::badbit);  // out of memory must not look like the end
  std::size_t complete_bytes = 0, number = 0;
  for (std::string line;
       std::getline(lines, line) && !lines.eof();) {  // a last line without a line break is incomplete
    const std::string place = text(read_file, ": line ", ++number);
    if (number == 1) check_first_line(line, read_file);
    VIT_CHECK(line.starts_with(kLineStart) && line.ends_with('}'), "resume", place,
              " was not written by vit embed");
    const std::string_view name = leading_json_string(std::string_view(line).substr(kLineStart.size()));
    VIT_CHECK(!name.empty(), "resume", place, " was not written by vit embed");
    ++done_[std::string(name)];
    ++num_kept_;
    complete_bytes += line.size() + 1;
  }
  file_.truncate(complete_bytes);
}

bool JsonlWriter::take_done(const std::string& file) {
  const auto found = done_.find(vit::app::json_string(file));
  if (found == done_.end() || found->second == 0) return false;
  --found->second;
  return true;
}

std::string JsonlWriter::add(const std::string& file, std::span<const ResultArray> arrays) {
  VIT_CHECK(arrays.size() == options_.names.size(), "write", arrays.size(), " arrays for ",
            options_.names.size(), " names");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto kept = kept_widths_.find(options_.names[i]);
    const Shape& shape = arrays[i].shape;
    if (kept == kept_widths_.end() || shape.rank() == 0) continue;
    const std::size_t width = shape[shape.rank() - 1];
    VIT_CHECK(kept->second == width, "resume", options_.path.string(), ": its ", options_.names[i], " have ",
              kept->second, " numbers, those of this model ", width,
              "; give the same --model or another --output");
  }
  write_facts();
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("file", file);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    VIT_CHECK(arrays[i].dtype == Dtype::f32, "write", "JSON lines store float32, found ",
              to_string(arrays[i].dtype));
    const float* data = static_cast<const float*>(arrays[i].data);
    write_nested(json.key(options_.names[i]), data, arrays[i].shape, 0);
  }
  json.end_object();
  file_.write(line + "\n");
  file_.flush();
  ++num_added_;
  return "";
}

void JsonlWriter::add_texts(NamedVectors texts) {
  const Shape row{texts.width};
  const float* data = texts.numbers.data();
  for (const std::string& name : texts.names) {
    std::string line;
    JsonWriter json(line);
    json.begin_object().member("name", name);
    write_nested(json.key("text"), data, row, 0);
    json.end_object();
    file_.write(line + "\n");
  }
  file_.flush();
  num_texts_ += texts.names.size();
}

void JsonlWriter::finish() {
  if (file_.size() > 0 || options_.row_shapes) file_.commit();
}

std::string JsonlWriter::summary() const {
  std::string out;
  for (const std::string& name : options_.names) out += (out.empty() ? "" : ", ") + name;
  const std::string texts = num_texts_ == 0 ? "" : text(num_texts_, " texts");
  if (options_.names.empty()) return texts;
  if (num_texts_ != 0) out = texts + ", " + out;
  return out +
         text(" of ", num_added_, " images", num_kept_ == 0 ? "" : text(", ", num_kept_, " already existed"));
}

}  // namespace vit::app
