// vit bench: how fast a model runs on this machine, for every combination of sizes, batches and threads.
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/commands/commands.h"
#include "apps/vit/commands/passes.h"
#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/options.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/machine.h"
#include "vit/version.h"

namespace vit::app {
namespace {

constexpr const char* kExamples =
    "A pass is the computation of vit classify for a batch (vit embed if there is no classifier), without "
    "reading images.\n"
    "GFLOP/s count the operations computed: if only one token is classified, the last block skips the "
    "others. The tile is a small matrix product in the L1 cache, measured between the passes:\n"
    "if it is far below the peak, other programs or a lower clock rate slow the core down.\n"
    "The peak is that of float32. Attention is compared with the peak of its own products, of bfloat16 or of "
    "integers where it uses those.\n"
    "Examples:\n"
    "  vit bench --architecture vit_base_patch16_rope_224\n"
    "  vit bench --model vit_base/ --sizes 224,384,256x512 --batch 1,8 --threads 1,2\n"
    "  vit bench --architecture vit_tiny_patch16_224 --sizes 1024,2048 --dtype float32,bfloat16,int8\n"
    "  vit bench --architecture sam3 --phrase 'yellow bus' --dtype float32,bfloat16,int8\n"
    "  vit bench --json > before.json\n"
    "  vit bench --serve --model vit_base/ --seconds 60\n"
    "  vit bench --report > machine.json";

constexpr const char* kReportArchitecture = "vit_small_patch16_224";  // where no model is given

struct BenchOptions {
  CommonOptions common;
  std::vector<InputSize> sizes;        // none: the size of --size
  std::vector<std::size_t> batches{};  // none: 1
  std::vector<int> threads{0};
  std::vector<Precision> precisions{};  // none: float32, or all for a report
  double seconds = 1.0;
  bool json = false;
  bool report = false;
  bool serves = false;
  std::optional<std::size_t> clients;
  std::vector<std::filesystem::path> images{};
  std::string phrase;
};

/// Height and width of the input. Throws UsageError for native.
ImageSize edges_of(const InputSize& size, const ModelConfig& config, const char* option) {
  if (size.kind == InputSize::Kind::native)
    fail_usage(option, ": native needs an input image; bench has none");
  if (size.kind == InputSize::Kind::model) return {config.image.height, config.image.width};
  return {size.height, size.width};
}

std::vector<Combination> combinations(const BenchOptions& options, const Model& model) {
  std::vector<Combination> out;
  const std::vector<InputSize> sizes =
      options.sizes.empty() ? std::vector{options.common.session.input_size} : options.sizes;
  const char* const option = options.sizes.empty() ? "--size" : "--sizes";
  for (const InputSize& size : sizes) {
    const ImageSize edges = edges_of(size, model.config(), option);
    for (const std::size_t batch : options.batches.empty() ? std::vector<std::size_t>{1} : options.batches) {
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

std::string name_of(const Combination& combination) {
  return text(combination.height, "x", combination.width, ", batch ", combination.batch, ", threads ",
              combination.threads);
}

std::string machine_line(const JsonValue& machine) {
  return machine["cpu"].get<std::string>() + text(", ", machine["cores"].get<int>(), " cores, vit ") +
         machine["version"].get<std::string>() + "\n";
}

std::string result_lines(const JsonValue& result) {
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
  const JsonValue &attention = result["attention"], &plan = result["plan"];
  std::snprintf(line, sizeof line,
                " ms\n    attention %.1f GFLOP/s, %.1f %% of the peak %.1f of its products\n",
                attention["gflops"].get<double>(), attention["percent_of_peak"].get<double>(),
                attention["peak_gflops"].get<double>());
  return out + line +
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

/// What is measured one after the other: a model in some precisions, or for a report in all of them on every
/// table but the naive ones, that is those of this processor.
std::vector<CommonOptions> variants(const BenchOptions& options) {
  std::vector<Precision> precisions = options.precisions;
  std::vector<std::string> tables{options.common.model_options.kernels};
  CommonOptions variant = options.common;
  if (options.report) {
    if (!tables.front().empty() || !precisions.empty())
      fail_usage("--report measures all kernels and precisions: it takes no --kernels and no --dtype");
    tables.clear();
    for (const KernelInfo& table : available_kernels())
      if (table.name != "reference" && table.name != "portable") tables.push_back(table.name);
    precisions = {Precision::float32, Precision::bfloat16, Precision::int8};
    if (variant.model.empty() && variant.model_options.architecture.empty())
      variant.model_options.architecture = kReportArchitecture;
  }
  if (precisions.empty()) precisions = {Precision::float32};
  std::vector<CommonOptions> out;
  for (const std::string& table : tables) {
    for (const Precision precision : precisions) {
      variant.model_options.kernels = table;
      variant.model_options.precision = precision;
      out.push_back(variant);
    }
  }
  return out;
}

JsonValue machine_facts(bool with_kernels) {
  JsonValue machine{{"cpu", cpu_name()},
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
      JsonValue result{{"model", model_name(options, *model)}};
      result.update(measure_passes(model, combination, options.seconds));
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

/// One run of a server, with the precision and threads that the lists name.
int bench_of_server(const BenchOptions& options, BenchServer of_server) {
  if (options.report || !options.sizes.empty() || !options.batches.empty() || options.precisions.size() > 1 ||
      options.threads.size() > 1)
    fail_usage(
        "--serve measures one server: one --dtype, one --threads, --size in place of --sizes, and --clients "
        "in place of --batch");
  CommonOptions common = options.common;
  if (!options.precisions.empty()) common.model_options.precision = options.precisions.front();
  common.session.threads = options.threads.front();
  ServerBench server{.seconds = options.seconds, .images = options.images, .as_json = options.json};
  if (options.clients) server.clients = *options.clients;
  return of_server(common, server);
}

/// What prompts cost, in each of the precisions.
int bench_of_prompts(const BenchOptions& options, BenchPrompts of_prompts) {
  if (options.report || options.serves || !options.sizes.empty() || !options.batches.empty() ||
      options.threads.size() > 1)
    fail_usage(
        "--phrase measures one image and further phrases: it takes --dtype, one --threads and --seconds");
  return of_prompts(
      options.common,
      {.phrase = options.phrase,
       .precisions = options.precisions.empty() ? std::vector{Precision::float32} : options.precisions,
       .threads = options.threads.front(),
       .seconds = options.seconds,
       .as_json = options.json,
       .machine = machine_facts(false)});
}

int bench(const BenchOptions& options) {
  const std::vector<CommonOptions> all = variants(options);
  std::shared_ptr<const Model> model = bench_model(all.front());
  const bool is_json = options.json || options.report;
  const std::size_t num_each = combinations(options, *model).size();
  hold_interrupts();

  const JsonValue machine = machine_facts(options.report);
  JsonValue results = JsonValue::array();
  Progress progress("bench", all.size() * num_each, options.common.progress_mode());
  const auto print = [&](const std::string& lines) {
    progress.clear();
    print_result(lines);
  };
  if (!is_json) print(machine_line(machine));
  for (std::size_t i = 0; i < all.size() && !interrupted(); ++i) {
    if (i != 0) model = bench_model(all[i]);
    if (!is_json) {
      print(printable(model_name(options, *model)) + ", " + to_string(model->precision()) + ", kernels " +
            model->kernels() + "\n");
    }
    bench_variant(options, model, progress, [&](const JsonValue& result) {
      results.push_back(result);
      if (!is_json) print(result_lines(result));
    });
  }
  progress.finish("");
  if (is_json)
    print(JsonValue{{"machine", machine}, {"results", results}}.dump(internal::JsonLayout::indented) + "\n");
  return exit_code(progress);
}

}  // namespace

Command bench_command(BenchServer of_server, BenchPrompts of_prompts) {
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
           {.name = "--dtype",
            .type_name = "LIST",
            .help =
                "Precisions of blocks and dense heads, comma-separated: float32, the default, bfloat16, int8 "
                "(converted while loading)",
            .target =
                offering(list_target(options->precisions, parse_precision), {"float32", "bfloat16", "int8"}),
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
            .help = "Report for the developers: every kernel and precision on this machine, as JSON (ViT-S "
                    "unless --model is given)",
            .flag = &options->report},
           {.name = "--phrase",
            .type_name = "TEXT",
            .help = "Of a model of prompts (SAM 3): one look at an image, further phrases like this one, a "
                    "click, memory, and with several --dtype the IoU of masks",
            .target = text_target(options->phrase)},
           {.name = "--serve",
            .type_name = "",
            .help = "Images an hour and memory of vit serve with this model, by clients on this machine that "
                    "send one image after the other",
            .flag = &options->serves},
           {.name = "--clients",
            .type_name = "N",
            .help = "Clients of --serve at a time",
            .target = parsed_target(options->clients,
                                    [](const std::string& value) { return parse_integer(value, 1, 1000); })},
           {.name = "--image",
            .type_name = "FILE",
            .help = "What they send, alternating; repeatable; default: the photographs of the program's data",
            .target = list_target(options->images,
                                  [](const std::string& value) { return std::filesystem::path(value); }),
            .occurs = Occurs::repeated}},
      .run = [options, of_server, of_prompts] {
        if (!options->serves && (options->clients || !options->images.empty()))
          fail_usage("--clients and --image need --serve");
        if (!options->phrase.empty()) return bench_of_prompts(*options, of_prompts);
        return options->serves ? bench_of_server(*options, of_server) : bench(*options);
      }};
  add_common_options(command.options, options->common, BatchOptions::lists);
  return command;
}

}  // namespace vit::app
