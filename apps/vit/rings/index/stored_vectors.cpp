#include "apps/vit/rings/index/stored_vectors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "apps/vit/inputs/npy.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/io/atomic_file.h"
#include "vit/io/safetensors.h"

namespace vit::app {

using namespace internal;

namespace {

constexpr Where kWhere{"index", ErrorKind::mismatch};
constexpr const char* kTensor = "vectors";
constexpr const char* kLines = "files";                     // of the metadata
constexpr std::size_t kBlockFloats = std::size_t{1} << 18;  // 1 MiB at a time

Dtype dtype_of(PlainType type) {
  return type == PlainType::fp16 ? Dtype::f16 : Dtype::f32;
}

/// Numbers in sequence in the byte order of the machine, as FAISS writes them.
class Bytes {
 public:
  template <typename Number>
  Bytes& add(Number number) {
    static_assert(std::is_arithmetic_v<Number>);
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  std::string text;
};

/// The header that faiss::write_index writes before the numbers of n vectors of a plain type: the name of the
/// type; dimension and number of vectors; two unused numbers, whether it is trained, and the metric, inner
/// product; for the quantizer its kind (float16), three parameters, dimension and bytes of a vector, and no
/// ranges; and the number of values or bytes that follow.
std::string faiss_start(PlainType type, std::size_t n, std::size_t dim) {
  constexpr std::int64_t kUnused = std::int64_t{1} << 20;
  constexpr std::int32_t kInnerProduct = 0, kFloat16 = 4, kRange = 0;
  const bool is_flat = type == PlainType::flat;
  Bytes out;
  out.text = is_flat ? "IxFI" : "IxSQ";
  out.add(static_cast<std::int32_t>(dim)).add(static_cast<std::int64_t>(n)).add(kUnused).add(kUnused);
  out.add(std::uint8_t{1}).add(kInnerProduct);
  if (is_flat) return std::move(out.add(std::uint64_t{checked_mul(n, dim, kWhere)}).text);
  const std::uint64_t code_bytes = checked_mul(dim, sizeof(std::uint16_t), kWhere);
  out.add(kFloat16).add(kRange).add(0.0f).add(std::uint64_t{dim}).add(code_bytes).add(std::uint64_t{0});
  return std::move(out.add(std::uint64_t{checked_mul(n, code_bytes, kWhere)}).text);
}

/// Rounds `rows` into `halves`; returns the largest squared difference of a row.
double round_rows(std::span<const float> rows, std::size_t dim, std::span<std::uint16_t> halves) {
  double largest = 0;
  for (std::size_t row = 0; row < rows.size(); row += dim) {
    double square = 0;
    for (std::size_t i = row; i < row + dim; ++i) {
      halves[i] = float_to_f16(rows[i]);
      const double difference = static_cast<double>(rows[i]) - static_cast<double>(f16_to_float(halves[i]));
      square += difference * difference;
    }
    largest = std::max(largest, square);
  }
  return largest;
}

}  // namespace

std::optional<PlainType> plain_type(const std::string& type) {
  if (type == "Flat") return PlainType::flat;
  if (type == "SQfp16") return PlainType::fp16;
  return std::nullopt;
}

StoredVectors::StoredVectors(const std::filesystem::path& path, const std::string& start, Dtype dtype,
                             std::size_t n, std::size_t dim, bool at_end)
    : file_(std::make_shared<const SourceFile>(path, kWhere)), dtype_(dtype), n_(n), dim_(dim) {
  const std::size_t num_bytes = checked_mul(checked_mul(n, dim, kWhere), dtype_bytes(dtype), kWhere);
  const std::size_t needed = checked_add(start.size(), num_bytes, kWhere), size = file_->size();
  VIT_CHECK(size >= needed && (at_end || size == needed) && file_->text(size - needed, start.size()) == start,
            kWhere, path.string(), ": does not contain ", n, " vectors of ", dim, " numbers (",
            to_string(dtype), "); run vit index again");
  bytes_ = StoredBytes(*file_, size - num_bytes, num_bytes);
}

StoredVectors StoredVectors::in_safetensors(const std::filesystem::path& path, std::size_t n, std::size_t dim,
                                            std::string_view lines) {
  const TensorFile file = open_safetensors(path);
  const auto of = file.metadata().find(kLines);
  VIT_CHECK(lines.empty() || of == file.metadata().end() || of->second == lines, kWhere, path.string(),
            ": is from another run than the list of files; run vit index again");
  const TensorEntry& entry = file.at(kTensor);
  VIT_CHECK((entry.dtype == Dtype::f32 || entry.dtype == Dtype::f16) &&
                entry.shape == std::vector<std::size_t>({n, dim}),
            kWhere, entry.describe(), ": expected ", n, " vectors of ", dim,
            " numbers, float32 or float16; run vit index again");
  StoredVectors out;
  out.file_ = entry.file;
  out.bytes_ = entry.bytes;
  out.dtype_ = entry.dtype;
  out.n_ = n;
  out.dim_ = dim;
  return out;
}

StoredVectors StoredVectors::in_npy(const std::filesystem::path& path, std::size_t n, std::size_t dim) {
  return {path, npy_header("<f4", std::array{n, dim}), Dtype::f32, n, dim};
}

StoredVectors StoredVectors::in_faiss(const std::filesystem::path& path, PlainType type, std::size_t n,
                                      std::size_t dim) {
  return {path, faiss_start(type, n, dim), dtype_of(type), n, dim};
}

StoredVectors StoredVectors::at_end_of_faiss(const std::filesystem::path& path, std::size_t n,
                                             std::size_t dim) {
  constexpr bool kAtEnd = true;
  return {path, faiss_start(PlainType::flat, n, dim), Dtype::f32, n, dim, kAtEnd};
}

StoredVectors StoredVectors::in_raw(const std::filesystem::path& path, std::size_t n, std::size_t dim) {
  return {path, "", Dtype::f32, n, dim};
}

StoredVectors::StoredVectors(Tensor<float> vectors)
    : memory_(std::make_shared<const Tensor<float>>(std::move(vectors))),
      bytes_(std::as_bytes(memory_->flat())),
      n_(memory_->dim(0)),
      dim_(memory_->dim(1)) {}

void StoredVectors::read(std::size_t first, std::span<float> rows) const {
  const std::size_t begin = first * dim_;
  if (dtype_ == Dtype::f32) return bytes_.read(begin * sizeof(float), std::as_writable_bytes(rows));
  std::array<std::uint16_t, 4096> halves;
  for (std::size_t done = 0; done < rows.size(); done += halves.size()) {
    const std::size_t count = std::min(halves.size(), rows.size() - done);
    bytes_.read((begin + done) * sizeof(std::uint16_t),
                std::as_writable_bytes(std::span(halves).first(count)));
    for (std::size_t i = 0; i < count; ++i) rows[done + i] = f16_to_float(halves[i]);
  }
}

Tensor<float> StoredVectors::read_all() const {
  Tensor<float> out(Shape{n_, dim_});
  read(0, out.flat());
  return out;
}

double write_vectors(const VectorFiles& files, PlainType type, std::size_t n, std::size_t dim,
                     const ReadVectors& read) {
  std::vector<std::unique_ptr<AtomicFile>> outputs;
  const auto open = [&](const std::filesystem::path& path, const std::string& start) {
    if (path.empty()) return;
    outputs.push_back(std::make_unique<AtomicFile>(path, kWhere));
    outputs.back()->write(std::as_bytes(std::span(start)));
  };
  std::map<std::string, std::string> metadata;
  if (!files.lines.empty()) metadata[kLines] = files.lines;
  open(files.safetensors, safetensors_start(kTensor, dtype_of(type), {n, dim}, metadata));
  open(files.faiss, faiss_start(type, n, dim));
  const std::size_t per_block = std::max<std::size_t>(1, kBlockFloats / dim);
  std::vector<float> floats(std::min(per_block, n) * dim);
  std::vector<std::uint16_t> halves(type == PlainType::fp16 ? floats.size() : 0);
  double largest = 0;
  for (std::size_t first = 0; first < n; first += per_block) {
    const std::size_t count = std::min(per_block, n - first) * dim;
    const std::span<float> rows = std::span(floats).first(count);
    read(first, rows);
    std::span<const std::byte> bytes = std::as_bytes(rows);
    if (type == PlainType::fp16) {
      largest = std::max(largest, round_rows(rows, dim, halves));
      bytes = std::as_bytes(std::span(halves).first(count));
    }
    for (const auto& output : outputs) output->write(bytes);
  }
  for (const auto& output : outputs) output->commit();
  return std::sqrt(largest);
}

}  // namespace vit::app
