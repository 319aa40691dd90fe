// Parallel loops over tasks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "vit/base/checked.h"

namespace vit::internal {

/// Number of threads for `threads`: itself, and for 0 that of OpenMP (OMP_NUM_THREADS,
/// omp_set_num_threads, by default one for each core that the process may use). At most 1024.
int resolve_threads(int threads);

namespace detail {
using TaskFunction = void (*)(void* context, std::size_t task, int thread);
using BodyFunction = void (*)(void* context);
void run_tasks(std::size_t num_tasks, int threads, TaskFunction function, void* context);
void run_with_team(int threads, BodyFunction function, void* context);

template <typename Function>
void* address_of(Function& function) {
  return const_cast<void*>(static_cast<const void*>(&function));
}
}  // namespace detail

/// Calls function(task, thread) once for every task in [0, num_tasks), on at most `threads` threads (0 =
/// all), `thread` in [0, resolve_threads(threads)). Of n threads, thread i starts with the i-th of n runs of
/// neighboring tasks and then takes over others that are not started, so results must not depend on which
/// thread runs a task. Runs in the calling thread for one thread, for one task, inside another parallel_for
/// or a caller's OpenMP region (unless OpenMP gives it another level), or for fewer threads than the team
/// around it has. The first exception of a task is rethrown here when no task is running; where the calling
/// thread does all, later tasks are not started. Throws Error (io) before the first task if the system does
/// not provide the threads. Allocates nothing once the calling thread has used that many.
template <typename Function>
void parallel_for(std::size_t num_tasks, int threads, Function&& function) {
  using Plain = std::remove_reference_t<Function>;
  detail::run_tasks(
      num_tasks, threads,
      [](void* context, std::size_t task, int thread) { (*static_cast<Plain*>(context))(task, thread); },
      detail::address_of(function));
}

/// Calls function(first, size) for the parts [first, first + size) of [0, count), `part_size` > 0 each except
/// the last, as tasks of a parallel_for.
template <typename Function>
void parallel_for_parts(std::size_t count, std::size_t part_size, int threads, Function&& function) {
  parallel_for(ceil_div(count, part_size), threads, [&](std::size_t task, int) {
    const std::size_t first = task * part_size;
    function(first, std::min(part_size, count - first));
  });
}

/// Calls body() in the calling thread while a team of `threads` threads (0 = all) waits for the parallel_for
/// of that thread: the others of an OpenMP region, or own ones if OpenMP cannot open it. Worthwhile around
/// many short ones: a team distributes tasks in about a microsecond, and none of them waits for a thread that
/// lost its core to another program before it took a task. Inside another team or parallel_for it only calls
/// body(). Exceptions of body are propagated. Throws Error (io) before it calls body if the system does not
/// provide that many threads.
template <typename Body>
void with_team(int threads, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::run_with_team(
      threads, [](void* context) { (*static_cast<Plain*>(context))(); }, detail::address_of(body));
}

}  // namespace vit::internal
