#include "apps/vit/common/interrupt.h"

#include <signal.h>

#include <atomic>

#include "apps/vit/common/usage_error.h"

namespace vit::app {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { flag.store(true); };
  action.sa_flags =
      static_cast<int>(SA_RESETHAND | SA_RESTART);  // the second signal finds the default action
  ::sigaction(SIGINT, &action, nullptr);
}

bool interrupted() noexcept {
  return flag.load();
}

void stop_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

}  // namespace vit::app
