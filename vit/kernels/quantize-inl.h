// Rows of float32 to integers with a scale for each group, and the two forms in which int8-inl.h
// multiplies them.
#pragma once

#include "vit/kernels/activation-inl.h"
#include "vit/kernels/int8.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace int8 {

using VI = hn::Vec<DI>;

/// Pairs of int16, whose products cannot overflow in int32: for any processor.
struct Pairs {
  static constexpr const char* kDescription = "products of int16 pairs";
  static constexpr size_t kStep = 2;                     // columns of K in one 32-bit lane
  static constexpr bool kHasZero = false;                // a quantized input may represent 0 without being 0
  static constexpr int kLargest = 32'767;                // input_largest
  static constexpr int kPairLargest = 255;               // pair_largest: above that of any weights
  using Value = int16_t;                                 // of a quantized input
  static constexpr Accuracy kAccuracy = Accuracy::full;  // of activations
};

/// Pairs whose products are added to the sum at once.
struct VnniPairs : Pairs {};

/// Four unsigned bytes times four signed ones, added in pairs in 16 bits (vpmaddubsw), then in 32.
struct Bytes {
  static constexpr const char* kDescription = "products of bytes";
  static constexpr size_t kStep = 4;
  static constexpr bool kHasZero = true;
  static constexpr int kLargest = 127;
  static constexpr int kPairLargest = 128;  // 255 * 128 < 2^15
  using Value = uint8_t;
  static constexpr Accuracy kAccuracy = Accuracy::coarse;
};

/// Bytes whose products are added in 32 bits at once.
struct VnniBytes : Bytes {
  static constexpr const char* kDescription = "products of bytes (VNNI)";
  static constexpr int kPairLargest = 255;
};

/// What --bits portable multiplies, the same integers and activations under all kernels: bytes of inputs
/// whose neighboring weights are not large together, as products that are added in 16 bits need it.
struct PortableBytes : Bytes {
  static constexpr Accuracy kAccuracy = Accuracy::portable;
};
struct PortableVnniBytes : VnniBytes {
  static constexpr int kPairLargest = Bytes::kPairLargest;
  static constexpr Accuracy kAccuracy = Accuracy::portable;
};
/// For processors without products of bytes: their integers in 16 bits.
struct PortableWords : Pairs {
  static constexpr bool kHasZero = true;
  static constexpr int kLargest = Bytes::kLargest;
  static constexpr int kPairLargest = Bytes::kPairLargest;
  static constexpr Accuracy kAccuracy = Accuracy::portable;
};

constexpr size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Bytes of the values of a row.
template <class Form>
constexpr size_t value_bytes(size_t in_features) {
  return round_up(in_features * sizeof(typename Form::Value), 64);
}

/// ... and of the scales after them.
template <class Form>
size_t row_bytes(size_t in_features) noexcept {
  return value_bytes<Form>(in_features) + int8_scale_bytes(in_features);
}

/// What is found out about groups that follow each other, of one row or several, a lane for each: the ends of
/// their ranges, then how to scale them.
struct Scaling {
  HWY_ALIGN float lowest[kLanes];   // of the numbers and 0
  HWY_ALIGN float highest[kLanes];  // infinite if any number is not finite
  HWY_ALIGN float factor[kLanes];   // integers are a step of 1 / factor apart
  HWY_ALIGN float step[kLanes];
  HWY_ALIGN float zero[kLanes];
};

HWY_INLINE void scan_range(const float* in, size_t count, Scaling& scaling, size_t lane) {
  const D d;
  V lowest = hn::Zero(d), highest = hn::Zero(d);
  V zero_if_finite = hn::Zero(d);
  const auto note = [&](V x) HWY_ATTR {
    lowest = hn::Min(lowest, x);
    highest = hn::Max(highest, x);
    zero_if_finite = hn::MulAdd(x, hn::Zero(d), zero_if_finite);
  };
  size_t k = 0;
  for (; k + kLanes <= count; k += kLanes) note(hn::LoadU(d, in + k));
  if (k < count) note(load_first(in + k, count - k, 0.0f));
  highest = hn::IfThenElse(hn::Eq(zero_if_finite, hn::Zero(d)), highest, hn::Inf(d));
  scaling.lowest[lane] = hn::GetLane(hn::MinOfLanes(d, lowest));
  scaling.highest[lane] = hn::GetLane(hn::MaxOfLanes(d, highest));
}

