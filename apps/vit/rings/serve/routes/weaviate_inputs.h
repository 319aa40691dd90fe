// What Weaviate's module multi2vec-clip sends.
#pragma once

#include <cstddef>
#include <vector>

#include "apps/vit/rings/serve/work/engine.h"
#include "vit/io/json.h"

namespace vit::app {

/// {"texts": [...], "images": [BASE64, ...]}, each of which may be missing or null: the texts and then the
/// images, added to `items`. Returns how many texts there are. Throws ApiError (400) that names the place.
std::size_t read_weaviate_inputs(const internal::Json& body, std::vector<WorkItem>& items);

}  // namespace vit::app
