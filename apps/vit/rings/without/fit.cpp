#include "apps/vit/rings/without/absent.h"

namespace vit::app {
namespace {

constexpr const char* kFitRequirement = "it needs -DVIT_RING_FIT=ON when it is built";

}  // namespace

Command fit_command() {
  return absent_command("fit",
                        "Learn your own labels of images from a folder, or of pixels from strokes and masks",
                        kFitRequirement);
}

}  // namespace vit::app
