// Ctrl-C asks a run to end after what is being computed; a second one ends the process at once.
#pragma once

namespace vit::app {

constexpr int kInterruptedExitCode = 130;  // 128 + SIGINT, as shells count

/// From now on SIGINT only sets a flag, once.
void catch_interrupts();
bool interrupted() noexcept;
/// Throws Interrupted where SIGINT has come: for places where nothing is computed yet.
void stop_if_interrupted();

}  // namespace vit::app
