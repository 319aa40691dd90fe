// What config files and overrides do to the constructor arguments of timm's models, and the model that the
// arguments build. The arguments themselves, and those of published architectures, are in architectures/.
#pragma once

#include <string>
#include <string_view>

#include "vit/base/error.h"
#include "vit/io/json.h"
#include "vit/weights/architectures/architecture.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// The pooling that timm calls so; throws Error for another word.
TimmPool read_timm_pool(const Json& value);

/// Applies one model_args entry. null is None, which replaces the architecture's own value. Keys without
/// effect on inference are accepted; an unknown key, or one whose value asks for something that is not
/// implemented, throws Error naming file and key.
void apply_timm_arg(TimmArgs& args, const std::string& key, const Json& value);

/// The part of apply_timm_arg() for null; false if the class does not take it, or the key is unknown.
bool apply_timm_null(TimmArgs& args, const std::string& key, const Json& value);

/// Applies timm's config.json: size, classes and model_args.
void apply_timm_config(TimmArgs& args, const Json& config);

/// How messages call an entry of ModelOptions::overrides: overrides["num_heads"].
std::string override_name(std::string_view key);

/// The override of models that take images of any shape (NaFlex): how many patches preprocessing makes of one
/// at most.
inline constexpr std::string_view kMaxPatchesOverride = "max_num_patches";

/// Applies an entry of ModelOptions::overrides, whose value is JSON, a bare word or HxW. Throws Error of the
/// kind argument for an unknown key, or a value that it cannot have.
void apply_timm_override(TimmArgs& args, const std::string& key, const std::string& value);

/// The model that these arguments build; not yet validated as a whole. `source` says in messages where the
/// arguments come from; "" means the architecture.
ModelConfig to_config(const TimmArgs& args, const Architecture& architecture, std::string_view source = "");

}  // namespace vit::internal
