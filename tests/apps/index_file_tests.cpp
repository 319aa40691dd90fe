// Files of FAISS, whole, cut and damaged: what VectorIndex::read accepts can be searched.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "apps/vit/commands/index/vector_index.h"
#include "apps/vit/options/usage_error.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"

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
  try {
    app::VectorIndex::check_available();
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// The file of an index; its bytes are replaced.
class IndexFile {
 public:
  IndexFile(const std::string& type, TensorView<const float> vectors) {
    app::VectorIndex::build(type, vectors).write(path());
    bytes = read_text(path());
  }
  std::filesystem::path path() const { return folder_ / "vectors.faiss"; }
  /// Reads these bytes and searches; whether they were accepted.
  bool is_searched(const std::string& contents) {
    folder_.write("vectors.faiss", contents);
    try {
      const app::VectorIndex index = app::VectorIndex::read(path());
      for (const app::Hit& hit : index.search(std::vector<float>(index.dim(), 0.5f), kCount, 1))
        REQUIRE(hit.index < index.size());
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  std::string bytes;

 private:
  TemporaryFolder folder_{TemporaryFolder::Place::memory};
};

}  // namespace

TEST_CASE("apps: every type of index is read as it was written") {
  if (!has_faiss()) return;
  const Tensor<float> vectors = random_vectors(kCount);
  for (const char* type : kTypes) {
    CAPTURE(type);
    const app::VectorIndex built = app::VectorIndex::build(type, vectors.view());
    IndexFile file(type, vectors.view());
    const app::VectorIndex read = app::VectorIndex::read(file.path());
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

TEST_CASE("apps: a rotation that was learned is read as a random one is") {
  if (!has_faiss()) return;
  IndexFile file("RR2,Flat", random_vectors(kCount).view());
  std::string learned = file.bytes;
  learned.replace(learned.find("rrot"), 4, "LTra");  // as OPQ is written, which learns from 256 vectors
  CHECK(file.is_searched(learned));
}

TEST_CASE("apps: an index file that was cut or goes on is refused") {
  if (!has_faiss()) return;
  const Tensor<float> vectors = random_vectors(kCount);
  for (const char* type : kTypes) {
    CAPTURE(type);
    IndexFile file(type, vectors.view());
    for (std::size_t length = 0; length < file.bytes.size(); ++length)
      CHECK_FALSE(file.is_searched(file.bytes.substr(0, length)));
    CHECK_FALSE(file.is_searched(file.bytes + '\0'));
  }
}

TEST_CASE("apps: a damaged index file is refused or searched") {
  if (!has_faiss()) return;
  const Tensor<float> vectors = random_vectors(kCount);
  std::size_t refused = 0, searched = 0;
  for (const char* type : kTypes) {
    CAPTURE(type);
    IndexFile file(type, vectors.view());
    for (std::size_t at = 0; at + 4 <= file.bytes.size(); ++at) {
      CAPTURE(at);
      std::uint32_t word = 0;
      std::memcpy(&word, file.bytes.data() + at, sizeof word);
      const std::array<std::uint32_t, 6> hostile{0, ~0u, 0x7fffffff, 0x80000000, word + 1, word - 1};
      std::string damaged = file.bytes;
      std::memcpy(damaged.data() + at, &hostile[at % hostile.size()], sizeof word);
      (file.is_searched(damaged) ? searched : refused) += 1;
      damaged = file.bytes;
      damaged[at] = static_cast<char>(damaged[at] + (at % 2 == 0 ? 1 : -1));
      (file.is_searched(damaged) ? searched : refused) += 1;
    }
  }
  CHECK(refused > 1000);
  CHECK(searched > 1000);  // numbers of vectors, and what no search uses
}

TEST_CASE("apps: an index file says what is wrong with it") {
  if (!has_faiss()) return;
  const Tensor<float> vectors = random_vectors(kCount);
  const auto refused = [&](const char* type, const std::function<void(std::string&)>& damage, ErrorKind kind,
                           const std::vector<std::string>& names) {
    CAPTURE(type);
    IndexFile file(type, vectors.view());
    damage(file.bytes);
    write_text(file.path(), file.bytes);
    const auto error = error_of([&] { app::VectorIndex::read(file.path()); });
    CHECK(error_difference(error, kind, names) == "");
    CHECK(error_difference(error, kind, {file.path()}) == "");
  };
  constexpr ErrorKind kFormat = ErrorKind::format;
  // a header: type, d, n, two unused numbers, is_trained, metric; then what the type adds
  refused("Flat", [](std::string& bytes) { bytes[4] = 5; }, kFormat,
          {"IxFI", "vectors", "expected 40", "found 32"});
  refused("Flat", [](std::string& bytes) { bytes[33] = 1; }, kFormat, {"metric", "inner product"});
  refused("Flat", [](std::string& bytes) { bytes[41] = 2; }, kFormat, {"expected 32", "found 8589934624"});
  refused("Flat", [](std::string& bytes) { bytes += "more"; }, kFormat, {"4 bytes more"});
  refused("HNSW4", [](std::string& bytes) { bytes[bytes.find("IxFI") - 20] = 99; }, kFormat,
          {"IHNf", "entry point", "99"});
  refused("IVF2,Flat", [](std::string& bytes) { bytes[bytes.find("full") + 12] = 99; }, kFormat,
          {"IwFl", "length of a list"});
  refused("LSQ2x2", [](std::string&) {}, ErrorKind::unsupported, {"IxLS", "--trust-index"});
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

TEST_CASE("apps: an index of any type is read if it is trusted") {
  if (!has_faiss()) return;
  const Tensor<float> vectors = random_vectors(200);
  IndexFile file("NSG16", vectors.view());
  CHECK_FALSE(file.is_searched(file.bytes));
  const app::VectorIndex index = app::VectorIndex::read(file.path(), app::IndexTrust::trusted);
  CHECK(index.size() == 200);
}

TEST_CASE("apps: what ends FAISS is no type of an index") {
  if (!has_faiss()) return;
  for (const char* type : {"PQ0", "PQ2x0", "OPQ0,PQ2x4", "IVF0,Flat", "HNSW0", "HNSW1", "HNSW1,SQ8", "NSG0",
                           "NSG15", "PCA2,NSG4", "IVF90_NSG4,Flat"}) {
    CAPTURE(type);
    CHECK_THROWS_AS(app::VectorIndex::check_type(type, kDim), app::UsageError);
  }
  CHECK_THROWS_AS(app::VectorIndex::check_type("HNSW4,PQ2", kDim), app::UsageError);  // distances alone
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

TEST_CASE("apps: an index that refines is not asked for fewer candidates than results") {
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
