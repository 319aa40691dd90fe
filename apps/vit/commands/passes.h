// The measurement of vit bench: passes of one model, with one size, batch and number of threads.
#pragma once

#include <cstddef>
#include <memory>

#include "apps/vit/ground/json_value.h"
#include "vit/model.h"

namespace vit::app {

struct Combination {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t batch = 1;
  int threads = 1;
};

/// One result of vit bench --json, without the name of the model. Passes take about `seconds`, those of the
/// stages and of the peaks come on top. Throws Error for a combination that the model does not support.
JsonValue measure_passes(const std::shared_ptr<const Model>& model, const Combination& combination,
                         double seconds);

}  // namespace vit::app
