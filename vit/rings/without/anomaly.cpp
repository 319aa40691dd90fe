// Replacement for builds without anomalies: the C interface has the same functions in each build.
#include "vit/c/guard.h"

using namespace vit;
using namespace vit::internal;

namespace {

vit_status refuse_anomaly() noexcept {
  return guarded([] {
    fail(kCall.with(ErrorKind::unsupported),
         "this library was built without anomalies: they need -DVIT_RING_ANOMALY=ON when it is built");
  });
}

}  // namespace

vit_status vit_anomaly_fit(vit_session* /*session*/, const vit_input* /*good*/, size_t /*num_good*/,
                           const vit_anomaly_options* /*options*/, vit_anomaly** /*anomaly*/) {
  return refuse_anomaly();
}
vit_status vit_anomaly_load(const vit_model* /*model*/, const char* /*path*/, vit_anomaly** /*anomaly*/) {
  return refuse_anomaly();
}
vit_status vit_anomaly_save(const vit_anomaly* /*anomaly*/, const char* /*path*/) {
  return refuse_anomaly();
}
void vit_anomaly_free(vit_anomaly* /*anomaly*/) {}
vit_status vit_anomaly_threshold(const vit_anomaly* /*anomaly*/, float* /*threshold*/,
                                 double* /*confidence*/) {
  return refuse_anomaly();
}
vit_status vit_anomaly_run(const vit_anomaly* /*anomaly*/, vit_session* /*session*/,
                           const vit_input* /*inputs*/, size_t /*num_inputs*/, vit_results* /*results*/) {
  return refuse_anomaly();
}
