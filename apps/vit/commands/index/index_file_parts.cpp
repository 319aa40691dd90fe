#include "apps/vit/commands/index/index_file_parts.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "apps/vit/outputs/text_format.h"
#include "vit/base/check.h"

namespace vit::app {

namespace {

constexpr std::int32_t kMaxInt32 = 0x7fffffff;
constexpr std::size_t kMaxCodeBits = 24;           // of a number of a product quantizer: 2^24 centroids
constexpr std::size_t kMaxLevels = 255;            // of a graph; HNSW2 has 30, others fewer
constexpr std::int32_t kMaxExploration = 1 << 20;  // efSearch: so many candidates get memory in each search

/// What a scalar quantizer of FAISS makes of d numbers.
struct ScalarKind {
  std::size_t bits;     // of a number
  std::size_t trained;  // floats learned: for all numbers together, or for each
  bool is_trained_for_each;
};

/// In the order of faiss::ScalarQuantizer::QuantizerType.
constexpr ScalarKind kScalarKinds[] = {
    {8, 2, true},    // QT_8bit
    {4, 2, true},    // QT_4bit
    {8, 2, false},   // QT_8bit_uniform
    {4, 2, false},   // QT_4bit_uniform
    {16, 0, false},  // QT_fp16
    {8, 0, false},   // QT_8bit_direct
    {6, 2, true},    // QT_6bit
};

constexpr std::size_t bytes_of_bits(std::size_t bits) {
  return (bits + 7) / 8;
}

/// The rows of a linear transform, whose matrix stands before its dimensions.
TransformDims check_linear(IndexFileReader& in, const std::string& type) {
  if (type == "Pcam") {
    in.number<float>("eigen power");
    in.number<float>("epsilon");
    in.flag("random rotation");
    in.number<std::int32_t>("balanced bins");
    for (const char* name : {"mean", "eigenvalues", "eigenvectors"})  // used by training alone
      in.skip(name, in.length(name, sizeof(float)), sizeof(float));
  }
  const bool has_bias = in.flag("has bias");
  const std::size_t matrix = in.length("matrix", sizeof(float));
  in.skip("matrix", matrix, sizeof(float));
  const std::size_t bias = in.length("bias", sizeof(float));
  in.skip("bias", bias, sizeof(float));
  const auto dim_in = static_cast<std::size_t>(in.number<std::int32_t>("dimension in", 1, kMaxInt32));
  const auto dim_out = static_cast<std::size_t>(in.number<std::int32_t>("dimension out", 1, kMaxInt32));
  in.expect(matrix == dim_in * dim_out, "matrix", text(matrix, " numbers"), dim_out, " x ", dim_in);
  in.expect(bias == dim_out || (bias == 0 && !has_bias), "bias", text(bias, " numbers"), dim_out);
  return {dim_in, dim_out};
}

/// Numbers at other places, some of them zero.
TransformDims check_padding(IndexFileReader& in) {
  const std::size_t length = in.length("map", sizeof(std::int32_t));
  std::int32_t lowest = 0, highest = 0;
  in.for_each<std::int32_t>("map", length, [&](std::int32_t place) {
    lowest = std::min(lowest, place);
    highest = std::max(highest, place);
  });
  const auto dim_in = in.number<std::int32_t>("dimension in", 1, kMaxInt32);
  in.expect(lowest >= -1 && highest < dim_in, "map", text(lowest, " to ", highest), "-1 to ", dim_in - 1);
  const auto dim_out = in.number<std::int32_t>("dimension out", dim_in, kMaxInt32);
  in.expect(length == static_cast<std::size_t>(dim_out), "map", text(length, " entries"), dim_out);
  return {static_cast<std::size_t>(dim_in), static_cast<std::size_t>(dim_out)};
}

/// The lengths of inverted lists, each of them or those that are not empty.
std::vector<std::uint64_t> read_list_lengths(IndexFileReader& in, std::size_t num_lists) {
  const std::string layout = in.letters("layout of the lengths");
  if (layout == "full") {
    std::vector<std::uint64_t> lengths = in.array<std::uint64_t>("lengths of the lists");
    in.expect(lengths.size() == num_lists, "lengths of the lists", lengths.size(), num_lists);
    return lengths;
  }
  in.expect(layout == "sprs", "layout of the lengths", printable(layout), "full or sprs");
  const std::vector<std::uint64_t> pairs = in.array<std::uint64_t>("lengths of lists");
  in.expect(pairs.size() % 2 == 0 && pairs.size() / 2 <= num_lists, "lengths of lists", pairs.size(),
            "pairs of a list and its length");
  std::vector<std::uint64_t> lengths(num_lists);
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    in.expect(pairs[i] < num_lists && (i == 0 || pairs[i] > pairs[i - 2]), "number of a list", pairs[i],
              "ascending numbers below ", num_lists);
    lengths[pairs[i]] = pairs[i + 1];
  }
  return lengths;
}

}  // namespace

