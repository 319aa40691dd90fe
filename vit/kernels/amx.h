// AMX: whether this process may use tiles, and whether they compute correctly.
#pragma once

namespace vit::internal::kernels {

/// Whether the processor has tiles of bfloat16 and of bytes and the system lets this process use them, which
/// is requested at the first call (Linux: arch_prctl). False elsewhere.
bool amx_is_permitted();
/// From now on amx_is_permitted() is true: for tests, before kernels are first used.
void assume_amx() noexcept;

struct LinearKernels;

/// Whether a product of odd sizes has the expected value; takes a few microseconds.
bool amx_product_is_right(const LinearKernels& bf16, const LinearKernels& int8) noexcept;

}  // namespace vit::internal::kernels
