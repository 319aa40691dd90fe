#include "apps/vit/rings/without/absent.h"

namespace vit::app {
namespace {

constexpr const char* kAnomalyRequirement = "it needs -DVIT_RING_ANOMALY=ON when it is built";

}  // namespace

Command anomaly_command() {
  return absent_command("anomaly", "Detect anomalies: learn from good images, score others",
                        kAnomalyRequirement);
}
std::shared_ptr<Measure> anomaly_measure() {
  return absent_measure("--anomaly", kAnomalyRequirement);
}

}  // namespace vit::app