std::size_t check_scalar_quantizer(IndexFileReader& in, std::size_t dim) {
  const auto type = in.number<std::uint32_t>("type of the scalar quantizer", 0, std::size(kScalarKinds) - 1);
  const ScalarKind& kind = kScalarKinds[type];
  in.number<std::uint32_t>("range statistic", 0, 3);
  in.number<float>("argument of the range statistic");
  in.expect_number<std::uint64_t>("dimension of the scalar quantizer", dim);
  const std::size_t code_bytes = bytes_of_bits(kind.bits * dim);
  in.expect_number<std::uint64_t>("bytes of a code", code_bytes);
  const std::size_t trained = kind.trained * (kind.is_trained_for_each ? dim : 1);
  in.expect_length("ranges", sizeof(float), trained);
  in.skip("ranges", trained, sizeof(float));
  return code_bytes;
}

std::size_t check_product_quantizer(IndexFileReader& in, std::size_t dim) {
  in.expect_number<std::uint64_t>("dimension of the product quantizer", dim);
  const auto parts = static_cast<std::size_t>(in.number<std::uint64_t>("parts of a vector", 1, dim));
  in.expect(dim % parts == 0, "parts of a vector", parts, "a divisor of ", dim);
  const auto bits = static_cast<std::size_t>(in.number<std::uint64_t>("bits of a part", 1, kMaxCodeBits));
  const std::size_t centroids = dim << bits;
  in.expect_length("centroids", sizeof(float), centroids);
  in.skip("centroids", centroids, sizeof(float));
  return bytes_of_bits(parts * bits);
}

TransformDims check_transform(IndexFileReader& in) {
  const std::string type = in.letters("type of the transform");
  in.enter("transform '" + type + "'");
  TransformDims dims;
  if (type == "LTra" || type == "rrot" || type == "Pcam") {
    dims = check_linear(in, type);
  } else if (type == "RmDT") {
    dims = check_padding(in);
  } else if (type == "VNrm") {
    in.expect_number<float>("norm", 2);
    dims.in = static_cast<std::size_t>(in.number<std::int32_t>("dimension in", 1, kMaxInt32));
    dims.out = static_cast<std::size_t>(in.number<std::int32_t>("dimension out"));
    in.expect(dims.in == dims.out, "dimension out", dims.out, dims.in);
  } else {
    refuse_type(in, type);
  }
  in.expect_number<std::uint8_t>("is trained", 1);
  return dims;
}

