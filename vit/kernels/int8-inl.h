// Matrix products of int8 weights with the rows that quantise-inl.h writes. Compiled once for each
// instruction set. Tiles are those of tile-inl.h; a step covers kStep columns of K.
#if defined(VIT_KERNELS_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VIT_KERNELS_INT8_INL_H_
#undef VIT_KERNELS_INT8_INL_H_
#else
#define VIT_KERNELS_INT8_INL_H_
#endif

#include "hwy/highway.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/int8.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/quantise-inl.h"
#include "vit/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::kernels::HWY_NAMESPACE {
namespace {
namespace int8 {

template <class Form>
constexpr size_t kLineBytes = kPanel* Form::kStep;  // weights of one step

/// What stands before the weights of a panel, for every group: the scales of its columns and, where inputs
/// have a zero, the sums of their weights, by which an input that stands for 0 counts too much (floats, but
/// whole: below 2^24).
template <class Form>
constexpr size_t kHeadLanes = (Form::kHasZero ? 2 : 1) * kPanel;  // of a group

template <class Form>
HWY_INLINE size_t head_bytes(size_t in_features) {
  return round_up(int8_groups(in_features) * kHeadLanes<Form> * sizeof(float), 64);
}

template <class Form>
HWY_INLINE size_t panel_bytes(size_t in_features) {
  const size_t steps = round_up(in_features, Form::kStep) / Form::kStep;
  return round_up(head_bytes<Form>(in_features) + steps * kLineBytes<Form>, 64);
}

template <class Form>
size_t packed_bytes(size_t columns, size_t in_features) noexcept {
  return columns / kPanel * panel_bytes<Form>(in_features);
}

template <class Form>
void pack(const Int8PackArgs& args) noexcept {
  const size_t padded = round_up(args.in_features, Form::kStep);
  const size_t groups = int8_groups(args.in_features);
  for (size_t column = 0; column < args.out_features; column += kPanel) {
    std::byte* const panel = args.packed + packed_bytes<Form>(column, args.in_features);
    float* const head = reinterpret_cast<float*>(panel);
    int8_t* const lines = reinterpret_cast<int8_t*>(panel + head_bytes<Form>(args.in_features));
    for (size_t c = 0; c < kPanel; ++c) {
      const bool is_column = column + c < args.out_features;
      const int8_t* const row = args.weight + (column + c) * args.in_features;
      int32_t sum = 0;  // of the group so far
      for (size_t k = 0; k < padded; ++k) {
        const int8_t value = is_column && k < args.in_features ? row[k] : int8_t{0};
        lines[k / Form::kStep * kLineBytes<Form> + c * Form::kStep + k % Form::kStep] = value;
        sum += value;
        if ((k + 1) % kInt8Group != 0 && k + 1 != padded) continue;
        const size_t group = k / kInt8Group;
        float* const lane = head + group * kHeadLanes<Form> + c;
        lane[0] = is_column ? args.scales[(column + c) * groups + group] : 0.0f;
        if constexpr (Form::kHasZero) lane[kPanel] = static_cast<float>(sum);
        sum = 0;
      }
    }
  }
}

/// sum + the products of the inputs in one lane with the weights in every lane.
HWY_INLINE VI add_products(Pairs, VI sum, VI inputs, VI weights) {
  const auto lower = [](VI pair) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(pair)); };
  const auto upper = [](VI pair) { return hn::ShiftRight<16>(pair); };
  return hn::Add(sum,
                 hn::Add(hn::Mul(lower(inputs), lower(weights)), hn::Mul(upper(inputs), upper(weights))));
}

/// Weights of a group as lanes of kStep numbers, kPanel lanes for a step: widened into `memory` once for all
/// rows.
HWY_INLINE const int32_t* unpack_lines(Pairs, const int8_t* lines, size_t steps, int32_t* memory) {
  for (size_t i = 0; i < steps * kPanel; i += kLanes) {
#if HWY_TARGET == HWY_SCALAR
    memory[i] = (lines[2 * i] & 0xFFFF) | lines[2 * i + 1] * 0x10000;
#else
    const hn::Repartition<int16_t, DI> d16;
    const auto pairs = hn::PromoteTo(d16, hn::Load(hn::Rebind<int8_t, decltype(d16)>(), lines + 2 * i));
    hn::Store(hn::BitCast(DI(), pairs), DI(), memory + i);
#endif
  }
  return memory;
}

