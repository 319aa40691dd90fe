// Types of index that FAISS makes, and those that would end it.
#include <doctest/doctest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "apps/vit/ground/usage_error.h"
#include "apps/vit/rings/index/vector_index.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "vit/io/source_file.h"

TEST_SUITE_BEGIN("index");

using namespace vit;
using namespace vit::test;

namespace {

constexpr std::size_t kCount = 8, kDim = 4;

/// One of each index, quantizer and transform, as small as FAISS makes them.
constexpr const char* kTypes[] = {
    "Flat",      "SQfp16",      "SQ8",       "SQ6",        "SQ4",       "PQ2x2",           "HNSW4",
    "HNSW4,SQ8", "IVF2,Flat",   "IVF2,SQ8",  "IVF2,PQ2x2", "IVF8,Flat", "IVF2_HNSW4,Flat", "PCA2,Flat",
    "RR2,Flat",  "L2norm,Flat", "Pad6,Flat", "Flat,RFlat", "SQ8,RFlat"};

Tensor<float> random_vectors(std::size_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Tensor<float> vectors(Shape{count, kDim});
  for (float& number : vectors.flat()) number = normal(random);
  return vectors;
}

bool has_faiss() {
  return app::VectorIndex::is_available();
}

}  // namespace

TEST_CASE("apps: every type of index is read as it was written") {
  if (!has_faiss()) return;
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  const Tensor<float> vectors = random_vectors(kCount);
  for (const char* type : kTypes) {
    CAPTURE(type);
    const app::VectorIndex built = app::VectorIndex::build(type, vectors.view());
    built.write(folder / "vectors.faiss");
    const app::VectorIndex read =
        app::VectorIndex::read(internal::SourceFile(folder / "vectors.faiss", "test"));
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::span<const float> query(vectors.view().row(i), kDim);
      const std::vector<app::Hit> expected = built.search(query, 3, 1), found = read.search(query, 3, 1);
      REQUIRE(found.size() == expected.size());
      for (std::size_t k = 0; k < found.size(); ++k) {
        CHECK(found[k].index == expected[k].index);
        CHECK(found[k].score == expected[k].score);
      }
    }
  }
}

TEST_CASE("apps: an index that cannot be written says why and leaves nothing") {
  if (!has_faiss()) return;
  const TemporaryFolder folder;
  const app::VectorIndex index = app::VectorIndex::build("SQ8", random_vectors(kCount).view());
  CHECK_ERROR(ErrorKind::io, ("gone/vectors.faiss", "No such file"),
              index.write(folder / "gone/vectors.faiss"));
  folder.write("vectors.faiss/in_the_way", "");
  CHECK_ERROR(ErrorKind::io, ("vectors.faiss", "renamed"), index.write(folder / "vectors.faiss"));
  CHECK(folder.names() == std::vector<std::string>{"vectors.faiss"});
}

TEST_CASE("apps: what ends FAISS is no type of an index") {
  if (!has_faiss()) return;
  for (const char* type : {"PQ0", "PQ2x0", "OPQ0,PQ2x4", "IVF0,Flat", "HNSW0", "HNSW1", "HNSW1,SQ8", "NSG0",
                           "NSG15", "PCA2,NSG4", "IVF90_NSG4,Flat"}) {
    CAPTURE(type);
    CHECK_THROWS_AS(app::VectorIndex::check_type(type, kDim), app::UsageError);
  }
  CHECK_THROWS_AS(app::VectorIndex::check_type("HNSW4,PQ2", kDim), app::UsageError);  // only distances
  for (const char* type :
       {"HNSW10", "PCA2,Flat", "HNSW16", "NSG16", "NSG", "NSG100,SQ8", "IVF100,PQ2x8", "SQfp16"})
    CHECK_NOTHROW(app::VectorIndex::check_type(type, kDim));
  const Tensor<float> vectors = random_vectors(100);
  for (const char* type : {"NSG16", "PCA2,NSG16", "NSG16,SQ8", "SQ8,Refine(NSG16)", "IVF90_NSG16,Flat"}) {
    CAPTURE(type);
    CHECK_ERROR(ErrorKind::argument, ("NSG16", "101"), app::VectorIndex::build(type, vectors.view()));
  }
  CHECK_THROWS_AS(app::VectorIndex::build("IVF200,Flat", vectors.view()), Error);
  CHECK_THROWS_AS(app::VectorIndex::build("PQ2x8", vectors.view()), Error);
}

TEST_CASE("apps: an index that refines searches at least as many candidates as results") {
  if (!has_faiss()) return;
  const Tensor<float> vectors = random_vectors(kCount);
  for (const char* type : {"Flat,RFlat", "PCA2,SQ8,RFlat"}) {
    CAPTURE(type);
    app::VectorIndex index = app::VectorIndex::build(type, vectors.view());
    CHECK_THROWS_AS(index.set_parameters("k_factor_rf=0.5"), app::UsageError);
    index.set_parameters("k_factor_rf=2");
    CHECK(index.search(std::vector<float>(kDim, 0.5f), 3, 1).size() == 3);
  }
}
