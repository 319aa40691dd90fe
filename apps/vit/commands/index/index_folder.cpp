#include "apps/vit/commands/index/index_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "apps/vit/inputs/npy.h"
#include "apps/vit/inputs/read_rest.h"
#include "apps/vit/outputs/text_format.h"
#include "vit/base/check.h"
#include "vit/io/atomic_file.h"
#include "vit/io/json.h"

namespace vit::app {

using namespace internal;

namespace {

namespace fs = std::filesystem;
constexpr Where kWhere{"index", ErrorKind::mismatch};
constexpr const char* kVectors = "vectors.faiss";
constexpr const char* kFiles = "files.jsonl";
constexpr const char* kFacts = "index.json";
constexpr const char* kExact = "vectors.npy";  // for types of index that do not give vectors back
constexpr const char* kPartialFiles = "files.partial";
constexpr const char* kPartialVectors = "vectors.partial";
constexpr const char* kNew = ".new";

fs::path with_suffix(const fs::path& path, const char* suffix) {
  return path.string() + suffix;
}

std::string read_whole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  VIT_CHECK(in.is_open(), kWhere.with(ErrorKind::io), path.string(), ": cannot be read; an index has ",
            kVectors, ", ", kFiles, " and ", kFacts);
  return read_rest(in, path);
}

void write_whole(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path, "index");
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

std::string checksum(std::string_view bytes) {
  char text[16];
  std::snprintf(text, sizeof text, "%08lx",
                ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  return text;
}

std::string model_json(const IndexModel& model) {
  return model.members() + text(", \"dim\": ", model.dim);
}

std::string member(const Json& json, std::string_view key) {
  return std::string(json.at(key).as_string());
}

IndexModel parse_model(const Json& json) {
  return {parse_run_model(json), json.at("dim").as_size()};
}

IndexedFile parse_line(const std::string& line, const std::string& place) {
  const Json json = parse_json(line, place);
  return {.file = member(json, "file"),
          .size = static_cast<std::uintmax_t>(json.at("size").as_integer()),
          .modified = json.at("modified").as_double(),
          .width = json.at("width").as_size(),
          .height = json.at("height").as_size()};
}

std::vector<IndexedFile> parse_files(const std::string& bytes, const fs::path& path) {
  std::vector<IndexedFile> files;
  std::istringstream lines(bytes);
  lines.exceptions(std::ios::badbit);
  for (std::string line; std::getline(lines, line);)
    files.push_back(parse_line(line, text(path.string(), ": line ", files.size() + 1)));
  return files;
}

/// A change is decided once NAME.new of kFacts is there; renaming the others can be done again.
void finish_change(const fs::path& folder) {
  const bool is_decided = fs::exists(folder / (std::string(kFacts) + kNew));
  for (const char* name : {kExact, kVectors, kFiles, kFacts}) {
    const fs::path fresh = with_suffix(folder / name, kNew);
    std::error_code error;
    if (is_decided && fs::exists(fresh)) {
      fs::rename(fresh, folder / name, error);
      VIT_CHECK(!error, kWhere.with(ErrorKind::io), fresh.string(), ": cannot be renamed: ", error.message());
    } else {
      fs::remove(fresh, error);
    }
  }
}

/// Rows (n, d) of a .npy file that this program wrote.
Tensor<float> read_exact(const fs::path& path, std::size_t rows, std::size_t dim) {
  const std::string bytes = read_whole(path);
  const std::string header = npy_header("<f4", std::array{rows, dim});
  Tensor<float> out(Shape{rows, dim});
  VIT_CHECK(bytes.starts_with(header) && bytes.size() == header.size() + out.num_elements() * sizeof(float),
            kWhere, path.string(), ": does not hold ", rows, " vectors of ", dim, " numbers");
  std::memcpy(out.data(), bytes.data() + header.size(), bytes.size() - header.size());
  return out;
}

double largest_difference(TensorView<const float> a, TensorView<const float> b) {
  double largest = 0;
  for (std::size_t row = 0; row < a.num_rows(); ++row) {
    double square = 0;
    for (std::size_t i = 0; i < a.num_columns(); ++i)
      square += std::pow(static_cast<double>(a.row(row)[i]) - static_cast<double>(b.row(row)[i]), 2);
    largest = std::max(largest, square);
  }
  return std::sqrt(largest);
}

}  // namespace

bool IndexedFile::is_same(const IndexedFile& other) const {
  return size == other.size && std::abs(modified - other.modified) < 1e-6;
}

bool is_index_folder(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {kVectors, kFiles, kFacts}) {
    if (fs::exists(folder / name, error) || fs::exists(with_suffix(folder / name, kNew), error)) return true;
  }
  return false;
}