/// The factor 0 makes all numbers zero; its result for one that is not finite does not matter, since the step
/// then is NaN. input_largest: steps from 0 to the largest magnitude.
template <class Form>
HWY_INLINE void choose_steps(Scaling& scaling, float input_largest = Form::kLargest) {
  const D d;
  const V lowest = hn::Load(d, scaling.lowest), highest = hn::Load(d, scaling.highest);
  const V largest = hn::Max(highest, hn::Neg(lowest));
  const auto is_zero = hn::Lt(largest, set(1e-30f));
  const auto is_finite = hn::Lt(highest, hn::Inf(d));
  const auto is_regular = hn::AndNot(is_zero, is_finite);
  V step, factor, zero;
  if constexpr (Form::kHasZero) {
    // One of the 256 numbers is spare, so that both ends can be rounded away from 0.
    step = hn::Sub(hn::Div(highest, set(2 * input_largest)), hn::Div(lowest, set(2 * input_largest)));
    factor = hn::Div(set(1.0f), step);
    zero = hn::Round(hn::IfThenElseZero(is_regular, hn::Mul(hn::Neg(lowest), factor)));
  } else {
    step = hn::Div(largest, set(input_largest));
    factor = hn::Div(set(input_largest), largest);
    zero = hn::Zero(d);
  }
  step = hn::IfThenElse(is_finite, hn::IfThenZeroElse(is_zero, step), hn::NaN(d));
  hn::Store(hn::IfThenElseZero(is_regular, factor), d, scaling.factor);
  hn::Store(step, d, scaling.step);
  hn::Store(zero, d, scaling.zero);
}

/// The numbers times `factor`, rounded with kRounder, plus `zero`.
template <class Form>
HWY_INLINE void quantize_group(const float* in, size_t count, float factor, float zero,
                               typename Form::Value* to) {
  using Bits = hwy::MakeUnsigned<typename Form::Value>;
  const D d;
  const hn::Rebind<Bits, D> d_bits;
  const V scale = set(factor);
  const V rounder = set(kRounder + zero);
  const auto integers = [&](V x) HWY_ATTR {
    const V sum = hn::Add(hn::Mul(x, scale), rounder);
    return hn::TruncateTo(d_bits, hn::BitCast(hn::RebindToUnsigned<D>(), sum));
  };
  Bits* const out = reinterpret_cast<Bits*>(to);
  size_t k = 0;
  for (; k + kLanes <= count; k += kLanes) hn::StoreU(integers(hn::LoadU(d, in + k)), d_bits, out + k);
  if (k == count) return;
  HWY_ALIGN Bits lanes[kLanes];
  hn::Store(integers(load_first(in + k, count - k, 0.0f)), d_bits, lanes);
  __builtin_memcpy(out + k, lanes, (count - k) * sizeof(Bits));
}

/// Walks the groups of a row, then those of the next.
struct GroupCursor {
  size_t row, group;

  HWY_INLINE void advance(size_t groups) {
    if (++group < groups) return;
    group = 0;
    ++row;
  }
};

/// A copy of the group of columns [begin, begin + count) without its outliers, or the group itself if it has
/// none.
HWY_INLINE const float* without_outliers(const float* in, size_t begin, size_t count,
                                         const OutlierColumns& outliers, float* copy) {
  const float* group = in;
  for (size_t i = 0; i < outliers.count; ++i) {
    const size_t column = outliers.columns[i] - begin;  // wraps around before the group
    if (column >= count) continue;
    if (group == in) __builtin_memcpy(copy, in, count * sizeof(float));
    copy[column] = 0.0f;
    group = copy;
  }
  return group;
}

template <class Form>
void quantize(const ConvertArgs& args) noexcept {
  using Value = typename Form::Value;
  const size_t bytes = row_bytes<Form>(args.in_features);
  const size_t groups = int8_groups(args.in_features);
  const auto columns = [&](GroupCursor at) {
    return HWY_MIN(kInt8Group, args.in_features - at.group * kInt8Group);
  };
  HWY_ALIGN float copy[kInt8Group];
  const auto input = [&](GroupCursor at) HWY_ATTR {
    const size_t begin = at.group * kInt8Group;
    return without_outliers(args.in + at.row * args.in_stride + begin, begin, columns(at), args.outliers,
                            copy);
  };
  Scaling scaling = {};
  GroupCursor scanned{0, 0}, quantized{0, 0};
  for (size_t first = 0; first < args.rows * groups; first += kLanes) {
    const size_t count = HWY_MIN(kLanes, args.rows * groups - first);
    for (size_t i = 0; i < count; ++i, scanned.advance(groups))
      scan_range(input(scanned), columns(scanned), scaling, i);
    choose_steps<Form>(scaling);
    for (size_t i = 0; i < count; ++i, quantized.advance(groups)) {
      std::byte* const row = args.out + quantized.row * bytes;
      Value* const out = reinterpret_cast<Value*>(row) + quantized.group * kInt8Group;
      const size_t used = columns(quantized);
      quantize_group<Form>(input(quantized), used, scaling.factor[i], scaling.zero[i], out);
      for (size_t k = used; k < round_up(used, Form::kStep); ++k) out[k] = 0;
      auto* const scales = reinterpret_cast<InputScale*>(row + value_bytes<Form>(args.in_features));
      scales[quantized.group] = {scaling.step[i], scaling.zero[i]};
    }
  }
}

}  // namespace int8
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
