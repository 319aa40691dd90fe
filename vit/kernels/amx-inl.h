// Matrix products on the tiles of AMX: the operands are those of bf16-inl.h (pairs) and int8-lines-inl.h
// (bytes), whose lines of 32 lanes are two rows of weight tiles side by side, so that nothing is repacked.
//
//   sums (16, 16 | 16)  +=  inputs (16 rows, 16 lanes)  *  lines (16 lanes, 16 | 16 columns)
//
// A lane of K holds two bfloat16 or four bytes. Tiles are configured once for 16 rows and once for the
// remaining rows; separate tiles handle the rest of K. Instructions are written as assembly: the
// instruction set is detected at run time and is not part of Highway's target.
#pragma once

#include "vit/kernels/attention-inl.h"
#include "vit/kernels/bf16-inl.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/int8-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace amx {

constexpr size_t kTileLanes = 16;   // of K that a tile covers
constexpr size_t kTileHeight = 16;  // rows of sums
constexpr size_t kRowBlock = 96;    // rows that share a panel, as kBlockRows; whole tiles
constexpr size_t kLineStride = 2 * kTileLanes * sizeof(float);  // bytes from one line of weights to the next

/// Palette 1: the operand of LDTILECFG.
struct alignas(64) TileConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes_per_row[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

// Tiles 0, 1: sums. 2, 3, 4: inputs and weights of whole tiles of K. 5, 6, 7: of the rest of it.
HWY_INLINE void configure(size_t rows, size_t rest_lanes) {
  TileConfig config;
  __builtin_memset(&config, 0, sizeof(config));
  config.palette = 1;
  const auto set_tile = [&](size_t tile, size_t tile_rows, size_t lanes) HWY_ATTR {
    config.rows[tile] = static_cast<uint8_t>(tile_rows);
    config.bytes_per_row[tile] = static_cast<uint16_t>(lanes * sizeof(float));
  };
  set_tile(0, rows, kTileLanes);
  set_tile(1, rows, kTileLanes);
  set_tile(2, rows, kTileLanes);
  set_tile(3, kTileLanes, kTileLanes);
  set_tile(4, kTileLanes, kTileLanes);
  if (rest_lanes != 0) {
    set_tile(5, rows, rest_lanes);
    set_tile(6, rest_lanes, kTileLanes);
    set_tile(7, rest_lanes, kTileLanes);
  }
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

/// Releases the tiles, so that they are not saved with the thread.
HWY_INLINE void release() {
  __asm__ volatile("tilerelease");
}

#define VIT_TILE_LOAD(tile, from, stride)                        \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile            \
                   :                                             \
                   : "r"(from), "r"(static_cast<size_t>(stride)) \
                   : "memory")
#define VIT_TILE_STORE(tile, to, stride)                       \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"      \
                   :                                           \
                   : "r"(to), "r"(static_cast<size_t>(stride)) \
                   : "memory")

/// Pairs of bfloat16, sums of float32. A sum of a tile of K is added to those before; within it the products
/// of first and of second numbers are two chains.
struct Bf16Products {
  using Sum = float;
  static HWY_INLINE void multiply_whole() {
    __asm__ volatile("tdpbf16ps %tmm3, %tmm2, %tmm0\n\ttdpbf16ps %tmm4, %tmm2, %tmm1");
  }
  static HWY_INLINE void multiply_rest() {
    __asm__ volatile("tdpbf16ps %tmm6, %tmm5, %tmm0\n\ttdpbf16ps %tmm7, %tmm5, %tmm1");
  }
};

/// Unsigned times signed bytes, sums of int32: exact.
struct ByteProducts {
  using Sum = int32_t;
  static HWY_INLINE void multiply_whole() {
    __asm__ volatile("tdpbusd %tmm3, %tmm2, %tmm0\n\ttdpbusd %tmm4, %tmm2, %tmm1");
  }
  static HWY_INLINE void multiply_rest() {
    __asm__ volatile("tdpbusd %tmm6, %tmm5, %tmm0\n\ttdpbusd %tmm7, %tmm5, %tmm1");
  }
};

/// Rows of lanes, `step` bytes apart, and `count` lines of weights.
struct Factors {
  const std::byte* in;
  size_t step;
  const std::byte* lines;
  size_t count;
};

