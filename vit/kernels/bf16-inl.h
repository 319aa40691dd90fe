// Matrix products of bfloat16 weights: two numbers share a lane of 32 bits, and the loop of tile-inl.h
// separates them.
//
//   columns: | w[k][c + kLanes], w[k][c] |  lower and upper half of a lane: a line is one vector. The upper
//            half is a float32 once the lower one is masked out, the lower one once it is shifted up.
//   pairs:   | w[2k][c], w[2k + 1][c] |     a line is two vectors and covers two columns of K.
#pragma once

#include "vit/kernels/activation-inl.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/tile-inl.h"
#include "vit/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace bf16 {

using DU = hn::RebindToUnsigned<D>;
using VU = hn::Vec<DU>;

/// Numbers rounded to the upper half of their lanes, round half to even. The upper half of a NaN
/// may equal that of infinity, so its quiet bit is set.
HWY_INLINE VU rounded(V value) {
  const DU d;
  const VU bits = hn::BitCast(d, value);
  const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const VU finite = hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), odd);
  const VU quiet = hn::Or(bits, hn::Set(d, 0x400000));
  const auto is_nan = hn::IsNaN(value);
  return hn::And(hn::IfThenElse(hn::RebindMask(d, is_nan), quiet, finite), hn::Set(d, 0xFFFF0000u));
}

HWY_INLINE void store_halves(V upper, V lower, float* to) {
  hn::Store(hn::BitCast(D(), hn::Or(rounded(upper), hn::ShiftRight<16>(rounded(lower)))), D(), to);
}

struct ColumnLines {
  static constexpr const char* kDescription = "weights of bfloat16, arithmetic of float32";
  static constexpr Accuracy kAccuracy = Accuracy::full;
  static constexpr size_t kColumns = 1;
  static constexpr size_t kLine = kLanes;
  static constexpr auto kConvertRows = nullptr;
  static size_t row_bytes(size_t) noexcept { return 0; }
  static HWY_INLINE V first(const float* line) {
    const DU d;
    return hn::BitCast(D(), hn::And(hn::BitCast(d, hn::Load(D(), line)), hn::Set(d, 0xFFFF0000u)));
  }
  static HWY_INLINE V second(const float* line) {
    return hn::BitCast(D(), hn::ShiftLeft<16>(hn::BitCast(DU(), hn::Load(D(), line))));
  }
  static HWY_INLINE V multiply_add(V factor, V line, V sum) { return hn::MulAdd(factor, line, sum); }
  static HWY_INLINE void store_line(const float* numbers, float* to) {
    store_halves(hn::Load(D(), numbers), hn::Load(D(), numbers + kLanes), to);
  }
};

#if HWY_TARGET == HWY_AVX3
/// Two vectors rounded, round half to even, one after the other in one vector: pairs of neighbors.
HWY_INLINE V neighbors(V first, V second) {
  V both;
  // Written as assembly: the instruction set is detected at run time and is not part of Highway's target.
  __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both.raw) : "v"(second.raw), "v"(first.raw));
  return both;
}

/// Two vectors rounded, as the lower and upper halves of lanes.
HWY_INLINE V pairs(V lower, V upper) {
  alignas(64) static constexpr uint16_t kInterleaved[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                            21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                            11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i halves = _mm512_castps_si512(neighbors(lower, upper).raw);
  return V{_mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(kInterleaved), halves))};
}

/// count numbers as pairs of neighbors, plus a zero if count is odd; `lanes` may be `in`.
HWY_INLINE void round_row(const float* in, size_t count, float* lanes) {
  for (size_t k = 0; k < count; k += 2 * kLanes) {
    const size_t rest = count - k;
    const V first = rest >= kLanes ? hn::LoadU(D(), in + k) : load_first(in + k, rest, 0.0f);
    const V second = rest >= 2 * kLanes ? hn::LoadU(D(), in + k + kLanes)
                     : rest > kLanes    ? load_first(in + k + kLanes, rest - kLanes, 0.0f)
                                        : hn::Zero(D());
    const V both = neighbors(first, second);
    if (rest > 2 * kLanes - 2) {
      hn::StoreU(both, D(), lanes + k / 2);
    } else {
      store_first(both, (rest + 1) / 2, lanes + k / 2);
    }
  }
}

/// Pairs of columns, whole cache lines.
inline size_t pair_row_bytes(size_t in_features) noexcept {
  return (in_features + 31) / 32 * 64;
}

inline void round_rows(const ConvertArgs& args) noexcept {
  const size_t bytes = pair_row_bytes(args.in_features), lanes = bytes / sizeof(float);
  const size_t used = (args.in_features + 1) / 2;
  for (size_t r = 0; r < args.rows; ++r) {
    float* const out = reinterpret_cast<float*>(args.out + r * bytes);
    round_row(args.in + r * args.in_stride, args.in_features, out);
    for (size_t i = used; i < lanes; ++i) out[i] = 0.0f;
  }
}

/// Pairs of k multiplied and added by one instruction, inputs rounded as well.
struct PairLines {
  static constexpr const char* kDescription = "products of bfloat16 pairs";
  static constexpr Accuracy kAccuracy = Accuracy::coarse;
  static constexpr size_t kColumns = 2;
  static constexpr size_t kLine = kPanel;
  static constexpr auto kConvertRows = round_rows;
  static size_t row_bytes(size_t in_features) noexcept { return pair_row_bytes(in_features); }
  static HWY_INLINE V first(const float* line) { return hn::Load(D(), line); }
  static HWY_INLINE V second(const float* line) { return hn::Load(D(), line + kLanes); }
  // Written as assembly: the instruction set is detected at run time and is not part of Highway's target.
  static HWY_INLINE V multiply_add(V factor, V line, V sum) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(factor.raw), "v"(line.raw));
    return sum;
  }
  static HWY_INLINE void store_line(const float* numbers, float* to) {
    for (size_t c = 0; c < kPanel; c += kLanes) {
      store_halves(hn::Load(D(), numbers + kPanel + c), hn::Load(D(), numbers + c), to + c);
    }
  }
};
#endif

template <class Form>
size_t packed_bytes(size_t columns, size_t in_features) noexcept {
  return columns / kPanel * lanes_for<Form>(in_features) * Form::kLine * sizeof(float);
}

template <class Form>
bool pack(const PackArgs& args) noexcept {
  constexpr size_t kChunk = 64;  // columns of K
  HWY_ALIGN float numbers[kChunk * kPanel];
  float* packed = reinterpret_cast<float*>(args.packed);
  for (size_t column = 0; column < args.out_features; column += kPanel) {
    const size_t columns = HWY_MIN(kPanel, args.out_features - column);
    for (size_t k = 0; k < args.in_features; k += kChunk) {
      const size_t count = HWY_MIN(kChunk, args.in_features - k);
      for (float& number : numbers) number = 0.0f;
      transpose(args.weight + column * args.stride + k, args.stride, columns, count, numbers, kPanel);
      for (size_t line = 0; line < count; line += Form::kColumns) {
        Form::store_line(numbers + line * kPanel, packed);
        packed += Form::kLine;
      }
    }
  }
  return true;
}

template <class Form>
constexpr LinearKernels kLinear{.description = Form::kDescription,
                                .panel_columns = kPanel,
                                .tile_rows = kTileRows,
                                .row_bytes = Form::row_bytes,
                                .convert_rows = Form::kConvertRows,
                                .packed_bytes = packed_bytes<Form>,
                                .pack = pack<Form>,
                                .gemm = gemm<Form>};

}  // namespace bf16
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