// The neighbors of a vector lie one behind the other, those of level 0 first:
//   neighbors[offsets[i] + first[l]] to neighbors[offsets[i] + first[l + 1]]   for each level l < levels[i]
void check_graph(IndexFileReader& in, std::size_t count) {
  in.expect(count <= static_cast<std::size_t>(kMaxInt32), "vectors", count, "no more than 2^31 - 1");
  const std::size_t num_levels = in.length("probabilities of the levels", sizeof(double));
  in.expect(num_levels >= 1 && num_levels <= kMaxLevels, "levels", num_levels, "1 to ", kMaxLevels);
  in.skip("probabilities of the levels", num_levels, sizeof(double));
  const std::vector<std::int32_t> first = in.array<std::int32_t>("neighbors of the levels");
  in.expect(first.size() == num_levels + 1, "neighbors of the levels", first.size(), num_levels + 1);
  in.expect(first[0] == 0 && std::ranges::is_sorted(first), "neighbors of the levels", first[0],
            "ascending numbers from 0 on");

  in.expect_length("levels", sizeof(std::int32_t), count);
  std::vector<std::uint8_t> levels;  // (n)
  levels.reserve(count);
  in.for_each<std::int32_t>("levels", count, [&](std::int32_t level) {
    in.expect(level >= 1 && level <= static_cast<std::int32_t>(num_levels), "level of a vector", level,
              "1 to ", num_levels);
    levels.push_back(static_cast<std::uint8_t>(level));
  });

  in.expect_length("offsets", sizeof(std::uint64_t), count + 1);
  std::uint64_t offset = 0;
  std::size_t vector = 0;
  in.for_each<std::uint64_t>("offsets", count + 1, [&](std::uint64_t found) {
    in.expect(found == offset, "offset of the neighbors of a vector", found, offset);
    if (vector < count) offset += static_cast<std::uint64_t>(first[levels[vector++]]);
  });

  in.expect_length("neighbors", sizeof(std::int32_t), offset);
  vector = 0;
  std::int32_t place = 0, level = 0;  // of the next neighbor, in the list of `vector`
  in.for_each<std::int32_t>("neighbors", offset, [&](std::int32_t neighbor) {
    while (place == first[levels[vector]]) {
      ++vector;
      place = level = 0;
    }
    while (place == first[static_cast<std::size_t>(level) + 1]) ++level;
    const bool is_one = neighbor == -1 || (neighbor >= 0 && static_cast<std::size_t>(neighbor) < count &&
                                           levels[static_cast<std::size_t>(neighbor)] > level);
    in.expect(is_one, text("neighbor of vector ", vector, " in level ", level), neighbor,
              "-1 or another vector of this level, below ", count);
    ++place;
  });

  const auto entry = in.number<std::int32_t>("entry point", 0, static_cast<std::int32_t>(count) - 1);
  in.expect_number<std::int32_t>("highest level", levels[static_cast<std::size_t>(entry)] - 1);
  in.number<std::int32_t>("efConstruction", 1, kMaxExploration);
  in.number<std::int32_t>("efSearch", 1, kMaxExploration);
  in.expect_number<std::int32_t>("upper beam", 1);
}

void check_lists(IndexFileReader& in, std::size_t num_lists, std::size_t code_bytes, std::size_t count) {
  const std::string type = in.letters("type of the inverted lists");
  if (type != "ilar") refuse_type(in, type);
  in.expect_number<std::uint64_t>("inverted lists", num_lists);
  in.expect_number<std::uint64_t>("bytes of a code", code_bytes);
  const std::vector<std::uint64_t> lengths = read_list_lengths(in, num_lists);
  std::size_t total = 0;
  for (const std::uint64_t length : lengths) {
    in.expect(length <= count - total, "length of a list", length, "no more than ", count, " in all");
    total += length;
  }
  in.expect(total == count, "vectors in the lists", total, count);
  std::vector<bool> is_listed(count);  // (n)
  for (const std::uint64_t length : lengths) {
    in.skip("codes of a list", length, code_bytes);
    in.for_each<std::int64_t>("vectors of a list", length, [&](std::int64_t id) {
      const auto index = static_cast<std::uint64_t>(id);
      in.expect(index < count && !is_listed[index], "vector of a list", id, "each number below ", count,
                " once");
      is_listed[index] = true;
    });
  }
}

void refuse_type(const IndexFileReader& in, const std::string& letters) {
  fail(
      Where("index", ErrorKind::unsupported), in.path(), ": '", printable(letters),
      "' is no type of FAISS that is looked through before FAISS reads it: Flat, SQ, PQ, HNSW of Flat or SQ, "
      "IVF, with PCA, OPQ, RR, L2norm or Pad in front, and RFlat behind; make an index of such a type in "
      "another folder, or read a file of your own with --trust-index");
}

}  // namespace vit::app
