// Conversion of stored numbers to float32 and float64, and the lookup of tensors by name.
#include "vit/io/tensor_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"
#include "vit/io/in_quotes.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"tensor_file", ErrorKind::format};

struct FromF32 {
  using Stored = float;
  static float widen(float value) { return value; }
};
struct FromF16 {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t bits) { return f16_to_float(bits); }
};
struct FromBf16 {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t bits) { return bf16_to_float(bits); }
};
struct FromF64 {
  using Stored = double;
  static double widen(double value) { return value; }
};

/// Converts `count` elements that lie `stride` elements apart, the first at `first`.
template <typename From, typename Out>
void convert_row(const StoredBytes& in, std::size_t first, std::size_t stride, std::size_t count, Out* out) {
  using Stored = typename From::Stored;
  constexpr std::size_t kBytes = sizeof(Stored);
  if constexpr (std::is_same_v<Stored, Out>) {
    if (stride == 1) return in.read(first * kBytes, std::as_writable_bytes(std::span(out, count)));
  }
  // As much as fits in the L1 cache together with the result.
  std::array<Stored, (std::size_t{1} << 14) / kBytes> block;
  const std::size_t per_block = (block.size() - 1) / std::max<std::size_t>(stride, 1) + 1;
  for (std::size_t done = 0; done < count; done += per_block) {
    const std::size_t size = std::min(per_block, count - done);
    const std::size_t num_read = (size - 1) * stride + 1;
    in.read((first + done * stride) * kBytes, std::as_writable_bytes(std::span(block).first(num_read)));
    const auto widen = [&block, size, numbers = out + done](std::size_t step) {
      for (std::size_t i = 0; i < size; ++i) numbers[i] = static_cast<Out>(From::widen(block[i * step]));
    };
    stride == 1 ? widen(1) : widen(stride);  // the first one is vectorized
  }
}

template <typename From, typename Out>
void convert_all(const TensorEntry& entry, std::span<Out> out) {
  if (out.empty()) return;
  if (entry.strides.empty()) {
    constexpr std::size_t kPerTask = std::size_t{1} << 17;
    parallel_for_parts(out.size(), kPerTask, 0, [&](std::size_t first, std::size_t count) {
      convert_row<From>(entry.bytes, first, 1, count, out.data() + first);
    });
    return;
  }
  // The steps of the last dimension may be long: a single read is faster than many of one element each.
  const std::vector<std::byte> whole = entry.bytes.copy();
  const StoredBytes in(whole);
  // A counter over all dimensions except the last.
  const std::size_t last = entry.shape.size() - 1;
  std::array<std::size_t, TensorEntry::kMaxRank> index{};
  for (std::size_t done = 0; done < out.size(); done += entry.shape[last]) {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < last; ++i) offset += index[i] * entry.strides[i];
    convert_row<From>(in, offset, entry.strides[last], entry.shape[last], out.data() + done);
    for (std::size_t i = last; i-- > 0 && ++index[i] == entry.shape[i];) index[i] = 0;
  }
}

[[noreturn]] void refuse_type(const TensorEntry& entry) {
  fail(kWhere.with(ErrorKind::unsupported), entry.describe(), " has elements of type ", entry.dtype_name,
       "; float32, float16, bfloat16 and float64 can be converted (a quantized or non-weight tensor?)");
}

/// Adds the rows of an update that are in the entry.
template <typename Out>
void add_update(const LowRankUpdate& update, const TensorEntry& entry, std::span<Out> out) {
  const Tensor<float> a = to_float(update.a), b = to_float(update.b);
  const std::size_t rank = update.a.shape.front(), rows = update.b.shape.front();
  const std::size_t width = a.flat().size() / rank;  // of A
  const std::size_t columns = update.transposed ? rows : width;
  const float* const a_numbers = a.data();
  const float* const b_numbers = b.data();
  std::vector<float> row(columns);
  for (std::size_t i = 0; i < out.size() / columns; ++i) {
    const std::size_t place = entry.first_row + i;
    if (place < update.first_row || place - update.first_row >= (update.transposed ? width : rows)) continue;
    const std::size_t own = place - update.first_row;
    std::ranges::fill(row, 0.0f);
    for (std::size_t k = 0; k < rank; ++k) {
      for (std::size_t c = 0; c < columns; ++c) {
        row[c] += update.transposed ? a_numbers[k * width + own] * b_numbers[c * rank + k]
                                    : b_numbers[own * rank + k] * a_numbers[k * width + c];
      }
    }
    for (std::size_t c = 0; c < columns; ++c)
      out[i * columns + c] += static_cast<Out>(static_cast<float>(update.scale) * row[c]);
  }
}

template <typename Out>
void convert_stored(const TensorEntry& entry, std::span<Out> out) {
  switch (entry.dtype) {
    case Dtype::f32: return convert_all<FromF32>(entry, out);
    case Dtype::f16: return convert_all<FromF16>(entry, out);
    case Dtype::bf16: return convert_all<FromBf16>(entry, out);
    case Dtype::f64: return convert_all<FromF64>(entry, out);
    default: refuse_type(entry);
  }
}

