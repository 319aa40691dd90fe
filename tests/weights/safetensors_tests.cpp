#include <doctest/doctest.h>

#include "tests/support/shared_data.h"
#include "vit/weights/safetensors.h"

namespace vit {

TEST_CASE("weights: every safetensors file of the reference models opens") {
  const auto root = test::shared_path("fixtures/models");
  if (!root) return;
  std::size_t count = 0;
  for (const auto& folder : std::filesystem::directory_iterator(*root)) {
    if (!folder.is_directory()) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      if (file.path().extension() != ".safetensors") continue;
      const TensorFile tensors = open_safetensors(file.path());
      for (const TensorEntry& entry : tensors.entries()) {
        if (is_floating(entry.dtype)) CHECK(to_double(entry).size() == entry.num_elements());
        release_pages(entry);
      }
      ++count;
    }
  }
  CHECK(count > 90);
  const TensorFile sharded =
      open_safetensors_index(*root / "hf-dinov3-gated-sharded/model.safetensors.index.json");
  CHECK(sharded.entries().size() > 10);
}

}  // namespace vit
