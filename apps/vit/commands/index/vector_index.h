// Vectors that FAISS searches by inner product, in types of index that are more than the vectors: behind an
// interface without its types. A build without FAISS says so. Letters: n vectors, C numbers of each.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/commands/index/scan.h"
#include "vit/base/tensor.h"

namespace vit::app {

class VectorIndex {
 public:
  ~VectorIndex();
  VectorIndex(VectorIndex&&) noexcept;
  VectorIndex& operator=(VectorIndex&&) noexcept;

  /// Whether the program was built with FAISS.
  static bool is_available();
  /// Throws UsageError if `type` is no factory string of FAISS for vectors of `dim` numbers and inner
  /// products.
  static void check_type(const std::string& type, std::size_t dim);
  /// An index of the type that a factory string of FAISS names, with the vectors (n, C) in their order, for
  /// inner products. Trains it where the type asks for that. One thread, so that the bytes depend on the
  /// vectors alone. Throws Error if FAISS refuses, for example too few vectors to train on.
  static VectorIndex build(const std::string& type, TensorView<const float> vectors);
  /// Only for files that this user wrote or trusts: FAISS believes what a file says. Throws Error for one
  /// that FAISS does not read or of another metric.
  static VectorIndex read(const internal::SourceFile& file);
  /// The file appears when it is complete. Throws Error if it cannot be written.
  void write(const std::filesystem::path& path) const;

  std::size_t size() const;  // n
  std::size_t dim() const;   // C
  /// Sets parameters of the search by FAISS's names: "nprobe=32", "efSearch=64". Throws UsageError for
  /// others.
  void set_parameters(const std::string& parameters);
  /// The `top` vectors with the largest inner product that FAISS finds, best first, of equal ones the first.
  /// Throws Error for a query of another length.
  std::vector<Hit> search(std::span<const float> query, std::size_t top, int threads) const;
  /// The vectors (n, C) as the index holds them; approximations where it compresses. Throws Error if its type
  /// does not give them back.
  Tensor<float> vectors() const;
  /// Length of the largest difference between `exact` (n, C) and vectors(); -1 if the type gives none back.
  double largest_error(TensorView<const float> exact) const;

 private:
  struct State;
  explicit VectorIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vit::app
