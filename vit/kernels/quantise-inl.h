// Rows of float32 to whole numbers with a scale for each group, and the two forms in which int8-inl.h
// multiplies them. Compiled once for each instruction set.
#if defined(VIT_KERNELS_QUANTISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VIT_KERNELS_QUANTISE_INL_H_
#undef VIT_KERNELS_QUANTISE_INL_H_
#else
#define VIT_KERNELS_QUANTISE_INL_H_
#endif

#include "hwy/highway.h"
#include "vit/kernels/int8.h"
#include "vit/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::kernels::HWY_NAMESPACE {
namespace {
namespace int8 {

using VI = hn::Vec<DI>;

/// Pairs of int16, whose products cannot overflow in int32: for any processor.
struct Pairs {
  static constexpr const char* kDescription = "products of int16 pairs";
  static constexpr size_t kStep = 2;        // columns of K that one 32-bit lane holds
  static constexpr bool kHasZero = false;   // a quantised input may stand for 0 without being 0
  static constexpr int kLargest = 32'767;   // input_largest
  static constexpr int kPairLargest = 255;  // pair_largest: above that of any weights
  using Value = int16_t;                    // of a quantised input
  static constexpr Precision kPrecision = Precision::full;  // of activations
};

/// Four unsigned bytes times four signed ones, added in pairs in 16 bits (vpmaddubsw), then in 32.
struct Bytes {
  static constexpr const char* kDescription = "products of bytes";
  static constexpr size_t kStep = 4;
  static constexpr bool kHasZero = true;
  static constexpr int kLargest = 127;
  static constexpr int kPairLargest = 128;  // 255 * 128 < 2^15
  using Value = uint8_t;
  static constexpr Precision kPrecision = Precision::coarse;
};

/// The same, added in 32 bits at once.
struct VnniBytes : Bytes {
  static constexpr const char* kDescription = "products of bytes (VNNI)";
  static constexpr int kPairLargest = 255;
};

constexpr size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

template <class Form>
size_t row_bytes(size_t in_features) noexcept {
  return round_up(in_features * sizeof(typename Form::Value), 64);
}

/// Of numbers and 0.
struct Range {
  float lowest, highest;
  bool is_finite;
};

HWY_INLINE Range range_of(const float* in, size_t count) {
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
  const bool is_finite = hn::AllTrue(d, hn::Eq(zero_if_finite, hn::Zero(d)));
  return {hn::GetLane(hn::MinOfLanes(d, lowest)), hn::GetLane(hn::MaxOfLanes(d, highest)), is_finite};
}

/// Whole numbers a step of 1 / factor apart, `zero` for 0.
struct Steps {
  float factor;
  InputScale scale;
};

template <class Form>
HWY_INLINE Steps steps_over(Range range) {
  constexpr float kLargest = Form::kLargest;
  if constexpr (Form::kHasZero) {
    // One of the 256 numbers is spare, so that both ends can be rounded away from 0.
    const float step = range.highest / (2 * kLargest) - range.lowest / (2 * kLargest);
    const V zero = hn::ConvertTo(D(), hn::NearestInt(set(-range.lowest * (1.0f / step))));
    return {1.0f / step, {step, hn::GetLane(zero)}};
  } else {
    const float largest = HWY_MAX(range.highest, -range.lowest);
    return {kLargest / largest, {largest / kLargest, 0.0f}};
  }
}

template <class Form>
HWY_INLINE void quantise_group(const float* in, size_t count, const Steps& steps, typename Form::Value* out) {
  using Value = typename Form::Value;
  const D d;
  const hn::Rebind<Value, DI> d_value;
  const V factor = set(steps.factor);
  const VI zero = hn::Set(DI(), static_cast<int32_t>(steps.scale.zero));
  const auto whole = [&](V x) HWY_ATTR {
    return hn::DemoteTo(d_value, hn::Add(hn::NearestInt(hn::Mul(x, factor)), zero));
  };
  size_t k = 0;
  for (; k + kLanes <= count; k += kLanes) hn::StoreU(whole(hn::LoadU(d, in + k)), d_value, out + k);
  if (k == count) return;
  HWY_ALIGN Value lanes[kLanes];
  hn::Store(whole(load_first(in + k, count - k, 0.0f)), d_value, lanes);
  for (size_t i = 0; k + i < count; ++i) out[k + i] = lanes[i];
}

/// The scale of a group, and how to quantise it; the factor 0 leaves nothing but zeros.
template <class Form>
HWY_INLINE Steps steps_for(const Range& range) {
  if (!range.is_finite) return {0.0f, {__builtin_nanf(""), 0.0f}};
  if (HWY_MAX(range.highest, -range.lowest) < 1e-30f) return {0.0f, {0.0f, 0.0f}};
  return steps_over<Form>(range);
}

/// Groups of a row that are looked at, then scaled, then quantised: each of these is a chain of dependent
/// instructions, and those of several groups go on at a time.
constexpr size_t kGroupsAtOnce = 8;

template <class Form>
HWY_INLINE void quantise_groups(const float* in, size_t count, typename Form::Value* out,
                                InputScale* scales) {
  const size_t groups = int8_groups(count);
  const auto columns = [&](size_t g) { return HWY_MIN(kInt8Group, count - g * kInt8Group); };
  Range ranges[kGroupsAtOnce];
  Steps steps[kGroupsAtOnce];
  for (size_t g = 0; g < groups; ++g) ranges[g] = range_of(in + g * kInt8Group, columns(g));
  for (size_t g = 0; g < groups; ++g) {
    steps[g] = steps_for<Form>(ranges[g]);
    scales[g] = steps[g].scale;
  }
  for (size_t g = 0; g < groups; ++g) {
    typename Form::Value* const to = out + g * kInt8Group;
    if (steps[g].factor != 0.0f) {
      quantise_group<Form>(in + g * kInt8Group, columns(g), steps[g], to);
    } else {
      for (size_t i = 0; i < columns(g); ++i) to[i] = 0;
    }
  }
}

template <class Form>
void quantise(const QuantiseArgs& args) noexcept {
  using Value = typename Form::Value;
  constexpr size_t kColumnsAtOnce = kGroupsAtOnce * kInt8Group;
  const size_t bytes = row_bytes<Form>(args.in_features);
  for (size_t r = 0; r < args.rows; ++r) {
    const float* const in = args.in + r * args.in_stride;
    Value* const out = reinterpret_cast<Value*>(args.out + r * bytes);
    InputScale* const scales = args.scales + r * int8_groups(args.in_features);
    for (size_t k = 0; k < args.in_features; k += kColumnsAtOnce) {
      quantise_groups<Form>(in + k, HWY_MIN(kColumnsAtOnce, args.in_features - k), out + k,
                            scales + k / kInt8Group);
    }
    for (size_t k = args.in_features; k < round_up(args.in_features, Form::kStep); ++k) out[k] = 0;
  }
}

}  // namespace int8
}  // namespace
}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // VIT_KERNELS_QUANTISE_INL_H_
