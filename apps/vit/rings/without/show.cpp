#include "apps/vit/rings/without/absent.h"

namespace vit::app {
namespace {

constexpr const char* kShowRequirement = "it needs -DVIT_RING_SHOW=ON when it is built";

}  // namespace

Command show_command() {
  return absent_command(
      "show", "Draw what a model sees: PCA of patches, attention, similarity, matches, depth, segments",
      kShowRequirement);
}

}  // namespace vit::app
