// What the indexes of FAISS are made of, as faiss/impl/index_write.cpp of 1.7.3 writes them: quantizers,
// transforms, graphs and inverted lists. Each function reads one part and throws Error for whatever FAISS
// would follow without looking. Letters: n vectors, d numbers of each.
#pragma once

#include <cstddef>
#include <string>

#include "apps/vit/commands/index/index_file_reader.h"

namespace vit::app {

/// A scalar quantizer of vectors of `dim` numbers; the bytes of a code.
std::size_t check_scalar_quantizer(IndexFileReader& in, std::size_t dim);
/// A product quantizer of vectors of `dim` numbers; the bytes of a code.
std::size_t check_product_quantizer(IndexFileReader& in, std::size_t dim);

/// How many numbers go into a transform of vectors and come out of it.
struct TransformDims {
  std::size_t in = 0, out = 0;
};
TransformDims check_transform(IndexFileReader& in);

/// The graph (HNSW) over `count` vectors.
void check_graph(IndexFileReader& in, std::size_t count);

/// Inverted lists that hold `count` vectors, each once, as codes of `code_bytes`.
void check_lists(IndexFileReader& in, std::size_t num_lists, std::size_t code_bytes, std::size_t count);

/// Throws Error (unsupported) for a type of part that is not looked through.
[[noreturn]] void refuse_type(const IndexFileReader& in, const std::string& letters);

}  // namespace vit::app
