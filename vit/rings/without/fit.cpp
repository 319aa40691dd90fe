// Replacement for builds without fitting: the C interface has the same functions in each build.
#include "vit/c/guard.h"

using namespace vit;
using namespace vit::internal;

namespace {

vit_status refuse_pixels() noexcept {
  return guarded([] {
    fail(kCall.with(ErrorKind::unsupported),
         "this library was built without classes of pixels: they need -DVIT_RING_FIT=ON when it is built");
  });
}

}  // namespace

vit_status vit_pixels_fit(const vit_model* /*model*/, const vit_input* /*images*/,
                          const vit_array* /*labels*/, size_t /*num_images*/, const char* const* /*names*/,
                          size_t /*num_names*/, const vit_pixel_options* /*options*/,
                          vit_pixels** /*pixels*/) {
  return refuse_pixels();
}
vit_status vit_pixels_load(const vit_model* /*model*/, const char* /*path*/, int32_t /*threads*/,
                           vit_pixels** /*pixels*/) {
  return refuse_pixels();
}
vit_status vit_pixels_load_upsampled(const vit_model* /*model*/, const char* /*path*/,
                                     const char* /*upsampler*/, int32_t /*threads*/,
                                     vit_pixels** /*pixels*/) {
  return refuse_pixels();
}
vit_status vit_pixels_save(const vit_pixels* /*pixels*/, const char* /*path*/) {
  return refuse_pixels();
}
void vit_pixels_free(vit_pixels* /*pixels*/) {}
size_t vit_pixels_size(const vit_pixels* /*pixels*/) {
  return 0;
}
vit_status vit_pixels_label(const vit_pixels* /*pixels*/, size_t /*index*/, const char** /*label*/) {
  return refuse_pixels();
}
vit_status vit_pixels_iou(const vit_pixels* /*pixels*/, double* /*iou*/, int32_t* /*held_out*/) {
  return refuse_pixels();
}
vit_status vit_pixels_run(vit_pixels* /*pixels*/, const vit_input* /*inputs*/, size_t /*num_inputs*/,
                          int32_t /*probabilities*/, vit_results* /*results*/) {
  return refuse_pixels();
}
