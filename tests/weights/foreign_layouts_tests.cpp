// Layouts of tensors that are recognized but not read: what failed because of them says so.
#include "vit/weights/checkpoint/loading_steps.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "vit/base/check.h"
#include "vit/io/safetensors.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

struct Named {
  std::string name;
  std::vector<std::size_t> shape{1};
};

std::string layout_of(const std::vector<Named>& tensors,
                      const std::map<std::string, std::string>& metadata = {}) {
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  const float number = 0;
  std::vector<TensorToWrite> all;
  for (const Named& tensor : tensors) {
    const bool is_empty = tensor.shape.front() == 0;
    all.push_back({.name = tensor.name,
                   .dtype = Dtype::f32,
                   .shape = tensor.shape,
                   .bytes = std::as_bytes(std::span(&number, is_empty ? 0 : 1))});
  }
  write_safetensors(folder.path() / "a.safetensors", all, metadata);
  return foreign_layout(open_safetensors(folder.path() / "a.safetensors"));
}

}  // namespace

TEST_CASE("foreign layouts: placeholders, orders of axes and training files are named") {
  CHECK(contains(layout_of({{"a", {0}}, {"b", {0}}, {"c"}}), "zero_to_fp32.py"));
  CHECK(contains(layout_of({{"a", {0}}, {"b"}, {"c"}}), "1 tensor is empty"));
  CHECK(contains(layout_of({{"a"}}, {{"format", "mlx"}}), "MLX"));
  CHECK(layout_of({{"a"}}, {{"format", "pt"}}).empty());
  CHECK(contains(layout_of({{"network.mask_head.0.weight"}, {"network.class_head.weight"}}), "EoMT"));
  CHECK(contains(layout_of({{"backbone.patch_embed.proj.weight"}, {"keypoint_head.final_layer.weight"}}),
                 "mmpose"));
  CHECK(contains(layout_of({{"backbone.cls_token"}, {"decode_head.conv_seg.weight"}}), "mmsegmentation"));
  CHECK(contains(layout_of({{"image_encoder.patch_embed.proj.weight"}, {"mask_decoder.iou_token.weight"}}),
                 "Segment Anything"));
  CHECK(contains(layout_of({{"image_encoder.trunk.pos_embed"}, {"sam_mask_decoder.iou_token.weight"}}),
                 "Anything 2"));
  CHECK(contains(layout_of({{"detector.backbone.vision_backbone.trunk.pos_embed"}}), "--exclude sam3.pt"));
  CHECK(layout_of({{"cls_token"}, {"blocks.0.attn.qkv.weight"}}).empty());
}

TEST_CASE("foreign layouts: an error keeps its kind and gets the sentence once") {
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  const float number = 0;
  const TensorToWrite tensor{
      .name = "a", .dtype = Dtype::f32, .shape = {1}, .bytes = std::as_bytes(std::span(&number, 1))};
  write_safetensors(folder.path() / "a.safetensors", std::span(&tensor, 1), {{"format", "mlx"}});
  const TensorFile file = open_safetensors(folder.path() / "a.safetensors");
  const auto failing = [&] { naming_layout(file, [] { fail(Where("x", ErrorKind::format), "wrong"); }); };
  CHECK_ERROR(ErrorKind::format, ("wrong; ", "MLX"), failing());
  const std::string twice = message_of([&] { naming_layout(file, failing); });
  CHECK(twice.find("MLX") == twice.rfind("MLX"));
  CHECK(naming_layout(file, [] { return 3; }) == 3);
}
