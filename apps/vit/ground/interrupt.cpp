#include "apps/vit/ground/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace vit::app {
namespace {

std::atomic<bool> is_held{false};
std::atomic<int> received{0};  // the number of the signal
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

int exit_code_of(int signal) noexcept {
  return 128 + signal;
}

void catch_signal(int number, int flags) {
  struct sigaction action = {};
  if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = [](int signal) {
    if (!is_held.load()) ::_exit(exit_code_of(signal));
    received.store(signal);
  };
  action.sa_flags = SA_RESTART | flags;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

void catch_interrupts() {
  ::signal(SIGXFSZ, SIG_IGN);
  catch_signal(SIGINT, static_cast<int>(SA_RESETHAND));  // the second one has the default action
  // Service managers send these to a process and to its group: a second one must not end the process.
  catch_signal(SIGTERM, 0);
  catch_signal(SIGHUP, 0);
}

void hold_interrupts() {
  is_held.store(true);
}

void release_interrupts() {
  is_held.store(false);
}

bool interrupted() noexcept {
  return received.load() != 0;
}

int interrupted_exit_code() noexcept {
  return exit_code_of(received.load());
}

}  // namespace vit::app
