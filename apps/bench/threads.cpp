// bench_threads: what a forward pass would take on more threads than this machine has, and where they would
// wait. Every task of a pass is timed in one thread, divided as for each number of threads; simulation.h
// distributes the tasks. Passes on the threads that the machine has are measured in between, as a check.
//
// Not in the simulation: memory bandwidth, caches that cores share or do not share, clock rates that drop
// with the number of busy cores.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/simulation.h"
#include "vit/base/parallel.h"
#include "vit/machine.h"
#include "vit/session.h"
#include "vit/version.h"

namespace vit::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string architecture = "vit_tiny_patch16_224";
  std::vector<std::size_t> sizes{224};
  std::vector<std::size_t> batches{1};
  std::vector<int> threads{1, 2, 4, 8, 16, 32, 64};
  std::vector<Precision> precisions{Precision::float32};
  std::size_t passes = 25;
  std::size_t private_cache_kib = 0;
  int loops_of = 0;  // threads whose kinds of loops are printed
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What two threads of this machine take to share a loop, beyond its tasks, and to become a team.
TeamCosts measure_costs() {
  constexpr std::chrono::microseconds kTask{20};
  constexpr int kLoops = 5000, kTeams = 500;
  std::vector<double> loops, teams;
  internal::with_team(2, [&] {
    for (int i = 0; i < kLoops; ++i) {
      const auto start = Clock::now();
      internal::parallel_for(2, 2, [&](std::size_t, int) {
        for (const auto end = Clock::now() + kTask; Clock::now() < end;) continue;
      });
      loops.push_back(seconds_since(start) - std::chrono::duration<double>(kTask).count());
    }
  });
  for (int i = 0; i < kTeams; ++i) {
    const auto start = Clock::now();
    internal::with_team(2, [] {});
    teams.push_back(seconds_since(start));
  }
  return {.loop = median(std::move(loops)), .team = median(std::move(teams))};
}

/// The same in every run.
Tensor<float> make_pixels(std::size_t batch, std::size_t size) {
  Tensor<float> pixels(Shape{batch, 3, size, size});
  std::uint32_t state = 1;
  for (float& value : pixels.flat()) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes' generator
    value = static_cast<float>(state >> 8) / static_cast<float>(1u << 24) * 4.0f - 2.0f;
  }
  return pixels;
}

/// Passes on one number of threads.
class Passes {
 public:
  Passes(const std::shared_ptr<const Model>& model, std::size_t batch, int threads)
      : threads_(threads), session_(model, {.threads = threads, .batch = batch, .input_size = {}}) {}

  int threads() const { return threads_; }
  void record(const Tensor<float>& pixels, std::size_t private_cache_bytes) {
    internal::TaskRecorder recorder(private_cache_bytes);
    session_.measure(pixels.view(), Output::logits, outputs_);
    recordings_.push_back(recorder.take());
  }
  void measure(const Tensor<float>& pixels) {
    const auto start = Clock::now();
    session_.forward(pixels.view(), Output::logits, outputs_);
    measured_.push_back(seconds_since(start));
  }
  /// Forgets what the first passes took, which allocate.
  void begin() {
    recordings_.clear();
    measured_.clear();
  }
  internal::Recording recording() const { return median_of(recordings_); }
  bool is_measured() const { return !measured_.empty(); }
  double measured() const { return median(measured_); }

 private:
  int threads_;
  Session session_;
  Outputs outputs_;
  std::vector<internal::Recording> recordings_;
  std::vector<double> measured_;
};

/// A row of the table: a number of threads next to one.
void print_row(const Passes& passes, const Schedule& schedule, double of_one) {
  const double threads = passes.threads(), percent = 100 / schedule.total;
  const double useful = of_one / threads;
  std::printf("| %d | %.3f | %.2f | %.0f %% | %.1f | %.1f | %.1f | %.1f |", passes.threads(),
              schedule.total * 1e3, of_one / schedule.total, useful * percent,
              (schedule.work - useful) * percent, schedule.imbalance * percent, schedule.serial * percent,
              schedule.teams * percent);
  if (passes.is_measured())
    std::printf(" %.3f (%+.1f %%) |\n", passes.measured() * 1e3,
                100 * (schedule.total / passes.measured() - 1));
  else
    std::printf(" - |\n");
}

