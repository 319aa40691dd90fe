// The files of an index: vectors.safetensors, files.jsonl, index.json and, for FAISS, vectors.faiss, which
// change together atomically, and the partial results of an interrupted run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/options/page_vectors.h"
#include "apps/vit/outputs/run_facts.h"
#include "apps/vit/rings/index/stored_vectors.h"
#include "vit/io/source_file.h"

namespace vit::app {

/// Whether this user wrote a file that a library reads without validating it: a digest of the file with a key
/// that only this user can read.
class IndexSeal {
 public:
  /// With the key of this user, which is created if there is none: 32 bytes in vit/index.key in
  /// $XDG_STATE_HOME or ~/.local/state, readable only by the user. If the file cannot be created, or others
  /// can read it, there is no key.
  static IndexSeal of_user();

  /// HMAC-SHA256 of the file in hexadecimal digits; "" without a key.
  std::string digest(const internal::SourceFile& file) const;
  /// Whether `digest` is digest() of these bytes with this user's key; false without a key.
  bool is_own(const internal::SourceFile& file, std::string_view digest) const;

 private:
  std::vector<std::byte> key_;
};

/// A line of files.jsonl: the file of a vector.
struct IndexedFile {
  std::string file;
  std::uintmax_t size = 0;  // bytes
  double modified = 0;      // seconds since 1970
  std::size_t width = 0;
  std::size_t height = 0;
  std::size_t vectors = 0;  // of a page; 0 = one vector, as of all files of an index of images

  std::size_t num_vectors() const noexcept { return vectors != 0 ? vectors : 1; }
  /// Whether the file is the one that was embedded, judged by size and time.
  bool is_same(const IndexedFile& other) const;
};

/// The properties of the vectors of an index.
struct IndexModel : RunModel {
  std::size_t dim = 0;

  /// Whether each file has many vectors.
  bool has_pages() const { return features == kPageFeature; }
};

struct IndexFacts {
  IndexModel model;
  std::string type = "Flat";
  /// Length of the largest difference between an exact vector and the stored one; -1 = unknown.
  double largest_error = 0;
  std::string seal{};  // IndexSeal::digest() of vectors.faiss, if it is more than the vectors
};

/// A complete index. Letters: n files, N vectors: n, or those of all pages.
struct IndexContents {
  IndexFacts facts;
  std::vector<IndexedFile> files;  // (n)
  StoredVectors vectors;           // (N, C), as exact as stored, file by file
  bool is_current = true;          // false: written by a release up to 0.2
};

/// Whether FAISS may read the files of an index of 0.2: only if the user trusts them.
enum class IndexTrust { checked, trusted };

/// The first vector of each file, and the number of all, (n + 1). Throws Error on overflow.
std::vector<std::size_t> vector_starts(std::span<const IndexedFile> files);
/// Throws Error (unsupported) that `what` needs one vector of each file, if this is an index of pages.
void require_images(const IndexContents& contents, const std::filesystem::path& folder, const char* what);

/// Whether `folder` contains an index, complete or not.
bool is_index_folder(const std::filesystem::path& folder);
/// Throws Error if there is none, a file is missing or damaged, or files are of different runs. For an index
/// of 0.2 the vectors are taken from vectors.npy or, of a plain type and of HNSW, from vectors.faiss; those
/// that only FAISS can read need IndexTrust::trusted.
IndexContents read_index_folder(const std::filesystem::path& folder, IndexTrust trust = IndexTrust::checked);
/// The file for FAISS, which anyone may have written.
std::filesystem::path faiss_file(const std::filesystem::path& folder);

/// Writes an index; one at a time.
class IndexWriter {
 public:
  /// Creates the folder and locks it; completes a change interrupted while files were renamed. Throws
  /// Error if another run writes this index, or the folder cannot be written.
  explicit IndexWriter(std::filesystem::path folder);
  ~IndexWriter();
  IndexWriter(const IndexWriter&) = delete;
  IndexWriter& operator=(const IndexWriter&) = delete;

  /// The files that an interrupted run of this model has embedded; their vectors are the first of partial().
  /// Throws Error that names both models if it used another one.
  std::vector<IndexedFile> take_partial(const IndexModel& model);
  /// Stores the vectors (file.num_vectors(), C) for a run that continues this one, however it ends. Returns
  /// the index of the first in partial().
  std::size_t add_partial(const IndexedFile& file, std::span<const float> vectors);
  /// The vectors taken and added, as stored on disk.
  StoredVectors partial() const;
  /// Replaces the index by these files and their vectors, and drops partial results. `facts` without seal,
  /// and with the error that the vectors already have. Returns the facts written.
  IndexFacts commit(IndexFacts facts, std::span<const IndexedFile> files, const ReadVectors& read,
                    const IndexSeal& seal);
  void drop_partial();

 private:
  /// Writes NAME.new of every file, that of the facts last.
  void write_new(IndexFacts& facts, std::span<const IndexedFile> files, const ReadVectors& read,
                 const IndexSeal& seal);

  std::filesystem::path folder_;
  int lock_ = -1;
  std::ofstream partial_files_, partial_vectors_;
  std::size_t num_partial_ = 0, dim_ = 0;
};

/// What index.json has of the lines of files.jsonl, against files of different runs.
std::string lines_checksum(std::string_view bytes);
/// The line of a file, without its line break.
std::string index_line(const IndexedFile& file);

}  // namespace vit::app
