// Rotary position applied to one token of one head.
#pragma once

#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE void copy_row(const float* from, size_t count, float* to) {
  const D d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  for (; i < count; ++i) to[i] = from[i];
}

HWY_INLINE void scale_row(const float* from, size_t count, V scale, float* to) {
  const D d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, from + i), scale), d, to + i);
  if (i < count) store_first(hn::Mul(load_first(from + i, count - i, 0.0f), scale), count - i, to + i);
}

struct Pair {
  V p, q;
};

HWY_INLINE Pair rotated(V p, V q, V cos, V sin) {
  return {hn::NegMulAdd(q, sin, hn::Mul(p, cos)), hn::MulAdd(p, sin, hn::Mul(q, cos))};
}

HWY_INLINE void rotate_halves(const float* in, size_t pairs, const float* cos, const float* sin, float* out) {
  const D d;
  size_t j = 0;
  for (; j + kLanes <= pairs; j += kLanes) {
    const Pair pair = rotated(hn::LoadU(d, in + j), hn::LoadU(d, in + pairs + j), hn::LoadU(d, cos + j),
                              hn::LoadU(d, sin + j));
    hn::StoreU(pair.p, d, out + j);
    hn::StoreU(pair.q, d, out + pairs + j);
  }
  if (j == pairs) return;
  const size_t rest = pairs - j;
  const Pair pair = rotated(load_first(in + j, rest, 0.0f), load_first(in + pairs + j, rest, 0.0f),
                            load_first(cos + j, rest, 0.0f), load_first(sin + j, rest, 0.0f));
  store_first(pair.p, rest, out + j);
  store_first(pair.q, rest, out + pairs + j);
}

HWY_INLINE void rotate_neighbors(const float* in, size_t pairs, const float* cos, const float* sin,
                                 float* out) {
  const D d;
  size_t j = 0;
  for (; j + kLanes <= pairs; j += kLanes) {
    V p, q;
    hn::LoadInterleaved2(d, in + 2 * j, p, q);
    const Pair pair = rotated(p, q, hn::LoadU(d, cos + j), hn::LoadU(d, sin + j));
    hn::StoreInterleaved2(pair.p, pair.q, d, out + 2 * j);
  }
  if (j == pairs) return;
  const size_t rest = pairs - j;
  HWY_ALIGN float lanes[2 * kLanes] = {};
  for (size_t i = 0; i < 2 * rest; ++i) lanes[i] = in[2 * j + i];
  V p, q;
  hn::LoadInterleaved2(d, lanes, p, q);
  const Pair pair = rotated(p, q, load_first(cos + j, rest, 0.0f), load_first(sin + j, rest, 0.0f));
  hn::StoreInterleaved2(pair.p, pair.q, d, lanes);
  for (size_t i = 0; i < 2 * rest; ++i) out[2 * j + i] = lanes[i];
}

/// Like rotate_neighbors, with an angle per channel. A loop of its own, for which the
/// distance of the channels is known when it is compiled.
HWY_INLINE void rotate_neighbors_apart(const float* in, size_t pairs, const float* cos, const float* sin,
                                       float* out) {
  for (size_t j = 0; j < pairs; ++j) {
    const float p = in[2 * j], q = in[2 * j + 1];
    out[2 * j] = p * cos[2 * j] - q * sin[2 * j];
    out[2 * j + 1] = q * cos[2 * j + 1] + p * sin[2 * j + 1];
  }
}

/// Like rotate_halves, with an angle per channel.
HWY_INLINE void rotate_halves_apart(const float* in, size_t pairs, const float* cos, const float* sin,
                                    float* out) {
  for (size_t j = 0; j < pairs; ++j) {
    const float p = in[j], q = in[pairs + j];
    out[j] = p * cos[j] - q * sin[j];
    out[pairs + j] = q * cos[pairs + j] + p * sin[pairs + j];
  }
}

/// Token `token` of a head, rotated; `in` may be `out`.
HWY_INLINE void rotate_token(const float* in, size_t token, size_t head_dim, const Rotation& rotation,
                             float* out) {
  if (rotation.cos == nullptr || token < rotation.num_prefix) {
    copy_row(in, head_dim, out);
    return;
  }
  const size_t pairs = head_dim / 2;
  const size_t angles = num_angles(rotation.angles, head_dim);
  const float* const cos = rotation.cos + (token - rotation.num_prefix) * angles;
  const float* const sin = rotation.sin + (token - rotation.num_prefix) * angles;
  const bool halves = rotation.pairing == RopePairing::halves;
  if (rotation.angles == RopeAngles::per_channel) {
    if (halves) {
      rotate_halves_apart(in, pairs, cos, sin, out);
    } else {
      rotate_neighbors_apart(in, pairs, cos, sin, out);
    }
  } else if (halves) {
    rotate_halves(in, pairs, cos, sin, out);
  } else {
    rotate_neighbors(in, pairs, cos, sin, out);
  }
}

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
