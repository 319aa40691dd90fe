#include "vit/kernels/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include "vit/kernels/cpu_info.h"
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
    if (!cpu_has_amx()) return Amx::absent;
    constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? Amx::permitted : Amx::refused;
  }();
  return support;
#else
  return Amx::absent;
#endif
}

}  // namespace vit::internal::kernels
