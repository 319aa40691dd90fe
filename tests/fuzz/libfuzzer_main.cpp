// The entry point of libFuzzer for the target that VIT_FUZZ_TARGET names.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/fuzz_targets.h"
#include "vit/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const vit::fuzz::Target& target : vit::fuzz::targets()) {
    if (target.name != VIT_FUZZ_TARGET) continue;
    try {
      target.run({reinterpret_cast<const char*>(data), size});
    } catch (const vit::Error&) {  // the one permitted way out; anything else ends the run
    }
    return 0;
  }
  std::abort();
}
