#include "vit/kernels/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace vit::internal::kernels {
namespace {

bool is_assumed = false;

}  // namespace

void assume_amx() noexcept {
  is_assumed = true;
}

Amx amx_support() {
  if (is_assumed) return Amx::permitted;
#if defined(__x86_64__) && defined(__linux__)
  static const Amx support = [] {
    constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;  // CPUID 7.0, EDX
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTile) == 0 ||
        (d & kInt8) == 0)
      return Amx::absent;
    constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? Amx::permitted : Amx::refused;
  }();
  return support;
#else
  return Amx::absent;
#endif
}

}  // namespace vit::internal::kernels
