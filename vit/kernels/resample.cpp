// Compiles resample-inl.h for every instruction set of the platform and picks the best one of the running
// machine.

// Vectors without a size cannot be members of structs.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vit/kernels/resample.cpp"
#include <hwy/foreach_target.h>

#include "vit/kernels/resample-inl.h"

#if HWY_ONCE
namespace vit::kernels {

HWY_EXPORT(columns_rgb_dispatch);
HWY_EXPORT(rows_dispatch);

void resample_columns_rgb(const ResampleRows& rows, std::size_t num_rows, std::size_t row_bytes,
                          const ResampleAxis& axis) noexcept {
  HWY_DYNAMIC_DISPATCH(columns_rgb_dispatch)(rows, num_rows, row_bytes, axis);
}

void resample_rows(const ResampleRows& rows, std::size_t row_bytes, const ResampleAxis& axis) noexcept {
  HWY_DYNAMIC_DISPATCH(rows_dispatch)(rows, row_bytes, axis);
}

}  // namespace vit::kernels
#endif
