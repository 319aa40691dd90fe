#include "vit/layers/linear.h"

#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/base/rounded.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"Linear", ErrorKind::argument};

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

void clip_rows(TensorView<float> rows, std::size_t first, std::size_t count, float low, float high) {
  for (std::size_t row = first; row < first + count; ++row) {
    for (std::size_t c = 0; c < rows.num_columns(); ++c)
      rows.row(row)[c] = std::min(std::max(rows.row(row)[c], low), high);
  }
}

/// The columns `outliers` of a weight (N, K), transposed, with zeros after N.
Tensor<float> columns_of(const TensorView<const float>& weight, std::span<const std::uint32_t> outliers,
                         const kernels::LinearKernels& kernels) {
  VIT_CHECK(kernels.has_outliers && weight.rank() == 2, kWhere, "no outlier columns for ",
            kernels.description);
  Tensor<float> columns(Shape{outliers.size(), round_up(weight.dim(0), kernels.panel_columns)});
  for (std::size_t i = 0; i < outliers.size(); ++i) {
    VIT_CHECK(outliers[i] < weight.dim(1) && (i == 0 || outliers[i - 1] < outliers[i]), kWhere,
              "outlier column ", outliers[i], " of ", weight.dim(1));
    float* const to = columns.view().row(i);
    for (std::size_t n = 0; n < weight.dim(0); ++n) to[n] = weight.row(n)[outliers[i]];
    VIT_CHECK(std::all_of(to, to + weight.dim(0), [](float w) { return std::isfinite(w); }),
              kWhere.with(ErrorKind::format), "a weight that is not finite cannot be quantized");
  }
  return columns;
}

/// A weight (N, K) with zeros in the columns `outliers`.
Tensor<float> without_columns(const TensorView<const float>& weight,
                              std::span<const std::uint32_t> outliers) {
  Tensor<float> rest(weight.shape());
  for (std::size_t n = 0; n < weight.num_rows(); ++n) {
    float* const to =
        std::copy_n(weight.row(n), weight.num_columns(), rest.view().row(n)) - weight.num_columns();
    for (const std::uint32_t k : outliers) to[k] = 0.0f;
  }
  return rest;
}

}  // namespace

Linear::Linear(TensorView<const float> weight, std::span<const float> bias,
               const kernels::LinearKernels& kernels, std::span<const std::uint32_t> outliers)
    : outliers_(outliers.begin(), outliers.end()) {
  if (outliers.empty()) {
    weight_ = kernels::PackedMatrix(weight, kernels);
  } else {
    outlier_weight_ = columns_of(weight, outliers, kernels);
    weight_ = kernels::PackedMatrix(without_columns(weight, outliers), kernels);
  }
  if (bias.empty()) return;
  VIT_CHECK(bias.size() == out_features(), kWhere, "bias of ", bias.size(), " numbers for a weight ",
            weight.shape().to_string());
  bias_ = Tensor<float>(Shape{bias.size()});
  std::copy(bias.begin(), bias.end(), bias_.data());
}

std::string Linear::describe() const {
  return Shape{out_features(), in_features()}.to_string();
}

void Linear::forward(TensorView<const float> in, TensorView<float> out, const Pass& pass,
                     const LinearEpilogue& epilogue) const {
  multiply(convert(in, pass), out, pass, epilogue);
}

template <typename Compute>
LinearInput Linear::convert_rows(TensorView<const float> in, const Pass& pass, const Compute& compute) const {
  VIT_CHECK(in.num_columns() == in_features(), kWhere, "a weight ", describe(), " cannot be applied to ",
            in.shape().to_string());
  const kernels::LinearKernels& kernels = weight_.kernels();
  const std::size_t rows = in.num_rows(), row_bytes = kernels.row_bytes(in_features());
  const TensorView<std::byte>& memory = pass.activations.converted;
  VIT_CHECK(
      row_bytes == 0 || (!memory.empty() && checked_mul(rows, row_bytes, kWhere) <= memory.num_elements()),
      kWhere, "no memory for ", in.shape().to_string(), " in the format of ", kernels.description);
  const TensorView<std::byte> converted(row_bytes != 0 ? memory.data() : nullptr, {rows, row_bytes});
  parallel_for_parts(rows, kTaskRows, pass.threads, [&](std::size_t first, std::size_t count) {
    compute(first, count);
    if (row_bytes == 0) return;
    kernels.convert_rows({.in = in.row(first),
                          .in_stride = in.row_stride(),
                          .rows = count,
                          .in_features = in_features(),
                          .out = converted.row(first),
                          .outliers = {outliers_.data(), outliers_.size()}});
  });
  return {in, converted, outliers_};
}

