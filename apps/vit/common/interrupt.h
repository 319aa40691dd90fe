// Ctrl-C ends the process at once while nothing is computed; from then on it asks for an end after what is
// being computed, and only a second one ends the process at once.
#pragma once

namespace vit::app {

constexpr int kInterruptedExitCode = 130;  // 128 + SIGINT, as shells count

/// From now on SIGINT ends the process with kInterruptedExitCode, unless the process was started with SIGINT
/// ignored (nohup, jobs in the background of a script), and a file that reaches the limit of its
/// size is an error of the write.
void catch_interrupts();
/// From now on the first SIGINT only sets a flag: there are results to be written.
void hold_interrupts();
/// From now on SIGINT ends the process at once again.
void release_interrupts();
bool interrupted() noexcept;

}  // namespace vit::app
