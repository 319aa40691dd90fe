#include "apps/bench/simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "vit/base/check.h"
#include "vit/base/team.h"
#include "vit/outputs.h"

namespace vit::bench {
namespace {

double sum_of(std::span<const double> seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

/// Tasks that nothing has taken, part by part.
class Parts {
 public:
  Parts(std::size_t num_tasks, int threads) {
    const internal::TaskParts parts(num_tasks, threads);
    for (std::size_t part = 0; part < parts.count(); ++part)
      left_.push_back({parts.first_of(part), parts.first_of(part + 1)});
  }

  /// The task that a thread takes next; no_task() if there are none.
  std::size_t take(std::size_t thread) {
    const std::size_t own = thread % left_.size();
    if (left_[own].begin != left_[own].end) return left_[own].begin++;
    for (std::size_t i = 1; i < left_.size(); ++i) {
      Range& other = left_[(own + i) % left_.size()];
      if (other.begin != other.end) return --other.end;
    }
    return no_task();
  }
  static constexpr std::size_t no_task() { return static_cast<std::size_t>(-1); }

 private:
  struct Range {
    std::size_t begin, end;
  };
  std::vector<Range> left_;
};

/// The time of a loop, and of what ran on one thread before it.
Schedule schedule_of(const internal::RecordedLoop& loop, int threads, const TeamCosts& costs) {
  const double work = sum_of(loop.tasks), number = threads;
  const bool is_divided = threads > 1 && loop.threads > 1 && loop.tasks.size() > 1;
  Schedule out{.work = (work + loop.seconds_before) / number,
               .serial = loop.seconds_before * (1 - 1 / number)};
  if (is_divided) {
    out.imbalance = makespan(loop.tasks, threads) - work / number;
    out.teams = costs.loop;
  } else {
    out.serial += work * (1 - 1 / number);
  }
  out.total = out.work + out.imbalance + out.serial + out.teams;
  return out;
}

/// "qkv 1" for the first loop of a stage since another one.
class KindNames {
 public:
  std::string next(int label) {
    ordinal_ = label == label_ ? ordinal_ + 1 : 1;
    label_ = label;
    if (label < 0) return "other " + std::to_string(ordinal_);
    return kStageNames[static_cast<std::size_t>(label)] + (" " + std::to_string(ordinal_));
  }

 private:
  int label_ = -2;
  int ordinal_ = 0;
};

template <typename Get>
double median_over(std::span<const internal::Recording> passes, const Get& get) {
  std::vector<double> values;
  for (const internal::Recording& pass : passes) values.push_back(get(pass));
  return median(std::move(values));
}

void check_alike(const internal::Recording& a, const internal::Recording& b) {
  const bool alike =
      std::equal(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end(),
                 [](const internal::RecordedLoop& x, const internal::RecordedLoop& y) {
                   return x.label == y.label && x.threads == y.threads && x.tasks.size() == y.tasks.size();
                 });
  VIT_CHECK(alike, "median_of", "passes of ", a.loops.size(), " and ", b.loops.size(),
            " loops that differ; only passes of one model, size, batch and number of threads have a median");
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

TeamCosts TeamCosts::of(int threads) const {
  const double factor = std::log2(static_cast<double>(threads));
  return {.loop = loop * factor, .team = team * factor};
}

double makespan(std::span<const double> tasks, int threads) {
  Parts parts(tasks.size(), threads);
  std::vector<double> free_at(static_cast<std::size_t>(threads), 0.0);
  std::vector<bool> is_done(free_at.size(), false);
  double last = 0;
  for (;;) {
    std::size_t first = free_at.size();
    for (std::size_t thread = 0; thread < free_at.size(); ++thread) {
      if (!is_done[thread] && (first == free_at.size() || free_at[thread] < free_at[first])) first = thread;
    }
    if (first == free_at.size()) return last;
    const std::size_t task = parts.take(first);
    if (task == Parts::no_task()) {
      is_done[first] = true;
      continue;
    }
    free_at[first] += tasks[task];
    last = std::max(last, free_at[first]);
  }
}

void Schedule::add(const Schedule& other) {
  total += other.total;
  work += other.work;
  imbalance += other.imbalance;
  serial += other.serial;
  teams += other.teams;
}

Simulation simulate(const internal::Recording& pass, int threads, const TeamCosts& of_two) {
  const TeamCosts costs = threads > 1 ? of_two.of(threads) : TeamCosts{};
  Simulation out;
  KindNames names;
  for (const internal::RecordedLoop& loop : pass.loops) {
    const std::string name = names.next(loop.label);
    auto kind = std::ranges::find(out.kinds, name, &LoopKind::name);
    if (kind == out.kinds.end())
      kind = out.kinds.insert(kind, {.name = name, .tasks = loop.tasks.size(), .schedule = {}});
    const Schedule schedule = schedule_of(loop, threads, costs);
    ++kind->count;
    kind->schedule.add(schedule);
    out.all.add(schedule);
  }
  Schedule rest{.total = pass.seconds_after + costs.team,
                .work = pass.seconds_after / threads,
                .serial = pass.seconds_after * (1 - 1.0 / threads),
                .teams = costs.team};
  out.all.add(rest);
  return out;
}

internal::Recording median_of(std::span<const internal::Recording> passes) {
  VIT_CHECK(!passes.empty(), "median_of", "no passes");
  for (const internal::Recording& pass : passes) check_alike(passes.front(), pass);
  internal::Recording out = passes.front();
  out.seconds_after = median_over(passes, [](const internal::Recording& pass) { return pass.seconds_after; });
  for (std::size_t i = 0; i < out.loops.size(); ++i) {
    internal::RecordedLoop& loop = out.loops[i];
    loop.seconds_before =
        median_over(passes, [i](const internal::Recording& pass) { return pass.loops[i].seconds_before; });
    for (std::size_t task = 0; task < loop.tasks.size(); ++task) {
      loop.tasks[task] = median_over(
          passes, [i, task](const internal::Recording& pass) { return pass.loops[i].tasks[task]; });
    }
  }
  return out;
}

}  // namespace vit::bench
