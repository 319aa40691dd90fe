// Linear layers of int8 for processors with the dot product of bytes; the rest of their table is in neon.cpp.
#define VIT_KERNELS_TARGET HWY_NEON
#include "vit/kernels/target-inl.h"

#if (HWY_TARGETS & VIT_KERNELS_TARGET) && HWY_ARCH_ARM_A64
#include "vit/kernels/int8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace int8 {

/// SDOT multiplies signed bytes: inputs are stored 128 lower than those of other products of bytes, and so is
/// the byte of 0. Every result is the same.
struct DotBytes : VnniBytes {
  static constexpr const char* kDescription = "products of bytes (SDOT)";
};

struct PortableDotBytes : DotBytes {
  static constexpr int kPairLargest = Bytes::kPairLargest;
  static constexpr Accuracy kAccuracy = Accuracy::portable;
};

HWY_INLINE VI add_products(DotBytes, VI sum, VI inputs, VI weights) {
  // Written as assembly: the instruction set is detected at run time and is not part of Highway's target.
  __asm__(".arch armv8.6-a+crypto\n\tsdot %0.4s, %1.16b, %2.16b"
          : "+w"(sum.raw)
          : "w"(weights.raw), "w"(inputs.raw));
  return sum;
}

void quantize_signed(const ConvertArgs& args) noexcept {
  quantize<DotBytes>(args);
  const hn::Full128<uint8_t> d;
  const size_t bytes = value_bytes<DotBytes>(args.in_features), groups = int8_groups(args.in_features);
  for (size_t r = 0; r < args.rows; ++r) {
    std::byte* const row = args.out + r * row_bytes<DotBytes>(args.in_features);
    uint8_t* const values = reinterpret_cast<uint8_t*>(row);
    for (size_t k = 0; k < bytes; k += 16)
      hn::Store(hn::Xor(hn::Load(d, values + k), hn::Set(d, 0x80)), d, values + k);
    InputScale* const scales = reinterpret_cast<InputScale*>(row + bytes);
    for (size_t g = 0; g < groups; ++g) scales[g].zero -= 128.0f;
  }
}

template <class Form>
constexpr LinearKernels dot_linear() {
  LinearKernels kernels = kLinear<Form>;
  kernels.convert_rows = quantize_signed;
  return kernels;
}

}  // namespace int8
}  // namespace

extern const LinearKernels kInt8DotLinear, kInt8DotPortableLinear;
constexpr LinearKernels kInt8DotLinear = int8::dot_linear<int8::DotBytes>();
constexpr LinearKernels kInt8DotPortableLinear = int8::dot_linear<int8::PortableDotBytes>();

}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
