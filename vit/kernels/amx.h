// AMX: whether this process may use tiles, and whether they compute what they should.
#pragma once

namespace vit::internal::kernels {

/// Whether the processor has tiles of bfloat16 and of bytes and the system lets this process use them, which
/// is asked for at the first call (Linux: arch_prctl). False elsewhere.
bool amx_is_permitted();
/// From now on amx_is_permitted() is true: for tests, before anything asks for kernels.
void assume_amx() noexcept;

struct LinearKernels;

/// Whether a product of odd sizes has the value that it must have: some microseconds.
bool amx_product_is_right(const LinearKernels& bf16, const LinearKernels& int8) noexcept;

}  // namespace vit::internal::kernels
