// Matrix products of int8 weights with the rows written by quantize-inl.h. Tiles are those of tile-inl.h; a
// step covers kStep columns of K.
#pragma once

#include "vit/kernels/activation-inl.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/int8-lines-inl.h"
#include "vit/kernels/int8.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/quantize-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace int8 {

HWY_INLINE VI load_inputs(const std::byte* from) {
  int32_t lane;
  __builtin_memcpy(&lane, from, sizeof(lane));
  return hn::Set(DI(), lane);
}

/// Sums of up to six rows, as separate variables, see tile-inl.h.
struct SixSums {
  VI c00, c01, c10, c11, c20, c21, c30, c31, c40, c41, c50, c51;
};

/// Ends a row: later code may not be interleaved with it. Compilers otherwise broadcast all rows at once and
/// run out of registers, which halves the speed.
HWY_INLINE void end_row([[maybe_unused]] VI& c0, [[maybe_unused]] VI& c1,
                        [[maybe_unused]] const std::byte*& next) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  __asm__ volatile("" : "+v"(c0.raw), "+v"(c1.raw), "+r"(next));  // x is the lower half of the registers
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  __asm__ volatile("" : "+x"(c0.raw), "+x"(c1.raw), "+r"(next));
#endif
}

template <class Form, size_t kVectors>
HWY_INLINE void multiply_row(const std::byte*& a, size_t offset, VI b0, VI b1, VI& c0, VI& c1) {
  const VI inputs = load_inputs(a + offset);
  c0 = add_products(Form(), c0, inputs, b0);
  if constexpr (kVectors > 1) c1 = add_products(Form(), c1, inputs, b1);
  end_row(c0, c1, a);
}

template <class Form, size_t kRows, size_t kVectors>
HWY_INLINE void multiply_six(const std::byte*& a, size_t step, VI b0, VI b1, SixSums& c) {
  multiply_row<Form, kVectors>(a, 0, b0, b1, c.c00, c.c01);
  if constexpr (kRows > 1) multiply_row<Form, kVectors>(a, step, b0, b1, c.c10, c.c11);
  if constexpr (kRows > 2) multiply_row<Form, kVectors>(a, 2 * step, b0, b1, c.c20, c.c21);
  if constexpr (kRows > 3) multiply_row<Form, kVectors>(a, 3 * step, b0, b1, c.c30, c.c31);
  if constexpr (kRows > 4) multiply_row<Form, kVectors>(a, 4 * step, b0, b1, c.c40, c.c41);
  if constexpr (kRows > 5) multiply_row<Form, kVectors>(a, 5 * step, b0, b1, c.c50, c.c51);
}

/// One group of one panel, and the rows multiplied with it.
struct Group {
  const std::byte* in;       // of the first row
  size_t in_step;            // bytes between rows
  const InputScale* scales;  // of the first row
  size_t scale_step;
  const float* header;   // (kHeaderLanes)
  const int32_t* lines;  // (steps, kPanel)
  size_t steps;
  TileStart start;
  const int8_t* next;  // the following memory, for the next group; need not be valid

  /// Bytes between the inputs of two steps.
  static constexpr size_t k_step() { return sizeof(int32_t); }
};

/// Products of one row with one vector of columns, scaled like the weights: their sums without the
/// contribution of the zero of the inputs, exact integers until they are scaled. header: of these columns.
template <class Form>
HWY_INLINE V scaled_as_weights(VI sums, const InputScale& scale, const float* header) {
  const D d;
  V sum = hn::ConvertTo(d, sums);
  if constexpr (Form::kHasZero) sum = hn::NegMulAdd(set(scale.zero), hn::Load(d, header + kPanel), sum);
  return hn::Mul(sum, hn::Load(d, header));
}

/// Scales the sums of a group and adds those of earlier groups in `sums`.
template <class Form, size_t kVectors, class Sink>
HWY_INLINE void finish_row(VI c0, VI c1, const Group& group, const InputScale& scale, size_t row,
                           const float* sums, const Sink& sink) {
  const D d;
  const V factor = set(scale.step);
  const V first = scaled_as_weights<Form>(c0, scale, group.header);
  const V second = kVectors > 1 ? scaled_as_weights<Form>(c1, scale, group.header + kLanes) : first;
  if (group.start == TileStart::zero) {
    sink.template store_row<kVectors>(row, hn::Mul(first, factor), hn::Mul(second, factor));
  } else {
    const float* const from = sums + row * kPanel;
    sink.template store_row<kVectors>(
        row, hn::MulAdd(first, factor, hn::Load(d, from)),
        kVectors > 1 ? hn::MulAdd(second, factor, hn::Load(d, from + kLanes)) : first);
  }
}

