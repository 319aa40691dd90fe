#include "vit/weights/checkpoint/loading_steps.h"

#include <algorithm>
#include <string_view>

#include "vit/io/in_quotes.h"

namespace vit::internal {
namespace {

/// An ending of names that one program gives to what it adds.
struct Mark {
  std::string_view ending, program;
};
constexpr Mark kMarks[] = {
    {".absmax", "bitsandbytes (4 bit)"},
    {".quant_map", "bitsandbytes (4 bit)"},
    {".SCB", "bitsandbytes (8 bit)"},
    {".weight_format", "bitsandbytes (8 bit)"},
    {".g_idx", "GPTQ"},
    {".qzeros", "GPTQ or AWQ"},
    {".qweight", "GPTQ or AWQ"},
    {".weight_packed", "compressed-tensors"},
    {".weight_scale", "compressed-tensors or fp8"},
    {".weight_scale_inv", "fp8"},
    {"._packed_params._packed_params", "torch.ao.quantization"},
    {".weight.qdata", "torchao"},
};

std::string program_of(const TensorFile& tensors) {
  for (const TensorEntry& entry : tensors.entries()) {
    for (const Mark& mark : kMarks) {
      if (entry.name.ends_with(mark.ending)) return std::string(mark.program);
    }
  }
  const auto is_fp8 = [](const TensorEntry& entry) {
    return entry.dtype_name.starts_with("F8_") || entry.dtype_name.starts_with("float8_");
  };
  return std::ranges::any_of(tensors.entries(), is_fp8) ? "fp8 (8-bit floating point)" : "";
}

}  // namespace

std::string describe_quantization(const TensorFile& tensors, const std::optional<Json>& config) {
  std::string program;
  if (const auto rules = config ? config->find("quantization_config") : std::nullopt;
      rules && rules->is_object())
    program = in_quotes(rules->find_string("quant_method").value_or("unnamed"));
  if (program.empty()) program = program_of(tensors);
  if (program.empty()) return "";
  return "the weights are quantized by " + program +
         ", which is not read; load the model in its library, call dequantize() and save it, or take the "
         "original weights (--dtype reduces precision here)";
}

}  // namespace vit::internal
