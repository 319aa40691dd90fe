// Matrix products by the instructions of Arm that multiply two rows by two columns: BFMMLA for bfloat16,
// USMMLA for bytes. An operand is 16 bytes:
//
//   rows     | row 0: 8 bytes of K    | row 1: ...    |        sums | 0,0 | 0,1 | 1,0 | 1,1 |
//   columns  | column 0: 8 bytes of K | column 1: ... |
//
// A line of weights is the four operands of a panel, 64 bytes: what pack() of bf16-inl.h and of
// int8-lines-inl.h write for forms with as many numbers of K in a line. A tile is three pairs of rows and two
// panels, or six pairs and one panel: 24 of the 32 registers are sums.
//
// BFMMLA adds the products of two numbers of K, rounds to odd, adds that to the sum and rounds to odd again,
// then does so for the other two; numbers below 1.2e-38 count as zero. (With FEAT_EBF16, a process may choose
// fused sums of four roundings to nearest; Linux does not set that mode.) Rounding to odd is off by less than
// one unit in the last place, twice as much as to nearest, in half as many additions as one multiply-add for
// each k has: the same bound. VDPBF16PS of x86 has two chains and rounds to nearest, so results differ from
// its in the last bits.
#pragma once

#include <arm_neon.h>

#include "vit/kernels/attention-inl.h"
#include "vit/kernels/bf16-inl.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/int8-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace mmla {

static_assert(kLanes == 4);
constexpr size_t kOperandBytes = 16, kDepthBytes = kOperandBytes / 2, kLineBytes = 4 * kOperandBytes;
constexpr size_t kRowTile = 6;  // rows of a tile of two panels
constexpr size_t kSumsOfPanel = kBlockRows * kPanel;
static_assert(kBlockRows % kRowTile == 0);

// Instructions are written as assembly: the instruction set is detected at run time and is not part of
// Highway's target, nor known to the assembler without its name.
#define VIT_ARM_CODE(instructions) ".arch armv8.6-a+crypto\n\t" instructions

HWY_INLINE uint8x16_t load_operand(const std::byte* from) {
  return vld1q_u8(reinterpret_cast<const uint8_t*>(from));
}

/// Four numbers of K. The order of a line lets weights of attention replace their scores in memory.
struct Bf16Products {
  using Number = float;
  using Sum = float32x4_t;
  using Vector = V;
  static HWY_INLINE Sum zero() { return vdupq_n_f32(0.0f); }
  static constexpr size_t kPlaces[4] = {0, 2, 1, 3};  // of pairs of columns in a line
  static HWY_INLINE void multiply_add(Sum& sum, uint8x16_t rows, uint8x16_t columns) {
    __asm__(VIT_ARM_CODE("bfmmla %0.4s, %1.8h, %2.8h") : "+w"(sum) : "w"(rows), "w"(columns));
  }
};

/// Eight unsigned bytes of rows, signed ones of columns: exact.
struct ByteProducts {
  using Number = int32_t;
  using Sum = int32x4_t;
  using Vector = int8::VI;
  static HWY_INLINE Sum zero() { return vdupq_n_s32(0); }
  static constexpr size_t kPlaces[4] = {0, 1, 2, 3};
  static HWY_INLINE void multiply_add(Sum& sum, uint8x16_t rows, uint8x16_t columns) {
    __asm__(VIT_ARM_CODE("usmmla %0.4s, %1.16b, %2.16b") : "+w"(sum) : "w"(rows), "w"(columns));
  }
};

/// Eight numbers as bfloat16, round half to even.
HWY_INLINE uint8x16_t rounded(V first, V second) {
  uint8x16_t both;
  __asm__(VIT_ARM_CODE("bfcvtn %0.4h, %1.4s\n\tbfcvtn2 %0.8h, %2.4s")
          : "=&w"(both)
          : "w"(first.raw), "w"(second.raw));
  return both;
}

HWY_INLINE void store_operand(uint8x16_t operand, std::byte* to) {
  vst1q_u8(reinterpret_cast<uint8_t*>(to), operand);
}

#undef VIT_ARM_CODE

/// The left operand of a tile as rows `step` bytes apart, joined in pairs as they are read. Of an odd number
/// of rows, the last one is read twice.
struct SingleRows {
  const std::byte* data;
  size_t step;
  size_t rows;

