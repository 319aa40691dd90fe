#include "vit/base/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace vit {

int resolve_threads(int threads) {
  if (threads > 0) return threads;
#ifdef _OPENMP
  return omp_get_num_procs();
#else
  return 1;
#endif
}

namespace detail {

void run_tasks(std::size_t num_tasks, int threads, TaskFunction function, void* context) {
#ifdef _OPENMP
  const std::size_t wanted = static_cast<std::size_t>(resolve_threads(threads));
  const int used = static_cast<int>(wanted < num_tasks ? wanted : num_tasks);
  if (used > 1 && !omp_in_parallel()) {
    std::exception_ptr error;
    std::mutex error_mutex;
    std::atomic<std::size_t> next{0};
#pragma omp parallel num_threads(used)
    {
      const int thread = omp_get_thread_num();
      for (std::size_t task = next.fetch_add(1); task < num_tasks; task = next.fetch_add(1)) {
        try {
          function(context, task, thread);
        } catch (...) {
          const std::lock_guard lock(error_mutex);
          if (!error) error = std::current_exception();
        }
      }
    }
    if (error) std::rethrow_exception(error);
    return;
  }
#endif
  static_cast<void>(threads);
  for (std::size_t task = 0; task < num_tasks; ++task) function(context, task, 0);
}

}  // namespace detail
}  // namespace vit
