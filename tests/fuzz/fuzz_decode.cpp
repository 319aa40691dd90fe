// Decodes images of every format that is read, upright and as stored.
#include "tests/fuzz/fuzz_decode.h"

#include <filesystem>

#include "tests/support/files.h"
#include "vit/base/error.h"
#include "vit/image/image.h"

namespace vit::fuzz {

void run_decode(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  constexpr std::size_t kMaxPixels = 1u << 20;  // a mutated size must not fill the memory of the test machine
  decode_bytes(bytes, {.max_pixels = kMaxPixels}, "input");
  decode_bytes(bytes, {.orientation = Orientation::apply, .alpha = Alpha::on_white, .max_pixels = kMaxPixels},
               "input");
}

std::vector<std::string> decode_seeds() {
  std::vector<std::string> seeds;
  const auto folder = std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden" / "preprocess" / "decode";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    seeds.push_back(test::read_text(entry.path()));
    try {
      run_decode(seeds.back());
    } catch (const Error& error) {  // of a library that this build does without
      if (error.kind() != ErrorKind::unsupported) throw;
      seeds.pop_back();
    }
  }
  return seeds;
}

}  // namespace vit::fuzz
