// Packing of weights and the matrix product with its epilogue.
//
//   packed:  panel 0                panel 1                     a panel holds kPanel output columns for all
//   k:
//            | k0: kPanel numbers | k1: ... |  | k0: ... |      one step of the loop reads one line of it
#pragma once

#include "vit/kernels/activation-inl.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/tile-inl.h"
#include "vit/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

// Longest chain of additions; the sums of such blocks of k are added in order. Long enough that starting
// and finishing a tile costs little; the panel then streams from the L2 cache, one line for twelve
// multiply-adds.
constexpr size_t kBlockK = 768;
// Rows that share a panel before the next one is fetched: their 108 x 768 numbers fit in the L2 cache
// as well.
constexpr size_t kBlockRows = 108;

inline size_t float_row_bytes(size_t) noexcept {
  return 0;
}

inline size_t float_packed_bytes(size_t columns, size_t in_features) noexcept {
  return columns * in_features * sizeof(float);
}

inline bool float_pack(const PackArgs& args) noexcept {
  float* packed = reinterpret_cast<float*>(args.packed);
  for (size_t column = 0; column < args.out_features; column += kPanel) {
    const size_t columns = HWY_MIN(kPanel, args.out_features - column);
    transpose(args.weight + column * args.stride, args.stride, columns, args.in_features, packed, kPanel);
    for (size_t k = 0; k < args.in_features; ++k) {
      for (size_t c = columns; c < kPanel; ++c) packed[k * kPanel + c] = 0.0f;
    }
    packed += kPanel * args.in_features;
  }
  return true;
}

/// One vector of sums through the epilogue; `count` < kLanes if the matrix ends within it.
template <Accuracy kAccuracy, Activation kActivation, bool kFull>
HWY_INLINE void finish_vector(const Epilogue& e, V value, size_t row, size_t column, size_t count,
                              float* out) {
  const D d;
  const auto load = [&](const float* from)
                        HWY_ATTR { return kFull ? hn::LoadU(d, from) : load_first(from, count, 0.0f); };
  if (e.bias) value = hn::Add(value, load(e.bias + column));
  value = activated<kAccuracy, kActivation>(value);
  if (e.multiplier) value = hn::Mul(value, load(e.multiplier + row * e.multiplier_stride + column));
  if (e.scale && e.residual) {
    value = hn::MulAdd(value, load(e.scale + column), load(e.residual + row * e.residual_stride + column));
  } else if (e.scale) {
    value = hn::Mul(value, load(e.scale + column));
  } else if (e.residual) {
    value = hn::Add(value, load(e.residual + row * e.residual_stride + column));
  }
  if constexpr (kFull) {
    hn::StoreU(value, d, out);
  } else {
    store_first(value, count, out);
  }
}

/// A block of one panel: its sums (rows, kPanel) belong to rows [row, row + rows) and columns [column, column
/// + columns).
struct PanelBlock {
  float* sums;
  size_t row, rows, column, columns;
};

/// The step after bias and activation in nearly all products: nothing, or one other matrix.
enum class EpilogueTail { nothing, multiplier, residual, scaled_residual };

/// Whether `e` consists only of bias, activation and a last step, stored in `tail`.
HWY_INLINE bool tail_of(const Epilogue& e, EpilogueTail& tail) {
  tail = e.multiplier  ? EpilogueTail::multiplier
         : !e.residual ? EpilogueTail::nothing
         : e.scale     ? EpilogueTail::scaled_residual
                       : EpilogueTail::residual;
  return e.multiplier ? !e.scale && !e.residual : e.residual || !e.scale;
}

/// Destination of the sums of a whole panel: all pointers at its first row and column. `bias` may be null;
/// `other` is the matrix of the last step.
struct PanelOutput {
  const float* bias;
  const float* scale;
  const float* other;
  size_t other_stride;
  float* out;
  size_t out_stride;

  template <Accuracy kAccuracy, Activation kActivation, EpilogueTail kTail>
  HWY_INLINE void put(size_t row, size_t column, V value) const {
    const D d;
    if (bias) value = hn::Add(value, hn::LoadU(d, bias + column));
    value = activated<kAccuracy, kActivation>(value);
    if constexpr (kTail != EpilogueTail::nothing) {
      const V operand = hn::LoadU(d, other + row * other_stride + column);
      if constexpr (kTail == EpilogueTail::multiplier) value = hn::Mul(value, operand);
      if constexpr (kTail == EpilogueTail::residual) value = hn::Add(value, operand);
      if constexpr (kTail == EpilogueTail::scaled_residual) {
        value = hn::MulAdd(value, hn::LoadU(d, scale + column), operand);
      }
    }
    hn::StoreU(value, d, out + row * out_stride + column);
  }
};

