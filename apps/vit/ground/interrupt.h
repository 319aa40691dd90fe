// SIGINT (Ctrl-C), SIGTERM and SIGHUP end the process at once while nothing is computed; from then on they
// request an end after the current computation. A second SIGINT then ends the process at once.
#pragma once

namespace vit::app {

/// From now on these signals end the process with 128 + their number, unless the process was started with one
/// ignored (nohup, background jobs of a script), and a file that reaches the limit of its
/// size causes a write error.
void catch_interrupts();
/// From now on they only set a flag: there are results to be written.
void hold_interrupts();
/// From now on they end the process at once again.
void release_interrupts();
bool interrupted() noexcept;
/// 128 + the number of the signal that requested the end, as in shells.
int interrupted_exit_code() noexcept;

}  // namespace vit::app
