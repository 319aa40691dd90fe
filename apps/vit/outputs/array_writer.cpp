#include "apps/vit/outputs/array_writer.h"

#include <array>
#include <map>
#include <utility>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/outputs/zip_writer.h"
#include "vit/base/check.h"
#include "vit/io/atomic_file.h"
#include "vit/io/safetensors.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr const char* kTexts = "text";

const char* npy_dtype(Dtype dtype) {
  return dtype == Dtype::u8 ? "|u1" : "<f4";
}

std::span<const std::byte> as_byte_span(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string json_list(const std::vector<std::string>& texts) {
  std::string list;
  JsonWriter(list).array(texts);
  return list;
}

std::vector<std::size_t> with_leading(std::size_t count, const Shape& shape) {
  std::vector<std::size_t> sizes{count};
  for (std::size_t i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

}  // namespace

ArrayWriter::ArrayWriter(const ResultWriterOptions& options) : options_(options) {
  check_output_place(options_.path);
  for (const std::string& name : options_.names)
    columns_.push_back({name, Spool(options_.path), Dtype::f32, {}, true});
}

std::string ArrayWriter::add(const std::string& file, std::span<const ResultArray> arrays) {
  VIT_CHECK(arrays.size() == columns_.size(), "write", arrays.size(), " arrays for ", columns_.size(),
            " names");
  const auto is_alike = [](const Column& column, const ResultArray& array) {
    return column.shapes.empty() || column.shapes.front() == array.shape;
  };
  if (options_.format == ResultFormat::npy && !is_alike(columns_.front(), arrays.front())) {
    return text(columns_.front().name, " is ", arrays.front().shape.to_string(), ", for the images before ",
                columns_.front().shapes.front().to_string(),
                ", but .npy holds one shape; use .npz or .safetensors");
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Column& column = columns_[i];
    column.dtype = arrays[i].dtype;
    column.is_uniform = column.is_uniform && is_alike(column, arrays[i]);
    column.shapes.push_back(arrays[i].shape);
    column.rows.append(arrays[i].bytes());
  }
  files_.push_back(file);
  return "";
}

std::vector<ArrayWriter::Array> ArrayWriter::arrays() {
  std::vector<Array> out;
  for (Column& column : columns_) {
    if (column.shapes.empty() && options_.row_shapes) {
      const ResultArray& row = (*options_.row_shapes)[out.size()];
      out.push_back({column.name, row.dtype, with_leading(0, row.shape), {}});
    }
    if (column.shapes.empty()) continue;
    std::span<const std::byte> bytes = column.rows.view();
    if (column.is_uniform) {
      out.push_back(
          {column.name, column.dtype, with_leading(column.shapes.size(), column.shapes.front()), bytes});
      continue;
    }
    for (std::size_t row = 0; row < column.shapes.size(); ++row) {
      const Shape& shape = column.shapes[row];
      const std::size_t row_bytes = shape.num_elements() * dtype_bytes(column.dtype);
      std::vector<std::size_t> sizes = with_leading(1, shape);
      sizes.erase(sizes.begin());
      out.push_back({text(column.name, ".", row), column.dtype, std::move(sizes), bytes.first(row_bytes)});
      bytes = bytes.subspan(row_bytes);
    }
  }
  if (has_texts())
    out.push_back(
        {kTexts, Dtype::f32, {texts_.names.size(), texts_.width}, std::as_bytes(std::span(texts_.numbers))});
  return out;
}

bool ArrayWriter::has_files() const {
  return !files_.empty() || (options_.row_shapes && !columns_.empty());
}

bool ArrayWriter::has_texts() const {
  return !texts_.names.empty() || (options_.row_shapes && texts_.width > 0);
}

void ArrayWriter::finish() {
  if (files_.empty() && texts_.names.empty() && !options_.row_shapes) return;
  const std::vector<Array> all = arrays();
  if (options_.format == ResultFormat::npy) return write_npy(all);
  if (options_.format == ResultFormat::npz) return write_npz(all);
  write_safetensors_file(all);
}

void ArrayWriter::write_npy(std::span<const Array> arrays) const {
  VIT_CHECK(arrays.size() == 1, "write", options_.path.string(), ": .npy holds one array, found ",
            arrays.size());
  AtomicFile file(options_.path, "write");
  file.write(as_byte_span(npy_header(npy_dtype(arrays[0].dtype), arrays[0].shape)));
  file.write(arrays[0].bytes);
  file.commit();
}

void ArrayWriter::write_npz(std::span<const Array> arrays) const {
  AtomicFile file(options_.path, "write");
  ZipWriter archive(file);
  for (const Array& array : arrays) {
    const std::string header = npy_header(npy_dtype(array.dtype), array.shape);
    archive.add(array.name + ".npy", std::array{as_byte_span(header), array.bytes});
  }
  const auto add_list = [&](const char* name, const std::vector<std::string>& list) {
    const std::string strings = npy_strings(list);
    archive.add(name, std::array{as_byte_span(strings)});
  };
  if (has_files()) add_list("files.npy", files_);
  if (has_texts()) add_list("names.npy", texts_.names);
  archive.finish();
  file.commit();
}

void ArrayWriter::write_safetensors_file(std::span<const Array> arrays) const {
  std::vector<TensorToWrite> tensors;
  for (const Array& array : arrays) tensors.push_back({array.name, array.dtype, array.shape, array.bytes});
  std::map<std::string, std::string> metadata;
  if (has_files()) metadata["files"] = json_list(files_);
  if (has_texts()) metadata["names"] = json_list(texts_.names);
  if (options_.facts) metadata[kRecordMember] = options_.facts->json();
  write_safetensors(options_.path, tensors, metadata);
}

std::string ArrayWriter::summary() const {
  std::string out;
  for (const Column& column : columns_) {
    if (!out.empty()) out += ", ";
    out += column.name + " ";
    if (column.shapes.empty()) {
      out += "none";
    } else if (column.is_uniform) {
      const std::vector<std::size_t> sizes = with_leading(column.shapes.size(), column.shapes.front());
      for (std::size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "(") + std::to_string(sizes[i]);
      out += ")";
    } else {
      out += text(column.shapes.size(), " arrays");
    }
  }
  if (!texts_.names.empty())
    out += text(out.empty() ? "" : ", ", kTexts, " (", texts_.names.size(), ", ", texts_.width, ")");
  return out;
}

}  // namespace vit::app
