// Identifies the rotary factors of a file.
#include "tests/fuzz/fuzz_rope.h"

#include <cmath>
#include <filesystem>
#include <span>

#include "tests/fuzz/in_memory_file.h"
#include "tests/support/files.h"
#include "vit/io/npz.h"
#include "vit/io/safetensors.h"
#include "vit/position/convention_tables.h"
#include "vit/position/rope.h"
#include "vit/position/rope_file.h"

namespace vit::fuzz {
using namespace internal;
using namespace position;

void run_rope_identify(std::string_view input) {
  const InMemoryFile file(input);
  const bool is_archive = input.starts_with("PK"), is_array = input.starts_with("\x93NUMPY");
  identify_rope_file(is_archive ? open_npz(file.path(), ComplexNumbers::as_pairs)
                     : is_array ? open_npy(file.path(), ComplexNumbers::as_pairs)
                                : open_safetensors(file.path()),
                     {});
}

std::vector<std::string> rope_identify_seeds() {
  const test::TemporaryFolder folder;
  std::vector<std::string> seeds;
  for (const char* name : {"dinov3", "vjepa2", "vjepa2.1", "golden-gate", "rope-1d"}) {
    const RopeConvention& convention = *find_rope_convention(name);
    const Tensor<double> angles =
        rope_angles(coordinates(convention, {convention.kind == ConventionKind::line ? 1u : 2u, 3}),
                    frequency_vectors(convention, 8));
    Tensor<double> cos(angles.shape()), sin(angles.shape());
    for (std::size_t i = 0; i < angles.num_elements(); ++i) {
      cos.data()[i] = std::cos(angles.data()[i]);
      sin.data()[i] = std::sin(angles.data()[i]);
    }
    std::vector<std::size_t> shape;
    for (std::size_t i = 0; i < angles.shape().rank(); ++i) shape.push_back(angles.dim(i));
    const TensorToWrite tensors[] = {{"cos", Dtype::f64, shape, std::as_bytes(cos.flat())},
                                     {"sin", Dtype::f64, shape, std::as_bytes(sin.flat())},
                                     {"angles", Dtype::f64, shape, std::as_bytes(angles.flat())}};
    const std::filesystem::path path = folder.path() / "seed.safetensors";
    write_safetensors(path, tensors);
    seeds.push_back(test::read_text(path));
    std::string array = "\x93NUMPY\x01" + std::string(1, '\0');
    const bool is_complex = shape.size() == 2;
    std::string header =
        std::string("{'descr': '") + (is_complex ? "<c16" : "<f8") + "', 'fortran_order': False, 'shape': (";
    for (const std::size_t size : shape) header += std::to_string(size) + ", ";
    header += "), }";
    header.resize(118, ' ');
    array += static_cast<char>(header.size());
    array += '\0' + header;
    for (std::size_t i = 0; i < angles.num_elements(); ++i) {
      const double numbers[] = {is_complex ? cos.data()[i] : angles.data()[i], sin.data()[i]};
      array.append(reinterpret_cast<const char*>(numbers), is_complex ? 16 : 8);
    }
    seeds.push_back(std::move(array));
  }
  return seeds;
}

}  // namespace vit::fuzz
