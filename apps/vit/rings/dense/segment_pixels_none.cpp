// Classes of pixels in a build without the ring fit, whose library applies them.
#include "apps/vit/ground/option_values.h"
#include "apps/vit/rings/dense/segment_pixels.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

[[noreturn]] void fail_without_fit(const char* command) {
  fail(Where{command, ErrorKind::unsupported},
       "classes of pixels are not in this build: they need -DVIT_RING_FIT=ON when it is built");
}

}  // namespace

void add_pixel_class_options(std::vector<Option>& list, PixelClassOptions& options) {
  list.push_back({.name = "--classifier",
                  .type_name = "HEAD",
                  .help = "Not in this build, which requires -DVIT_RING_FIT=ON",
                  .target = text_target(options.classifier)});
}
void check_pixel_class_options(const PixelClassOptions& options) {
  if (options.are_given()) fail_without_fit("segment");
}
int segment_pixels(DenseRunOptions& /*run*/, const PixelClassOptions& /*options*/) {
  fail_without_fit("segment");
}
int evaluate_pixels(const MapEvaluation& /*evaluation*/, const EvaluateRun& /*run*/) {
  fail_without_fit("evaluate");
}

}  // namespace vit::app
