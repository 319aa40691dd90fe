// Vectors that are searched by inner product: an index of FAISS behind an interface without its types. A
// build without FAISS says so. Letters: n vectors, d numbers of each.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vit/base/tensor.h"

namespace vit::app {

/// A vector found: its place in the index and its inner product with the query.
struct Hit {
  std::size_t index = 0;
  float score = 0;
};

/// Whether a file is looked through before FAISS, which believes what it says, reads it.
enum class IndexTrust { checked, trusted };

class VectorIndex {
 public:
  ~VectorIndex();
  VectorIndex(VectorIndex&&) noexcept;
  VectorIndex& operator=(VectorIndex&&) noexcept;

  /// Throws Error if the program was built without FAISS.
  static void check_available();
  /// Throws UsageError if `type` is no factory string of FAISS for vectors of `dim` numbers and inner
  /// products.
  static void check_type(const std::string& type, std::size_t dim);
  /// An index of the type that a factory string of FAISS names, with the vectors (n, d) in their order, for
  /// inner products. Trains it where the type asks for that. One thread, so that the bytes depend on the
  /// vectors alone. Throws Error if FAISS refuses, for example too few vectors to train on.
  static VectorIndex build(const std::string& type, TensorView<const float> vectors);
  /// Throws Error for a file that FAISS does not read, of another metric or, unless it is trusted, damaged or
  /// of a type that is not looked through.
  static VectorIndex read(const std::filesystem::path& path, IndexTrust trust = IndexTrust::checked);
  /// The file appears when it is complete. Throws Error if it cannot be written.
  void write(const std::filesystem::path& path) const;

  std::size_t size() const;  // n
  std::size_t dim() const;   // d
  /// Sets parameters of the search by FAISS's names: "nprobe=32", "efSearch=64". Throws UsageError for
  /// others.
  void set_parameters(const std::string& parameters);
  /// The `top` vectors with the largest inner product, best first, of equal ones the first. Exact for Flat,
  /// which is scanned once by all threads. Throws Error for a query of another length.
  std::vector<Hit> search(std::span<const float> query, std::size_t top, int threads) const;
  /// Whether vectors() are those that the index was built from, or give the same bytes if it is built again.
  bool keeps_vectors(TensorView<const float> built_from) const;
  /// The vectors (n, d) as the index holds them; approximations where it compresses. Throws Error if its type
  /// does not give them back.
  Tensor<float> vectors() const;

 private:
  struct State;
  explicit VectorIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vit::app
