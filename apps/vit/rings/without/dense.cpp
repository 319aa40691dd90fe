#include "apps/vit/rings/without/absent.h"

namespace vit::app {
namespace {

constexpr const char* kDenseRequirement = "it needs -DVIT_RING_DENSE=ON when it is built";

}  // namespace

Command depth_command() {
  return absent_command("depth", "Depth of every pixel of images, in metres or inverse", kDenseRequirement);
}
Command segment_command() {
  return absent_command("segment", "What every pixel of images shows", kDenseRequirement);
}
Command detect_command() {
  return absent_command("detect", "Boxes of what is in images, of a model's classes or of words",
                        kDenseRequirement);
}
Command pose_command() {
  return absent_command("pose", "Keypoints in boxes of images", kDenseRequirement);
}
int bench_prompts(const CommonOptions& /*common*/, const PromptBench& /*options*/) {
  fail_absent("bench --phrase", kDenseRequirement);
}
std::shared_ptr<Measure> map_measure() {
  return absent_measure("--task", kDenseRequirement);
}

}  // namespace vit::app
