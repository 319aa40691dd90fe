// Results as arrays: .npy, .npz, .safetensors.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/output_file.h"
#include "apps/vit/outputs/result_writer.h"

namespace vit::app {

/// Collects each array in a scratch file and combines them in the final file at the end. If all rows of a
/// name have the same shape they become one array (n, ...); otherwise one array per row, NAME.0, NAME.1, ...
class ArrayWriter : public ResultWriter {
 public:
  explicit ArrayWriter(const ResultWriterOptions& options);

  bool take_done(const std::string&) override { return false; }  // arrays cannot be continued
  std::string add(const std::string& file, std::span<const ResultArray> arrays) override;
  void add_texts(NamedVectors texts) override { texts_ = std::move(texts); }
  void finish() override;
  std::string summary() const override;

 private:
  struct Column {
    std::string name;
    Spool rows;
    internal::Dtype dtype = internal::Dtype::f32;
    std::vector<Shape> shapes;  // one for each row
    bool is_uniform = true;
  };
  /// One array of the final file.
  struct Array {
    std::string name;
    internal::Dtype dtype = internal::Dtype::f32;
    std::vector<std::size_t> shape;
    std::span<const std::byte> bytes;
  };
  std::vector<Array> arrays();
  /// Whether the file has rows of images or texts, or would have if any had been added.
  bool has_files() const;
  bool has_texts() const;
  void write_npy(std::span<const Array> arrays) const;
  void write_npz(std::span<const Array> arrays) const;
  void write_safetensors_file(std::span<const Array> arrays) const;

  ResultWriterOptions options_;
  std::vector<Column> columns_;
  std::vector<std::string> files_;
  NamedVectors texts_;
};

}  // namespace vit::app
