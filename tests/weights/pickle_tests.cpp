#include <doctest/doctest.h>

#include <cstring>

#include "tests/support/shared_data.h"
#include "vit/weights/pickle.h"
#include "vit/weights/safetensors.h"

namespace vit {

TEST_CASE("weights: a PyTorch archive holds the same tensors as its safetensors twin") {
  for (const char* folder : {"orig-naver-rope-mixed", "orig-meta-dinov3"}) {
    const auto root = test::shared_path(std::string("fixtures/models/") + folder);
    if (!root) return;
    CAPTURE(folder);
    const TensorFile archive = open_pickle(*root / "model.pth");
    const TensorFile twin = open_safetensors(*root / "model.safetensors");
    REQUIRE(archive.entries().size() == twin.entries().size());
    for (const TensorEntry& expected : twin.entries()) {
      const TensorEntry& found = archive.at(expected.name);
      CAPTURE(found.describe());
      CHECK(found.shape == expected.shape);
      CHECK(to_double(found) ==
            to_double(expected));  // the archive stores one tensor as bfloat16, its twin does not
    }
  }
}

}  // namespace vit
