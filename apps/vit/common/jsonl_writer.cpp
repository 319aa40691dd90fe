#include "apps/vit/common/jsonl_writer.h"

#include <fstream>

#include "apps/vit/common/text_format.h"
#include "vit/base/error.h"
#include "vit/weights/atomic_file.h"
#include "vit/weights/json.h"

namespace vit::app {
namespace {

constexpr std::string_view kLineStart = "{\"file\": ";

/// Numbers as nested lists: (2, 3) -> [[a, b, c], [d, e, f]]. Advances `data` behind what was written.
void append_nested(std::string& out, const float*& data, const Shape& shape, std::size_t dimension) {
  if (dimension == shape.rank()) return append_json_float(out, *data++);
  out += '[';
  for (std::size_t i = 0; i < shape[dimension]; ++i) {
    if (i > 0) out += ", ";
    append_nested(out, data, shape, dimension + 1);
  }
  out += ']';
}

/// The quoted string at the start of `text`, with its quotes; empty where there is none.
std::string_view leading_json_string(std::string_view text) {
  if (!text.starts_with('"')) return {};
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return text.substr(0, i + 1);
    }
  }
  return {};
}

/// Numbers of a row: the length of the innermost list.
std::size_t innermost_size(Json value) {
  while (value.is_array() && value.size() > 0 && value[0].is_array()) value = value[0];
  return value.is_array() ? value.size() : 1;
}

}  // namespace

ResumableFile::Start prepare_resume(const std::filesystem::path& path) {
  check_output_place(path);
  const std::filesystem::path partial = ResumableFile::partial_path(path);
  if (std::filesystem::exists(partial) || !std::filesystem::exists(path))
    return ResumableFile::Start::continued;
  std::ifstream finished(path, std::ios::binary);
  VIT_CHECK(finished.is_open(), "resume", path.string(), ": cannot be read");
  AtomicFile copy(partial,
                  "resume");  // renamed when whole: an interruption here must not look like a shorter run
  std::vector<char> block(1 << 20);
  while (finished.read(block.data(), static_cast<std::streamsize>(block.size())) || finished.gcount() > 0) {
    copy.write(std::as_bytes(std::span(block).first(static_cast<std::size_t>(finished.gcount()))));
  }
  copy.commit();
  return ResumableFile::Start::copied;
}

JsonlWriter::JsonlWriter(const ResultWriterOptions& options)
    : options_(options),
      start_(options.resume ? prepare_resume(options.path) : ResumableFile::Start::empty),
      file_(options.path, start_) {
  if (options_.resume) take_over();
}

void JsonlWriter::take_over() {
  const std::filesystem::path partial = ResumableFile::partial_path(options_.path);
  const std::string read_file = (start_ == ResumableFile::Start::copied ? options_.path : partial).string();
  std::ifstream lines(partial, std::ios::binary);
  std::size_t complete_bytes = 0, number = 0;
  for (std::string line;
       std::getline(lines, line) && !lines.eof();) {  // a last line without its end was cut short
    ++number;
    const std::string place = text(read_file, ": line ", number);
    VIT_CHECK(line.starts_with(kLineStart) && line.ends_with('}'), "resume", place,
              " was not written by vit embed");
    if (number == 1) {
      const Json first = parse_json(line, place);
      bool same_names = first.size() == options_.names.size() + 1;
      for (const std::string& name : options_.names) same_names = same_names && first.find(name).has_value();
      VIT_CHECK(
          same_names, "resume", read_file,
          ": holds other features than this run asks for; give the same --features or another --output");
      for (const std::string& name : options_.names) kept_widths_[name] = innermost_size(first.at(name));
    }
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
  std::string line(kLineStart);
  append_json_string(line, file);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    VIT_CHECK(arrays[i].dtype == Dtype::f32, "write", "JSON lines hold float32, found ",
              to_string(arrays[i].dtype));
    line += ", ";
    append_json_string(line, options_.names[i]);
    line += ": ";
    const float* data = static_cast<const float*>(arrays[i].data);
    append_nested(line, data, arrays[i].shape, 0);
  }
  file_.write(line + "}\n");
  file_.flush();
  ++num_added_;
  return "";
}

void JsonlWriter::finish() {
  if (file_.size() > 0) file_.commit();
}

std::string JsonlWriter::summary() const {
  std::string out;
  for (const std::string& name : options_.names) out += (out.empty() ? "" : ", ") + name;
  return out + text(" of ", num_added_, " images",
                    num_kept_ == 0 ? "" : text(", ", num_kept_, " were there already"));
}

}  // namespace vit::app