LinearInput Linear::convert(TensorView<const float> in, const Pass& pass) const {
  if (weight_.kernels().convert_rows == nullptr && in.num_columns() == in_features()) return {.rows = in};
  return convert_rows(in, pass, [](std::size_t, std::size_t) {});
}

LinearInput Linear::convert(const NormedRows& in, TensorView<float> normed, const Pass& pass) const {
  if (in.norm == nullptr) return convert(in.rows, pass);
  return convert_rows(normed, pass, [&](std::size_t first, std::size_t count) {
    in.norm->forward_rows(in.rows, normed, first, count);
    if (clip_) clip_rows(normed, first, count, clip_->lowest_in, clip_->highest_in);
  });
}

void Linear::add(const std::optional<LayerNorm>& norm, TensorView<float> in, const Residual& out,
                 const Pass& pass) const {
  if (clip_ && !norm) {
    parallel_for_parts(in.num_rows(), kTaskRows, pass.threads, [&](std::size_t first, std::size_t count) {
      clip_rows(in, first, count, clip_->lowest_in, clip_->highest_in);
    });
  }
  const LinearInput rows = norm ? convert(NormedRows{&*norm, in}, in, pass) : convert(in, pass);
  if (out.norm == nullptr)
    return multiply(rows, out.add_to, pass, {.scale = out.scale, .residual = out.add_to});
  const TensorView<float> branch =
      Activations::view_rows(pass.activations.normed, in.num_rows(), out_features());
  multiply(rows, branch, pass);
  parallel_for_parts(branch.num_rows(), kTaskRows, pass.threads, [&](std::size_t first, std::size_t count) {
    out.norm->forward_rows(branch, branch, first, count);
    for (std::size_t row = first; row < first + count; ++row) {
      float* const to = out.add_to.row(row);
      const float* const from = branch.row(row);
      for (std::size_t c = 0; c < out_features(); ++c)
        to[c] += out.scale.empty() ? from[c] : out.scale[c] * from[c];
    }
  });
}

void Linear::finish_clipped(TensorView<float> out, const Pass& pass, const LinearEpilogue& epilogue) const {
  parallel_for_parts(out.num_rows(), kTaskRows, pass.threads, [&](std::size_t first, std::size_t count) {
    clip_rows(out, first, count, clip_->lowest_out, clip_->highest_out);
    for (std::size_t row = first; row < first + count; ++row) {
      for (std::size_t c = 0; c < out.num_columns(); ++c) {
        float& x = out.row(row)[c];
        // of layers that clip, which cannot be fused with the product
        x = static_cast<float>(activated(x, epilogue.activation));
        if (!epilogue.multiplier.empty()) x *= epilogue.multiplier.row(row)[c];
      }
    }
  });
}

void Linear::multiply(const LinearInput& in, TensorView<float> out, const Pass& pass,
                      const LinearEpilogue& epilogue) const {
  if (clip_) {
    VIT_CHECK(epilogue.residual.empty() && epilogue.scale.empty() && epilogue.multiplier.data() != out.data(),
              kWhere, "a layer that clips cannot add to a residual, nor multiply in place");
    multiply_range(in, out, {0, out_features()}, pass);
    return finish_clipped(out, pass, epilogue);
  }
  multiply_range(in, out, {0, out_features()}, pass, epilogue);
}