  HWY_INLINE SingleRows from_pair(size_t pair) const {
    return {data + 2 * pair * step, step, rows - 2 * pair};
  }
  template <size_t kPair, bool kIsLast>
  HWY_INLINE uint8x16_t load(const std::byte* at) const {
    const std::byte* const first = at + 2 * kPair * step;
    const std::byte* const second = first + (!kIsLast || rows > 2 * kPair + 1 ? step : 0);
    const uint64x2_t upper = vcombine_u64(vld1_u64(reinterpret_cast<const uint64_t*>(first)), vcreate_u64(0));
    return vreinterpretq_u8_u64(vld1q_lane_u64(reinterpret_cast<const uint64_t*>(second), upper, 1));
  }
  HWY_INLINE size_t k_step() const { return kDepthBytes; }
};

/// The same of rows that were joined in memory.
struct JoinedRows {
  const std::byte* data;
  size_t pair_step;
  size_t depth_step;
  size_t rows;

  HWY_INLINE JoinedRows from_pair(size_t pair) const {
    return {data + pair * pair_step, pair_step, depth_step, rows - 2 * pair};
  }
  template <size_t kPair, bool kIsLast>
  HWY_INLINE uint8x16_t load(const std::byte* at) const {
    return load_operand(at + kPair * pair_step);
  }
  HWY_INLINE size_t k_step() const { return depth_step; }
};

/// `count` lines of a panel, and of the next one `panel_step` bytes after it.
struct Lines {
  const std::byte* data;
  size_t count;
  size_t panel_step;
};

/// The sums of a pair of rows and a panel.
template <class Products>
struct PairSums {
  typename Products::Sum c0, c1, c2, c3;

  static HWY_INLINE PairSums none() {
    return {Products::zero(), Products::zero(), Products::zero(), Products::zero()};
  }
};

/// A pair of columns of a line.
template <class Products, size_t kPair>
HWY_INLINE uint8x16_t load_columns(const std::byte* line) {
  return load_operand(line + Products::kPlaces[kPair] * kOperandBytes);
}

/// Up to three pairs of rows and one of columns.
template <class Products, size_t kPairs>
HWY_INLINE void multiply_three(uint8x16_t a0, uint8x16_t a1, uint8x16_t a2, uint8x16_t columns,
                               typename Products::Sum& s0, typename Products::Sum& s1,
                               typename Products::Sum& s2) {
  Products::multiply_add(s0, a0, columns);
  if constexpr (kPairs > 1) Products::multiply_add(s1, a1, columns);
  if constexpr (kPairs > 2) Products::multiply_add(s2, a2, columns);
}

/// Later code may not be interleaved with what comes before: compilers otherwise load the columns of both
/// panels at once and run out of registers.
HWY_INLINE void end_part(const std::byte*& line) {
  __asm__ volatile("" : "+r"(line));
}

/// Up to three pairs of rows and a panel: one of its columns at a time in a register.
template <class Products, size_t kPairs>
HWY_INLINE void multiply_panel(uint8x16_t a0, uint8x16_t a1, uint8x16_t a2, const std::byte* line,
                               PairSums<Products>& s0, PairSums<Products>& s1, PairSums<Products>& s2) {
  multiply_three<Products, kPairs>(a0, a1, a2, load_columns<Products, 0>(line), s0.c0, s1.c0, s2.c0);
  multiply_three<Products, kPairs>(a0, a1, a2, load_columns<Products, 1>(line), s0.c1, s1.c1, s2.c1);
  multiply_three<Products, kPairs>(a0, a1, a2, load_columns<Products, 2>(line), s0.c2, s1.c2, s2.c2);
  multiply_three<Products, kPairs>(a0, a1, a2, load_columns<Products, 3>(line), s0.c3, s1.c3, s2.c3);
}

template <class Vector, class Number>
HWY_INLINE void store_row(Vector left, Vector right, TileStart start, Number* to) {
  const hn::DFromV<Vector> d;
  if (start == TileStart::stored) {
    left = hn::Add(hn::Load(d, to), left);
    right = hn::Add(hn::Load(d, to + kLanes), right);
  }
  hn::Store(left, d, to);
  hn::Store(right, d, to + kLanes);
}

template <class Products>
HWY_INLINE void store_pair(const PairSums<Products>& sums, TileStart start, bool has_second,
                           typename Products::Number* to) {
  using Vector = typename Products::Vector;
  const hn::DFromV<Vector> d;
  const Vector c0(sums.c0), c1(sums.c1), c2(sums.c2), c3(sums.c3);
  store_row(hn::ConcatLowerLower(d, c1, c0), hn::ConcatLowerLower(d, c3, c2), start, to);
  if (has_second)
    store_row(hn::ConcatUpperUpper(d, c1, c0), hn::ConcatUpperUpper(d, c3, c2), start, to + kPanel);
}

