// Vectors that FAISS searches by inner product, in types of index that are more than the vectors, through an
// interface without its types. A build without FAISS throws Error. Letters: n vectors, C numbers each.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/rings/index/scan.h"
#include "vit/base/tensor.h"

namespace vit::app {

class VectorIndex {
 public:
  ~VectorIndex();
  VectorIndex(VectorIndex&&) noexcept;
  VectorIndex& operator=(VectorIndex&&) noexcept;

  /// Whether the program was built with FAISS.
  static bool is_available();
  /// Throws UsageError if `type` is not a FAISS factory string for vectors of `dim` numbers and inner
  /// products.
  static void check_type(const std::string& type, std::size_t dim);
  /// An index of the type named by a FAISS factory string, with the vectors (n, C) in their order, for
  /// inner products. Trains it if the type requires it. Single-threaded, so that the bytes depend only on the
  /// vectors. Throws Error if FAISS refuses, for example because of too few vectors to train on.
  static VectorIndex build(const std::string& type, TensorView<const float> vectors);
  /// Only for files that this user wrote or trusts: FAISS does not validate files. Throws Error for one
  /// that FAISS cannot read or of another metric.
  static VectorIndex read(const internal::SourceFile& file);
  /// The file appears when it is complete. Throws Error if it cannot be written.
  void write(const std::filesystem::path& path) const;

  std::size_t size() const;  // n
  std::size_t dim() const;   // C
  /// Sets search parameters by their FAISS names: "nprobe=32", "efSearch=64". Throws UsageError for
  /// others.
  void set_parameters(const std::string& parameters);
  /// The `top` vectors with the largest inner product that FAISS finds, best first; ties in index order.
  /// Throws Error for a query of another length.
  std::vector<Hit> search(std::span<const float> query, std::size_t top, int threads) const;
  /// The vectors (n, C) as stored in the index; approximations if it compresses. Throws Error if its type
  /// cannot return them.
  Tensor<float> vectors() const;
  /// Length of the largest difference of `exact` (n, C) and vectors(); -1 if the type cannot return them.
  double largest_error(TensorView<const float> exact) const;

 private:
  struct State;
  explicit VectorIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vit::app