template <class Form, size_t kRows, size_t kVectors, class Sink>
HWY_INLINE void finish_six(const SixSums& c, const Group& group, size_t row, const float* sums,
                           const Sink& sink) {
  const size_t step = group.scale_step;
  const InputScale* const scales = group.scales + row * step;
  finish_row<Form, kVectors>(c.c00, c.c01, group, scales[0], row, sums, sink);
  if constexpr (kRows > 1) finish_row<Form, kVectors>(c.c10, c.c11, group, scales[step], row + 1, sums, sink);
  if constexpr (kRows > 2)
    finish_row<Form, kVectors>(c.c20, c.c21, group, scales[2 * step], row + 2, sums, sink);
  if constexpr (kRows > 3)
    finish_row<Form, kVectors>(c.c30, c.c31, group, scales[3 * step], row + 3, sums, sink);
  if constexpr (kRows > 4)
    finish_row<Form, kVectors>(c.c40, c.c41, group, scales[4 * step], row + 4, sums, sink);
  if constexpr (kRows > 5)
    finish_row<Form, kVectors>(c.c50, c.c51, group, scales[5 * step], row + 5, sums, sink);
}

HWY_INLINE SixSums no_sums() {
  const VI zero = hn::Zero(DI());
  return {zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero};
}

/// One group of rows [row, row + kRows), the first kVectors vectors of each, added to `sums` unless it is
/// the first; passed to `sink`.
template <class Form, size_t kRows, size_t kVectors, class SomeGroup, class Sink>
HWY_INLINE void multiply_tile(const SomeGroup& group, size_t row, const float* sums, const Sink& sink) {
  constexpr size_t kUpper = kRows < 6 ? kRows : 6;
  constexpr size_t kLower = kRows < 6 ? 0 : kRows - 6;
  SixSums upper = no_sums(), lower = no_sums();
  const size_t in_step = group.in_step;
  // Two pointers: with offsets to twelve rows from a single one, compilers run out of registers in the loop.
  const std::byte* a = group.in + row * in_step;
  const std::byte* a_lower = kLower > 0 ? a + 6 * in_step : a;
  const int32_t* b = group.lines;
  for (size_t k = 0; k < group.steps; ++k) {
    const VI b0 = hn::Load(DI(), b);
    const VI b1 = kVectors > 1 ? hn::Load(DI(), b + kLanes) : b0;
    multiply_six<Form, kUpper, kVectors>(a, in_step, b0, b1, upper);
    if constexpr (kLower > 0) multiply_six<Form, kLower, kVectors>(a_lower, in_step, b0, b1, lower);
    a += group.k_step();
    a_lower += group.k_step();
    b += kPanel;
  }
  finish_six<Form, kUpper, kVectors>(upper, group, row, sums, sink);
  if constexpr (kLower > 0) finish_six<Form, kLower, kVectors>(lower, group, row + 6, sums, sink);
}

template <class Form, size_t kVectors, class SomeGroup, class Sink>
HWY_NOINLINE void multiply_rest(const SomeGroup& group, size_t row, size_t rows, const float* sums,
                                Sink sink) {
  switch (rows) {
    case 1: return multiply_tile<Form, 1, kVectors>(group, row, sums, sink);
    case 2: return multiply_tile<Form, 2, kVectors>(group, row, sums, sink);
    case 3: return multiply_tile<Form, 3, kVectors>(group, row, sums, sink);
    case 4: return multiply_tile<Form, 4, kVectors>(group, row, sums, sink);
    case 5: return multiply_tile<Form, 5, kVectors>(group, row, sums, sink);
    default: break;
  }
  if constexpr (kTileRows > 6) {
    multiply_tile<Form, 6, kVectors>(group, row, sums, sink);
    if (rows > 6) multiply_rest<Form, kVectors>(group, row + 6, rows - 6, sums, sink);
  }
}

/// Bytes of the next group prefetched per row.
template <class Form>
constexpr size_t kBytesPerRow = kLineBytes<Form>*(kInt8Group / Form::kStep) / kFetchingRows;

template <class Form, size_t kVectors, bool kPrefetch, class SomeGroup, class Sink>
HWY_NOINLINE void multiply_group(const SomeGroup& group, size_t rows, const float* sums, Sink sink) {
  const size_t tiles = rows / kTileRows;
  for (size_t i = 0; i < tiles; ++i) {
    if constexpr (kPrefetch) {
      const size_t begin = i * kTileRows * kBytesPerRow<Form>;
      const size_t end = begin + kTileRows * kBytesPerRow<Form>;
      for (size_t at = begin; at < end; at += 64) __builtin_prefetch(group.next + at);
    }
    multiply_tile<Form, kTileRows, kVectors>(group, visited_tile<kPrefetch>(i, tiles) * kTileRows, sums,
                                             sink);
  }
  const size_t row = tiles * kTileRows;
  if (row < rows) multiply_rest<Form, kVectors>(group, row, rows - row, sums, sink);
}

