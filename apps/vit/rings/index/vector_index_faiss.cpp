// The index with FAISS.
#include <faiss/AutoTune.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexNSG.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/impl/FaissException.h>
#include <faiss/impl/io.h>
#include <faiss/index_factory.h>
#include <faiss/index_io.h>
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/rings/index/vector_index.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/io/atomic_file.h"
#include "vit/io/source_file.h"

namespace vit::app {

using namespace internal;

namespace {

constexpr Where kWhere{"index", ErrorKind::format};
constexpr std::size_t kBlock = 4096;  // vectors that are compared at a time

using idx_t = decltype(faiss::Index::ntotal);  // its name moved between releases

constexpr idx_t kMinGraph = 101;  // NNDescent, the first step of NSG, samples 100 vectors and needs one more

/// The message of FAISS, without its source lines and conditions.
std::string reason(const std::exception& error) {
  std::string text = error.what();
  const auto cut = [&text](std::size_t at, std::string_view end) {
    const std::size_t found = at == std::string::npos ? at : text.find(end, at);
    if (found != std::string::npos) text.erase(0, found + end.size());
  };
  cut(text.rfind(".cpp:"), ": ");
  if (text.starts_with("Error: '")) cut(0, "' failed: ");
  return printable(text);
}

/// Threads of FAISS's own loops during a block.
class FaissThreads {
 public:
  explicit FaissThreads(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(resolve_threads(threads));
  }
  ~FaissThreads() { omp_set_num_threads(before_); }
  FaissThreads(const FaissThreads&) = delete;
  FaissThreads& operator=(const FaissThreads&) = delete;

 private:
  int before_;
};

/// Passes the bytes of a file to FAISS.
class FileReader : public faiss::IOReader {
 public:
  explicit FileReader(const SourceFile& file) : file_(file) { name = file.path().string(); }

  std::size_t operator()(void* out, std::size_t item_bytes, std::size_t num_items) override {
    if (item_bytes == 0) return num_items;
    const std::size_t whole = std::min(num_items, (file_.size() - position_) / item_bytes);
    file_.read(position_, {static_cast<std::byte*>(out), whole * item_bytes});
    position_ += whole * item_bytes;
    return whole;
  }

 private:
  const SourceFile& file_;
  std::size_t position_ = 0;
};

/// Receives the bytes of a file from FAISS, often one number at a time.
class FileWriter : public faiss::IOWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path) : file_(path, kWhere) { name = path.string(); }

  std::size_t operator()(const void* items, std::size_t item_bytes, std::size_t num_items) override {
    const std::span bytes(static_cast<const std::byte*>(items), item_bytes * num_items);
    if (bytes.size() > kBuffer) {
      flush();
      file_.write(bytes);
    } else {
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
      if (buffer_.size() > kBuffer) flush();
    }
    return num_items;
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  static constexpr std::size_t kBuffer = 1u << 16;

  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

  AtomicFile file_;
  std::vector<std::byte> buffer_;
};

/// The metric of an index as a number: a damaged file may contain one without an enumerator in FAISS.
int metric_of(const faiss::Index& index) {
  static_assert(sizeof index.metric_type == sizeof(int));
  int metric = 0;
  std::memcpy(&metric, &index.metric_type, sizeof metric);
  return metric;
}

/// Throws UsageError for numbers in a factory string with which FAISS divides by zero or loops: NSG connects
/// unconnected vectors to vectors with room for a neighbor, and searches until it finds one.
void check_numbers(const std::string& type) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const char* const last = type.data() + type.size();
  for (const char* at = type.data(); (at = std::find_if(at, last, is_digit)) != last;) {
    const std::string_view before(type.data(), at);
    int number = std::numeric_limits<int>::max();  // FAISS itself reports a larger one
    at = std::from_chars(at, last, number).ptr;
    if (number == 0) fail_usage("--type: expected numbers of 1 or more, found '", printable(type), "'");
    if ((before.ends_with("HNSW") && number < 2) || (before.ends_with("NSG") && number < 16))
      fail_usage("--type: expected HNSW2 or more, NSG16 or more, found '", printable(type), "'");
  }
}

/// Throws Error if FAISS would divide by zero, or loop forever, because there are too few vectors.
void check_count(const faiss::Index& index, idx_t count) {
  if (const auto* const graph = dynamic_cast<const faiss::IndexNSG*>(&index)) {
    const idx_t needed = std::max<idx_t>(kMinGraph, graph->nsg.L + 1);
    VIT_CHECK(count >= needed, kWhere.with(ErrorKind::argument), "NSG", graph->nsg.R, " needs ", needed,
              " vectors or more, found ", count, "; HNSW, or Flat for so few, takes any number");
  } else if (const auto* const lists = dynamic_cast<const faiss::IndexIVF*>(&index)) {
    check_count(*lists->quantizer, static_cast<idx_t>(lists->nlist));
  } else if (const auto* const transformed = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
    check_count(*transformed->index, count);
  } else if (const auto* const refined = dynamic_cast<const faiss::IndexRefine*>(&index)) {
    check_count(*refined->base_index, count);
    check_count(*refined->refine_index, count);
  }
}

/// Throws UsageError for fewer candidates than results, which makes FAISS read out of bounds.
void check_candidates(const faiss::Index& index) {
  if (const auto* const transformed = dynamic_cast<const faiss::IndexPreTransform*>(&index)) {
    check_candidates(*transformed->index);
  } else if (const auto* const refined = dynamic_cast<const faiss::IndexRefine*>(&index)) {
    if (!(refined->k_factor >= 1))
      fail_usage("--parameters: k_factor_rf: expected 1 or more, found ", refined->k_factor);
  }
}

}  // namespace

