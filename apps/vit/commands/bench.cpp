// vit bench: how fast a model runs on this machine, for every combination of sizes, batches and threads.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/command.h"
#include "apps/vit/commands/info/flops.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/options/options.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/outputs/standard_streams.h"
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/run/interrupt.h"
#include "apps/vit/run/peak_memory.h"
#include "apps/vit/run/progress.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/tile_meter.h"
#include "vit/machine.h"
#include "vit/session.h"
#include "vit/towers/batch_plan.h"
#include "vit/version.h"

namespace vit::app {
namespace {

namespace kernels = internal::kernels;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr const char* kExamples =
    "A pass is the computation of vit classify for a batch (vit embed if there is no classifier), without "
    "reading images.\n"
    "GFLOP/s count the operations computed: if only one token is classified, the last block skips the "
    "others. The tile is a small matrix product in the L1 cache, measured between the passes:\n"
    "if it is far below the peak, other programs or a lower clock rate slow the core down.\n"
    "Examples:\n"
    "  vit bench --architecture vit_base_patch16_rope_224\n"
    "  vit bench --model vit_base/ --sizes 224,384,256x512 --batch 1,8 --threads 1,2\n"
    "  vit bench --json > before.json\n"
    "  vit bench --report > machine.json";

constexpr const char* kReportArchitecture = "vit_small_patch16_224";  // where no model is given

struct BenchOptions {
  CommonOptions common;
  std::vector<InputSize> sizes;  // none: the size of --size
  std::vector<std::size_t> batches{1};
  std::vector<int> threads{0};
  double seconds = 1.0;
  bool json = false;
  bool report = false;
};

struct Combination {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t batch = 1;
  int threads = 1;
};

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
  if (model.dense_config() != nullptr) {
    Request maps;
    maps.set_maps();
    return maps;
  }
  if (config.merger.size != 0) return Output::merged;
  if (config.num_classes > 0) return Output::logits;
  const bool has_vector = config.projection_dim > 0 || config.pooling != Pooling::none;
  return has_vector ? default_output(config) : Output::tokens;
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
  ordered_json stages(std::size_t batch) {
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
    ordered_json out;
    for (std::size_t i = 0; i < kStageNames.size(); ++i) {
      out[kStageNames[i]] = kept.seconds[i] * 1e3 / static_cast<double>(batch);
    }
    return out;
  }

  ordered_json plan(const Combination& combination) const {
    const PassPlan plan = session_.plan(combination.batch, combination.height, combination.width);
    return {{"images_per_pass", plan.images_per_pass},
            {"images_per_task", plan.images_per_task},
            {"tasks", plan.num_tasks},
            {"shared_images", plan.num_shared},
            {"images_per_group",
             internal::plan_group(static_cast<std::size_t>(combination.threads), combination.batch)
                 .num_images(3 * combination.height * combination.width * sizeof(float))}};
  }

