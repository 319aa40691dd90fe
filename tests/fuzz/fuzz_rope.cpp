// Identifies the rotary factors of a file.
#include "tests/fuzz/fuzz_rope.h"

#include <cmath>
#include <filesystem>
#include <span>

#include "tests/fuzz/in_memory_file.h"
#include "tests/support/files.h"
#include "vit/io/safetensors.h"
#include "vit/position/conventions.h"
#include "vit/position/rope.h"
#include "vit/position/rope_file.h"

namespace vit::fuzz {
using namespace internal;
using namespace position;

void run_rope_identify(std::string_view input) {
  identify_rope_file(open_safetensors(InMemoryFile(input).path()), {});
}

std::vector<std::string> rope_identify_seeds() {
  const test::TemporaryFolder folder;
  std::vector<std::string> seeds;
  for (const char* name : {"dinov3", "vjepa2"}) {
    const RopeConvention& convention = *find_rope_convention(name);
    const Tensor<double> angles =
        rope_angles(coordinates(convention, {2, 3}), frequency_vectors(convention, 8));
    Tensor<double> cos(angles.shape()), sin(angles.shape());
    for (std::size_t i = 0; i < angles.num_elements(); ++i) {
      cos.data()[i] = std::cos(angles.data()[i]);
      sin.data()[i] = std::sin(angles.data()[i]);
    }
    const std::vector<std::size_t> shape{angles.dim(0), angles.dim(1)};
    const TensorToWrite tensors[] = {{"cos", Dtype::f64, shape, std::as_bytes(cos.flat())},
                                     {"sin", Dtype::f64, shape, std::as_bytes(sin.flat())},
                                     {"angles", Dtype::f64, shape, std::as_bytes(angles.flat())}};
    const std::filesystem::path path = folder.path() / "seed.safetensors";
    write_safetensors(path, tensors);
    seeds.push_back(test::read_text(path));
  }
  return seeds;
}

}  // namespace vit::fuzz
