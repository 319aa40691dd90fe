// Which channels a rotary position rotates together: what kernels and configuration both need to know of it.
#pragma once

namespace vit {

/// Which two channels of a head an angle rotates.
enum class RopePairing {
  neighbours,  // (2i, 2i + 1)
  halves,      // (i, i + d / 2)
};

}  // namespace vit
