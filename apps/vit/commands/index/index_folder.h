// The files of an index: vectors.faiss, files.jsonl and index.json, which change together or not at all, and
// what an interrupted run has left.
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

#include "apps/vit/commands/index/vector_index.h"
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
  double largest_error =
      0;  // length of the largest difference between a vector and what the index holds of it
};

/// A complete index. Letters: n files.
struct IndexContents {
  IndexFacts facts;
  std::vector<IndexedFile> files;  // (n)
  VectorIndex index;
};

/// Whether `folder` holds an index, complete or not.
bool is_index_folder(const std::filesystem::path& folder);
/// Throws Error if there is none, a file is missing or damaged, or the files are not of one run.
IndexContents read_index_folder(const std::filesystem::path& folder, IndexTrust trust = IndexTrust::checked);
IndexFacts read_index_facts(const std::filesystem::path& folder);
/// The vectors that the index was built from (n, d), as exact as they were kept.
Tensor<float> read_exact_vectors(const std::filesystem::path& folder, const IndexContents& contents);

/// Writes an index; one at a time.
class IndexWriter {
 public:
  /// Makes the folder and locks it; completes a change that was interrupted while files were renamed. Throws
  /// Error if another run writes this index, or the folder cannot be written.
  explicit IndexWriter(std::filesystem::path folder);
  ~IndexWriter();
  IndexWriter(const IndexWriter&) = delete;
  IndexWriter& operator=(const IndexWriter&) = delete;

  /// What an interrupted run of this model has embedded. Throws Error that names both if it ran another
  /// model.
  std::vector<std::pair<IndexedFile, std::vector<float>>> take_partial(const IndexModel& model);
  /// Keeps a vector (d) for a run that continues this one, whatever ends it.
  void add_partial(const IndexedFile& file, std::span<const float> vector);
  /// Replaces the index and drops what was partial. Returns the facts written.
  IndexFacts commit(const IndexModel& model, const std::string& type, std::span<const IndexedFile> files,
                    TensorView<const float> vectors);
  void drop_partial();

 private:
  /// NAME.new of every file, that of the facts last. `exact_vectors` (n, d) are null where the index keeps
  /// them.
  void write_new(const VectorIndex& index, const IndexFacts& facts, std::span<const IndexedFile> files,
                 TensorView<const float> exact_vectors);

  std::filesystem::path folder_;
  int lock_ = -1;
  std::ofstream partial_files_, partial_vectors_;
};

/// The line of a file, without its end.
std::string index_line(const IndexedFile& file);

}  // namespace vit::app