template <typename Out>
void convert_checked(const TensorEntry& entry, std::span<Out> out) {
  VIT_CHECK(out.size() == entry.num_elements(), kWhere.with(ErrorKind::argument), entry.describe(),
            ": room for ", out.size(), " elements, expected ", entry.num_elements());
  convert_stored(entry, out);
  for (const auto& update : entry.updates) add_update(*update, entry, out);
}

}  // namespace

std::size_t TensorEntry::num_elements() const {
  std::size_t count = 1;
  for (const std::size_t size : shape) count = checked_mul(count, size, kWhere);
  return count;
}

std::string shape_text(std::span<const std::size_t> shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + ")";
}

std::string TensorEntry::describe() const {
  return "tensor " + in_quotes(name) + " " + shape_text(shape) + (file ? " of " + file->path().string() : "");
}

void convert(const TensorEntry& entry, std::span<float> out) {
  convert_checked(entry, out);
}
void convert(const TensorEntry& entry, std::span<double> out) {
  convert_checked(entry, out);
}

void convert_row(const TensorEntry& matrix, std::size_t row, std::span<float> out) {
  VIT_CHECK(matrix.shape.size() == 2 && row < matrix.shape[0] && out.size() == matrix.shape[1],
            kWhere.with(ErrorKind::argument), matrix.describe(), " has no row ", row, " of ", out.size(),
            " numbers");
  if (!matrix.updates.empty()) return convert(rows_of(matrix, row, 1), out);
  const std::size_t step = matrix.strides.empty() ? matrix.shape[1] : matrix.strides[0];
  const std::size_t stride = matrix.strides.empty() ? 1 : matrix.strides[1];
  const std::size_t first = row * step;
  switch (matrix.dtype) {
    case Dtype::f32: return convert_row<FromF32>(matrix.bytes, first, stride, out.size(), out.data());
    case Dtype::f16: return convert_row<FromF16>(matrix.bytes, first, stride, out.size(), out.data());
    case Dtype::bf16: return convert_row<FromBf16>(matrix.bytes, first, stride, out.size(), out.data());
    case Dtype::f64: return convert_row<FromF64>(matrix.bytes, first, stride, out.size(), out.data());
    default: refuse_type(matrix);
  }
}

TensorEntry rows_of(const TensorEntry& entry, std::size_t first, std::size_t count) {
  VIT_CHECK(!entry.shape.empty() && first <= entry.shape[0] && count <= entry.shape[0] - first, kWhere,
            entry.describe(), " has no rows from ", first, " to ", first + count);
  TensorEntry rows = entry;
  rows.shape[0] = count;
  rows.first_row += first;
  const std::size_t row_elements = entry.strides.empty()
                                       ? entry.num_elements() / std::max<std::size_t>(entry.shape[0], 1)
                                       : entry.strides[0];
  const std::size_t offset = first * row_elements * dtype_bytes(entry.dtype);
  rows.bytes = count == 0 ? entry.bytes.part(0, 0) : entry.bytes.part(offset, entry.bytes.size() - offset);
  return rows;
}

Tensor<float> to_float(const TensorEntry& entry) {
  VIT_CHECK(entry.shape.size() <= Shape::kMaxRank, kWhere.with(ErrorKind::unsupported), entry.describe(),
            " has ", entry.shape.size(), " dimensions, at most ", Shape::kMaxRank, " can be used");
  Tensor<float> out{Shape(entry.shape)};
  convert(entry, out.flat());
  return out;
}

std::vector<double> to_double(const TensorEntry& entry) {
  std::vector<double> out(entry.num_elements());
  convert(entry, std::span(out));
  return out;
}

TensorFile::TensorFile(Contents contents)
    : contents_(std::move(contents)), by_name_(contents_.entries.size()) {
  const auto& entries = contents_.entries;
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::size_t a, std::size_t b) { return entries[a].name < entries[b].name; });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(), [&](std::size_t a, std::size_t b) {
    return entries[a].name == entries[b].name;
  });
  VIT_CHECK(twice == by_name_.end(), kWhere, contents_.path.string(), ": tensor ",
            in_quotes(entries[*twice].name), " occurs twice");
}

const TensorEntry* TensorFile::find(std::string_view name) const noexcept {
  const auto& entries = contents_.entries;
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](std::size_t index, std::string_view n) { return entries[index].name < n; });
  return at != by_name_.end() && entries[*at].name == name ? &entries[*at] : nullptr;
}

const TensorEntry& TensorFile::at(std::string_view name) const {
  const TensorEntry* const entry = find(name);
  VIT_CHECK(entry != nullptr, kWhere.with(ErrorKind::mismatch), contents_.path.string(), ": has no tensor ",
            in_quotes(name));
  return *entry;
}

}  // namespace vit::internal