/// Stores the products of the outlier columns in the sums of a panel, if there are any.
HWY_INLINE TileStart start_sums(const GemmArgs& args, size_t row, size_t rows, size_t column, float* sums) {
  const D d;
  const OutlierProduct& o = args.outliers;
  if (o.columns.count == 0) return TileStart::zero;
  for (size_t r = 0; r < rows; ++r) {
    const float* const in = o.in + (row + r) * o.in_stride;
    V c0 = hn::Zero(d), c1 = hn::Zero(d);
    for (size_t i = 0; i < o.columns.count; ++i) {
      const V x = set(in[o.columns.columns[i]]);
      const float* const weight = o.weight + i * o.weight_stride + column;
      c0 = hn::MulAdd(x, hn::LoadU(d, weight), c0);
      c1 = hn::MulAdd(x, hn::LoadU(d, weight + kLanes), c1);
    }
    hn::Store(c0, d, sums + r * kPanel);
    hn::Store(c1, d, sums + r * kPanel + kLanes);
  }
  return TileStart::stored;
}

/// Rows [row, row + rows) of one panel; rows <= kBlockRows.
template <class Form>
HWY_INLINE void multiply_panel(const GemmArgs& args, size_t row, size_t rows, size_t column) {
  HWY_ALIGN float sums[kBlockRows * kPanel];
  HWY_ALIGN int32_t unpacked[kInt8Group / Form::kStep * kPanel];
  const size_t columns = HWY_MIN(kPanel, args.column_end - column);
  const size_t groups = int8_groups(args.in_features);
  const std::byte* const in = args.in + row * args.in_step;
  const auto* const scales = reinterpret_cast<const InputScale*>(in + value_bytes<Form>(args.in_features));
  const std::byte* const panel = args.packed + packed_bytes<Form>(column, args.in_features);
  const int8_t* const lines = reinterpret_cast<const int8_t*>(panel + header_bytes<Form>(args.in_features));
  const ScratchSink kept{TileStart::zero, sums};  // earlier groups are added before
  EpilogueTail tail = EpilogueTail::nothing;
  const bool direct =
      columns == kPanel && args.epilogue.activation == Activation::none && tail_of(args.epilogue, tail);
  const TileStart start = start_sums(args, row, rows, column, sums);
  for (size_t g = 0; g < groups; ++g) {
    const size_t k = g * kInt8Group;
    const size_t count = round_up(HWY_MIN(kInt8Group, args.in_features - k), Form::kStep);
    const Group group{.in = in + k * sizeof(typename Form::Value),
                      .in_step = args.in_step,
                      .scales = scales + g,
                      .scale_step = args.in_step / sizeof(InputScale),
                      .header = reinterpret_cast<const float*>(panel) + g * kHeaderLanes<Form>,
                      .lines = unpack_lines(Form(), lines + k * kPanel, count / Form::kStep, unpacked),
                      .steps = count / Form::kStep,
                      .start = g == 0 ? start : TileStart::stored,
                      .next = lines + (k + count) * kPanel};
    if (direct && g + 1 == groups) {
      with_tail(tail, [&](auto known) HWY_ATTR {
        multiply_group<Form, 2, true>(group, rows, sums,
                                      OutputSink<known.value>{kept, panel_output(args, row, column)});
      });
    } else if (columns > kLanes) {
      multiply_group<Form, 2, true>(group, rows, sums, kept);
    } else {
      multiply_group<Form, 1, true>(group, rows, sums, kept);
    }
  }
  if (!direct) finish_block<Form::kAccuracy>(args, {sums, row, rows, column, columns});
}

template <class Form>
void gemm(const GemmArgs& args) noexcept {
  for (size_t row = 0; row < args.rows; row += kBlockRows) {
    const size_t rows = HWY_MIN(kBlockRows, args.rows - row);
    for (size_t column = args.column_begin; column < args.column_end; column += kPanel) {
      multiply_panel<Form>(args, row, rows, column);
    }
  }
}

template <class Form>
constexpr LinearKernels kLinear{.description = Form::kDescription,
                                .panel_columns = kPanel,
                                .tile_rows = kTileRows,
                                .row_bytes = row_bytes<Form>,
                                .convert_rows = quantize<Form>,
                                .packed_bytes = packed_bytes<Form>,
                                .pack = pack<Form>,
                                .gemm = gemm<Form>,
                                .has_outliers = true};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
using DefaultInt8 = Bytes;
#if HWY_TARGET == HWY_AVX3  // whose own activations take tables in registers
using PortableInt8 = PortableBytes;
#else
using PortableInt8 = Bytes;
#endif
#else
using DefaultInt8 = Pairs;
using PortableInt8 = PortableWords;
#endif

}  // namespace int8
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
