#include "vit/layers/linear.h"

#include <algorithm>

#include "vit/base/parallel.h"

namespace vit {
namespace {

/// How a product is cut into tasks: blocks of rows times blocks of whole panels.
///
/// The blocks of rows form as many parts as there are threads, where rows suffice; parallel_for starts each
/// thread on a part of its own. A single block for each is cut to the row, so that none has a tile more than
/// the others; several are cut into whole tiles, which are faster. Of a part, all blocks meet some columns
/// before they meet the next: those of the weight come from memory once.
class Split {
 public:
  Split(std::size_t rows, OutputRange range, const kernels::KernelTable& table, int threads)
      : rows_(rows), range_(range) {
    // A block of rows should stay in the second-level cache while the weight streams past it; the tasks
    // should outnumber the threads several times so that a slow core does not hold up the others.
    constexpr std::size_t kRowsInCache = 108, kFewRows = 48;
    constexpr std::size_t kTasksPerThread = 32;
    const auto num_threads = static_cast<std::size_t>(resolve_threads(threads));
    row_blocks_ = ceil_div(rows, kRowsInCache);
    const std::size_t even = round_up(row_blocks_, num_threads);
    if (rows / even >= kFewRows) row_blocks_ = even;
    parts_ = std::min(row_blocks_, num_threads);
    if (row_blocks_ > parts_) unit_ = table.tile_rows;
    const std::size_t panels = ceil_div(range.end - range.begin, table.panel_columns);
    const std::size_t wanted = ceil_div(kTasksPerThread * num_threads, row_blocks_);
    columns_per_task_ = ceil_div(panels, std::min(wanted, panels)) * table.panel_columns;
    column_blocks_ = ceil_div(range.end - range.begin, columns_per_task_);
  }

  std::size_t num_tasks() const { return row_blocks_ * column_blocks_; }

  struct Block {
    std::size_t row, rows, column, column_end;
  };
  Block block(std::size_t task) const {
    const std::size_t part = (task / column_blocks_ * parts_ + parts_ - 1) / row_blocks_;
    const std::size_t first = first_block(part);
    const std::size_t blocks = first_block(part + 1) - first;
    const std::size_t within = task - first * column_blocks_;
    const std::size_t row_block = first + within % blocks;
    const std::size_t row = first_row(row_block);
    const std::size_t column = range_.begin + within / blocks * columns_per_task_;
    return {row, first_row(row_block + 1) - row, column, std::min(column + columns_per_task_, range_.end)};
  }

 private:
  std::size_t first_block(std::size_t part) const { return part * row_blocks_ / parts_; }
  std::size_t first_row(std::size_t block) const {
    return std::min(block * ceil_div(rows_, unit_) / row_blocks_ * unit_, rows_);
  }

  std::size_t rows_;
  OutputRange range_;
  std::size_t unit_ = 1;  // of rows
  std::size_t row_blocks_, column_blocks_, parts_, columns_per_task_;
};

/// The tasks of a product as run(row, rows, first column, last column).
template <typename Run>
void for_each_part(std::size_t rows, OutputRange range, const kernels::KernelTable& table, int threads,
                   Run&& run) {
  const Split split(rows, range, table, threads);
  parallel_for(split.num_tasks(), threads, [&](std::size_t task, int) {
    const Split::Block block = split.block(task);
    run(block.row, block.rows, block.column, block.column_end);
  });
}

/// What a product is made of besides its weight.
struct Product {
  const PreparedRows& in;
  TensorView<float> out;
  OutputRange range;
  int threads;
  const LinearEpilogue& epilogue;
};

kernels::Epilogue epilogue_from(const LinearEpilogue& epilogue, const Tensor<float>& bias, std::size_t row) {
  const auto row_of = [row](const TensorView<const float>& view) {
    return view.empty() ? nullptr : view.row(row);
  };
  return {.bias = bias.data(),
          .activation = epilogue.activation,
          .multiplier = row_of(epilogue.multiplier),
          .multiplier_stride = epilogue.multiplier.row_stride(),
          .scale = epilogue.scale.empty() ? nullptr : epilogue.scale.data(),
          .residual = row_of(epilogue.residual),
          .residual_stride = epilogue.residual.row_stride()};
}

/// Rows to be prepared: those of `rows`, computed first where there is a norm.
struct Source {
  TensorView<const float> rows;
  const LayerNorm* norm = nullptr;
  TensorView<const float> before{};  // norm
  TensorView<float> normed{};        // rows

