#include "vit/weights/model_weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/archive_writer.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/shared_data.h"
#include "vit/io/safetensors.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/families/layout.h"

namespace vit {
using namespace internal;
namespace {

TensorEntry entry_of(std::span<const float> numbers, std::vector<std::size_t> shape,
                     std::vector<std::size_t> strides = {}) {
  return {.name = "t",
          .dtype = Dtype::f32,
          .dtype_name = "F32",
          .shape = std::move(shape),
          .strides = std::move(strides),
          .bytes = std::as_bytes(numbers),
          .file = nullptr};
}

std::vector<float> counting(std::size_t count) {
  std::vector<float> out(count);
  std::iota(out.begin(), out.end(), 0.0f);
  return out;
}

/// Every tensor of a checkpoint, one after the other.
std::vector<float> all_numbers(const LoadedTower<ModelConfig>& checkpoint) {
  std::vector<float> out;
  ModelWeights weights = checkpoint.weights;
  for_each_tensor(checkpoint.config, weights, [&](TensorId, const Shape& shape, WeightTensor& tensor) {
    const Tensor<float> numbers = tensor.load();
    CHECK(TensorView<const float>(numbers).shape() == shape);
    out.insert(out.end(), numbers.flat().begin(), numbers.flat().end());
  });
  return out;
}

}  // namespace

TEST_CASE("weights: rows of a tensor, whatever its strides") {
  const std::vector<float> numbers = counting(24);
  const auto floats = [](const TensorEntry& entry) {
    std::vector<float> out(entry.num_elements());
    convert(entry, std::span(out));
    return out;
  };
  CHECK(floats(rows_of(entry_of(numbers, {6, 4}), 2, 3)) ==
        std::vector<float>{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  CHECK(floats(rows_of(entry_of(numbers, {6, 2, 2}), 5, 1)) == std::vector<float>{20, 21, 22, 23});
  CHECK(floats(rows_of(entry_of(numbers, {4, 6}, {1, 4}), 1, 2)) ==
        std::vector<float>{1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22});
  CHECK(floats(rows_of(entry_of(numbers, {6, 4}), 6, 0)).empty());
  CHECK_THROWS_AS(rows_of(entry_of(numbers, {6, 4}), 5, 2), Error);
  CHECK_THROWS_AS(rows_of(entry_of(numbers, {6, 4}), 7, 0), Error);
  CHECK_THROWS_AS(rows_of(entry_of(numbers, {}), 0, 1), Error);
}

TEST_CASE("weights: a long tensor converts in parts as in one piece") {
  std::vector<std::uint16_t> stored(300'001);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::uint16_t>(i % 0x7C00);
  TensorEntry entry = entry_of({}, {stored.size()});
  entry.dtype = Dtype::f16;
  entry.bytes = std::as_bytes(std::span(stored));
  const Tensor<float> floats = to_float(entry);
  bool same = true;
  for (std::size_t i = 0; i < stored.size(); ++i) same = same && floats.data()[i] == f16_to_float(stored[i]);
  CHECK(same);
}

TEST_CASE("weights: a checkpoint has the same numbers whether the file is aligned or not") {
  const auto source = test::data_path("golden/models/rope-mixed-ape");
  const std::vector<float> expected = all_numbers(load_checkpoint(source));
  CHECK(!expected.empty());
  const std::string file = test::read_text(source / "model.safetensors");
  std::uint64_t num_header_bytes = 0;
  std::memcpy(&num_header_bytes, file.data(), sizeof num_header_bytes);
  const test::ScratchFolder folder("aligned");
  std::filesystem::copy_file(source / "config.json", folder.path() / "config.json");
  for (const std::size_t padding : {1, 2, 3, 4}) {
    test::write_text(folder.path() / "model.safetensors",
                     test::safetensors(file.substr(8, num_header_bytes) + std::string(padding, ' '),
                                       std::string_view(file).substr(8 + num_header_bytes)));
    CHECK(all_numbers(load_checkpoint(folder.path())) == expected);
  }
}

TEST_CASE(
    "weights: two tables make one, of columns and rows in equal shares, or of prefix tokens and patches") {
  const Row first = joined(Part::position_table, {0, 2}, "first");
  const Row second = joined(Part::position_table, {1, 2}, "second");
  CHECK(rows_of_share(first, 2, {}) == 1);
  CHECK(rows_of_share(second, 2, {}) == 1);
  CHECK(rows_of_share(first, 19, {.prefix_rows = 3}) == 3);
  CHECK(rows_of_share(second, 19, {.prefix_rows = 3}) == 16);
}

}  // namespace vit