HWY_INLINE const int32_t* unpack_lines(Bytes, const int8_t* lines, size_t, int32_t*) {
  return reinterpret_cast<const int32_t*>(lines);
}

#if HWY_TARGET == HWY_AVX2
alignas(32) constexpr int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

// Twelve sums, two vectors of weights, inputs and products are all sixteen registers: the ones stay in
// memory, which compilers would not think of.
HWY_INLINE VI add_products(Bytes, VI sum, VI inputs, VI weights) {
  VI products;
  __asm__("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
          : "+x"(sum.raw), "=&x"(products.raw)
          : "x"(inputs.raw), "x"(weights.raw), "m"(kOnes));
  return sum;
}
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
HWY_INLINE VI add_products(Bytes, VI sum, VI inputs, VI weights) {
  const hn::Repartition<int16_t, DI> d16;
#if HWY_TARGET <= HWY_AVX3
  const hn::Vec<decltype(d16)> pairs{_mm512_maddubs_epi16(inputs.raw, weights.raw)};
#else
  const hn::Vec<decltype(d16)> pairs{_mm_maddubs_epi16(inputs.raw, weights.raw)};
#endif
  VI unused = hn::Zero(DI());
  return hn::ReorderWidenMulAccumulate(DI(), pairs, hn::Set(d16, 1), sum, unused);
}
#endif

#if HWY_TARGET == HWY_AVX3
// Written as assembly: the instruction set is asked for at run time and is no part of Highway's target.
HWY_INLINE VI add_products(VnniBytes, VI sum, VI inputs, VI weights) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(inputs.raw), "v"(weights.raw));
  return sum;
}
#endif

HWY_INLINE VI load_inputs(const std::byte* from) {
  int32_t lane;
  __builtin_memcpy(&lane, from, sizeof(lane));
  return hn::Set(DI(), lane);
}

/// Sums of up to six rows, named one by one as in tile-inl.h.
struct SixSums {
  VI c00, c01, c10, c11, c20, c21, c30, c31, c40, c41, c50, c51;
};

/// Ends a row: what follows may not be mixed with it. Compilers otherwise broadcast all rows at once and run
/// out of registers, which halves the speed.
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
HWY_INLINE void multiply_six(const std::byte*& a, size_t first, size_t step, VI b0, VI b1, SixSums& c) {
  multiply_row<Form, kVectors>(a, first, b0, b1, c.c00, c.c01);
  if constexpr (kRows > 1) multiply_row<Form, kVectors>(a, first + step, b0, b1, c.c10, c.c11);
  if constexpr (kRows > 2) multiply_row<Form, kVectors>(a, first + 2 * step, b0, b1, c.c20, c.c21);
  if constexpr (kRows > 3) multiply_row<Form, kVectors>(a, first + 3 * step, b0, b1, c.c30, c.c31);
  if constexpr (kRows > 4) multiply_row<Form, kVectors>(a, first + 4 * step, b0, b1, c.c40, c.c41);
  if constexpr (kRows > 5) multiply_row<Form, kVectors>(a, first + 5 * step, b0, b1, c.c50, c.c51);
}

/// One group of one panel, and the rows that it meets.
struct Group {
  const std::byte* in;       // of the first row
  size_t in_step;            // bytes between rows
  const InputScale* scales;  // of the first row
  size_t scale_step;
  const float* head;     // (kHeadLanes)
  const int32_t* lines;  // (steps, kPanel)
  size_t steps;
  TileStart start;
};

