// The simulation of bench_threads: loops with known answers, and that recorded passes are those that threads
// compute.
#include "apps/bench/simulation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/tiny_model.h"
#include "vit/base/parallel.h"
#include "vit/model.h"
#include "vit/session.h"

namespace vit::bench {

using internal::RecordedLoop;
using internal::Recording;

TEST_CASE("simulation: threads take their own tasks from the front and those of others from the back") {
  // part of thread 0: | 4 1 |, of thread 1: | 1 1 |; at 2 thread 1 takes the 1 of thread 0
  CHECK(makespan(std::vector<double>{4, 1, 1, 1}, 2) == doctest::Approx(4));
  // | 1 1 1 | 5 5 5 |: thread 0 takes the last 5 at 3, thread 1 its second at 5
  CHECK(makespan(std::vector<double>{1, 1, 1, 5, 5, 5}, 2) == doctest::Approx(10));
  CHECK(makespan(std::vector<double>{1, 2, 3}, 1) == doctest::Approx(6));
  // fewer tasks than threads
  CHECK(makespan(std::vector<double>{3, 2}, 8) == doctest::Approx(3));
  // 12 equal tasks of 8 threads: four take a second one
  CHECK(makespan(std::vector<double>(12, 1.0), 8) == doctest::Approx(2));
  CHECK(makespan(std::vector<double>{}, 4) == 0);
  CHECK(makespan(std::vector<double>(200, 1.0), 100) == doctest::Approx(2));  // more threads than parts
}

TEST_CASE("simulation: the parts of a pass add up to its time") {
  const Recording pass{.loops = {{.label = 3, .threads = 4, .seconds_before = 8, .tasks = {4, 4, 4, 4, 4, 4}},
                                 {.label = 3, .threads = 1, .seconds_before = 0, .tasks = {2, 2}},
                                 {.label = 6, .threads = 4, .seconds_before = 0, .tasks = {4}}},
                       .seconds_after = 4};
  const TeamCosts of_two{.loop = 0.5, .team = 1};
  const Simulation simulation = simulate(pass, 4, of_two);
  const Schedule& all = simulation.all;
  // loops of 8, 4 and 4 after 8 and before 4 seconds on one thread; log2(4) = 2 times 0.5 and 1
  CHECK(all.total == doctest::Approx(8 + 8 + 4 + 4 + 4 + 1 + 2));
  CHECK(all.work == doctest::Approx((24 + 4 + 4 + 8 + 4) / 4.0));
  CHECK(all.imbalance == doctest::Approx(8 - 24 / 4.0));
  CHECK(all.serial == doctest::Approx(0.75 * (8 + 4 + 4 + 4)));
  CHECK(all.teams == doctest::Approx(1 + 2));
  CHECK(all.work + all.imbalance + all.serial + all.teams == doctest::Approx(all.total));

  REQUIRE(simulation.kinds.size() == 3);
  CHECK(simulation.kinds[0].name == "qkv 1");
  CHECK(simulation.kinds[1].name == "qkv 2");
  CHECK(simulation.kinds[2].name == "mlp 1");
  CHECK(simulation.kinds[0].schedule.total == doctest::Approx(8 + 8 + 1));

  const Simulation alone = simulate(pass, 1, of_two);  // no team, nothing waits
  CHECK(alone.all.total == doctest::Approx(8 + 24 + 4 + 4 + 4));
  CHECK(alone.all.work == doctest::Approx(alone.all.total));
}

TEST_CASE("simulation: medians are taken of equal loops only") {
  const auto pass_of = [](double seconds, std::size_t tasks) {
    return Recording{
        .loops = {{.threads = 2, .seconds_before = seconds, .tasks = std::vector(tasks, seconds)}},
        .seconds_after = seconds};
  };
  const std::vector<Recording> passes{pass_of(5, 2), pass_of(1, 2), pass_of(2, 2)};
  const Recording median = median_of(passes);
  CHECK(median.loops[0].tasks == std::vector<double>{2, 2});
  CHECK(median.loops[0].seconds_before == 2);
  CHECK(median.seconds_after == 2);
  CHECK_THROWS_AS(median_of(std::vector<Recording>{pass_of(1, 2), pass_of(1, 3)}), Error);
  CHECK_THROWS_AS(median_of({}), Error);
}

TEST_CASE("simulation: a recorded loop calls each task once, as the thread that starts with it") {
  internal::TaskRecorder recorder;
  std::vector<int> threads;
  internal::with_team(3, [&] {
    internal::parallel_for(7, 3, [&](std::size_t task, int thread) {
      CHECK(task == threads.size());
      threads.push_back(thread);
      internal::parallel_for(2, 3, [](std::size_t, int of_inner) { CHECK(of_inner == 0); });
    });
  });
  internal::parallel_for(1, 3, [&](std::size_t, int thread) { CHECK(thread == 0); });
  CHECK(threads == std::vector<int>{0, 0, 1, 1, 2, 2, 2});
  const Recording recording = recorder.take();
  REQUIRE(recording.loops.size() == 2);  // those within tasks belong to them
  CHECK(recording.loops[0].tasks.size() == 7);
  CHECK(recording.loops[0].threads == 3);
  CHECK(recorder.take().loops.empty());
  CHECK_THROWS_AS(internal::TaskRecorder(), Error);
}

TEST_CASE("simulation: a recorded pass has the bits of one that threads compute") {
  ModelOptions options;
  options.overrides = {{"embed_dim", "48"}, {"num_heads", "3"}, {"depth", "2"}, {"img_size", "224"}};
  for (const Precision precision : {Precision::float32, Precision::int8}) {
    options.precision = precision;
    const auto model = Model::random("vit_tiny_patch16_224", options);
    const Tensor<float> pixels = test::random_pixels(2, 224, 224);
    Session one(model, {.threads = 1, .input_size = {}});
    Outputs expected;
    one.forward(pixels.view(), Output::tokens, expected);
    for (const int threads : {2, 5, 8, 64}) {
      CAPTURE(threads);
      Session session(model, {.threads = threads, .input_size = {}});
      Outputs outputs;
      internal::TaskRecorder recorder;
      session.measure(pixels.view(), Output::tokens, outputs);
      const Recording recording = recorder.take();
      CHECK(recording.loops.size() > 10);
      const auto found = outputs[0].tokens(), wanted = expected[0].tokens();
      CHECK(std::equal(found.data(), found.data() + found.num_elements(), wanted.data()));
      const Simulation simulation = simulate(recording, threads, {});
      CHECK(std::ranges::count(simulation.kinds, "mlp 2", &LoopKind::name) == 1);
      CHECK(simulation.all.total > 0);
    }
  }
}

}  // namespace vit::bench
