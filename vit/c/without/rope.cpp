// Replaces rope.cpp in builds without analysis (-DVIT_ANALYSIS=OFF): the C interface has the same functions
// in each build.
#include "vit/c/guard.h"

using namespace vit;
using namespace vit::internal;

namespace {

vit_status refuse_analysis() noexcept {
  return guarded([] {
    fail(kCall.with(ErrorKind::unsupported),
         "this library was built without rotary conventions: they need -DVIT_ANALYSIS=ON when it is built");
  });
}

}  // namespace

vit_status vit_rope_conventions(const char** /*json*/) {
  return refuse_analysis();
}
vit_status vit_rope_form_create(const char* /*convention*/, const vit_rope_form_options* /*options*/,
                                vit_rope_form** /*form*/) {
  return refuse_analysis();
}
void vit_rope_form_free(vit_rope_form* /*form*/) {}
vit_status vit_rope_form_get(const vit_rope_form* /*form*/, int32_t /*name*/, vit_array* /*array*/) {
  return refuse_analysis();
}
vit_status vit_rope_form_rotate(const vit_rope_form* /*form*/, double* /*x*/, const size_t* /*shape*/,
                                uint32_t /*ndim*/, size_t /*num_prefix_tokens*/) {
  return refuse_analysis();
}
vit_status vit_rope_identify(const char* /*path*/, const vit_rope_identify_options* /*options*/,
                             vit_rope_identity** /*identity*/) {
  return refuse_analysis();
}
vit_status vit_rope_identify_arrays(const char* const* /*names*/, const vit_array* /*arrays*/,
                                    size_t /*count*/, const vit_rope_identify_options* /*options*/,
                                    vit_rope_identity** /*identity*/) {
  return refuse_analysis();
}
vit_status vit_rope_identity_json(const vit_rope_identity* /*identity*/, const char** /*json*/) {
  return refuse_analysis();
}
void vit_rope_identity_free(vit_rope_identity* /*identity*/) {}