  /// Calls prepare(first, count) for all rows, a few at a time, once they are computed.
  template <typename Prepare>
  void for_each_part(int threads, const Prepare& prepare) const {
    constexpr std::size_t kRowsPerTask = 16;
    parallel_for_parts(rows.num_rows(), kRowsPerTask, threads, [&](std::size_t first, std::size_t count) {
      if (norm) norm->forward_rows(before, normed, first, count);
      prepare(first, count);
    });
  }
};

/// Whether `rows` rows of bfloat16 pairs, or of whole numbers, have room in `memory`.
bool has_room(const kernels::PackedBf16Matrix& weight, std::size_t rows, const QuantisedMemory& memory) {
  const std::size_t row_bytes = kernels::bf16_row_lanes(weight.in_features()) * sizeof(float);
  return checked_mul(rows, row_bytes, "Linear") <= memory.values.num_elements();
}

bool has_room(const kernels::PackedInt8Matrix& weight, std::size_t rows, const QuantisedMemory& memory) {
  const std::size_t row_bytes = weight.table().int8->row_bytes(weight.in_features());
  return checked_mul(rows, row_bytes, "Linear") <= memory.values.num_elements() &&
         checked_mul(rows, kernels::int8_groups(weight.in_features()), "Linear") <=
             memory.scales.num_elements();
}

void prepare_as_float(const Source& source, int threads) {
  if (source.norm) source.norm->forward(source.before, source.normed, threads);
}

void prepare(const kernels::PackedMatrix&, const Source& source, int threads, const QuantisedMemory&) {
  prepare_as_float(source, threads);
}

/// The rows in bfloat16, pairs in the lanes of `memory`.
void prepare(const kernels::PackedBf16Matrix& weight, const Source& source, int threads,
             const QuantisedMemory& memory) {
  const kernels::Bf16Kernels& bf16 = *weight.table().bf16;
  if (!bf16.round_rows) return prepare_as_float(source, threads);
  const TensorView<const float>& in = source.rows;
  const std::size_t row_lanes = kernels::bf16_row_lanes(in.num_columns());
  VIT_CHECK(has_room(weight, in.num_rows(), memory), "Linear", "no memory for ", in.shape().to_string(),
            " as bfloat16");
  float* const lanes = reinterpret_cast<float*>(memory.values.data());
  source.for_each_part(threads, [&](std::size_t row, std::size_t count) {
    bf16.round_rows({.in = in.row(row),
                     .in_stride = in.row_stride(),
                     .rows = count,
                     .in_features = in.num_columns(),
                     .out = lanes + row * row_lanes});
  });
}

/// The rows as whole numbers in `memory`.
void prepare(const kernels::PackedInt8Matrix& weight, const Source& source, int threads,
             const QuantisedMemory& memory) {
  const kernels::Int8Kernels& int8 = *weight.table().int8;
  const TensorView<const float>& in = source.rows;
  const std::size_t columns = in.num_columns();
  const std::size_t row_bytes = int8.row_bytes(columns), groups = kernels::int8_groups(columns);
  VIT_CHECK(has_room(weight, in.num_rows(), memory), "Linear", "no memory for ", in.shape().to_string(),
            " as int8");
  source.for_each_part(threads, [&](std::size_t row, std::size_t count) {
    int8.quantise({.in = in.row(row),
                   .in_stride = in.row_stride(),
                   .rows = count,
                   .in_features = columns,
                   .out = memory.values.data() + row * row_bytes,
                   .scales = memory.scales.data() + row * groups});
  });
}

/// The product of `gemm` with rows and weight as it takes them.
template <typename Packed>
void multiply_with(void (*gemm)(const kernels::GemmArgs&) noexcept, const Packed& weight,
                   const TensorView<const float>& in, const Tensor<float>& bias, const Product& product) {
  for_each_part(in.num_rows(), product.range, weight.table(), product.threads,
                [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t column_end) {
                  gemm({.in = in.row(row),
                        .in_stride = in.row_stride(),
                        .rows = rows,
                        .packed = weight.data(),
                        .in_features = weight.in_features(),
                        .column_begin = column,
                        .column_end = column_end,
                        .out = product.out.row(row),
                        .out_stride = product.out.row_stride(),
                        .epilogue = epilogue_from(product.epilogue, bias, row)});
                });
}

void multiply(const kernels::PackedMatrix& weight, const Tensor<float>& bias, const Product& product) {
  multiply_with(weight.table().gemm, weight, product.in.rows, bias, product);
}

void multiply(const kernels::PackedBf16Matrix& weight, const Tensor<float>& bias, const Product& product) {
  const kernels::Bf16Kernels& bf16 = *weight.table().bf16;
  if (!bf16.round_rows) return multiply_with(bf16.gemm, weight, product.in.rows, bias, product);
  VIT_CHECK(has_room(weight, product.in.rows.num_rows(), product.in.quantised), "Linear",
            "rows that are not prepared as bfloat16");
  const TensorView<const float> pairs(
      reinterpret_cast<const float*>(product.in.quantised.values.data()),
      {product.in.rows.num_rows(), kernels::bf16_row_lanes(weight.in_features())});
  multiply_with(bf16.gemm, weight, pairs, bias, product);
}

void multiply(const kernels::PackedInt8Matrix& weight, const Tensor<float>& bias, const Product& product) {
  const QuantisedMemory& in = product.in.quantised;
  VIT_CHECK(has_room(weight, product.in.rows.num_rows(), in), "Linear", "rows that are not prepared as int8");
  const kernels::Int8Kernels& int8 = *weight.table().int8;
  const std::size_t row_bytes = int8.row_bytes(weight.in_features());
  for_each_part(product.in.rows.num_rows(), product.range, weight.table(), product.threads,
                [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t column_end) {
                  const kernels::Epilogue finish = epilogue_from(product.epilogue, bias, row);
                  int8.gemm({.in = in.values.data() + row * row_bytes,
                             .in_scales = in.scales.data() + row * kernels::int8_groups(weight.in_features()),
                             .rows = rows,
                             .packed = weight.data(),
                             .in_features = weight.in_features(),
                             .column_begin = column,
                             .column_end = column_end,
                             .out = product.out.row(row),
                             .out_stride = product.out.row_stride(),
                             .epilogue = &finish});
                });
}

std::variant<kernels::PackedMatrix, kernels::PackedBf16Matrix, kernels::PackedInt8Matrix> pack(
    TensorView<const float> weight, const kernels::KernelTable& kernels, Dtype dtype) {
  if (dtype == Dtype::bf16) return kernels::PackedBf16Matrix(weight, kernels);
  if (dtype == Dtype::i8) return kernels::PackedInt8Matrix(weight, kernels);
  VIT_CHECK(dtype == Dtype::f32, "Linear", "products are float32, bfloat16 or int8, not ", to_string(dtype));
  return kernels::PackedMatrix(weight, kernels);
}

}  // namespace

Linear::Linear(TensorView<const float> weight, std::span<const float> bias,
               const kernels::KernelTable& kernels, Dtype dtype)
    : weight_(pack(weight, kernels, dtype)) {
  if (bias.empty()) return;
  VIT_CHECK(bias.size() == out_features(), "Linear", "bias of ", bias.size(), " numbers for a weight ",
            weight.shape().to_string());
  bias_ = Tensor<float>(Shape{bias.size()});
  std::copy(bias.begin(), bias.end(), bias_.data());
}

std::size_t Linear::in_features() const noexcept {
  return std::visit([](const auto& weight) { return weight.in_features(); }, weight_);
}

std::size_t Linear::out_features() const noexcept {
  return std::visit([](const auto& weight) { return weight.out_features(); }, weight_);
}

std::string Linear::describe() const {
  return Shape{out_features(), in_features()}.to_string();
}

std::size_t Linear::weight_bytes() const {
  return std::visit([](const auto& weight) { return weight.bytes(); }, weight_) +
         bias_.num_elements() * sizeof(float);
}

void Linear::forward(TensorView<const float> in, TensorView<float> out, int threads,
                     const LinearEpilogue& epilogue, const QuantisedMemory& memory) const {
  multiply(prepare(in, threads, memory), out, threads, epilogue);
}

void Linear::check_rows(const TensorView<const float>& in) const {
  VIT_CHECK(in.num_columns() == in_features(), "Linear", "a weight ", describe(), " cannot take ",
            in.shape().to_string());
}

PreparedRows Linear::prepare(TensorView<const float> in, int threads, const QuantisedMemory& memory) const {
  check_rows(in);
  std::visit([&](const auto& weight) { vit::prepare(weight, {.rows = in}, threads, memory); }, weight_);
  return {in, memory};
}

PreparedRows Linear::prepare_normed(const LayerNorm& norm, TensorView<const float> in,
                                    TensorView<float> normed, int threads,
                                    const QuantisedMemory& memory) const {
  check_rows(normed);
  const Source source{.rows = normed, .norm = &norm, .before = in, .normed = normed};
  std::visit([&](const auto& weight) { vit::prepare(weight, source, threads, memory); }, weight_);
  return {normed, memory};
}

void Linear::add_to(TensorView<float> out, std::span<const float> scale, const std::optional<LayerNorm>& norm,
                    TensorView<float> in, int threads, const QuantisedMemory& memory) const {
  const PreparedRows rows =
      norm ? prepare_normed(*norm, in, in, threads, memory) : prepare(in, threads, memory);
  multiply(rows, out, threads, {.scale = scale, .residual = out});
}

void Linear::multiply(const PreparedRows& in, TensorView<float> out, int threads,
                      const LinearEpilogue& epilogue) const {
  multiply_range(in, out, {0, out_features()}, threads, epilogue);
}

void Linear::multiply_range(const PreparedRows& in, TensorView<float> out, OutputRange range, int threads,
                            const LinearEpilogue& epilogue) const {
  const std::size_t rows = in.rows.num_rows();
  VIT_CHECK(
      in.rows.num_columns() == in_features() && out.num_columns() == out_features() && out.num_rows() == rows,
      "Linear", "a weight ", describe(), " cannot take ", in.rows.shape().to_string(), " to ",
      out.shape().to_string());
  for (const TensorView<const float>& same : {epilogue.multiplier, epilogue.residual}) {
    VIT_CHECK(same.empty() || (same.num_columns() == out_features() && same.num_rows() == rows), "Linear",
              "multiplier or residual ", same.shape().to_string(), " for an output ",
              out.shape().to_string());
  }
  VIT_CHECK(epilogue.scale.empty() || epilogue.scale.size() == out_features(), "Linear", "scale of ",
            epilogue.scale.size(), " numbers for ", out_features(), " features");
  VIT_CHECK(range.begin <= range.end && range.end <= out_features(), "Linear", "no outputs from ",
            range.begin, " to ", range.end, " among ", out_features());
  if (rows == 0 || range.begin == range.end) return;
  std::visit(
      [&](const auto& weight) {
        const std::size_t panel = weight.table().panel_columns;
        const OutputRange panels{range.begin / panel * panel,
                                 std::min(round_up(range.end, panel), out_features())};
        vit::multiply(weight, bias_, {in, out, panels, threads, epilogue});
      },
      weight_);
}

}  // namespace vit
