#include "apps/vit/rings/index/index_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "apps/vit/ground/read_rest.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/rings/index/vector_index.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/io/atomic_file.h"
#include "vit/io/json.h"

namespace vit::app {

using namespace internal;

namespace {

namespace fs = std::filesystem;
constexpr Where kWhere{"index", ErrorKind::mismatch};
constexpr const char* kVectors = "vectors.safetensors";
constexpr const char* kFaiss = "vectors.faiss";
constexpr const char* kFiles = "files.jsonl";
constexpr const char* kFacts = "index.json";
constexpr const char* kExact = "vectors.npy";  // up to 0.2, for types of index that cannot return vectors
constexpr const char* kPartialFiles = "files.partial";
constexpr const char* kPartialVectors = "vectors.partial";
constexpr const char* kNew = ".new";
constexpr const char* kLock = ".lock";
constexpr int kMostAttempts = 50;  // to lock or read what another run is about to release
constexpr std::chrono::milliseconds kPause{20};
constexpr std::size_t kMaxPageVectors = std::size_t{1} << 16;
constexpr std::size_t kMaxDim = std::size_t{1} << 22;  // most classes of a model, the longest feature

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

void write_model(JsonWriter& json, const IndexModel& model) {
  model.write_members(json);
  json.member("dim", model.dim);
}

std::string member(const Json& json, std::string_view key) {
  return std::string(json.at(key).as_string());
}

IndexModel parse_model(const Json& json) {
  return {parse_run_model(json), json.at("dim").as_size({1, kMaxDim})};
}

IndexFacts parse_facts(const Json& json) {
  return {.model = parse_model(json),
          .type = member(json, "type"),
          .largest_error = json.at("largest_error").as_double(),
          .seal = json.find_string("seal").value_or("")};
}

IndexedFile parse_line(const std::string& line, const std::string& place) {
  const Json json = parse_json(line, place);
  return {.file = member(json, "file"),
          .size = static_cast<std::uintmax_t>(json.at("size").as_integer()),
          .modified = json.at("modified").as_double(),
          .width = json.at("width").as_size(),
          .height = json.at("height").as_size(),
          .vectors = json.find_size("vectors", {1, kMaxPageVectors}).value_or(0)};
}

std::vector<IndexedFile> parse_files(const std::string& bytes, const fs::path& path) {
  std::vector<IndexedFile> files;
  std::istringstream lines(bytes);
  lines.exceptions(std::ios::badbit);
  for (std::string line; std::getline(lines, line);)
    files.push_back(parse_line(line, text(path.string(), ": line ", files.size() + 1)));
  return files;
}

/// A change is committed once NAME.new of kFacts exists; renaming the others can be repeated.
void finish_change(const fs::path& folder) {
  const bool is_decided = fs::exists(folder / (std::string(kFacts) + kNew));
  for (const char* name : {kExact, kVectors, kFaiss, kFiles, kFacts}) {
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

/// The vectors of an index of 0.2.
StoredVectors former_vectors(const fs::path& folder, const IndexFacts& facts, std::size_t n,
                             IndexTrust trust) {
  const std::size_t dim = facts.model.dim;
  if (fs::exists(folder / kExact)) return StoredVectors::in_npy(folder / kExact, n, dim);
  const fs::path path = folder / kFaiss;
  if (const auto plain = plain_type(facts.type)) return StoredVectors::in_faiss(path, *plain, n, dim);
  if (facts.type.starts_with("HNSW")) return StoredVectors::at_end_of_faiss(path, n, dim);
  VIT_CHECK(
      trust == IndexTrust::trusted, kWhere.with(ErrorKind::unsupported), path.string(),
      ": an index of 0.2 of type ", printable(facts.type),
      " stores its vectors in a form only FAISS can read, without validating it; if the file is your own, "
      "vit index --trust-index converts it to the current format, without embedding again");
  const SourceFile file(path, kWhere);
  Tensor<float> vectors = VectorIndex::read(file).vectors();
  VIT_CHECK(vectors.dim(0) == n && vectors.dim(1) == dim, kWhere, path.string(), ": has ",
            vectors.shape().to_string(), " numbers, expected ", n, " vectors of ", dim,
            "; run vit index again into a new folder");
  return StoredVectors(std::move(vectors));
}

}  // namespace

bool IndexedFile::is_same(const IndexedFile& other) const {
  return size == other.size && std::abs(modified - other.modified) < 1e-6;
}

bool is_index_folder(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {kVectors, kFaiss, kFiles, kFacts}) {
    if (fs::exists(folder / name, error) || fs::exists(with_suffix(folder / name, kNew), error)) return true;
  }
  return false;
}

fs::path faiss_file(const fs::path& folder) {
  return folder / kFaiss;
}

namespace {

/// The lock of an index, for the moment in which it is read.
class ReadingLock {
 public:
  /// Does not wait for a run that writes the index. `alone`: no other reader may have it.
  ReadingLock(const fs::path& folder, bool alone)
      : descriptor_(::open((folder / kLock).c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ >= 0) is_free_ = ::flock(descriptor_, (alone ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0;
  }
  ~ReadingLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ReadingLock(const ReadingLock&) = delete;
  ReadingLock& operator=(const ReadingLock&) = delete;

  /// Whether no run writes the index; also where there is no lock, as in an index of 0.2.
  bool is_free() const noexcept { return is_free_; }

 private:
  int descriptor_ = -1;
  bool is_free_ = true;
};

/// The files as they are. Throws Error if they are of different runs.
IndexContents read_files(const fs::path& folder, IndexTrust trust) {
  const Json json = parse_json(read_whole(folder / kFacts), (folder / kFacts).string());
  const std::string lines = read_whole(folder / kFiles);
  // a release up to 0.2 that rewrites an index keeps vectors.safetensors and omits this member
  const bool is_current = json.find_string("vectors").value_or("") == kVectors;
  IndexContents contents{.facts = parse_facts(json),
                         .files = parse_files(lines, folder / kFiles),
                         .vectors = {},
                         .is_current = is_current};
  const std::size_t n = contents.files.size();
  VIT_CHECK(json.at("files").as_size() == n && json.at("checksum").as_string() == lines_checksum(lines),
            kWhere, folder.string(), ": its files are from different runs: ", kFacts, " has ",
            json.at("files").as_size(), " files, ", kFiles, " ", n, " files, or others; run vit index again");
  const bool has_pages = contents.facts.model.has_pages();
  for (const IndexedFile& file : contents.files)
    VIT_CHECK((file.vectors != 0) == has_pages, kWhere, (folder / kFiles).string(), ": ",
              printable(file.file), has_pages ? " has no number of vectors" : " has many vectors",
              ", but the index is one of ", has_pages ? "pages" : "images", "; run vit index again");
  const std::size_t num_vectors = vector_starts(contents.files).back();
  contents.vectors = is_current
                         ? StoredVectors::in_safetensors(folder / kVectors, num_vectors,
                                                         contents.facts.model.dim, lines_checksum(lines))
                         : former_vectors(folder, contents.facts, n, trust);
  return contents;
}

}  // namespace

IndexContents read_index_folder(const fs::path& folder, IndexTrust trust) {
  VIT_CHECK(is_index_folder(folder), kWhere.with(ErrorKind::argument), folder.string(),
            ": is not an index; create one with vit index INPUT... --output FOLDER");
  const fs::path change = with_suffix(folder / kFacts, kNew);
  for (int attempt = 1;; ++attempt) {
    const ReadingLock lock(folder, fs::exists(change));
    if (lock.is_free()) {
      if (fs::exists(change)) finish_change(folder);  // of a run that was killed
      return read_files(folder, trust);
    }
    // a run writes the index: what it renames meanwhile is read again
    const bool is_last = attempt == kMostAttempts;
    try {
      if (!fs::exists(change) || is_last) return read_files(folder, trust);
    } catch (const Error&) {
      if (is_last) throw;
    }
    std::this_thread::sleep_for(kPause);
  }
}

std::vector<std::size_t> vector_starts(std::span<const IndexedFile> files) {
  std::vector<std::size_t> starts{0};
  for (const IndexedFile& file : files)
    starts.push_back(checked_add(starts.back(), file.num_vectors(), kWhere));
  return starts;
}

void require_images(const IndexContents& contents, const fs::path& folder, const char* what) {
  VIT_CHECK(!contents.facts.model.has_pages(), kWhere.with(ErrorKind::unsupported), folder.string(),
            ": is an index of pages, each of which has many vectors; ", what,
            " needs one vector of each file: an index without --pages");
}

std::string lines_checksum(std::string_view bytes) {
  char text[16];
  std::snprintf(text, sizeof text, "%08lx",
                ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  return text;
}

std::string index_line(const IndexedFile& file) {
  char modified[48];
  std::snprintf(modified, sizeof modified, "%.6f", file.modified);
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("file", file.file).member("size", file.size).key("modified").json(modified);
  json.member("width", file.width).member("height", file.height);
  if (file.vectors != 0) json.member("vectors", file.vectors);
  json.end_object();
  return out;
}

IndexWriter::IndexWriter(fs::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  VIT_CHECK(!error, kWhere.with(ErrorKind::io), folder_.string(),
            ": the folder cannot be created: ", error.message());
  const fs::path path = folder_ / kLock;
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  VIT_CHECK(lock_ >= 0, kWhere.with(ErrorKind::io), path.string(),
            ": cannot be written: ", std::strerror(errno));
  bool is_locked = false;
  for (int attempt = 0; attempt < kMostAttempts && !is_locked; ++attempt) {  // readers hold it for a moment
    if (attempt > 0) std::this_thread::sleep_for(kPause);
    is_locked = ::flock(lock_, LOCK_EX | LOCK_NB) == 0;
  }
  if (!is_locked) {
    ::close(lock_);
    fail(kWhere.with(ErrorKind::io), folder_.string(), ": another run is writing this index");
  }
  finish_change(folder_);
}

IndexWriter::~IndexWriter() {
  ::close(lock_);
}

std::vector<IndexedFile> IndexWriter::take_partial(const IndexModel& model) {
  std::vector<IndexedFile> rows;
  std::string first;
  JsonWriter json(first);
  json.begin_object();
  write_model(json, model);
  json.end_object();
  first += "\n";
  const std::size_t vector_bytes = model.dim * sizeof(float);
  std::error_code error;
  const std::uintmax_t num_bytes = fs::file_size(folder_ / kPartialVectors, error);
  const std::uintmax_t num_vectors = error ? 0 : num_bytes / vector_bytes;
  std::size_t num_taken = 0;
  std::ifstream lines(folder_ / kPartialFiles, std::ios::binary);
  lines.exceptions(std::ios::badbit);  // out of memory must not look like the end
  std::size_t bytes = 0;
  std::string line;
  if (std::getline(lines, line) && !lines.eof()) {
    const std::string place = (folder_ / kPartialFiles).string();
    parse_model(parse_json(line, place)).check_same(model, place + ": left by an interrupted run");
    bytes = line.size() + 1;  // not those of `first`: the same model may have had another path
    // a line without a line break is incomplete
    while (num_taken < num_vectors && std::getline(lines, line) && !lines.eof()) {
      IndexedFile file = parse_line(line, place);
      VIT_CHECK((file.vectors != 0) == model.has_pages(), kWhere, place, ": ", printable(file.file),
                " is not of an index of ", model.has_pages() ? "pages" : "images");
      if (file.num_vectors() > num_vectors - num_taken) break;
      num_taken += file.num_vectors();
      rows.push_back(std::move(file));
      bytes += line.size() + 1;
    }
  }
  // incomplete data is removed, and writing continues after the rest
  const auto open = [this](std::ofstream& out, const char* name, std::size_t size) {
    std::error_code unwritable;
    std::ofstream(folder_ / name, std::ios::binary | std::ios::app).close();
    fs::resize_file(folder_ / name, size, unwritable);
    out.open(folder_ / name, std::ios::binary | std::ios::app);
    VIT_CHECK(!unwritable && out.is_open(), kWhere.with(ErrorKind::io), (folder_ / name).string(),
              ": cannot be written");
  };
  open(partial_vectors_, kPartialVectors, num_taken * vector_bytes);
  open(partial_files_, kPartialFiles, rows.empty() ? 0 : bytes);
  if (rows.empty()) partial_files_ << first << std::flush;
  num_partial_ = num_taken;
  dim_ = model.dim;
  return rows;
}

std::size_t IndexWriter::add_partial(const IndexedFile& file, std::span<const float> vectors) {
  // the line is written after the vectors: a complete line has them
  partial_vectors_.write(reinterpret_cast<const char*>(vectors.data()),
                         static_cast<std::streamsize>(vectors.size_bytes()));
  partial_vectors_.flush();
  partial_files_ << index_line(file) << '\n' << std::flush;
  VIT_CHECK(partial_vectors_.good() && partial_files_.good(), kWhere.with(ErrorKind::io), folder_.string(),
            ": cannot be written; is the disk full?");
  return std::exchange(num_partial_, num_partial_ + file.num_vectors());
}

StoredVectors IndexWriter::partial() const {
  if (num_partial_ == 0) return {};
  return StoredVectors::in_raw(folder_ / kPartialVectors, num_partial_, dim_);
}

void IndexWriter::write_new(IndexFacts& facts, std::span<const IndexedFile> files, const ReadVectors& read,
                            const IndexSeal& seal) {
  const auto fresh = [this](const char* name) { return with_suffix(folder_ / name, kNew); };
  const std::size_t n = vector_starts(files).back(), dim = facts.model.dim;
  std::string lines;
  for (const IndexedFile& file : files) lines += index_line(file) + "\n";
  if (const auto plain = plain_type(facts.type)) {
    facts.largest_error = std::max(
        facts.largest_error, write_vectors({.safetensors = fresh(kVectors),
                                            .faiss = facts.model.has_pages() ? fs::path() : fresh(kFaiss),
                                            .lines = lines_checksum(lines)},
                                           *plain, n, dim, read));
  } else {
    write_vectors({.safetensors = fresh(kVectors), .faiss = {}, .lines = lines_checksum(lines)},
                  PlainType::flat, n, dim, read);
    const Tensor<float> vectors = StoredVectors::in_safetensors(fresh(kVectors), n, dim).read_all();
    const VectorIndex index = VectorIndex::build(facts.type, vectors);
    index.write(fresh(kFaiss));
    const double error = index.largest_error(vectors);
    facts.largest_error = error < 0 ? error : facts.largest_error + error;
    facts.seal = seal.digest(SourceFile(fresh(kFaiss), kWhere));
  }
  write_whole(fresh(kFiles), lines);
  char number[32];
  std::snprintf(number, sizeof number, "%.3g", facts.largest_error);
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  write_model(json, facts.model);
  json.member("type", facts.type).key("largest_error").json(number).member("vectors", kVectors);
  if (!facts.seal.empty()) json.member("seal", facts.seal);
  json.member("files", files.size()).member("checksum", lines_checksum(lines)).end_object();
  write_whole(fresh(kFacts), text + "\n");  // commits
}

IndexFacts IndexWriter::commit(IndexFacts facts, std::span<const IndexedFile> files, const ReadVectors& read,
                               const IndexSeal& seal) {
  try {
    write_new(facts, files, read, seal);
  } catch (...) {
    finish_change(folder_);  // not committed: drops the new files
    throw;
  }
  finish_change(folder_);
  std::error_code error;
  fs::remove(folder_ / kExact, error);
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