template <size_t kPairs, class Products, class Left>
HWY_INLINE void store_three(const PairSums<Products>& s0, const PairSums<Products>& s1,
                            const PairSums<Products>& s2, const Left& left, size_t pair, TileStart start,
                            typename Products::Number* sums) {
  store_pair(s0, start, left.rows > 2 * pair + 1, sums);
  if constexpr (kPairs > 1) store_pair(s1, start, left.rows > 2 * pair + 3, sums + 2 * kPanel);
  if constexpr (kPairs > 2) store_pair(s2, start, left.rows > 2 * pair + 5, sums + 4 * kPanel);
}

/// kPairs pairs of rows (the last one may be half of one): sums = or += left * lines, the sums of a second
/// panel kSumsOfPanel after those of the first.
template <class Products, size_t kPairs, size_t kPanels, class Left>
HWY_INLINE void multiply_tile(const Left& left, const Lines& lines, TileStart start,
                              typename Products::Number* sums) {
  static_assert(kPairs * kPanels <= 6);
  using Sums = PairSums<Products>;
  constexpr size_t kUpper = kPairs < 3 ? kPairs : 3, kLower = kPairs - kUpper;
  Sums s0 = Sums::none(), s1 = Sums::none(), s2 = Sums::none();  // of the first panel
  Sums t0 = Sums::none(), t1 = Sums::none(), t2 = Sums::none();  // of the second one, or of pairs 3 to 5
  const std::byte* a = left.data;
  const std::byte* b = lines.data;
  for (size_t k = 0; k < lines.count; ++k) {
    const uint8x16_t a0 = left.template load<0, kPairs == 1>(a);
    const uint8x16_t a1 = kUpper > 1 ? left.template load<1, kPairs == 2>(a) : a0;
    const uint8x16_t a2 = kUpper > 2 ? left.template load<2, kPairs == 3>(a) : a0;
    multiply_panel<Products, kUpper>(a0, a1, a2, b, s0, s1, s2);
    end_part(b);
    if constexpr (kPanels > 1) multiply_panel<Products, kUpper>(a0, a1, a2, b + lines.panel_step, t0, t1, t2);
    if constexpr (kLower > 0) {
      const uint8x16_t a3 = left.template load<3, kPairs == 4>(a);
      const uint8x16_t a4 = kLower > 1 ? left.template load<4, kPairs == 5>(a) : a3;
      const uint8x16_t a5 = kLower > 2 ? left.template load<5, kPairs == 6>(a) : a3;
      multiply_panel<Products, kLower>(a3, a4, a5, b, t0, t1, t2);
    }
    a += left.k_step();
    b += kLineBytes;
  }
  store_three<kUpper>(s0, s1, s2, left, 0, start, sums);
  if constexpr (kPanels > 1) store_three<kUpper>(t0, t1, t2, left, 0, start, sums + kSumsOfPanel);
  if constexpr (kLower > 0) store_three<kLower>(t0, t1, t2, left, 3, start, sums + 6 * kPanel);
}

template <class Products, size_t kPanels, class Left>
HWY_NOINLINE void multiply_rest(Left left, size_t pairs, Lines lines, TileStart start,
                                typename Products::Number* sums) {
  switch (pairs) {
    case 1: return multiply_tile<Products, 1, kPanels>(left, lines, start, sums);
    case 2: return multiply_tile<Products, 2, kPanels>(left, lines, start, sums);
    default: break;
  }
  if constexpr (kPanels == 1) {
    switch (pairs) {
      case 3: return multiply_tile<Products, 3, kPanels>(left, lines, start, sums);
      case 4: return multiply_tile<Products, 4, kPanels>(left, lines, start, sums);
      case 5: return multiply_tile<Products, 5, kPanels>(left, lines, start, sums);
      default: break;
    }
  }
}

/// All rows of `left`, tile by tile.
template <class Products, size_t kPanels, class Left>
HWY_NOINLINE void multiply_rows(Left left, Lines lines, TileStart start, typename Products::Number* sums) {
  constexpr size_t kPairs = 6 / kPanels;
  const size_t pairs = (left.rows + 1) / 2;
  size_t pair = 0;
  for (; pair + kPairs <= pairs; pair += kPairs)
    multiply_tile<Products, kPairs, kPanels>(left.from_pair(pair), lines, start, sums + 2 * pair * kPanel);
  if (pair < pairs)
    multiply_rest<Products, kPanels>(left.from_pair(pair), pairs - pair, lines, start,
                                     sums + 2 * pair * kPanel);
}