void Linear::check_product(const LinearInput& in, const TensorView<float>& out, OutputRange range,
                           const LinearEpilogue& epilogue) const {
  const std::size_t rows = in.rows.num_rows();
  VIT_CHECK(
      in.rows.num_columns() == in_features() && out.num_columns() == out_features() && out.num_rows() == rows,
      kWhere, "a weight ", describe(), " cannot be applied to ", in.rows.shape().to_string(), " to ",
      out.shape().to_string());
  const std::size_t row_bytes = weight_.kernels().row_bytes(in_features());
  VIT_CHECK(row_bytes == 0 || (!in.converted.empty() && in.converted.shape() == Shape({rows, row_bytes})),
            kWhere, "rows are not converted for ", weight_.kernels().description);
  VIT_CHECK(std::ranges::equal(in.outliers, outliers_), kWhere,
            "rows are converted for other outlier columns");
  for (const TensorView<const float>& same : {epilogue.multiplier, epilogue.residual}) {
    VIT_CHECK(same.empty() || (same.num_columns() == out_features() && same.num_rows() == rows), kWhere,
              "multiplier or residual ", same.shape().to_string(), " for an output ",
              out.shape().to_string());
  }
  VIT_CHECK(epilogue.scale.empty() || epilogue.scale.size() == out_features(), kWhere, "scale of ",
            epilogue.scale.size(), " numbers for ", out_features(), " features");
  VIT_CHECK(range.begin <= range.end && range.end <= out_features(), kWhere, "no outputs from ", range.begin,
            " to ", range.end, " among ", out_features());
}

GemmTasks Linear::tasks_of(const LinearInput& in, OutputRange range, std::size_t products,
                           const Pass& pass) const {
  const kernels::LinearKernels& kernels = weight_.kernels();
  const std::size_t panel = kernels.panel_columns;
  return GemmTasks(
      {.rows = in.rows.num_rows(),
       .outputs = {range.begin / panel * panel, std::min(round_up(range.end, panel), out_features())},
       .panel_columns = panel,
       .tile_rows = kernels.tile_rows,
       .threads = static_cast<std::size_t>(resolve_threads(pass.threads)),
       .products = products});
}

void Linear::run_task(const GemmTask& task, const LinearInput& in, TensorView<float> out,
                      const LinearEpilogue& epilogue) const {
  const kernels::LinearKernels& kernels = weight_.kernels();
  const std::size_t row_bytes = kernels.row_bytes(in_features());
  const std::byte* const first_row =
      row_bytes != 0 ? in.converted.data() : reinterpret_cast<const std::byte*>(in.rows.data());
  const std::size_t in_step = row_bytes != 0 ? row_bytes : in.rows.row_stride() * sizeof(float);
  kernels.gemm({.in = first_row + task.row * in_step,
                .in_step = in_step,
                .rows = task.rows,
                .packed = weight_.data(),
                .in_features = in_features(),
                .column_begin = task.column_begin,
                .column_end = task.column_end,
                .out = out.row(task.row),
                .out_stride = out.row_stride(),
                .epilogue = epilogue_from(epilogue, bias_, task.row),
                .outliers = {.columns = {outliers_.data(), outliers_.size()},
                             .in = in.rows.row(task.row),
                             .in_stride = in.rows.row_stride(),
                             .weight = outlier_weight_.data(),
                             .weight_stride = outliers_.empty() ? 0 : outlier_weight_.dim(1)}});
}

void Linear::multiply_range(const LinearInput& in, TensorView<float> out, OutputRange range, const Pass& pass,
                            const LinearEpilogue& epilogue) const {
  check_product(in, out, range, epilogue);
  if (in.rows.num_rows() == 0 || range.begin == range.end) return;
  const GemmTasks tasks = tasks_of(in, range, /*products=*/1, pass);
  parallel_for(tasks.size(), pass.threads,
               [&](std::size_t index, int) { run_task(tasks[index], in, out, epilogue); });
}

void Linear::multiply_gated(const Linear& gate, const LinearInput& in, TensorView<float> out,
                            Activation activation, const Pass& pass) const {
  const OutputRange all{0, out_features()};
  const LinearEpilogue of_gate{.activation = activation}, of_value{.multiplier = out};
  gate.check_product(in, out, all, of_gate);
  check_product(in, out, all, of_value);
  VIT_CHECK(!clip_ && !gate.clip_ && &gate.weight_.kernels() == &weight_.kernels(), kWhere,
            "a gate and its values that clip, or that different kernels multiply");
  if (in.rows.num_rows() == 0) return;
  const GemmTasks tasks = tasks_of(in, all, /*products=*/2, pass);
  parallel_for(tasks.size(), pass.threads, [&](std::size_t index, int) {
    gate.run_task(tasks[index], in, out, of_gate);
    run_task(tasks[index], in, out, of_value);
  });
}

}  // namespace vit::internal