IndexFacts read_index_facts(const fs::path& folder) {
  const fs::path path = folder / kFacts;
  const Json json = parse_json(read_whole(path), path.string());
  return {.model = parse_model(json),
          .type = member(json, "type"),
          .largest_error = json.at("largest_error").as_double()};
}

IndexContents read_index_folder(const fs::path& folder, IndexTrust trust) {
  VectorIndex::check_available();
  VIT_CHECK(is_index_folder(folder), kWhere.with(ErrorKind::argument), folder.string(),
            ": is no index; vit index INPUT... --output FOLDER makes one");
  if (fs::exists(with_suffix(folder / kFacts, kNew))) finish_change(folder);
  const std::string facts = read_whole(folder / kFacts), lines = read_whole(folder / kFiles);
  const Json json = parse_json(facts, (folder / kFacts).string());
  IndexContents contents{.facts = read_index_facts(folder),
                         .files = parse_files(lines, folder / kFiles),
                         .index = VectorIndex::read(folder / kVectors, trust)};
  const std::size_t count = contents.files.size();
  VIT_CHECK(contents.index.size() == count && contents.index.dim() == contents.facts.model.dim &&
                json.at("files").as_size() == count && json.at("checksum").as_string() == checksum(lines),
            kWhere, folder.string(), ": its files are not of one run: ", kVectors, " has ",
            contents.index.size(), " vectors of ", contents.index.dim(), " numbers, ", kFiles, " ", count,
            " files; run vit index again");
  return contents;
}

Tensor<float> read_exact_vectors(const fs::path& folder, const IndexContents& contents) {
  if (!fs::exists(folder / kExact)) return contents.index.vectors();
  return read_exact(folder / kExact, contents.files.size(), contents.facts.model.dim);
}

std::string index_line(const IndexedFile& file) {
  char modified[48];
  std::snprintf(modified, sizeof modified, "%.6f", file.modified);
  return "{\"file\": " + json_string(file.file) + text(", \"size\": ", file.size, ", \"modified\": ") +
         modified + text(", \"width\": ", file.width, ", \"height\": ", file.height, "}");
}

IndexWriter::IndexWriter(fs::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  VIT_CHECK(!error, kWhere.with(ErrorKind::io), folder_.string(),
            ": the folder cannot be made: ", error.message());
  const fs::path path = folder_ / ".lock";
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  VIT_CHECK(lock_ >= 0, kWhere.with(ErrorKind::io), path.string(),
            ": cannot be written: ", std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    fail(kWhere.with(ErrorKind::io), folder_.string(), ": another run writes this index");
  }
  finish_change(folder_);
}

IndexWriter::~IndexWriter() {
  ::close(lock_);
}

