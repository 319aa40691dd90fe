// What a recorded pass would take on a number of threads, and where they would wait.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "vit/base/task_recorder.h"

namespace vit::bench {

/// The value in the middle, the greater of two; there must be one.
double median(std::vector<double> values);

/// Seconds that teams add to the work of their threads.
struct TeamCosts {
  double loop = 0;  // to distribute the tasks of a loop and to wait for the last
  double team = 0;  // to begin and dismiss the team, once a pass

  /// Those of `threads` threads, from those of two: times log2(threads). An assumption.
  TeamCosts of(int threads) const;
};

/// When the last task ends if `threads` threads take tasks as a team does: from the front of their own part,
/// then from the back of the next part that has any. The thread that is free first takes first.
double makespan(std::span<const double> tasks, int threads);

/// Seconds of a pass on a number of threads; total is the sum of the others.
struct Schedule {
  double total = 0;
  double work = 0;       // of all tasks and serial parts, divided by the threads
  double imbalance = 0;  // threads without a task wait for the last one
  double serial = 0;     // threads wait for what runs on one, beyond its share of the work
  double teams = 0;      // TeamCosts

  void add(const Schedule& other);
};

/// The loops of one kind: the same place in the same stage.
struct LoopKind {
  std::string name;       // such as "mlp 2", the second loop of that stage
  std::size_t count = 0;  // of such loops
  std::size_t tasks = 0;  // of the first
  Schedule schedule;
};

struct Simulation {
  Schedule all;
  std::vector<LoopKind>
      kinds;  // in order of appearance; what lies between loops belongs to the loop after it
};

/// A pass that was recorded on as many threads as it is simulated for.
Simulation simulate(const internal::Recording& pass, int threads, const TeamCosts& of_two);

/// The median of each time of passes that consist of the same loops. Throws Error if they do not.
internal::Recording median_of(std::span<const internal::Recording> passes);

}  // namespace vit::bench