/// As many rows as the tiles are configured for: sums (rows, kPanel) = or += in * lines.
template <class Products>
HWY_INLINE void multiply_tile(const Factors& factors, TileStart start, typename Products::Sum* sums) {
  constexpr size_t kSumStride = kPanel * sizeof(float);
  if (start == TileStart::zero) {
    __asm__ volatile("tilezero %tmm0\n\ttilezero %tmm1");
  } else {
    VIT_TILE_LOAD(0, sums, kSumStride);
    VIT_TILE_LOAD(1, sums + kTileLanes, kSumStride);
  }
  const std::byte* in = factors.in;
  const std::byte* lines = factors.lines;
  for (size_t k = 0; k + kTileLanes <= factors.count; k += kTileLanes) {
    VIT_TILE_LOAD(2, in, factors.step);
    VIT_TILE_LOAD(3, lines, kLineStride);
    VIT_TILE_LOAD(4, lines + kLineStride / 2, kLineStride);
    Products::multiply_whole();
    in += kTileLanes * sizeof(float);
    lines += kTileLanes * kLineStride;
  }
  if (factors.count % kTileLanes != 0) {
    VIT_TILE_LOAD(5, in, factors.step);
    VIT_TILE_LOAD(6, lines, kLineStride);
    VIT_TILE_LOAD(7, lines + kLineStride / 2, kLineStride);
    Products::multiply_rest();
  }
  VIT_TILE_STORE(0, sums, kSumStride);
  VIT_TILE_STORE(1, sums + kTileLanes, kSumStride);
}

/// `rows` rows, tile by tile.
template <class Products>
HWY_INLINE void multiply_rows(const Factors& factors, size_t rows, TileStart start,
                              typename Products::Sum* sums) {
  const size_t rest = factors.count % kTileLanes;
  const auto part = [&](size_t row) HWY_ATTR {
    Factors at = factors;
    at.in += row * factors.step;
    multiply_tile<Products>(at, start, sums + row * kPanel);
  };
  const size_t whole = rows / kTileHeight * kTileHeight;
  if (whole != 0) configure(kTileHeight, rest);
  for (size_t row = 0; row < whole; row += kTileHeight) part(row);
  if (whole == rows) return;
  configure(rows - whole, rest);
  part(whole);
}

/// Calls panel(row, rows, column) for all blocks of rows and panels of a product.
template <class Panel>
HWY_INLINE void for_each_panel_of(const GemmArgs& args, const Panel& panel) {
  for (size_t row = 0; row < args.rows; row += kRowBlock) {
    for (size_t column = args.column_begin; column < args.column_end; column += kPanel)
      panel(row, HWY_MIN(kRowBlock, args.rows - row), column);
  }
  release();
}

inline void bf16_gemm(const GemmArgs& args) noexcept {
  using Form = bf16::PairLines;
  const size_t lines = lanes_for<Form>(args.in_features);
  for_each_panel_of(args, [&](size_t row, size_t rows, size_t column) HWY_ATTR {
    HWY_ALIGN float sums[kRowBlock * kPanel];
    multiply_rows<Bf16Products>({.in = args.in + row * args.in_step,
                                 .step = args.in_step,
                                 .lines = args.packed + column / kPanel * lines * kLineStride,
                                 .count = lines},
                                rows, TileStart::zero, sums);
    finish_block<Form::kAccuracy>(args, {sums, row, rows, column, HWY_MIN(kPanel, args.column_end - column)});
  });
}

/// A group's exact sums, scaled and added to those of the groups before.
template <class Form>
HWY_INLINE void finish_group(const int8::Group& group, size_t rows, const int32_t* exact, float* sums) {
  const DI d;
  const ScratchSink kept{TileStart::zero, sums};  // earlier groups are added before
  for (size_t row = 0; row < rows; ++row) {
    int8::finish_row<Form, 2>(hn::Load(d, exact + row * kPanel), hn::Load(d, exact + row * kPanel + kLanes),
                              group, group.scales[row * group.scale_step], row, sums, kept);
  }
}

inline void int8_gemm(const GemmArgs& args) noexcept {
  using Form = int8::VnniBytes;
  const size_t header = int8::header_bytes<Form>(args.in_features);
  for_each_panel_of(args, [&](size_t row, size_t rows, size_t column) HWY_ATTR {
    HWY_ALIGN float sums[kRowBlock * kPanel];
    HWY_ALIGN int32_t exact[kRowBlock * kPanel];
    const std::byte* const in = args.in + row * args.in_step;
    const std::byte* const panel = args.packed + int8::packed_bytes<Form>(column, args.in_features);
    const auto* const scales =
        reinterpret_cast<const InputScale*>(in + int8::value_bytes<Form>(args.in_features));
    const TileStart start = int8::start_sums(args, row, rows, column, sums);
    for (size_t g = 0; g < int8_groups(args.in_features); ++g) {
      const size_t k = g * kInt8Group;
      const size_t count = int8::round_up(HWY_MIN(kInt8Group, args.in_features - k), Form::kStep);
      const int8::Group group{.in = in + k,
                              .in_step = args.in_step,
                              .scales = scales + g,
                              .scale_step = args.in_step / sizeof(InputScale),
                              .header = reinterpret_cast<const float*>(panel) + g * int8::kHeaderLanes<Form>,
                              .lines = nullptr,
                              .steps = count / Form::kStep,
                              .start = g == 0 ? start : TileStart::stored,
                              .next = nullptr};
      multiply_rows<ByteProducts>(
          {.in = group.in, .step = args.in_step, .lines = panel + header + k * kPanel, .count = group.steps},
          rows, TileStart::zero, exact);
      finish_group<Form>(group, rows, exact, sums);
    }
    finish_block<Form::kAccuracy>(args, {sums, row, rows, column, HWY_MIN(kPanel, args.column_end - column)});
  });
}