std::vector<std::pair<IndexedFile, std::vector<float>>> IndexWriter::take_partial(const IndexModel& model) {
  std::vector<std::pair<IndexedFile, std::vector<float>>> rows;
  const std::string first = "{" + model_json(model) + "}\n";
  std::ifstream lines(folder_ / kPartialFiles, std::ios::binary),
      vectors(folder_ / kPartialVectors, std::ios::binary);
  lines.exceptions(std::ios::badbit);  // without memory a line is not the last
  std::size_t bytes = 0;
  std::string line;
  if (std::getline(lines, line) && !lines.eof()) {
    const std::string place = (folder_ / kPartialFiles).string();
    parse_model(parse_json(line, place)).check_same(model, place + ": left by an interrupted run");
    bytes = line.size() + 1;  // not those of `first`: the same model may have lain elsewhere
    while (std::getline(lines, line) && !lines.eof()) {  // a line without its end was cut short
      std::vector<float> vector(model.dim);
      if (!vectors.read(reinterpret_cast<char*>(vector.data()),
                        static_cast<std::streamsize>(model.dim * sizeof(float))))
        break;
      rows.emplace_back(parse_line(line, place), std::move(vector));
      bytes += line.size() + 1;
    }
  }
  // what was cut short is cut off, and writing goes on behind
  const auto open = [this](std::ofstream& out, const char* name, std::size_t size) {
    std::error_code error;
    std::ofstream(folder_ / name, std::ios::binary | std::ios::app).close();
    fs::resize_file(folder_ / name, size, error);
    out.open(folder_ / name, std::ios::binary | std::ios::app);
    VIT_CHECK(!error && out.is_open(), kWhere.with(ErrorKind::io), (folder_ / name).string(),
              ": cannot be written");
  };
  open(partial_vectors_, kPartialVectors, rows.size() * model.dim * sizeof(float));
  open(partial_files_, kPartialFiles, rows.empty() ? 0 : bytes);
  if (rows.empty()) partial_files_ << first << std::flush;
  return rows;
}

void IndexWriter::add_partial(const IndexedFile& file, std::span<const float> vector) {
  // the line behind the vector: a line that is whole has its vector
  partial_vectors_.write(reinterpret_cast<const char*>(vector.data()),
                         static_cast<std::streamsize>(vector.size_bytes()));
  partial_vectors_.flush();
  partial_files_ << index_line(file) << '\n' << std::flush;
  VIT_CHECK(partial_vectors_.good() && partial_files_.good(), kWhere.with(ErrorKind::io), folder_.string(),
            ": cannot be written; is the disk full?");
}

void IndexWriter::write_new(const VectorIndex& index, const IndexFacts& facts,
                            std::span<const IndexedFile> files, TensorView<const float> exact_vectors) {
  std::string lines;
  for (const IndexedFile& file : files) lines += index_line(file) + "\n";
  const auto fresh = [this](const char* name) { return with_suffix(folder_ / name, kNew); };
  index.write(fresh(kVectors));
  write_whole(fresh(kFiles), lines);
  if (exact_vectors.data() != nullptr) {
    AtomicFile exact(fresh(kExact), "index");
    const std::string header =
        npy_header("<f4", std::array{exact_vectors.num_rows(), exact_vectors.num_columns()});
    exact.write(std::as_bytes(std::span(header)));
    exact.write(std::as_bytes(exact_vectors.flat()));
    exact.commit();
  }
  std::string json = "{" + model_json(facts.model) + ", \"type\": " + json_string(facts.type);
  char number[32];
  std::snprintf(number, sizeof number, "%.3g", facts.largest_error);
  json += std::string(", \"largest_error\": ") + number + text(", \"files\": ", files.size());
  write_whole(fresh(kFacts), json + ", \"checksum\": \"" + checksum(lines) + "\"}\n");  // decides
}

IndexFacts IndexWriter::commit(const IndexModel& model, const std::string& type,
                               std::span<const IndexedFile> files, TensorView<const float> vectors) {
  const VectorIndex index = VectorIndex::build(type, vectors);
  IndexFacts facts{.model = model, .type = type};
  const bool keeps_vectors = index.keeps_vectors(vectors);
  try {
    facts.largest_error = largest_difference(vectors, index.vectors());
  } catch (const Error&) {
    facts.largest_error = -1;  // unknown: the type gives no vectors back
  }
  try {
    write_new(index, facts, files, keeps_vectors ? TensorView<const float>() : vectors);
  } catch (...) {
    finish_change(folder_);  // not decided: drops what was written
    throw;
  }
  finish_change(folder_);
  if (keeps_vectors) {
    std::error_code error;
    fs::remove(folder_ / kExact, error);
  }
  drop_partial();
  return facts;
}

void IndexWriter::drop_partial() {
  partial_files_.close();
  partial_vectors_.close();
  std::error_code error;
  fs::remove(folder_ / kPartialFiles, error);
  fs::remove(folder_ / kPartialVectors, error);
}

}  // namespace vit::app
