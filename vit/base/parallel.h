// One way to use several cores; the only place that knows OpenMP.
#pragma once

#include <cstddef>
#include <type_traits>

namespace vit {

/// Number of threads that `threads` asks for: 0 means all that the machine offers, otherwise itself.
int resolve_threads(int threads);

namespace detail {
using TaskFunction = void (*)(void* context, std::size_t task, int thread);
void run_tasks(std::size_t num_tasks, int threads, TaskFunction function, void* context);
}  // namespace detail

/// Calls function(task, thread) once for every task in [0, num_tasks), on at most `threads` threads (0 = all), `thread`
/// in [0, resolve_threads(threads)). Tasks are handed out dynamically, so results must not depend on which thread
/// runs a task. Runs in the calling thread when one thread is asked for, for one task, or inside another
/// parallel_for. The first exception of a task is rethrown here after all have ended. Allocates nothing.
template <typename Function>
void parallel_for(std::size_t num_tasks, int threads, Function&& function) {
  using Plain = std::remove_reference_t<Function>;
  detail::run_tasks(
      num_tasks, threads,
      [](void* context, std::size_t task, int thread) { (*static_cast<Plain*>(context))(task, thread); },
      const_cast<void*>(static_cast<const void*>(&function)));
}

}  // namespace vit
