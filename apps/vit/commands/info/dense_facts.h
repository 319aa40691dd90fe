// Properties of a dense head that are known without running it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "vit/model.h"

namespace vit::app {

/// Parameters, FLOPs at the model's own size, and the configuration of each branch; for checkpoints with a
/// dense head.
nlohmann::ordered_json dense_json(const CheckpointDescription& facts);

}  // namespace vit::app
