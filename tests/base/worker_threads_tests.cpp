// The threads of parallel_for: shared by teams, and what is left of them after a fork. Built twice: with
// OpenMP, where children of fork() have own workers, and without (vit_own_threads_tests).
#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/base/worker_threads.h"

using namespace vit::internal;

namespace {

/// Sum of the numbers below 1000, by a team of four.
std::size_t sum_by_team() {
  std::atomic<std::size_t> sum{0};
  parallel_for(1000, 4, [&](std::size_t task, int) { sum += task; });
  return sum;
}

constexpr std::size_t kSum = 999 * 1000 / 2;

/// Whether `body` returns true in a child of this process, within a minute.
template <typename Body>
bool holds_in_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // a team that waits for threads of the other process is an end by a signal
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

cpu_set_t cores_of(pthread_t thread) {
  cpu_set_t cores;
  CHECK(::pthread_getaffinity_np(thread, sizeof cores, &cores) == 0);
  return cores;
}

/// The last core that this process may use.
std::size_t last_core() {
  const cpu_set_t all = cores_of(::pthread_self());
  std::size_t core = CPU_SETSIZE - 1;
  while (core > 0 && !CPU_ISSET(core, &all)) --core;
  return core;
}

std::size_t num_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace

TEST_CASE("base: a child of fork has teams of its own") {
  CHECK(sum_by_team() == kSum);
  CHECK(holds_in_child([] { return sum_by_team() == kSum; }));
  CHECK(holds_in_child(
      [] { return sum_by_team() == kSum && holds_in_child([] { return sum_by_team() == kSum; }); }));
  CHECK(sum_by_team() == kSum);
}

TEST_CASE("base: a team works in a forked process, with as many threads") {
  const auto work = [] {
    std::vector<int> counts(1000);
    std::atomic<int> started = 0;
    with_team(4, [&] {
      parallel_for(4, 4, [&](std::size_t, int) {  // none ends before four threads have begun
        for (++started; started < 4;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
      for (int round = 0; round < 50; ++round) {
        parallel_for(counts.size(), 4, [&](std::size_t task, int) { counts[task]++; });
      }
      CHECK_THROWS_AS(parallel_for(9, 4, [](std::size_t task, int) { VIT_CHECK(task != 5, "test", "five"); }),
                      vit::Error);
    });
    return std::ranges::all_of(counts, [](int count) { return count == 50; });
  };
  CHECK(work());
  CHECK(holds_in_child(work));
}

TEST_CASE("base: a fork by the leader of a team leaves the child able to work") {
  bool is_fine = false;
  with_team(4, [&] { is_fine = holds_in_child([] { return sum_by_team() == kSum; }); });
  CHECK(is_fine);
}

// Memory that AddressSanitizer of g++ 12 locked for another thread during the fork stays locked in the child.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("base: a child of own workers' leader leaves the team, whose threads it does not have") {
  CHECK(holds_in_child([] {
    const pid_t parent = ::getpid();
    pid_t child = 0;
    with_team(4, [&] { child = ::fork(); });
    if (::getpid() != parent) {
      ::alarm(10);
      ::_exit(sum_by_team() == kSum ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0;
  }));
}
#endif

TEST_CASE("base: teams borrow the threads of teams before them") {
  CHECK(sum_by_team() == kSum);
  const std::size_t before = num_threads();
  for (int round = 0; round < 1000; ++round) CHECK(sum_by_team() == kSum);
  for (int leader = 0; leader < 20; ++leader) std::thread([] { CHECK(sum_by_team() == kSum); }).join();
  // Of own workers, if the machine was busy, each leader may need three more. A thread of OpenMP ends a
  // moment after the leader that it served.
  for (int wait = 0; wait < 1000 && num_threads() > before + 3; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(num_threads() <= before + 3);
}

TEST_CASE("base: threads are requested from the system before they are needed") {
  CHECK(can_create_threads(3));
  rlimit before;
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto size = static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
  const rlimit little{size + (256 << 20), before.rlim_max};  // of address space: no room for 1000 stacks
  CHECK(holds_in_child([&] {
    return ::setrlimit(RLIMIT_AS, &little) == 0 && !can_create_threads(1000) && can_create_threads(1);
  }));
}

TEST_CASE("base: next to a busy program a team does its tasks, and its threads keep their cores") {
  const cpu_set_t all = cores_of(::pthread_self());
  std::atomic<bool> is_over{false};
  std::thread busy([&, core = last_core()] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    CHECK(::pthread_setaffinity_np(::pthread_self(), sizeof one, &one) == 0);
    while (!is_over) {
    }
  });
  constexpr std::size_t kTasks = 9;
  std::mutex mutex;
  std::set<pthread_t> threads;
  std::size_t done = 0;
  for (int round = 0; round < 40; ++round) {  // short tasks and such that are longer than a time slice
    const auto time = std::chrono::microseconds(round % 8 == 0 ? 5000 : 50);
    parallel_for(kTasks, 3, [&](std::size_t, int) {
      const auto end = std::chrono::steady_clock::now() + time;
      while (std::chrono::steady_clock::now() < end) {
      }
      const std::lock_guard lock(mutex);
      threads.insert(::pthread_self());
      ++done;
    });
  }
  is_over = true;
  busy.join();
  CHECK(done == 40 * kTasks);
  for (const pthread_t thread : threads) {
    const cpu_set_t cores = cores_of(thread);
    CHECK(CPU_EQUAL(&cores, &all));
  }
}

TEST_CASE("base: many leaders at once") {
  std::vector<std::thread> leaders;
  std::atomic<int> right{0};
  for (int i = 0; i < 64; ++i) {
    leaders.emplace_back([&] {
      for (int round = 0; round < 20; ++round) right += sum_by_team() == kSum ? 1 : 0;
    });
  }
  for (std::thread& leader : leaders) leader.join();
  CHECK(right == 64 * 20);
}