/// Calls multiply(row, rows, column, panels) for blocks of rows and one or two panels, then for each panel
/// finish(row, rows, column, index).
template <class Multiply, class Finish>
HWY_INLINE void for_each_block(const GemmArgs& args, const Multiply& multiply, const Finish& finish) {
  for (size_t row = 0; row < args.rows; row += kBlockRows) {
    const size_t rows = HWY_MIN(kBlockRows, args.rows - row);
    for (size_t column = args.column_begin; column < args.column_end; column += 2 * kPanel) {
      const size_t panels = args.column_end - column > kPanel ? 2 : 1;
      multiply(row, rows, column, panels);
      for (size_t i = 0; i < panels; ++i) finish(row, rows, column + i * kPanel, i);
    }
  }
}

template <class Products>
HWY_INLINE void multiply_panels(const SingleRows& left, const Lines& lines, size_t panels, TileStart start,
                                typename Products::Number* sums) {
  if (panels == 2) return multiply_rows<Products, 2>(left, lines, start, sums);
  multiply_rows<Products, 1>(left, lines, start, sums);
}

// bfloat16.

/// Whole cache lines.
inline size_t bf16_row_bytes(size_t in_features) noexcept {
  return (in_features + 31) / 32 * 64;
}

HWY_INLINE V load_up_to(const float* from, size_t count) {
  return count >= kLanes ? hn::LoadU(D(), from) : count > 0 ? load_first(from, count, 0.0f) : hn::Zero(D());
}

inline void round_rows(const ConvertArgs& args) noexcept {
  const size_t bytes = bf16_row_bytes(args.in_features), count = bytes / 2;
  for (size_t r = 0; r < args.rows; ++r) {
    const float* const in = args.in + r * args.in_stride;
    std::byte* const out = args.out + r * bytes;
    for (size_t k = 0; k < count; k += 2 * kLanes) {
      const auto rest = [&](size_t from) { return from < args.in_features ? args.in_features - from : 0; };
      const V first = load_up_to(in + k, rest(k)), second = load_up_to(in + k + kLanes, rest(k + kLanes));
      store_operand(rounded(first, second), out + 2 * k);
    }
  }
}

/// Four numbers of K: lines for bf16::pack.
struct QuadLines {
  static constexpr Accuracy kAccuracy = Accuracy::coarse;
  static constexpr size_t kColumns = 4;
  static constexpr size_t kLine = kLineBytes / sizeof(float);
  /// numbers (kColumns, kPanel)
  static HWY_INLINE void store_line(const float* numbers, float* to) {
    HWY_ALIGN float columns[kPanel * kColumns];
    transpose(numbers, kPanel, kColumns, kPanel, columns, kColumns);
    store_columns(columns, kColumns, kPanel, to);
  }
  /// The numbers of `count` <= kPanel columns, `step` floats apart; other columns become zero.
  static HWY_INLINE void store_columns(const float* columns, size_t step, size_t count, float* to,
                                       size_t depth = kColumns) {
    const auto column = [&](size_t c) HWY_ATTR {
      return c < count ? load_up_to(columns + c * step, depth) : hn::Zero(D());
    };
    const auto store = [&](size_t c, size_t operand) HWY_ATTR {
      store_operand(rounded(column(c), column(c + 1)),
                    reinterpret_cast<std::byte*>(to) + operand * kOperandBytes);
    };
    store(0, 0);
    store(2, 2);
    store(4, 1);
    store(6, 3);
  }
};

inline void bf16_gemm(const GemmArgs& args) noexcept {
  constexpr size_t kBlockLines = kBlockK / QuadLines::kColumns;
  const size_t lines = lanes_for<QuadLines>(args.in_features);
  HWY_ALIGN float sums[2 * kSumsOfPanel];
  for_each_block(
      args,
      [&](size_t row, size_t rows, size_t column, size_t panels) HWY_ATTR {
        const std::byte* const in = args.in + row * args.in_step;
        const std::byte* const packed = args.packed + column / kPanel * lines * kLineBytes;
        for (size_t line = 0; line < lines; line += kBlockLines) {
          multiply_panels<Bf16Products>(
              {in + line * kDepthBytes, args.in_step, rows},
              {packed + line * kLineBytes, HWY_MIN(kBlockLines, lines - line), lines * kLineBytes}, panels,
              line == 0 ? TileStart::zero : TileStart::stored, sums);
        }
      },
      [&](size_t row, size_t rows, size_t column, size_t i) HWY_ATTR {
        finish_block<QuadLines::kAccuracy>(
            args, {sums + i * kSumsOfPanel, row, rows, column, HWY_MIN(kPanel, args.column_end - column)});
      });
}

