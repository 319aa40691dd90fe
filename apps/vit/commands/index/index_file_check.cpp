#include "apps/vit/commands/index/index_file_check.h"

#include <cstdint>
#include <string>

#include "apps/vit/commands/index/index_file_parts.h"
#include "apps/vit/commands/index/index_file_reader.h"
#include "vit/base/checked.h"

namespace vit::app {

namespace {

constexpr int kMaxDepth = 8;            // of indexes in indexes; the factory strings in use have 4
constexpr float kMaxRefined = 64;       // times as many candidates as results: memory in each search
constexpr std::int32_t kMaxChain = 16;  // transforms of one index

enum class IndexPart { flat, scalar, product, graph, lists, transformed, refined };

/// What an index is, as far as the one around it depends on that.
struct PartFacts {
  IndexPart part = IndexPart::flat;
  std::size_t dim = 0;    // d
  std::size_t count = 0;  // n

  bool has_codes() const {
    return part == IndexPart::flat || part == IndexPart::scalar || part == IndexPart::product;
  }
};

PartFacts check_index(IndexFileReader& in, int depth);

/// What every index begins with.
PartFacts check_index_header(IndexFileReader& in, IndexPart part) {
  PartFacts facts{.part = part};
  facts.dim = static_cast<std::size_t>(in.number<std::int32_t>("dimension", 1, 0x7fffffff));
  // a vector takes a byte at least
  const auto count = in.number<std::int64_t>("vectors", 1, static_cast<std::int64_t>(in.file_size()));
  facts.count = static_cast<std::size_t>(count);
  in.skip("unused numbers", 2, sizeof(std::int64_t));
  in.expect_number<std::uint8_t>("is trained", 1);
  const auto metric = in.number<std::int32_t>("metric");
  in.expect(metric == 0, "metric", metric, "0, the inner product, which vit index writes");
  return facts;
}

/// An index inside of another.
PartFacts check_inner(IndexFileReader& in, int depth, std::size_t dim, std::size_t count) {
  const std::string outer = in.part();
  const PartFacts facts = check_index(in, depth + 1);
  in.enter(outer);
  in.expect(facts.dim == dim, "dimension of the index inside", facts.dim, dim);
  in.expect(facts.count == count, "vectors of the index inside", facts.count, count);
  return facts;
}

PartFacts check_flat(IndexFileReader& in) {
  const PartFacts facts = check_index_header(in, IndexPart::flat);
  const std::size_t numbers = checked_mul(facts.count, facts.dim, "index");
  in.expect_length("vectors", sizeof(float), numbers);
  in.skip("vectors", numbers, sizeof(float));
  return facts;
}

void check_codes(IndexFileReader& in, std::size_t count, std::size_t code_bytes) {
  const std::size_t bytes = checked_mul(count, code_bytes, "index");
  in.expect_length("codes", 1, bytes);
  in.skip("codes", bytes, 1);
}

PartFacts check_scalar(IndexFileReader& in) {
  const PartFacts facts = check_index_header(in, IndexPart::scalar);
  check_codes(in, facts.count, check_scalar_quantizer(in, facts.dim));
  return facts;
}

PartFacts check_product(IndexFileReader& in) {
  const PartFacts facts = check_index_header(in, IndexPart::product);
  check_codes(in, facts.count, check_product_quantizer(in, facts.dim));
  in.expect_number<std::int32_t>("kind of search", 0);  // the others compare codes, by other metrics
  in.flag("encodes signs");
  in.number<std::int32_t>("Hamming threshold");
  return facts;
}

PartFacts check_hnsw(IndexFileReader& in, IndexPart storage, int depth) {
  const PartFacts facts = check_index_header(in, IndexPart::graph);
  check_graph(in, facts.count);
  const PartFacts inner = check_inner(in, depth, facts.dim, facts.count);
  in.expect(inner.part == storage, "index inside", "another type",
            storage == IndexPart::flat ? "a flat one" : "one of a scalar quantizer");
  return facts;
}

PartFacts check_ivf(IndexFileReader& in, IndexPart codes, int depth) {
  const PartFacts facts = check_index_header(in, IndexPart::lists);
  const auto num_lists =
      static_cast<std::size_t>(in.number<std::uint64_t>("inverted lists", 1, in.file_size()));
  in.number<std::uint64_t>("nprobe", 1, 0x7fffffff);
  const PartFacts coarse = check_inner(in, depth, facts.dim, num_lists);
  in.expect(coarse.has_codes() || coarse.part == IndexPart::graph, "index of the lists", "another type",
            "Flat, SQ, PQ or HNSW");  // which give their vectors back
  in.expect_number<std::int8_t>("direct map", 0);
  in.expect_length("direct map", sizeof(std::int64_t), 0);
  std::size_t code_bytes = facts.dim * sizeof(float);
  if (codes == IndexPart::scalar) {
    code_bytes = check_scalar_quantizer(in, facts.dim);
    in.expect_number<std::uint64_t>("bytes of a code", code_bytes);
    in.flag("encodes residuals");
  } else if (codes == IndexPart::product) {
    in.flag("encodes residuals");
    const auto announced = in.number<std::uint64_t>("bytes of a code");
    code_bytes = check_product_quantizer(in, facts.dim);
    in.expect(announced == code_bytes, "bytes of a code", announced, code_bytes);
  }
  check_lists(in, num_lists, code_bytes, facts.count);
  return facts;
}

PartFacts check_transformed(IndexFileReader& in, int depth) {
  const PartFacts facts = check_index_header(in, IndexPart::transformed);
  const std::string name = in.part();
  const auto num_transforms = in.number<std::int32_t>("transforms", 1, kMaxChain);
  std::size_t dim = facts.dim;
  for (std::int32_t i = 0; i < num_transforms; ++i) {
    const TransformDims dims = check_transform(in);
    in.expect(dims.in == dim, "dimension in", dims.in, dim);
    dim = dims.out;
    in.enter(name);
  }
  check_inner(in, depth, dim, facts.count);
  return facts;
}

PartFacts check_refined(IndexFileReader& in, int depth) {
  const PartFacts facts = check_index_header(in, IndexPart::refined);
  check_inner(in, depth, facts.dim, facts.count);
  const PartFacts exact = check_inner(in, depth, facts.dim, facts.count);
  in.expect(exact.has_codes(), "index that refines", "another type", "Flat, SQ or PQ");
  in.number<float>("candidates for each result", 1, kMaxRefined);
  return facts;
}

PartFacts check_index(IndexFileReader& in, int depth) {
  const std::string type = in.letters("type of the index");
  in.enter("index '" + type + "'");
  in.expect(depth < kMaxDepth, "indexes in indexes", depth + 1, "no more than ", kMaxDepth);
  if (type == "IxFI") return check_flat(in);
  if (type == "IxSQ") return check_scalar(in);
  if (type == "IxPq") return check_product(in);
  if (type == "IHNf") return check_hnsw(in, IndexPart::flat, depth);
  if (type == "IHNs") return check_hnsw(in, IndexPart::scalar, depth);
  if (type == "IwFl") return check_ivf(in, IndexPart::flat, depth);
  if (type == "IwSq") return check_ivf(in, IndexPart::scalar, depth);
  if (type == "IwPQ") return check_ivf(in, IndexPart::product, depth);
  if (type == "IxPT") return check_transformed(in, depth);
  if (type == "IxRF") return check_refined(in, depth);
  refuse_type(in, type);
}

}  // namespace

void check_index_file(const internal::SourceFile& file) {
  IndexFileReader in(file);
  in.enter("head");
  check_index(in, 0);
  in.expect(in.bytes_left() == 0, "end of the index", text(in.bytes_left(), " bytes more"),
            "the end of the file");
}

}  // namespace vit::app
