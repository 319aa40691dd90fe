#include "apps/vit/commands/show/number_file.h"

#include <array>
#include <utility>

#include "apps/vit/inputs/npy.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/outputs/output_file.h"
#include "apps/vit/outputs/zip_writer.h"
#include "vit/io/atomic_file.h"

namespace vit::app {

NumberFile::NumberFile(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.empty()) return;
  if (path_.extension() != ".npz")
    fail_usage("--data: expected a file that ends in .npz, found ", path_.string());
  check_output_place(path_);
}

void NumberFile::add(std::string name, std::vector<std::size_t> shape, std::span<const float> numbers) {
  add_bytes(std::move(name), "<f4", std::move(shape), std::as_bytes(numbers));
}

void NumberFile::add(std::string name, std::vector<std::size_t> shape,
                     std::span<const std::uint8_t> numbers) {
  add_bytes(std::move(name), "|u1", std::move(shape), std::as_bytes(numbers));
}

void NumberFile::add_bytes(std::string name, std::string descr, std::vector<std::size_t> shape,
                           std::span<const std::byte> bytes) {
  if (path_.empty()) return;
  arrays_.push_back({std::move(name), std::move(descr), std::move(shape), {bytes.begin(), bytes.end()}});
}

void NumberFile::write(std::span<const std::string> files) const {
  if (path_.empty()) return;
  internal::AtomicFile file(path_, "write");
  ZipWriter archive(file);
  const auto add_member = [&](const std::string& name, const std::string& header,
                              std::span<const std::byte> bytes) {
    archive.add(name + ".npy", std::array{std::as_bytes(std::span(header)), bytes});
  };
  for (const Array& array : arrays_)
    add_member(array.name, npy_header(array.descr, array.shape), array.bytes);
  add_member("files", npy_strings(files), {});
  archive.finish();
  file.commit();
}

}  // namespace vit::app