HWY_INLINE PanelOutput panel_output(const GemmArgs& args, size_t row, size_t column) {
  const Epilogue& e = args.epilogue;
  const float* const other = e.multiplier ? e.multiplier : e.residual;
  const size_t other_stride = e.multiplier ? e.multiplier_stride : e.residual_stride;
  return {.bias = e.bias ? e.bias + column : nullptr,
          .scale = e.scale ? e.scale + column : nullptr,
          .other = other ? other + row * other_stride + column : nullptr,
          .other_stride = other_stride,
          .out = args.out + row * args.out_stride + column,
          .out_stride = args.out_stride};
}

/// Calls `use` with `tail` as a type.
template <EpilogueTail kTail>
struct TailIs {
  static constexpr EpilogueTail value = kTail;
};
template <class Use>
HWY_INLINE void with_tail(EpilogueTail tail, const Use& use) {
  switch (tail) {
    case EpilogueTail::nothing: return use(TailIs<EpilogueTail::nothing>());
    case EpilogueTail::multiplier: return use(TailIs<EpilogueTail::multiplier>());
    case EpilogueTail::residual: return use(TailIs<EpilogueTail::residual>());
    case EpilogueTail::scaled_residual: return use(TailIs<EpilogueTail::scaled_residual>());
  }
}

/// Formulas are long chains of dependent instructions, and the processor's out-of-order window is limited: as
/// few instructions as possible between them.
template <Accuracy kAccuracy, Activation kActivation, EpilogueTail kTail>
HWY_INLINE void finish_panel(const float* sums, size_t rows, const PanelOutput& output) {
  for (size_t r = 0; r < rows; ++r) {
    output.put<kAccuracy, kActivation, kTail>(r, 0, hn::Load(D(), sums + r * kPanel));
    output.put<kAccuracy, kActivation, kTail>(r, kLanes, hn::Load(D(), sums + r * kPanel + kLanes));
  }
}

template <Accuracy kAccuracy, Activation kActivation>
HWY_NOINLINE void finish_block_with(const GemmArgs& args, const PanelBlock& block) {
  if (EpilogueTail tail; block.columns == kPanel && tail_of(args.epilogue, tail)) {
    const PanelOutput output = panel_output(args, block.row, block.column);
    return with_tail(tail, [&](auto known) HWY_ATTR {
      finish_panel<kAccuracy, kActivation, known.value>(block.sums, block.rows, output);
    });
  }
  for (size_t r = 0; r < block.rows; ++r) {
    const size_t row = block.row + r;
    float* const out = args.out + row * args.out_stride + block.column;
    for (size_t c = 0; c < block.columns; c += kLanes) {
      const V value = hn::Load(D(), block.sums + r * kPanel + c);
      const size_t rest = block.columns - c;
      if (rest >= kLanes) {
        finish_vector<kAccuracy, kActivation, true>(args.epilogue, value, row, block.column + c, kLanes,
                                                    out + c);
      } else {
        finish_vector<kAccuracy, kActivation, false>(args.epilogue, value, row, block.column + c, rest,
                                                     out + c);
      }
    }
  }
}

/// Applies the epilogue to a block and writes the output.
template <Accuracy kAccuracy>
HWY_INLINE void finish_block(const GemmArgs& args, const PanelBlock& block) {
  switch (args.epilogue.activation) {
    case Activation::none: return finish_block_with<kAccuracy, Activation::none>(args, block);
    case Activation::gelu: return finish_block_with<kAccuracy, Activation::gelu>(args, block);
    case Activation::gelu_tanh: return finish_block_with<kAccuracy, Activation::gelu_tanh>(args, block);
    case Activation::quick_gelu: return finish_block_with<kAccuracy, Activation::quick_gelu>(args, block);
    case Activation::silu: return finish_block_with<kAccuracy, Activation::silu>(args, block);
    case Activation::relu: return finish_block_with<kAccuracy, Activation::relu>(args, block);
  }
}

/// Writes the sums of a tile from registers to the output, through bias and last step, so that the stores
/// of one tile overlap the multiplications of the next. Activations would not: they are bound by their
/// own multiplications.
template <EpilogueTail kTail>
struct OutputSink {
  ScratchSink kept;  // of earlier blocks of k
  PanelOutput output;

