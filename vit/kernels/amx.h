// AMX: whether this process may use tiles.
#pragma once

namespace vit::internal::kernels {

/// Whether the processor has tiles of bfloat16 and of bytes and the system lets this process use them, which
/// is requested at the first call (Linux: arch_prctl). False elsewhere.
bool amx_is_permitted();
/// From now on amx_is_permitted() is true: for tests, before kernels are first used.
void assume_amx() noexcept;

}  // namespace vit::internal::kernels
