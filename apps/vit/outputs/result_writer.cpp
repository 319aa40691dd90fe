#include "apps/vit/outputs/result_writer.h"

#include <algorithm>
#include <cctype>

#include "apps/vit/ground/usage_error.h"
#include "apps/vit/outputs/array_writer.h"
#include "apps/vit/outputs/jsonl_writer.h"
#include "vit/base/ascii.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr const char* extension(ResultFormat format) {
  switch (format) {
    case ResultFormat::npy: return ".npy";
    case ResultFormat::npz: return ".npz";
    case ResultFormat::safetensors: return ".safetensors";
    case ResultFormat::jsonl: return ".jsonl";
    case ResultFormat::png: return ".png";
  }
  return "";
}

}  // namespace

ResultFormat result_format(const std::filesystem::path& path, std::span<const ResultFormat> allowed) {
  const std::string found = internal::lower_ascii(path.extension().string());
  std::string list;
  for (const ResultFormat format : allowed) {
    if (found == extension(format)) return format;
    list += (list.empty() ? "" : ", ") + std::string(extension(format));
  }
  fail_usage("--output must end in one of ", list, ", found '", path.string(), "'");
}

ResultArray ResultArray::of(TensorView<const float> view) {
  VIT_CHECK(view.is_contiguous(), "write", "the rows of ", view.shape().to_string(), " are not contiguous");
  return {.dtype = internal::Dtype::f32, .shape = view.shape(), .data = view.data()};
}

std::span<const std::byte> ResultArray::bytes() const {
  return {static_cast<const std::byte*>(data), shape.num_elements() * dtype_bytes(dtype)};
}

std::unique_ptr<ResultWriter> make_result_writer(const ResultWriterOptions& options) {
  VIT_CHECK(options.format != ResultFormat::png, "write", "an image is not a file of arrays");
  if (options.format == ResultFormat::jsonl) return std::make_unique<JsonlWriter>(options);
  return std::make_unique<ArrayWriter>(options);
}

}  // namespace vit::app