void print_kinds(const Simulation& simulation, int threads) {
  std::printf(
      "\n"
      "| loop, %d threads | of a pass | tasks | part of the time, %% | waits of imbalance, %% | of serial "
      "parts, %% | teams, %% |\n"
      "|---|---|---|---|---|---|---|\n",
      threads);
  const double percent = 100 / simulation.all.total;
  for (const LoopKind& kind : simulation.kinds) {
    std::printf("| %s | %zu | %zu | %.1f | %.1f | %.1f | %.1f |\n", kind.name.c_str(), kind.count, kind.tasks,
                kind.schedule.total * percent, kind.schedule.imbalance * percent,
                kind.schedule.serial * percent, kind.schedule.teams * percent);
  }
}

void bench(const Options& options, const std::shared_ptr<const Model>& model, std::size_t size,
           std::size_t batch, const TeamCosts& costs) {
  const Tensor<float> pixels = make_pixels(batch, size);
  const int cores = num_threads();
  std::vector<Passes> all;
  all.reserve(options.threads.size());
  for (const int threads : options.threads) all.emplace_back(model, batch, threads);
  for (std::size_t pass = 0; pass <= options.passes; ++pass) {
    for (Passes& passes : all) {
      passes.record(pixels, options.private_cache_kib << 10);
      if (passes.threads() <= cores) passes.measure(pixels);
      if (pass == 0) passes.begin();
    }
  }
  std::printf("\n%s, %zu x %zu, batch %zu, %s, kernels %s, %zu passes\n\n", options.architecture.c_str(),
              size, size, batch, to_string(model->precision()), model->kernels(), options.passes);
  std::printf(
      "| threads | ms | times as fast as 1 | useful | smaller tasks, %% | imbalance, %% | serial, %% | "
      "teams, %% | measured, ms (error) |\n|---|---|---|---|---|---|---|---|---|\n");
  double of_one = 0;
  std::vector<Simulation> simulations;
  for (const Passes& passes : all) {
    simulations.push_back(simulate(passes.recording(), passes.threads(), costs));
    if (of_one == 0) of_one = simulations.front().all.total;
    print_row(passes, simulations.back().all, of_one);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].threads() == options.loops_of) print_kinds(simulations[i], all[i].threads());
  }
  std::fflush(stdout);
}

void run(const Options& options) {
  const TeamCosts costs = measure_costs();
  std::printf(
      "%s, %d cores, vit %s; a loop costs a team of two %.2f us, a team %.1f us; of n threads log2(n) times "
      "as much is assumed\n",
      cpu_name().c_str(), num_threads(), version(), costs.loop * 1e6, costs.team * 1e6);
  for (const std::size_t size : options.sizes) {
    for (const Precision precision : options.precisions) {
      ModelOptions of_model;
      of_model.precision = precision;
      const auto model = Model::random(options.architecture, of_model);
      for (const std::size_t batch : options.batches) bench(options, model, size, batch, costs);
    }
  }
}

}  // namespace
}  // namespace vit::bench

int main(int argc, char** argv) {
  vit::bench::Options options;
  std::map<std::string, vit::Precision> precisions;
  for (const auto precision : {vit::Precision::float32, vit::Precision::bfloat16, vit::Precision::int8})
    precisions.emplace(vit::to_string(precision), precision);
  CLI::App app("Simulates forward passes on more threads than this machine has");
  app.add_option("--architecture", options.architecture, "timm's name");
  app.add_option("--sizes", options.sizes, "Edges of square images")->delimiter(',');
  app.add_option("--batch", options.batches, "Images of a pass")->delimiter(',');
  app.add_option("--threads", options.threads, "Numbers of threads, 1 first")->delimiter(',');
  app.add_option("--dtype", options.precisions, "float32, bfloat16, int8")
      ->delimiter(',')
      ->transform(CLI::CheckedTransformer(precisions));
  app.add_option("--passes", options.passes, "Passes of each, of which the medians are taken");
  app.add_option("--private-cache", options.private_cache_kib,
                 "KiB that the tasks of another thread do not find in their cache");
  app.add_option("--loops", options.loops_of, "Number of threads whose loops are listed");
  CLI11_PARSE(app, argc, argv);
  try {
    vit::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_threads: %s\n", error.what());
    return 1;
  }
  return 0;
}