 private:
  Session session_;
  Request request_;
  Tensor<float> pixels_;
  Outputs outputs_;
};

/// Height and width of the input. Throws UsageError for native.
ImageSize edges_of(const InputSize& size, const ModelConfig& config, const char* option) {
  if (size.kind == InputSize::Kind::native)
    fail_usage(option, ": native needs an input image; bench has none");
  if (size.kind == InputSize::Kind::model) return {config.image_height, config.image_width};
  return {size.height, size.width};
}

std::vector<Combination> combinations(const BenchOptions& options, const Model& model) {
  std::vector<Combination> out;
  const std::vector<InputSize> sizes =
      options.sizes.empty() ? std::vector{options.common.session.input_size} : options.sizes;
  const char* const option = options.sizes.empty() ? "--size" : "--sizes";
  for (const InputSize& size : sizes) {
    const ImageSize edges = edges_of(size, model.config(), option);
    for (const std::size_t batch : options.batches) {
      for (const int threads : options.threads) {
        out.push_back({edges.height, edges.width, batch, num_threads(threads)});
      }
    }
  }
  return out;
}

std::string model_name(const BenchOptions& options, const Model& model) {
  if (!model.config().architecture.empty()) return model.config().architecture;
  return options.common.model.empty() ? model.report().path.filename().string()
                                      : options.common.model.string();
}

ordered_json run_combination(const BenchOptions& options, const std::shared_ptr<const Model>& model,
                             const Combination& combination) {
  const GridSize grid = model->grid_for(combination.height, combination.width);
  const ModelConfig& config = model->config();
  const DenseConfig* const dense = model->dense_config();
  const double of_head = dense != nullptr ? count_dense_flops(*dense, config, grid) : 0.0;
  const double full = count_flops(config, grid).total() + of_head;
  const double executed =
      of_head + count_flops(config, grid, model->num_leading_tokens(request_for(*model))).total();
  reset_peak_memory();
  double peak = measure_peak_gflops(combination.threads);  // the machine's, regardless of --kernels
  Pass pass(model, combination);
  pass.warm_up(options.seconds / 5);
  const kernels::KernelTable& table = kernels::find_kernels(model->kernels());
  kernels::TileMeter meter(combination.threads, *kernels::arithmetic_of(table, model->precision()).linear);
  const Timing timing = pass.measure(options.seconds, meter);
  // Clock rates drift: the peak is the larger of the measurements before and after.
  peak = std::max(peak, measure_peak_gflops(combination.threads));

  const double images = static_cast<double>(combination.batch);
  const double median = timing.quantile(0.5) / images;
  const double gflops = executed / median * 1e-9;
  ordered_json out{{"model", model_name(options, *model)},
                   {"height", combination.height},
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
                   {"gflop_per_image", executed * 1e-9},
                   {"gflop_per_image_all_tokens", full * 1e-9},
                   {"gflops", gflops},
                   {"peak_gflops", peak},
                   {"percent_of_peak", 100.0 * gflops / peak},
                   {"tile_gflops", timing.median_tile_gflops()},
                   {"percent_of_tile", 100.0 * gflops / timing.median_tile_gflops()},
                   {"ms_per_stage", pass.stages(combination.batch)}};
  const std::optional<std::size_t> memory = peak_memory_bytes();
  out["plan"] = pass.plan(combination);
  out["peak_memory_bytes"] = memory ? ordered_json(*memory) : ordered_json(nullptr);
  return out;
}

std::string name_of(const Combination& combination) {
  return text(combination.height, "x", combination.width, ", batch ", combination.batch, ", threads ",
              combination.threads);
}

std::string machine_line(const ordered_json& machine) {
  return machine["cpu"].get<std::string>() + text(", ", machine["cores"].get<int>(), " cores, vit ") +
         machine["version"].get<std::string>() + "\n";
}

std::string result_lines(const ordered_json& result) {
  char line[256];
  std::snprintf(
      line, sizeof line, "%4zux%-4zu  batch %-3zu  threads %-2d  %9.3f ms/image (min %.3f, spread %.3f)",
      result["height"].get<std::size_t>(), result["width"].get<std::size_t>(),
      result["batch"].get<std::size_t>(), result["threads"].get<int>(), result["ms_per_image"].get<double>(),
      result["ms_min"].get<double>(), result["ms_spread"].get<double>());
  std::string out = line;
  std::snprintf(line, sizeof line, "  %7.1f GFLOP/s, %5.1f %% of the peak %.1f, %5.1f %% of the tile %.1f",
                result["gflops"].get<double>(), result["percent_of_peak"].get<double>(),
                result["peak_gflops"].get<double>(), result["percent_of_tile"].get<double>(),
                result["tile_gflops"].get<double>());
  out += line;
  if (!result["peak_memory_bytes"].is_null()) {
    out += text("  ", result["peak_memory_bytes"].get<std::size_t>() >> 20, " MiB");
  }
  out += "\n   ";
  for (const auto& [stage, milliseconds] : result["ms_per_stage"].items()) {
    std::snprintf(line, sizeof line, " %s %.3f", stage.c_str(), milliseconds.get<double>());
    out += line;
  }
  const ordered_json& plan = result["plan"];
  return out + " ms\n" +
         text("    ", plan["tasks"].get<std::size_t>(), " tasks of ",
              plan["images_per_task"].get<std::size_t>(), " images on one thread each, ",
              plan["shared_images"].get<std::size_t>(), " images on all threads; vit classify reads ",
              plan["images_per_group"].get<std::size_t>(), " images at a time\n");
}

std::shared_ptr<const Model> bench_model(const CommonOptions& options) {
  return options.is_architecture_alone()
             ? Model::random(options.model_options.architecture, options.model_options)
             : load_model(options);
}

/// What is measured one after the other: a model, or for a report every precision on every table but the
/// naive ones, that is those of this processor.
std::vector<CommonOptions> variants(const BenchOptions& options) {
  if (!options.report) return {options.common};
  const ModelOptions& given = options.common.model_options;
  if (!given.kernels.empty() || given.precision != Precision::float32)
    fail_usage("--report measures all kernels and precisions: it takes no --kernels and no --dtype");
  std::vector<CommonOptions> out;
  for (const KernelInfo& table : available_kernels()) {
    if (std::string_view(table.name) == "reference" || std::string_view(table.name) == "portable") continue;
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      CommonOptions variant = options.common;
      variant.model_options.kernels = table.name;
      variant.model_options.precision = precision;
      if (variant.model.empty() && variant.model_options.architecture.empty())
        variant.model_options.architecture = kReportArchitecture;
      out.push_back(std::move(variant));
    }
  }
  return out;
}

