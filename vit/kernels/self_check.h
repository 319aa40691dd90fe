// Matrix instructions that the project has run only in emulators are checked on the machine that offers them.
#pragma once

namespace vit::internal::kernels {

struct LinearKernels;

/// Whether a product of odd sizes has the expected value; takes a few microseconds.
bool products_are_right(const LinearKernels& bf16, const LinearKernels& int8) noexcept;

}  // namespace vit::internal::kernels
