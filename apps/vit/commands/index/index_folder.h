// The files of an index: vectors.safetensors, files.jsonl, index.json and, for FAISS, vectors.faiss, which
// change together or not at all, and what an interrupted run has left.
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

#include "apps/vit/commands/index/index_seal.h"
#include "apps/vit/commands/index/stored_vectors.h"
#include "apps/vit/outputs/run_facts.h"

namespace vit::app {

/// A line of files.jsonl: whose vector it is.
struct IndexedFile {
  std::string file;
  std::uintmax_t size = 0;  // bytes
  double modified = 0;      // seconds since 1970
  std::size_t width = 0;
  std::size_t height = 0;

  /// Whether the file is the one that was embedded, as far as size and time tell.
  bool is_same(const IndexedFile& other) const;
};

/// What the vectors of an index are.
struct IndexModel : RunModel {
  std::size_t dim = 0;
};

struct IndexFacts {
  IndexModel model;
  std::string type = "Flat";
  /// How the model was loaded: options of the command line and their values.
  std::map<std::string, std::vector<std::string>> options{};
  /// Length of the largest difference between an exact vector and what is searched of it; -1 = unknown.
  double largest_error = 0;
  std::string seal{};  // IndexSeal::digest() of vectors.faiss, where that is more than the vectors
};

/// A complete index. Letters: n files.
struct IndexContents {
  IndexFacts facts;
  std::vector<IndexedFile> files;  // (n)
  StoredVectors vectors;           // (n, C), as exact as they are kept
  bool is_current = true;          // false: written by a release up to 0.2
};

/// Whether FAISS may read what an index of 0.2 holds that the user did not vouch for.
enum class IndexTrust { checked, trusted };

/// Whether `folder` holds an index, complete or not.
bool is_index_folder(const std::filesystem::path& folder);
/// Throws Error if there is none, a file is missing or damaged, or the files are not of one run. Of an index
/// of 0.2 the vectors are taken from vectors.npy or, of a plain type and of HNSW, from vectors.faiss; those
/// that FAISS alone can give need IndexTrust::trusted.
IndexContents read_index_folder(const std::filesystem::path& folder, IndexTrust trust = IndexTrust::checked);
/// The file of FAISS, made by whomever.
std::filesystem::path faiss_file(const std::filesystem::path& folder);

/// Writes an index; one at a time.
class IndexWriter {
 public:
  /// Makes the folder and locks it; completes a change that was interrupted while files were renamed. Throws
  /// Error if another run writes this index, or the folder cannot be written.
  explicit IndexWriter(std::filesystem::path folder);
  ~IndexWriter();
  IndexWriter(const IndexWriter&) = delete;
  IndexWriter& operator=(const IndexWriter&) = delete;

  /// The files that an interrupted run of this model has embedded; their vectors are the first of partial().
  /// Throws Error that names both if it ran another model.
  std::vector<IndexedFile> take_partial(const IndexModel& model);
  /// Keeps a vector (C) for a run that continues this one, whatever ends it. Returns its place in partial().
  std::size_t add_partial(const IndexedFile& file, std::span<const float> vector);
  /// What was taken and added, as it lies on disk.
  StoredVectors partial() const;
  /// Replaces the index by these files and their vectors, and drops what was partial. `facts` without seal,
  /// and with the error that the vectors have already. Returns the facts written.
  IndexFacts commit(IndexFacts facts, std::span<const IndexedFile> files, const ReadVectors& read,
                    const IndexSeal& seal);
  void drop_partial();

 private:
  /// NAME.new of every file, that of the facts last.
  void write_new(IndexFacts& facts, std::span<const IndexedFile> files, const ReadVectors& read,
                 const IndexSeal& seal);

  std::filesystem::path folder_;
  int lock_ = -1;
  std::ofstream partial_files_, partial_vectors_;
  std::size_t num_partial_ = 0, dim_ = 0;
};

/// The line of a file, without its end.
std::string index_line(const IndexedFile& file);

}  // namespace vit::app
