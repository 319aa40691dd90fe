// Replacement for builds without dense heads: models have none, and the C interface has the same functions in
// each build.
#include "vit/c/guard.h"
#include "vit/config.h"
#include "vit/towers/map_head.h"

using namespace vit;
using namespace vit::internal;

std::unique_ptr<const MapHead> vit::internal::build_map_head(const DenseConfig& /*config*/,
                                                             const DenseWeights& /*weights*/,
                                                             const ModelConfig& /*backbone*/,
                                                             const kernels::KernelTable& /*kernels*/,
                                                             Precision /*precision*/) {
  return nullptr;
}

namespace {

vit_status refuse_dense() noexcept {
  return guarded([] {
    fail(kCall.with(ErrorKind::unsupported),
         "this library was built without dense heads: they need -DVIT_RING_DENSE=ON when it is built");
  });
}

}  // namespace

vit_status vit_model_depth_unit(const vit_model* /*model*/, int32_t* /*unit*/) {
  return refuse_dense();
}
size_t vit_model_num_head_labels(const vit_model* /*model*/) {
  return 0;
}
vit_status vit_model_head_label(const vit_model* /*model*/, size_t /*index*/, const char** /*label*/) {
  return refuse_dense();
}
vit_status vit_session_depth(vit_session* /*session*/, const vit_input* /*inputs*/, size_t /*num_inputs*/,
                             vit_results* /*results*/) {
  return refuse_dense();
}
vit_status vit_session_segment(vit_session* /*session*/, const vit_input* /*inputs*/, size_t /*num_inputs*/,
                               const vit_segment_options* /*options*/, vit_results* /*results*/) {
  return refuse_dense();
}
vit_status vit_session_pose(vit_session* /*session*/, const vit_input* /*inputs*/, size_t /*num_inputs*/,
                            const vit_box* /*boxes*/, const size_t* /*counts*/, vit_results* /*results*/) {
  return refuse_dense();
}
vit_status vit_detector_create(const vit_model* /*model*/, vit_detector** /*detector*/) {
  return refuse_dense();
}
vit_status vit_detector_create_zero_shot(const vit_model* /*model*/, vit_text_encoder* /*encoder*/,
                                         const char* const* /*names*/, size_t /*num_names*/,
                                         const char* const* /*templates*/, size_t /*num_templates*/,
                                         vit_detector** /*detector*/) {
  return refuse_dense();
}
void vit_detector_free(vit_detector* /*detector*/) {}
size_t vit_detector_size(const vit_detector* /*detector*/) {
  return 0;
}
vit_status vit_detector_label(const vit_detector* /*detector*/, size_t /*index*/, const char** /*label*/) {
  return refuse_dense();
}
vit_status vit_detector_run(const vit_detector* /*detector*/, vit_session* /*session*/,
                            const vit_input* /*inputs*/, size_t /*num_inputs*/, float /*threshold*/,
                            vit_results* /*results*/) {
  return refuse_dense();
}
