// Replacement for builds without collections.
#include "apps/vit/rings/serve/work/image_index.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

[[noreturn]] void fail_without_index() {
  fail(Where{"serve", ErrorKind::unsupported},
       "this vit was built without collections: --index needs -DVIT_RING_INDEX=ON when it is built");
}

}  // namespace

struct ImageIndex::Parts {};

ImageIndex::ImageIndex(const std::filesystem::path& /*folder*/) {
  fail_without_index();
}
ImageIndex::~ImageIndex() = default;
const RunModel& ImageIndex::model() const noexcept {
  fail_without_index();
}
std::string ImageIndex::file(std::size_t /*number*/) const {
  fail_without_index();
}
bool ImageIndex::is_index(const std::filesystem::path& /*folder*/) {
  return false;
}
std::vector<std::vector<ImageIndex::Match>> ImageIndex::nearest(std::vector<std::vector<float>> /*vectors*/,
                                                                bool /*each*/, std::size_t /*top*/,
                                                                const std::string& /*parameters*/) const {
  fail_without_index();
}
std::vector<ImageIndex::Match> ImageIndex::nearest(std::span<const float> /*vector*/,
                                                   std::size_t /*top*/) const {
  fail_without_index();
}

}  // namespace vit::app
