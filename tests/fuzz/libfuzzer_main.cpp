// The entry points of libFuzzer. The program has a name for each target, "fuzz_json", and runs the one by
// whose name it was called; mutations keep the structure of inputs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/files.h"
#include "vit/base/error.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

const vit::fuzz::Target* g_target = nullptr;  // chosen before the first run

std::string mutated(const std::string& bytes, std::size_t room) {
  std::string out = bytes;
  out.resize(std::max(bytes.size() + room, std::size_t{1}));
  out.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(out.data()), bytes.size(), out.size()));
  return out;
}

/// Changes one to four parts: what one holds mostly, else whether it is there, how often and where.
void change_parts(std::vector<std::string>& parts, std::size_t room, std::minstd_rand& random) {
  for (unsigned changes = 1 + random() % 4; changes > 0 && !parts.empty(); --changes) {
    const auto at = parts.begin() + static_cast<std::ptrdiff_t>(random() % parts.size());
    switch (random() % 10) {
      case 0: parts.erase(at); break;
      case 1: parts.insert(at, std::string(parts[random() % parts.size()])); break;
      case 2: std::swap(*at, parts[random() % parts.size()]); break;
      default: *at = mutated(*at, std::min<std::size_t>(room, 256));
    }
  }
}

}  // namespace

/// "fuzz_json --write-seeds FOLDER" writes what a corpus begins with.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const std::string path = (*arguments)[0];
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const vit::fuzz::Target& candidate : vit::fuzz::targets())
    if (name == "fuzz_" + std::string(candidate.name)) g_target = &candidate;
  if (g_target != nullptr && *count == 3 && (*arguments)[1] == std::string_view("--write-seeds")) {
    const auto seeds = g_target->seeds();
    for (std::size_t i = 0; i < seeds.size(); ++i)
      vit::test::write_text((*arguments)[2] + ("/seed_" + std::to_string(i)), seeds[i]);
    std::exit(0);
  }
  if (g_target != nullptr) return 0;
  std::fprintf(stderr, "%s: there is no target of this name; the links next to vit_fuzzer are\n",
               name.c_str());
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    g_target->run({reinterpret_cast<const char*>(data), size});
  } catch (const vit::Error& error) {  // the one permitted way out; anything else ends the run
    if (!vit::fuzz::is_fit_for_a_line(error.what())) {
      std::fprintf(stderr, "a message of several lines, or a long one: %.2000s\n", error.what());
      std::abort();
    }
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::minstd_rand random(seed);
  const vit::fuzz::Structure& structure = g_target->structure;
  if (!structure || random() % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<std::string> parts = structure.split({reinterpret_cast<const char*>(data), size});
  change_parts(parts, max_size - std::min(size, max_size), random);
  const std::string file = structure.join(parts);
  if (file.empty() || file.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, file.data(), file.size());
  return file.size();
}