/// Products on tiles, with the operands of `other`.
constexpr LinearKernels on_tiles(const LinearKernels& other, const char* description,
                                 void (*gemm)(const GemmArgs&) noexcept) {
  LinearKernels kernels = other;
  kernels.description = description;
  kernels.tile_rows = kTileHeight;
  kernels.gemm = gemm;
  return kernels;
}

constexpr LinearKernels kBf16Linear =
    on_tiles(bf16::kLinear<bf16::PairLines>, "products of bfloat16 pairs (AMX)", bf16_gemm);
constexpr LinearKernels kInt8Linear =
    on_tiles(int8::kLinear<int8::VnniBytes>, "products of bytes (AMX)", int8_gemm);

// Attention. Keys already are rows of lanes; values become rows of channels along the keys.

struct TileKeys : PairKeys {
  static HWY_INLINE void score(const AttentionBlock& block) {
    const size_t lanes = lanes_for<bf16::PairLines>(block.args.head_dim);
    multiply_rows<Bf16Products>(
        {.in = reinterpret_cast<const std::byte*>(block.packed_keys + block.key * lanes),
         .step = lanes * sizeof(float),
         .lines = reinterpret_cast<const std::byte*>(block.scratch.queries),
         .count = lanes},
        block.keys, TileStart::zero, block.scratch.scores);
  }
};

/// (d, pairs of tokens): a row of lanes for each channel.
struct TileValues : PairValues {
  static HWY_INLINE size_t row_lanes(size_t num_tokens) { return lanes_for<bf16::PairLines>(num_tokens); }
  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return round_to_line(row_lanes(num_tokens) * head_dim);
  }
  static HWY_INLINE void pack(const KeyValueArgs& args, float* values) {
    const size_t lanes = row_lanes(args.num_tokens);
    for (size_t t = args.first_token; t < args.last_token; t += 2) {
      PairParts::pack_values(args, t, args.scratch);
      for (size_t c = 0; c < args.head_dim; ++c) values[c * lanes + t / 2] = args.scratch[c];
    }
  }
  static HWY_INLINE void add_values(const AttentionBlock& block) {
    const size_t lanes = row_lanes(block.args.num_tokens);
    multiply_rows<Bf16Products>(
        {.in = reinterpret_cast<const std::byte*>(block.packed_values + block.key / 2),
         .step = lanes * sizeof(float),
         .lines = reinterpret_cast<const std::byte*>(block.scratch.scores),
         .count = lanes_for<bf16::PairLines>(block.keys)},
        block.args.head_dim, block.is_first() ? TileStart::zero : TileStart::stored, block.scratch.sums);
  }
};

using TileOperands = Operands<TileKeys, TileValues>;

inline void attend(const AttentionArgs& args) noexcept {
  attention<TileOperands>(args);
  release();
}

inline void probabilities(const AttentionArgs& args) noexcept {
  attention_probabilities<TileOperands>(args);
  release();
}

/// Six chains of products of whole tiles: the tiles of a rest of K are sums as well.
inline double multiply_adds(size_t rounds, float* sink) noexcept {
  HWY_ALIGN float sums[kTileHeight * kTileLanes];
  configure(kTileHeight, kTileLanes);
  __asm__ volatile(
      "tilezero %tmm0\n"
      "\ttilezero %tmm1\n"
      "\ttilezero %tmm2\n"
      "\ttilezero %tmm3\n"
      "\ttilezero %tmm4\n"
      "\ttilezero %tmm5\n"
      "\ttilezero %tmm6\n"
      "\ttilezero %tmm7");
  for (size_t i = 0; i < rounds; ++i) {
    __asm__ volatile(
        "tdpbf16ps %tmm7, %tmm6, %tmm0\n"
        "\ttdpbf16ps %tmm7, %tmm6, %tmm1\n"
        "\ttdpbf16ps %tmm7, %tmm6, %tmm2\n"
        "\ttdpbf16ps %tmm7, %tmm6, %tmm3\n"
        "\ttdpbf16ps %tmm7, %tmm6, %tmm4\n"
        "\ttdpbf16ps %tmm7, %tmm6, %tmm5");
  }
  VIT_TILE_STORE(0, sums, kTileLanes * sizeof(float));
  release();
  *sink = sums[0];
  constexpr size_t kOfTile = kTileHeight * kTileLanes * 2 * kTileLanes;
  return 2.0 * 6.0 * static_cast<double>(kOfTile) * static_cast<double>(rounds);
}

constexpr AttentionKernels kTileAttention{.packed_floats = attention_packed_floats<TileOperands>,
                                          .scratch_floats = attention_scratch_floats,
                                          .pack = attention_pack<TileOperands>,
                                          .attend = attend,
                                          .probabilities = probabilities,
                                          .multiply_adds = multiply_adds};

#undef VIT_TILE_LOAD
#undef VIT_TILE_STORE

}  // namespace amx
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
