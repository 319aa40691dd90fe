// DenseMemory: intermediate results of dense heads, one image at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vit/base/arena.h"
#include "vit/base/parallel.h"
#include "vit/layers/activations.h"
#include "vit/layers/map.h"
#include "vit/layers/resize_map.h"
#include "vit/towers/map_head.h"

namespace vit::internal {

/// Memory of a fusion layer and of what leads to it; `lateral` is the map of its tap.
struct FusionMaps {
  MapSize size, lateral_size;
  FeatureMap lateral;        // (size of the tap's map, F)
  FeatureMap resized;        // (size of x, F) where the lateral has another one
  MapResize lateral_resize;  // to it
  FeatureMap x;              // (size, F), what enters from the layer before
  MapResize enlarge;         // to the x of the next layer
};

/// Memory of a DPT head, of which members that are never alive together share their places.
struct DptMaps {
  struct Tap {
    FeatureMap projected;  // (grid, c_K)
    FeatureMap resized;    // (size of the tap's map, c_K)
  };
  TensorView<float> tokens;   // (T, C) of one tap
  TensorView<float> readout;  // (N, C)
  TensorView<float> bias;     // (C), what the class token adds
  std::vector<Tap> taps;
  std::vector<FusionMaps> fusions;  // from the deepest
  TensorView<float> hidden;         // a map as large as the largest of a fusion layer
  TensorView<float> scratch;        // (threads, of a convolution)
  MapSize fused;                    // after the last fusion layer
  FeatureMap extra;                 // (size, channels of the extra convolution)
  FeatureMap narrow;                // (size, F / 2)
  MapResize enlarge;                // to the size of the result
  // of each thread, for some rows of the result
  TensorView<float> strip, strip_hidden, strip_out;
};

/// Memory of a linear head.
struct LinearMaps {
  TensorView<float> tokens;  // (T, C) of one tap
  TensorView<float> bias;    // (out)
  FeatureMap scores;         // (grid, out)
  MapResize enlarge;
  TensorView<float> row;  // (threads, width * out) of the result
};

/// Memory of a head of masks.
struct MaskMaps {
  struct Doubling {
    FeatureMap up, smooth;  // (doubled size, C): after the transposed convolution, and after the norm
  };
  TensorView<float> tokens;    // (T, C) of the tap
  FeatureMap hidden, queries;  // (Q, C)
  TensorView<float> scratch;   // (threads, of a convolution)
  std::vector<Doubling> doublings;
  TensorView<std::byte> packed;  // the queries as the weight of a product
  TensorView<float> rows;        // (threads, width * Q)
};

/// Memory of a head of boxes.
struct BoxMaps {
  TensorView<float> tokens;                   // (T, C) of the tap
  std::array<TensorView<float>, 2> hidden{};  // (N, C), alternating
  TensorView<float> scratch;                  // (threads, of a convolution)
};

/// Memory of a head of heat maps.
struct HeatmapMaps {
  TensorView<float> tokens;              // (T, C) of the tap
  std::array<FeatureMap, 2> products{};  // (size before it is doubled, 16 O)
  FeatureMap doubled;                    // (2 x grid, O)
  MapResize enlarge;
  FeatureMap enlarged;        // (size of the result, C or O)
  FeatureMap result;          // (size, K)
  TensorView<float> scratch;  // (threads, of a convolution)
};

/// Floats of the maps that lead to one that queries sample.
struct SampledMapFloats {
  std::size_t patches = 0, resized = 0, joined = 0, stacked = 0, inner = 0;

  SampledMapFloats& cover(const SampledMapFloats& other) {
    patches = std::max(patches, other.patches);
    resized = std::max(resized, other.resized);
    joined = std::max(joined, other.joined);
    stacked = std::max(stacked, other.stacked);
    inner = std::max(inner, other.inner);
    return *this;
  }
};

struct SampledMapBuffers {
  TensorView<float> patches, resized, joined, stacked, inner;  // of these floats
  TensorView<float> scratch;                                   // (threads, of a convolution)
};

/// Memory of a head whose queries sample maps. Letters: S pixels of all maps, Q queries, D channels.
struct QueryBoxMaps {
  std::vector<TensorView<float>> tokens;   // (T, C) of each tap
  std::vector<TensorView<float>> patches;  // (N, C) of them
  SampledMapBuffers maps;
  TensorView<float> pixels;                // (S, D)
  TensorView<float> proposed, objects;     // (S, D)
  TensorView<float> scores;                // (S, classes)
  TensorView<float> best;                  // (S), the largest of each pixel
  TensorView<std::uint32_t> order;         // (S), pixels by that
  TensorView<float> boxes;                 // (Q, 4)
  TensorView<float> codes;                 // (Q, 2 D)
  TensorView<float> queries, positions;    // (Q, D)
  TensorView<float> coded, q, k, v, read;  // (Q, D)
  TensorView<float> hidden, next;          // (Q, D)
  TensorView<float> mlp;                   // (Q, width of the MLP)
  TensorView<float> values;                // (S, D)
  TensorView<float> offsets, weights;      // (Q, 2 samples), (Q, samples)
  Activations attention;                   // room of attention between queries
};

/// Floats that a thread needs for any one of these layers: convolutions, optional ones, or ranges of them.
template <class Layer>
std::size_t largest_scratch(const Layer& layer) {
  if constexpr (requires { layer.scratch_floats(); }) {
    return layer.scratch_floats();
  } else if constexpr (requires { layer.has_value(); }) {
    return layer ? largest_scratch(*layer) : 0;
  } else {
    std::size_t floats = 0;
    for (const auto& one : layer) floats = std::max(floats, largest_scratch(one));
    return floats;
  }
}

/// Scratch memory of all threads, (threads, floats), for any one of these layers.
template <class... Layers>
TensorView<float> take_scratch(Arena::Taker& arena, int threads, const Layers&... layers) {
  return arena.take<float>({static_cast<std::size_t>(resolve_threads(threads)),
                            std::max({std::size_t{1}, largest_scratch(layers)...})});
}

/// Memory of one head at a time: a block of its own, or one that nothing else uses meanwhile.
class DenseMemory final : public MapMemory {
 public:
  std::size_t capacity_bytes() const noexcept override {
    return arena_.capacity_bytes() + query_boxes.attention.capacity_bytes();
  }
  void borrow(Arena& other) noexcept override { used_ = &other; }
  /// Lays memory out by list(Arena::Taker&); earlier views are gone.
  template <class List>
  void lay_out(const List& list) {
    (used_ != nullptr ? *used_ : arena_).lay_out(list);
  }

  DptMaps dpt;
  LinearMaps linear;
  MaskMaps masks;
  BoxMaps boxes;
  HeatmapMaps heatmaps;
  QueryBoxMaps query_boxes;

 private:
  Arena arena_;
  Arena* used_ = nullptr;
};

}  // namespace vit::internal