ordered_json machine_facts(bool with_kernels) {
  ordered_json machine{{"cpu", cpu_name()},
                       {"cores", num_threads()},
                       {"instruction_sets", cpu_instruction_sets()},
                       {"version", version()}};
  if (!with_kernels) return machine;
  for (const KernelInfo& table : available_kernels())
    machine["kernels"].push_back({{"name", table.name},
                                  {"description", table.description},
                                  {"bfloat16", table.bfloat16},
                                  {"int8", table.int8}});
  return machine;
}

/// Measures one model and hands on what it gave.
template <typename Take>
void bench_variant(const BenchOptions& options, const std::shared_ptr<const Model>& model, Progress& progress,
                   const Take& take) {
  for (const Combination& combination : combinations(options, *model)) {
    if (interrupted()) return;
    try {
      const ordered_json result = run_combination(options, model, combination);
      if (interrupted()) return;
      take(result);
      progress.add_done(1);
    } catch (const Error& error) {
      progress.add_failed(name_of(combination), error.what());
    } catch (const std::bad_alloc&) {
      progress.add_failed(name_of(combination), "out of memory");
    }
  }
}

int bench(const BenchOptions& options) {
  const std::vector<CommonOptions> all = variants(options);
  std::shared_ptr<const Model> model = bench_model(all.front());
  const bool is_json = options.json || options.report;
  const std::size_t num_each = combinations(options, *model).size();
  hold_interrupts();

  const ordered_json machine = machine_facts(options.report);
  ordered_json results = ordered_json::array();
  Progress progress("bench", all.size() * num_each, options.common.progress_mode());
  const auto print = [&](const std::string& lines) {
    progress.clear();
    print_result(lines);
  };
  if (!is_json) {
    print(machine_line(machine) + printable(model_name(options, *model)) + ", " +
          to_string(model->precision()) + ", kernels " + model->kernels() + "\n");
  }
  for (std::size_t i = 0; i < all.size() && !interrupted(); ++i) {
    if (i != 0) model = bench_model(all[i]);
    bench_variant(options, model, progress, [&](const ordered_json& result) {
      results.push_back(result);
      if (!is_json) print(result_lines(result));
    });
  }
  progress.finish("");
  if (is_json) print(ordered_json{{"machine", machine}, {"results", results}}.dump(2) + "\n");
  return exit_code(progress);
}

}  // namespace

Command bench_command() {
  const auto options = std::make_shared<BenchOptions>();
  Command command{
      .name = "bench",
      .summary = "Measure the speed of a model on this machine",
      .footer = kExamples,
      .options =
          {{.name = "--sizes",
            .type_name = "LIST",
            .help = "Input sizes, S or HxW, comma-separated; model = the model's own",
            .target = list_target(options->sizes, parse_size),
            .occurs = Occurs::list},
           {.name = "--batch",
            .type_name = "LIST",
            .help = "Images per forward call, comma-separated; default 1",
            .target =
                list_target(options->batches,
                            [](const std::string& value) { return parse_integer(value, 1, kMaxBatch); }),
            .occurs = Occurs::list},
           {.name = "--threads",
            .type_name = "LIST",
            .help = "Threads, comma-separated; 0 = all cores, the default",
            .target = list_target(options->threads,
                                  [](const std::string& value) {
                                    return static_cast<int>(parse_integer(value, 0, kMaxThreads));
                                  }),
            .occurs = Occurs::list},
           {
               .name = "--seconds",
               .type_name = "S",
               .help = "Time spent on each combination",
               .target = parsed_target(
                   options->seconds, [](const std::string& value) { return parse_real(value, 0, 3600); },
                   "1"),
           },
           {.name = "--json", .type_name = "", .help = "Results as one JSON object", .flag = &options->json},
           {.name = "--report",
            .type_name = "",
            .help = "What to send to those who have no such machine: all kernels and precisions, as JSON; "
                    "without a model, of ViT-S",
            .flag = &options->report}},
      .run = [options] { return bench(*options); }};
  add_common_options(command.options, options->common, BatchOptions::lists);
  return command;
}

}  // namespace vit::app