  template <size_t kVectors>
  HWY_INLINE void store_row(size_t row, V c0, V c1) const {
    static_assert(kVectors == 2);
    if (kept.start == TileStart::stored) {
      c0 = hn::Add(hn::Load(D(), kept.sums + row * kPanel), c0);
      c1 = hn::Add(hn::Load(D(), kept.sums + row * kPanel + kLanes), c1);
    }
    output.put<Accuracy::full, Activation::none, kTail>(row, 0, c0);
    output.put<Accuracy::full, Activation::none, kTail>(row, kLanes, c1);
  }
};

/// The last block of k of a panel that has no activation. Whole tiles are written directly to the output, the
/// rest through its sums.
template <class Form>
HWY_INLINE void multiply_to_output(const GemmArgs& args, LeftOperand left, RightOperand right,
                                   const Prefetch& prefetch, EpilogueTail tail, const PanelBlock& block,
                                   ScratchSink kept) {
  const PanelOutput output = panel_output(args, block.row, block.column);
  with_tail(tail, [&](auto known) HWY_ATTR {
    multiply_tiles<Form, 2, true>(left, block.rows, right, prefetch, OutputSink<known.value>{kept, output});
  });
  const size_t rest = block.rows % kTileRows;
  if (rest == 0) return;
  const size_t done = block.rows - rest;
  multiply_rest<Form, 2>(left, done, rest, right, kept);
  finish_block_with<Accuracy::full, Activation::none>(
      args, {block.sums + done * kPanel, block.row + done, rest, block.column, block.columns});
}

/// Rows [row, row + rows) of one panel; rows <= kBlockRows.
template <class Form>
HWY_INLINE void multiply_panel(const GemmArgs& args, size_t row, size_t rows, size_t column) {
  HWY_ALIGN float sums[kBlockRows * kPanel];
  const PanelBlock block{sums, row, rows, column, HWY_MIN(kPanel, args.column_end - column)};
  EpilogueTail tail = EpilogueTail::nothing;
  const bool direct =
      block.columns == kPanel && args.epilogue.activation == Activation::none && tail_of(args.epilogue, tail);
  constexpr size_t kBlockLines = kBlockK / Form::kColumns;
  const size_t lines = lanes_for<Form>(args.in_features / args.pieces);  // of a piece
  const float* panel =
      reinterpret_cast<const float*>(args.packed) + column / kPanel * args.pieces * lines * Form::kLine;
  const std::byte* piece = args.in + row * args.in_step;
  for (size_t i = 0; i < args.pieces; ++i, piece += args.piece_step) {
    const float* const in = reinterpret_cast<const float*>(piece);
    for (size_t line = 0; line < lines; line += kBlockLines) {
      const LeftOperand left{in + line, args.in_step / sizeof(float), 1};
      const RightOperand right{panel, HWY_MIN(kBlockLines, lines - line)};
      panel += right.count * Form::kLine;
      const Prefetch prefetch{.stream = reinterpret_cast<const char*>(panel),
                              .rows = args.out + row * args.out_stride + column,
                              .row_stride = args.out_stride};
      const ScratchSink kept{i == 0 && line == 0 ? TileStart::zero : TileStart::stored, sums};
      if (direct && i + 1 == args.pieces && line + right.count == lines) {
        multiply_to_output<Form>(args, left, right, prefetch, tail, block, kept);
      } else {
        multiply_and_prefetch<Form>(left, rows, right, block.columns, prefetch, kept);
      }
    }
  }
  if (!direct) finish_block<Form::kAccuracy>(args, block);
}

template <class Form>
void gemm(const GemmArgs& args) noexcept {
  for (size_t row = 0; row < args.rows; row += kBlockRows) {
    const size_t rows = HWY_MIN(kBlockRows, args.rows - row);
    for (size_t column = args.column_begin; column < args.column_end; column += kPanel) {
      multiply_panel<Form>(args, row, rows, column);
    }
  }
}

[[maybe_unused]] constexpr LinearKernels kFloatLinear{.description = "float32",
                                                      .panel_columns = kPanel,
                                                      .tile_rows = kTileRows,
                                                      .row_bytes = float_row_bytes,
                                                      .convert_rows = nullptr,
                                                      .packed_bytes = float_packed_bytes,
                                                      .pack = float_pack,
                                                      .gemm = gemm<FloatLines>};

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