/// Products of one row with one vector of columns, scaled as the weights: their sums without what the zero of
/// the inputs added, whole and exact until they are scaled. head: of these columns.
template <class Form>
HWY_INLINE V scaled_as_weights(VI sums, const InputScale& scale, const float* head) {
  const D d;
  V whole = hn::ConvertTo(d, sums);
  if constexpr (Form::kHasZero) whole = hn::NegMulAdd(set(scale.zero), hn::Load(d, head + kPanel), whole);
  return hn::Mul(whole, hn::Load(d, head));
}

/// Scales the sums of a group and stores or adds them.
template <class Form, size_t kVectors>
HWY_INLINE void finish_row(VI c0, VI c1, const Group& group, const InputScale& scale,
                           float* HWY_RESTRICT to) {
  const D d;
  const V factor = set(scale.step);
  const V first = scaled_as_weights<Form>(c0, scale, group.head);
  const V second = kVectors > 1 ? scaled_as_weights<Form>(c1, scale, group.head + kLanes) : first;
  if (group.start == TileStart::zero) {
    hn::Store(hn::Mul(first, factor), d, to);
    if constexpr (kVectors > 1) hn::Store(hn::Mul(second, factor), d, to + kLanes);
  } else {
    hn::Store(hn::MulAdd(first, factor, hn::Load(d, to)), d, to);
    if constexpr (kVectors > 1)
      hn::Store(hn::MulAdd(second, factor, hn::Load(d, to + kLanes)), d, to + kLanes);
  }
}

template <class Form, size_t kRows, size_t kVectors>
HWY_INLINE void finish_six(const SixSums& c, const Group& group, const InputScale* scales,
                           float* HWY_RESTRICT to) {
  const size_t step = group.scale_step;
  finish_row<Form, kVectors>(c.c00, c.c01, group, scales[0], to);
  if constexpr (kRows > 1) finish_row<Form, kVectors>(c.c10, c.c11, group, scales[step], to + kPanel);
  if constexpr (kRows > 2) finish_row<Form, kVectors>(c.c20, c.c21, group, scales[2 * step], to + 2 * kPanel);
  if constexpr (kRows > 3) finish_row<Form, kVectors>(c.c30, c.c31, group, scales[3 * step], to + 3 * kPanel);
  if constexpr (kRows > 4) finish_row<Form, kVectors>(c.c40, c.c41, group, scales[4 * step], to + 4 * kPanel);
  if constexpr (kRows > 5) finish_row<Form, kVectors>(c.c50, c.c51, group, scales[5 * step], to + 5 * kPanel);
}

HWY_INLINE SixSums no_sums() {
  const VI zero = hn::Zero(DI());
  return {zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero};
}

/// sums (kRows, kPanel) = or += one group of rows [row, row + kRows), the first kVectors vectors of each row.
template <class Form, size_t kRows, size_t kVectors>
HWY_INLINE void multiply_tile(const Group& group, size_t row, float* HWY_RESTRICT sums) {
  constexpr size_t kUpper = kRows < 6 ? kRows : 6;
  constexpr size_t kLower = kRows < 6 ? 0 : kRows - 6;
  SixSums upper = no_sums(), lower = no_sums();
  const size_t in_step = group.in_step;
  const std::byte* a = group.in + row * in_step;
  const int32_t* b = group.lines;
  for (size_t k = 0; k < group.steps; ++k) {
    const VI b0 = hn::Load(DI(), b);
    const VI b1 = kVectors > 1 ? hn::Load(DI(), b + kLanes) : b0;
    multiply_six<Form, kUpper, kVectors>(a, 0, in_step, b0, b1, upper);
    if constexpr (kLower > 0) multiply_six<Form, kLower, kVectors>(a, 6 * in_step, in_step, b0, b1, lower);
    a += Form::kStep * sizeof(typename Form::Value);
    b += kPanel;
  }
  const InputScale* const scales = group.scales + row * group.scale_step;
  finish_six<Form, kUpper, kVectors>(upper, group, scales, sums + row * kPanel);
  if constexpr (kLower > 0) {
    finish_six<Form, kLower, kVectors>(lower, group, scales + 6 * group.scale_step,
                                       sums + (row + 6) * kPanel);
  }
}

