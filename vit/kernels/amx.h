// AMX: whether this process may use tiles.
#pragma once

namespace vit::internal::kernels {

/// Whether the processor has tiles of bfloat16 and of bytes, and whether the system lets this process use
/// them, which is requested at the first call (Linux: arch_prctl). Absent elsewhere.
enum class Amx { absent, refused, permitted };
Amx amx_support();
/// From now on amx_support() is `permitted`: for tests, before kernels are first used.
void assume_amx() noexcept;

}  // namespace vit::internal::kernels
