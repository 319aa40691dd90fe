// Replacement for builds without FAISS.
#include "apps/vit/rings/index/vector_index.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

[[noreturn]] void fail_without_faiss() {
  fail(Where{"index", ErrorKind::unsupported},
       "this build of vit has no FAISS: install libfaiss-dev and configure with -DVIT_FAISS=ON; types Flat "
       "and SQfp16 need none");
}

}  // namespace

struct VectorIndex::State {};

VectorIndex::VectorIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
VectorIndex::~VectorIndex() = default;
VectorIndex::VectorIndex(VectorIndex&&) noexcept = default;
VectorIndex& VectorIndex::operator=(VectorIndex&&) noexcept = default;

bool VectorIndex::is_available() {
  return false;
}
void VectorIndex::check_type(const std::string&, std::size_t) {
  fail_without_faiss();
}
VectorIndex VectorIndex::build(const std::string&, TensorView<const float>) {
  fail_without_faiss();
}
VectorIndex VectorIndex::read(const internal::SourceFile&) {
  fail_without_faiss();
}
void VectorIndex::write(const std::filesystem::path&) const {
  fail_without_faiss();
}
std::size_t VectorIndex::size() const {
  fail_without_faiss();
}
std::size_t VectorIndex::dim() const {
  fail_without_faiss();
}
void VectorIndex::set_parameters(const std::string&) {
  fail_without_faiss();
}
std::vector<Hit> VectorIndex::search(std::span<const float>, std::size_t, int) const {
  fail_without_faiss();
}
Tensor<float> VectorIndex::vectors() const {
  fail_without_faiss();
}
double VectorIndex::largest_error(TensorView<const float>) const {
  fail_without_faiss();
}

}  // namespace vit::app
