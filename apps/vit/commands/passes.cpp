#include "apps/vit/commands/passes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "apps/vit/commands/flops.h"
#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/peak_memory.h"
#include "vit/config.h"
#include "vit/config/output_table.h"
#include "vit/kernels/cpu_info.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/tile_meter.h"
#include "vit/machine.h"
#include "vit/session.h"

namespace vit::app {
namespace {

namespace kernels = internal::kernels;
using Clock = std::chrono::steady_clock;

/// Seconds of single passes, and statistics of them.
struct Timing {
  std::vector<double> seconds;      // sorted
  std::vector<double> tile_gflops;  // of a fixed tile between the passes, sorted

  double quantile(double q) const { return quantile_of(seconds, q); }
  double median_tile_gflops() const { return quantile_of(tile_gflops, 0.5); }

 private:
  static double quantile_of(const std::vector<double>& sorted, double q) {
    return sorted[static_cast<std::size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
  }
};

/// Pixels that exercise the whole range of normalized values, the same in every run.
Tensor<float> make_pixels(const Combination& combination) {
  Tensor<float> pixels(Shape{combination.batch, 3, combination.height, combination.width});
  std::uint32_t state = 1;
  for (float& value : pixels.flat()) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes' generator
    value = static_cast<float>(state >> 8) / static_cast<float>(1u << 24) * 4.0f - 2.0f;
  }
  return pixels;
}

Request request_for(const Model& model) {
  const ModelConfig& config = model.config();
  if (model.dense_config() != nullptr) return model.dense_config()->request();
  if (!config.merger && config.head.num_classes > 0) return Output::logits;
  const Output standard = internal::standard_output(config);
  return standard == Output::patches ? Output::tokens : standard;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One session that runs the same pass repeatedly.
class Pass {
 public:
  Pass(const std::shared_ptr<const Model>& model, const Combination& combination)
      : session_(model, {.threads = combination.threads, .batch = combination.batch, .input_size = {}}),
        request_(request_for(*model)),
        pixels_(make_pixels(combination)) {}

  double seconds() {
    const auto start = Clock::now();
    session_.forward(pixels_.view(), request_, outputs_);
    return seconds_since(start);
  }
  void warm_up(double budget) {
    constexpr int kMinPasses = 2;  // the first one allocates
    double spent = 0;
    for (int i = 0; i < kMinPasses || spent < budget; ++i) spent += seconds();
  }
  /// Runs passes, interleaved with measurements of `meter`, which take about 5 % of the time.
  Timing measure(double budget, kernels::TileMeter& meter) {
    constexpr std::size_t kMinPasses = 5, kMaxPasses = 10000;
    constexpr double kMeterPart = 0.05;
    Timing timing;
    double spent = 0;
    double metered = 0;
    const auto is_enough = [&] {
      const std::size_t passes = timing.seconds.size();
      return passes >= kMinPasses && (spent >= budget || passes >= kMaxPasses);
    };
    while (timing.seconds.empty() || !(is_enough() || interrupted())) {
      timing.seconds.push_back(seconds());
      spent += timing.seconds.back();
      if (metered <= kMeterPart * spent) {
        const auto start = Clock::now();
        timing.tile_gflops.push_back(meter.measure_gflops());
        metered += seconds_since(start);
      }
    }
    std::sort(timing.seconds.begin(), timing.seconds.end());
    std::sort(timing.tile_gflops.begin(), timing.tile_gflops.end());
    return timing;
  }
  /// Milliseconds per image and stage, of the fastest of several passes: the one disturbed
  /// least by other programs.
  JsonValue stages(std::size_t batch) {
    constexpr int kPasses = 7;
    double fastest = std::numeric_limits<double>::infinity();
    StageTimes kept;
    for (int i = 0; i < kPasses; ++i) {
      const auto start = Clock::now();
      const StageTimes times = session_.measure(pixels_.view(), request_, outputs_);
      const double total = seconds_since(start);
      if (total < fastest) kept = times;
      fastest = std::min(fastest, total);
    }
    JsonValue out;
    for (std::size_t i = 0; i < kStageNames.size(); ++i) {
      out[kStageNames[i]] = kept.seconds[i] * 1e3 / static_cast<double>(batch);
    }
    return out;
  }

  JsonValue plan(const Combination& combination) const {
    const PassPlan plan = session_.plan(combination.batch, combination.height, combination.width);
    return {{"images_per_pass", plan.images_per_pass},
            {"images_per_task", plan.images_per_task},
            {"tasks", plan.num_tasks},
            {"shared_images", plan.num_shared},
            {"images_per_group", plan.images_per_group}};
  }

 private:
  Session session_;
  Request request_;
  Tensor<float> pixels_;
  Outputs outputs_;
};

/// Floating-point operations of an image.
struct Work {
  double all_tokens = 0;
  double executed = 0;   // if the last block computes only the tokens that the output needs
  double attention = 0;  // of those, q k^T and the weighted sums of v
};

Work work_of(const Model& model, const Combination& combination) {
  const GridSize grid = model.grid_for(combination.height, combination.width);
  const ModelConfig& config = model.config();
  const DenseConfig* const dense = model.dense_config();
  const double of_head = dense != nullptr ? count_dense_flops(*dense, config, grid) : 0.0;
  const Flops executed = count_flops(config, grid, model.num_leading_tokens(request_for(model)));
  return {.all_tokens = count_flops(config, grid).total() + of_head,
          .executed = executed.total() + of_head,
          .attention = executed.attention};
}

/// The products of attention next to the limit of their own arithmetic; the stage also packs keys and values,
/// rotates, and computes softmax.
JsonValue attention_rate(double operations, double milliseconds, int threads,
                         const kernels::Arithmetic& arithmetic) {
  const double gflops = operations / milliseconds * 1e-6;
  const double peak = kernels::measure_attention_peak_gflops(threads, arithmetic);
  return {{"gflop_per_image", operations * 1e-9},
          {"gflops", gflops},
          {"peak_gflops", peak},
          {"percent_of_peak", 100.0 * gflops / peak}};
}

}  // namespace

JsonValue measure_passes(const std::shared_ptr<const Model>& model, const Combination& combination,
                         double seconds) {
  const kernels::Arithmetic& arithmetic =
      kernels::arithmetic_of(kernels::find_kernels(model->kernels()), model->precision());
  const Work work = work_of(*model, combination);
  reset_peak_memory();
  double peak = measure_peak_gflops(combination.threads);  // the machine's, regardless of --kernels
  Pass pass(model, combination);
  pass.warm_up(seconds / 5);
  kernels::TileMeter meter(combination.threads, *arithmetic.linear);
  const Timing timing = pass.measure(seconds, meter);
  // Clock rates drift: the peak is the larger of the measurements before and after.
  peak = std::max(peak, measure_peak_gflops(combination.threads));

  const double images = static_cast<double>(combination.batch);
  const double median = timing.quantile(0.5) / images;
  const double gflops = work.executed / median * 1e-9;
  JsonValue out{{"height", combination.height},
                {"width", combination.width},
                {"batch", combination.batch},
                {"threads", combination.threads},
                {"dtype", to_string(model->precision())},
                {"kernels", model->kernels()},
                {"ms_per_image", median * 1e3},
                {"ms_min", timing.quantile(0.0) / images * 1e3},
                {"ms_spread", (timing.quantile(0.75) - timing.quantile(0.25)) / images * 1e3},
                {"passes", timing.seconds.size()},
                {"images_per_second", 1.0 / median},
                {"gflop_per_image", work.executed * 1e-9},
                {"gflop_per_image_all_tokens", work.all_tokens * 1e-9},
                {"gflops", gflops},
                {"peak_gflops", peak},
                {"percent_of_peak", 100.0 * gflops / peak},
                {"tile_gflops", timing.median_tile_gflops()},
                {"percent_of_tile", 100.0 * gflops / timing.median_tile_gflops()}};
  out["ms_per_stage"] = pass.stages(combination.batch);
  const double of_attention = out["ms_per_stage"]["attention"].get<double>();
  out["attention"] = attention_rate(work.attention, of_attention, combination.threads, arithmetic);
  const std::optional<std::size_t> memory = peak_memory_bytes();
  out["plan"] = pass.plan(combination);
  out["peak_memory_bytes"] = memory ? JsonValue(*memory) : JsonValue(nullptr);
  return out;
}

}  // namespace vit::app