constexpr LinearKernels kBf16Linear{.description = "products of bfloat16 (BFMMLA)",
                                    .panel_columns = kPanel,
                                    .tile_rows = kRowTile,
                                    .row_bytes = bf16_row_bytes,
                                    .convert_rows = round_rows,
                                    .packed_bytes = bf16::packed_bytes<QuadLines>,
                                    .pack = bf16::pack<QuadLines>,
                                    .gemm = bf16_gemm};

// int8.

/// Eight numbers of K: rows for int8::quantize and lines for int8::pack.
struct OctetBytes : int8::VnniBytes {
  static constexpr const char* kDescription = "products of bytes (I8MM)";
  static constexpr size_t kStep = kDepthBytes;
};
static_assert(int8::kLineBytes<OctetBytes> == kLineBytes && kInt8Group % OctetBytes::kStep == 0);

/// A group's exact sums, scaled and added to those of the groups before.
HWY_INLINE void finish_group(const int8::Group& group, size_t rows, const int32_t* exact, float* sums) {
  const DI d;
  const ScratchSink kept{TileStart::zero, sums};  // earlier groups are added before
  for (size_t row = 0; row < rows; ++row) {
    int8::finish_row<OctetBytes, 2>(hn::Load(d, exact + row * kPanel),
                                    hn::Load(d, exact + row * kPanel + kLanes), group,
                                    group.scales[row * group.scale_step], row, sums, kept);
  }
}

/// Sums of a block of rows and one or two panels.
HWY_INLINE void multiply_groups(const GemmArgs& args, size_t row, size_t rows, size_t column, size_t panels,
                                float* sums) {
  using Form = OctetBytes;
  HWY_ALIGN int32_t exact[2 * kSumsOfPanel];
  const size_t header = int8::header_bytes<Form>(args.in_features);
  const size_t panel_step = int8::panel_bytes<Form>(args.in_features);
  const std::byte* const in = args.in + row * args.in_step;
  const std::byte* const packed = args.packed + int8::packed_bytes<Form>(column, args.in_features);
  const auto* const scales =
      reinterpret_cast<const InputScale*>(in + int8::value_bytes<Form>(args.in_features));
  TileStart start = TileStart::zero;  // of both panels
  for (size_t i = 0; i < panels; ++i)
    start = int8::start_sums(args, row, rows, column + i * kPanel, sums + i * kSumsOfPanel);
  for (size_t g = 0; g < int8_groups(args.in_features); ++g) {
    const size_t k = g * kInt8Group;
    const size_t steps = (HWY_MIN(kInt8Group, args.in_features - k) + Form::kStep - 1) / Form::kStep;
    multiply_panels<ByteProducts>({in + k, args.in_step, rows},
                                  {packed + header + k / Form::kStep * kLineBytes, steps, panel_step}, panels,
                                  TileStart::zero, exact);
    for (size_t i = 0; i < panels; ++i) {
      const float* const headers = reinterpret_cast<const float*>(packed + i * panel_step);
      const int8::Group group{.in = in + k,
                              .in_step = args.in_step,
                              .scales = scales + g,
                              .scale_step = args.in_step / sizeof(InputScale),
                              .header = headers + g * int8::kHeaderLanes<Form>,
                              .lines = nullptr,
                              .steps = steps,
                              .start = g == 0 ? start : TileStart::stored,
                              .next = nullptr};
      finish_group(group, rows, exact + i * kSumsOfPanel, sums + i * kSumsOfPanel);
    }
  }
}

inline void int8_gemm(const GemmArgs& args) noexcept {
  HWY_ALIGN float sums[2 * kSumsOfPanel];
  for_each_block(
      args,
      [&](size_t row, size_t rows, size_t column, size_t panels)
          HWY_ATTR { multiply_groups(args, row, rows, column, panels, sums); },
      [&](size_t row, size_t rows, size_t column, size_t i) HWY_ATTR {
        finish_block<OctetBytes::kAccuracy>(
            args, {sums + i * kSumsOfPanel, row, rows, column, HWY_MIN(kPanel, args.column_end - column)});
      });
}

constexpr LinearKernels kInt8Linear{.description = OctetBytes::kDescription,
                                    .panel_columns = kPanel,
                                    .tile_rows = kRowTile,
                                    .row_bytes = int8::row_bytes<OctetBytes>,
                                    .convert_rows = int8::quantize<OctetBytes>,
                                    .packed_bytes = int8::packed_bytes<OctetBytes>,
                                    .pack = int8::pack<OctetBytes>,
                                    .gemm = int8_gemm,
                                    .has_outliers = true};

}  // namespace mmla
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