struct VectorIndex::State {
  std::unique_ptr<faiss::Index> index;
};

VectorIndex::VectorIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
VectorIndex::~VectorIndex() = default;
VectorIndex::VectorIndex(VectorIndex&&) noexcept = default;
VectorIndex& VectorIndex::operator=(VectorIndex&&) noexcept = default;

bool VectorIndex::is_available() {
  return true;
}

void VectorIndex::check_type(const std::string& type, std::size_t dim) {
  check_numbers(type);
  std::unique_ptr<faiss::Index> index;
  try {
    index.reset(faiss::index_factory(static_cast<int>(dim), type.c_str(), faiss::METRIC_INNER_PRODUCT));
  } catch (const std::exception& error) {
    fail_usage("--type: FAISS has no '", printable(type), "' for vectors of ", dim,
               " numbers: ", reason(error));
  }
  if (metric_of(*index) != faiss::METRIC_INNER_PRODUCT)
    fail_usage("--type: FAISS has '", printable(type), "' only for distances, not for inner products");
}

VectorIndex VectorIndex::build(const std::string& type, TensorView<const float> vectors) {
  const auto count = static_cast<idx_t>(vectors.num_rows());
  const FaissThreads one(1);
  try {
    auto state = std::make_unique<State>();
    state->index.reset(faiss::index_factory(static_cast<int>(vectors.num_columns()), type.c_str(),
                                            faiss::METRIC_INNER_PRODUCT));
    check_count(*state->index, count);
    if (!state->index->is_trained) state->index->train(count, vectors.flat().data());
    state->index->add(count, vectors.flat().data());
    return VectorIndex(std::move(state));
  } catch (const faiss::FaissException& error) {
    fail(kWhere.with(ErrorKind::argument), "FAISS cannot build ", printable(type), " of ", count,
         " vectors: ", reason(error));
  }
}

VectorIndex VectorIndex::read(const SourceFile& file) {
  const std::filesystem::path& path = file.path();
  try {
    auto state = std::make_unique<State>();
    FileReader reader(file);
    state->index.reset(faiss::read_index(&reader));
    VIT_CHECK(metric_of(*state->index) == faiss::METRIC_INNER_PRODUCT, kWhere, path.string(),
              ": uses another metric than the inner product; it was not written by vit index");
    return VectorIndex(std::move(state));
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail(kWhere.with(ErrorKind::io), path.string(), ": not enough memory for this index");
  } catch (const std::exception& error) {
    fail(kWhere, path.string(), ": FAISS cannot read it: ", reason(error));
  }
}

void VectorIndex::write(const std::filesystem::path& path) const {
  FileWriter writer(path);
  try {
    faiss::write_index(state_->index.get(), &writer);
  } catch (const faiss::FaissException& error) {
    fail(kWhere.with(ErrorKind::unsupported), path.string(), ": FAISS cannot write it: ", reason(error));
  }
  writer.commit();
}

std::size_t VectorIndex::size() const {
  return static_cast<std::size_t>(state_->index->ntotal);
}

std::size_t VectorIndex::dim() const {
  return static_cast<std::size_t>(state_->index->d);
}

void VectorIndex::set_parameters(const std::string& parameters) {
  try {
    faiss::ParameterSpace().set_index_parameters(state_->index.get(), parameters.c_str());
  } catch (const std::exception& error) {
    fail_usage("--parameters: FAISS refuses '", printable(parameters), "' for this index: ", reason(error));
  }
  check_candidates(*state_->index);
}

std::vector<Hit> VectorIndex::search(std::span<const float> query, std::size_t top, int threads) const {
  VIT_CHECK(query.size() == dim(), kWhere.with(ErrorKind::mismatch), "the query has ", query.size(),
            " numbers, the vectors of the index ", dim());
  top = std::min(top, size());
  const FaissThreads all(threads);
  std::vector<float> scores(top);
  std::vector<idx_t> labels(top);
  std::vector<Hit> hits;
  try {
    state_->index->search(1, query.data(), static_cast<idx_t>(top), scores.data(), labels.data());
  } catch (const faiss::FaissException& error) {
    fail(kWhere, "FAISS cannot search: ", reason(error));
  }
  for (std::size_t i = 0; i < top; ++i) {
    if (labels[i] >= 0) hits.push_back({static_cast<std::size_t>(labels[i]), scores[i]});  // -1: none found
  }
  keep_best(hits, top);
  return hits;
}

Tensor<float> VectorIndex::vectors() const {
  Tensor<float> out(Shape{size(), dim()});
  try {
    state_->index->reconstruct_n(0, static_cast<idx_t>(size()), out.data());
  } catch (const faiss::FaissException& error) {
    fail(kWhere.with(ErrorKind::unsupported), "FAISS cannot return the vectors: ", reason(error));
  }
  return out;
}

double VectorIndex::largest_error(TensorView<const float> exact) const {
  std::vector<float> block(kBlock * dim());
  double largest = 0;
  try {
    for (std::size_t first = 0; first < size(); first += kBlock) {
      const std::size_t count = std::min(kBlock, size() - first);
      state_->index->reconstruct_n(static_cast<idx_t>(first), static_cast<idx_t>(count), block.data());
      for (std::size_t i = 0; i < count; ++i) {
        double square = 0;
        for (std::size_t c = 0; c < dim(); ++c)
          square += std::pow(
              static_cast<double>(exact.row(first + i)[c]) - static_cast<double>(block[i * dim() + c]), 2);
        largest = std::max(largest, square);
      }
    }
  } catch (const faiss::FaissException&) {
    return -1;
  }
  return std::sqrt(largest);
}

}  // namespace vit::app
