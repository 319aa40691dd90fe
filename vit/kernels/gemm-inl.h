// Packing of weights and the matrix product with its epilogue.
//
//   packed:  panel 0                panel 1                     a panel holds kPanel output columns for all
//   k:
//            | k0: kPanel numbers | k1: ... |  | k0: ... |      one step of the loop reads one line of it
#if defined(VIT_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VIT_KERNELS_GEMM_INL_H_
#undef VIT_KERNELS_GEMM_INL_H_
#else
#define VIT_KERNELS_GEMM_INL_H_
#endif

#include "hwy/highway.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/tile-inl.h"
#include "vit/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::kernels::HWY_NAMESPACE {
namespace {

// Longest chain of additions; the sums of such blocks of k are added up in order. Long enough that starting
// and finishing a tile costs little; the panel then streams from the second-level cache, one line for twelve
// multiply-adds.
constexpr size_t kBlockK = 768;
// Rows that share a panel before the next one is fetched: their 108 x 768 numbers fit the second-level cache
// as well.
constexpr size_t kBlockRows = 108;

void pack_weight(const float* weight, size_t stride, size_t out_features, size_t in_features,
                 float* packed) noexcept {
  for (size_t column = 0; column < out_features; column += kPanel) {
    const size_t columns = HWY_MIN(kPanel, out_features - column);
    transpose(weight + column * stride, stride, columns, in_features, packed, kPanel);
    for (size_t k = 0; k < in_features; ++k) {
      for (size_t c = columns; c < kPanel; ++c) packed[k * kPanel + c] = 0.0f;
    }
    packed += kPanel * in_features;
  }
}

/// One vector of sums through the epilogue; `count` < kLanes where the matrix ends within it.
template <Activation kActivation, bool kFull>
HWY_INLINE void finish_vector(const Epilogue& e, V value, size_t row, size_t column, size_t count,
                              float* out) {
  const D d;
  const auto load = [&](const float* from)
                        HWY_ATTR { return kFull ? hn::LoadU(d, from) : load_first(from, count, 0.0f); };
  if (e.bias) value = hn::Add(value, load(e.bias + column));
  value = activated<kActivation>(value);
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
struct FinishedBlock {
  const float* sums;
  size_t row, rows, column, columns;
};

/// A whole panel with a bias, an activation and nothing else: the inner half of an MLP. Formulas are long
/// chains of dependent instructions, of which the processor looks only so far ahead: fewer between them.
template <Activation kActivation>
HWY_INLINE void finish_activated(const GemmArgs& args, const FinishedBlock& block) {
  const D d;
  const V bias0 = hn::LoadU(d, args.epilogue.bias + block.column);
  const V bias1 = hn::LoadU(d, args.epilogue.bias + block.column + kLanes);
  const float* sums = block.sums;
  float* out = args.out + block.row * args.out_stride + block.column;
  for (size_t r = 0; r < block.rows; ++r) {
    hn::StoreU(activated<kActivation>(hn::Add(hn::Load(d, sums), bias0)), d, out);
    hn::StoreU(activated<kActivation>(hn::Add(hn::Load(d, sums + kLanes), bias1)), d, out + kLanes);
    sums += kPanel;
    out += args.out_stride;
  }
}

template <Activation kActivation>
HWY_NOINLINE void finish_block_with(const GemmArgs& args, const FinishedBlock& block) {
  const D d;
  const Epilogue& e = args.epilogue;
  if (kActivation != Activation::none && block.columns == kPanel && e.bias && !e.multiplier && !e.scale &&
      !e.residual) {
    return finish_activated<kActivation>(args, block);
  }
  for (size_t r = 0; r < block.rows; ++r) {
    const size_t row = block.row + r;
    float* const out = args.out + row * args.out_stride + block.column;
    for (size_t c = 0; c < block.columns; c += kLanes) {
      const V value = hn::Load(d, block.sums + r * kPanel + c);
      const size_t rest = block.columns - c;
      if (rest >= kLanes) {
        finish_vector<kActivation, true>(args.epilogue, value, row, block.column + c, kLanes, out + c);
      } else {
        finish_vector<kActivation, false>(args.epilogue, value, row, block.column + c, rest, out + c);
      }
    }
  }
}

/// Sends a block through the epilogue to the output.
HWY_INLINE void finish_block(const GemmArgs& args, const FinishedBlock& block) {
  switch (args.epilogue.activation) {
    case Activation::none: return finish_block_with<Activation::none>(args, block);
    case Activation::gelu: return finish_block_with<Activation::gelu>(args, block);
    case Activation::gelu_tanh: return finish_block_with<Activation::gelu_tanh>(args, block);
    case Activation::quick_gelu: return finish_block_with<Activation::quick_gelu>(args, block);
    case Activation::silu: return finish_block_with<Activation::silu>(args, block);
    case Activation::relu: return finish_block_with<Activation::relu>(args, block);
  }
}

/// Lanes, and so lines of a panel, that in_features columns take.
template <class Form>
constexpr size_t steps_of(size_t in_features) {
  return (in_features + Form::kColumns - 1) / Form::kColumns;
}

/// Rows [row, row + rows) of one panel; rows <= kBlockRows.
template <class Form>
HWY_INLINE void multiply_panel(const GemmArgs& args, size_t row, size_t rows, size_t column) {
  HWY_ALIGN float sums[kBlockRows * kPanel];
  constexpr size_t kBlockSteps = kBlockK / Form::kColumns;
  const size_t steps = steps_of<Form>(args.in_features);
  const size_t columns = HWY_MIN(kPanel, args.column_end - column);
  const float* const panel = args.packed + column / kPanel * steps * Form::kLine;
  for (size_t k = 0; k < steps; k += kBlockSteps) {
    const size_t count = HWY_MIN(kBlockSteps, steps - k);
    multiply_and_prefetch<Form>({args.in + row * args.in_stride + k, args.in_stride, 1}, rows,
                                {panel + k * Form::kLine, count}, columns,
                                k == 0 ? TileStart::zero : TileStart::stored,
                                {.stream = panel + (k + count) * Form::kLine,
                                 .rows = args.out + row * args.out_stride + column,
                                 .row_stride = args.out_stride},
                                sums);
  }
  finish_block(args, {sums, row, rows, column, columns});
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

/// As many independent chains as a tile has sums, nothing but multiply-adds.
double multiply_adds(size_t rounds, float* sink) noexcept {
  // Starts that differ, or the compiler would see through twelve equal chains.
  SixRows c{set(1.0f), set(1.1f), set(1.2f), set(1.3f), set(1.4f), set(1.5f),
            set(1.6f), set(1.7f), set(1.8f), set(1.9f), set(2.0f), set(2.1f)};
  const V factor = set(0.5f);
  const V addend = set(1.0f);
  for (size_t i = 0; i < rounds; ++i) {
    c.c00 = hn::MulAdd(c.c00, factor, addend);
    c.c01 = hn::MulAdd(c.c01, factor, addend);
    c.c10 = hn::MulAdd(c.c10, factor, addend);
    c.c11 = hn::MulAdd(c.c11, factor, addend);
    c.c20 = hn::MulAdd(c.c20, factor, addend);
    c.c21 = hn::MulAdd(c.c21, factor, addend);
    c.c30 = hn::MulAdd(c.c30, factor, addend);
    c.c31 = hn::MulAdd(c.c31, factor, addend);
    c.c40 = hn::MulAdd(c.c40, factor, addend);
    c.c41 = hn::MulAdd(c.c41, factor, addend);
    c.c50 = hn::MulAdd(c.c50, factor, addend);
    c.c51 = hn::MulAdd(c.c51, factor, addend);
  }
  const V rows01 = hn::Add(hn::Add(c.c00, c.c01), hn::Add(c.c10, c.c11));
  const V rows23 = hn::Add(hn::Add(c.c20, c.c21), hn::Add(c.c30, c.c31));
  const V rows45 = hn::Add(hn::Add(c.c40, c.c41), hn::Add(c.c50, c.c51));
  *sink = hn::GetLane(hn::SumOfLanes(D(), hn::Add(hn::Add(rows01, rows23), rows45)));
  return 2.0 * 12.0 * static_cast<double>(kLanes) * static_cast<double>(rounds);
}

}  // namespace
}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // VIT_KERNELS_GEMM_INL_H_
