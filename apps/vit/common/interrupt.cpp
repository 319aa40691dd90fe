#include "apps/vit/common/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace vit::app {
namespace {

std::atomic<bool> is_held{false};
std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

}  // namespace

void catch_interrupts() {
  ::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action = {};
  if (::sigaction(SIGINT, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = [](int) {
    if (!is_held.load()) ::_exit(kInterruptedExitCode);
    flag.store(true);
  };
  action.sa_flags =
      static_cast<int>(SA_RESETHAND | SA_RESTART);  // the second signal finds the default action
  ::sigaction(SIGINT, &action, nullptr);
}

void hold_interrupts() {
  is_held.store(true);
}

void release_interrupts() {
  is_held.store(false);
}

bool interrupted() noexcept {
  return flag.load();
}

}  // namespace vit::app
