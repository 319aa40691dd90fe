// The tensors of a file as float32, vit/safetensors.h.
#include "vit/io/safetensors.h"
#include "vit/safetensors.h"

namespace vit {

std::map<std::string, Tensor<float>> read_safetensors(const std::filesystem::path& file) {
  const internal::TensorFile tensors = internal::open_safetensors(file);
  std::map<std::string, Tensor<float>> out;
  for (const internal::TensorEntry& entry : tensors.entries())
    out.emplace(entry.name, internal::to_float(entry));
  return out;
}

}  // namespace vit
