// The tile instructions of AMX in software, for processors without them: a handler of SIGILL that executes
// LDTILECFG, STTILECFG, TILERELEASE, TILEZERO, TILELOADD(T1), TILESTORED, TDPBF16PS and TDPB(SS|SU|US|UU)D as
// Intel's manual defines them, so that the machine code of the kernels runs in tests. x86-64 on Linux.
#pragma once

namespace vit::test {

/// Asks the system for tiles, which executes the instructions itself if the processor has them, and installs
/// the handler, once. Other illegal instructions end the process as before.
void emulate_amx();

/// Whether emulate_amx() can work here.
constexpr bool can_emulate_amx() {
#if defined(__x86_64__) && defined(__linux__)
  return true;
#else
  return false;
#endif
}

/// Instructions that this thread had executed for it.
unsigned long num_emulated() noexcept;
/// Whether there were more since num_emulated() was `before`, or the processor executes them.
bool runs_on_tiles(unsigned long before) noexcept;

}  // namespace vit::test