template <class Form, size_t kVectors>
HWY_NOINLINE void multiply_rest(const Group& group, size_t row, size_t rows, float* sums) {
  switch (rows) {
    case 1: return multiply_tile<Form, 1, kVectors>(group, row, sums);
    case 2: return multiply_tile<Form, 2, kVectors>(group, row, sums);
    case 3: return multiply_tile<Form, 3, kVectors>(group, row, sums);
    case 4: return multiply_tile<Form, 4, kVectors>(group, row, sums);
    case 5: return multiply_tile<Form, 5, kVectors>(group, row, sums);
    default: break;
  }
  if constexpr (kTileRows > 6) {
    multiply_tile<Form, 6, kVectors>(group, row, sums);
    if (rows > 6) multiply_rest<Form, kVectors>(group, row + 6, rows - 6, sums);
  }
}

template <class Form, size_t kVectors>
HWY_NOINLINE void multiply_group(const Group& group, size_t rows, float* sums) {
  size_t row = 0;
  for (; row + kTileRows <= rows; row += kTileRows)
    multiply_tile<Form, kTileRows, kVectors>(group, row, sums);
  if (row < rows) multiply_rest<Form, kVectors>(group, row, rows - row, sums);
}

/// Rows [row, row + rows) of one panel; rows <= kBlockRows.
template <class Form>
HWY_INLINE void multiply_panel(const Int8GemmArgs& args, size_t row, size_t rows, size_t column) {
  HWY_ALIGN float sums[kBlockRows * kPanel];
  HWY_ALIGN int32_t unpacked[kInt8Group / Form::kStep * kPanel];
  const size_t columns = HWY_MIN(kPanel, args.column_end - column);
  const size_t groups = int8_groups(args.in_features);
  const size_t bytes = row_bytes<Form>(args.in_features);
  const std::byte* const panel = args.packed + packed_bytes<Form>(column, args.in_features);
  const int8_t* const lines = reinterpret_cast<const int8_t*>(panel + head_bytes<Form>(args.in_features));
  for (size_t g = 0; g < groups; ++g) {
    const size_t k = g * kInt8Group;
    const size_t count = round_up(HWY_MIN(kInt8Group, args.in_features - k), Form::kStep);
    const Group group{.in = args.in + row * bytes + k * sizeof(typename Form::Value),
                      .in_step = bytes,
                      .scales = args.in_scales + row * groups + g,
                      .scale_step = groups,
                      .head = reinterpret_cast<const float*>(panel) + g * kHeadLanes<Form>,
                      .lines = unpack_lines(Form(), lines + k * kPanel, count / Form::kStep, unpacked),
                      .steps = count / Form::kStep,
                      .start = g == 0 ? TileStart::zero : TileStart::stored};
    if (columns > kLanes) {
      multiply_group<Form, 2>(group, rows, sums);
    } else {
      multiply_group<Form, 1>(group, rows, sums);
    }
  }
  const GemmArgs finish{.out = args.out, .out_stride = args.out_stride, .epilogue = *args.epilogue};
  finish_block<Form::kPrecision>(finish, {sums, row, rows, column, columns});
}

template <class Form>
void gemm(const Int8GemmArgs& args) noexcept {
  for (size_t row = 0; row < args.rows; row += kBlockRows) {
    const size_t rows = HWY_MIN(kBlockRows, args.rows - row);
    for (size_t column = args.column_begin; column < args.column_end; column += kPanel) {
      multiply_panel<Form>(args, row, rows, column);
    }
  }
}

template <class Form>
constexpr Int8Kernels kKernels{.description = Form::kDescription,
                               .input_largest = Form::kLargest,
                               .pair_largest = Form::kPairLargest,
                               .row_bytes = row_bytes<Form>,
                               .packed_bytes = packed_bytes<Form>,
                               .pack = pack<Form>,
                               .quantise = quantise<Form>,
                               .gemm = gemm<Form>};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
using Usual = Bytes;
#else
using Usual = Pairs;
#endif

}  // namespace int8
}  // namespace
}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // VIT_KERNELS_INT8_INL_H_
