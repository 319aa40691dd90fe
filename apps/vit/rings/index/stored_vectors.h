// The vectors of an index in their files, which have several formats and are read on demand.
// Letters: n vectors, C numbers each.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vit/base/dtype.h"
#include "vit/base/tensor.h"
#include "vit/io/source_file.h"

namespace vit::app {

/// Types of index that consist only of the vectors: searched without FAISS, which can read their files.
enum class PlainType {
  flat,  // "Flat": float32
  fp16,  // "SQfp16": float16
};
/// The plain type named by a FAISS factory string; nothing for the others.
std::optional<PlainType> plain_type(const std::string& type);

/// Vectors (n, C) in a file, float32 or float16. Safe to read from several threads.
class StoredVectors {
 public:
  StoredVectors() = default;
  /// The tensor "vectors" of a file that write_vectors() wrote. Throws Error if it has another shape, or was
  /// written for other `lines`; "" = any, as in files up to 0.4.
  static StoredVectors in_safetensors(const std::filesystem::path& path, std::size_t n, std::size_t dim,
                                      std::string_view lines = "");
  /// A .npy file of float32, which releases up to 0.2 wrote next to vectors.faiss.
  static StoredVectors in_npy(const std::filesystem::path& path, std::size_t n, std::size_t dim);
  /// A FAISS file of a plain type.
  static StoredVectors in_faiss(const std::filesystem::path& path, PlainType type, std::size_t n,
                                std::size_t dim);
  /// A FAISS file that ends with all vectors as in a Flat one: a graph (HNSW).
  static StoredVectors at_end_of_faiss(const std::filesystem::path& path, std::size_t n, std::size_t dim);
  /// The n vectors of a file of float32 and nothing else.
  static StoredVectors in_raw(const std::filesystem::path& path, std::size_t n, std::size_t dim);
  /// Vectors in memory.
  explicit StoredVectors(Tensor<float> vectors);

  std::size_t size() const noexcept { return n_; }   // n
  std::size_t dim() const noexcept { return dim_; }  // C
  /// Whether they are rounded to float16.
  bool are_rounded() const noexcept { return dtype_ == internal::Dtype::f16; }
  /// Fills `rows` (count, C) with the vectors from `first` on. Throws Error as SourceFile::read does.
  void read(std::size_t first, std::span<float> rows) const;
  /// Reads all of them (n, C) into memory.
  Tensor<float> read_all() const;

 private:
  StoredVectors(const std::filesystem::path& path, const std::string& start, internal::Dtype dtype,
                std::size_t n, std::size_t dim, bool at_end = false);

  std::shared_ptr<const internal::SourceFile> file_;
  std::shared_ptr<const Tensor<float>> memory_;
  internal::StoredBytes bytes_;
  internal::Dtype dtype_ = internal::Dtype::f32;
  std::size_t n_ = 0, dim_ = 0;
};

/// Fills `rows` (count, C) with the vectors from `first` on.
using ReadVectors = std::function<void(std::size_t first, std::span<float> rows)>;

/// The files of write_vectors(); an empty path is not written.
struct VectorFiles {
  std::filesystem::path safetensors;  // tensor "vectors" (n, C)
  std::filesystem::path faiss;        // of a plain type, for faiss.read_index
  std::string lines{};                // checksum of the lines of the files that they are of; "" = none
};
/// Writes n vectors, float16 for PlainType::fp16, in blocks: memory does not grow with n. The files
/// appear when they are complete. Returns the length of the largest difference between a vector and its
/// stored form. Throws Error if a file cannot be written.
double write_vectors(const VectorFiles& files, PlainType type, std::size_t n, std::size_t dim,
                     const ReadVectors& read);

}  // namespace vit::app
