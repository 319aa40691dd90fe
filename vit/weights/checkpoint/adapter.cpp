#include "vit/weights/checkpoint/loading_steps.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/file_status.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/adapter_config.h"
#include "vit/weights/checkpoint/open_weights.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"read_adapter", ErrorKind::mismatch};
namespace fs = std::filesystem;

constexpr const char* kWeightNames[] = {"adapter_model.safetensors", "adapter_model.bin"};
/// The prefix that PEFT adds to the names of its base.
constexpr std::string_view kFront = "base_model.model.";

fs::path find_adapter_weights(const fs::path& folder) {
  for (const char* name : kWeightNames) {
    if (is_there(folder / name)) return folder / name;
  }
  fail(kWhere.with(ErrorKind::io), folder.string(), ": an adapter without weights; ", kWeightNames[0], " or ",
       kWeightNames[1], " expected");
}

// ------------------------------------------------------------------------------------------------- names

/// One module in the names of transformers 5 and in those of the files that it publishes; {} is the block.
/// If the file stores several modules in one matrix, a share of its rows.
struct Alias {
  std::string_view module, stored;
  std::size_t index = 0, of = 1;
};
constexpr Alias kAliases[] = {
    {"layers.{}.attention.q_proj", "encoder.layer.{}.attention.attention.query"},
    {"layers.{}.attention.k_proj", "encoder.layer.{}.attention.attention.key"},
    {"layers.{}.attention.v_proj", "encoder.layer.{}.attention.attention.value"},
    {"layers.{}.attention.o_proj", "encoder.layer.{}.attention.output.dense"},
    {"layers.{}.mlp.fc1", "encoder.layer.{}.intermediate.dense"},
    {"layers.{}.mlp.fc2", "encoder.layer.{}.output.dense"},
    {"layers.{}.layernorm_before", "encoder.layer.{}.layernorm_before"},
    {"layers.{}.layernorm_after", "encoder.layer.{}.layernorm_after"},
    {"encoder.layer.{}.attention.q_proj", "encoder.layer.{}.attention.attention.query"},
    {"encoder.layer.{}.attention.k_proj", "encoder.layer.{}.attention.attention.key"},
    {"encoder.layer.{}.attention.v_proj", "encoder.layer.{}.attention.attention.value"},
    {"encoder.layer.{}.attention.o_proj", "encoder.layer.{}.attention.output.dense"},
    {"encoder.layer.{}.mlp.gate_proj", "encoder.layer.{}.mlp.weights_in", 0, 2},
    {"encoder.layer.{}.mlp.up_proj", "encoder.layer.{}.mlp.weights_in", 1, 2},
    {"encoder.layer.{}.mlp.down_proj", "encoder.layer.{}.mlp.weights_out"},
    {"model.layer.{}.attention.q_proj", "layer.{}.attention.q_proj"},
    {"model.layer.{}.attention.k_proj", "layer.{}.attention.k_proj"},
    {"model.layer.{}.attention.v_proj", "layer.{}.attention.v_proj"},
    {"model.layer.{}.attention.o_proj", "layer.{}.attention.o_proj"},
    {"model.layer.{}.mlp.up_proj", "layer.{}.mlp.up_proj"},
    {"model.layer.{}.mlp.gate_proj", "layer.{}.mlp.gate_proj"},
    {"model.layer.{}.mlp.down_proj", "layer.{}.mlp.down_proj"},
};

/// `name` with its ending, which matches `from`, replaced by `to`.
std::optional<std::string> renamed(std::string_view name, std::string_view from, std::string_view to) {
  const std::size_t hole = from.find("{}");
  const std::string_view before = from.substr(0, hole), after = from.substr(hole + 2);
  if (!name.ends_with(after)) return std::nullopt;
  const std::string_view rest = name.substr(0, name.size() - after.size());
  const std::size_t digits = rest.find_last_not_of("0123456789") + 1;  // npos + 1 = 0
  const std::string_view front = rest.substr(0, digits);
  if (digits == rest.size() || !front.ends_with(before)) return std::nullopt;
  const std::string_view outer = front.substr(0, front.size() - before.size());
  if (!outer.empty() && outer.back() != '.') return std::nullopt;
  const std::size_t target = to.find("{}");
  return std::string(outer)
      .append(to.substr(0, target))
      .append(rest.substr(digits))
      .append(to.substr(target + 2));
}

/// The place of an adapter's module in the base.
struct Target {
  std::string name;  // of the tensor
  std::size_t index = 0, of = 1;
};

class Names {
 public:
  Names(const TensorFile& base, const std::string& root) : base_(base), root_(root) {}

  /// The tensor `ending` (".weight") of a module, under the name of the adapter, that of a file of another
  /// release of its library, or a longer or shorter prefix.
  std::optional<Target> find(const std::string& module, std::string_view ending) const {
    if (const auto name = find_exact(module + std::string(ending))) return Target{*name};
    for (const Alias& alias : kAliases) {
      if (const auto stored = renamed(module, alias.module, alias.stored)) {
        if (const auto name = find_exact(*stored + std::string(ending)))
          return Target{*name, alias.index, alias.of};
      }
      if (alias.of != 1) continue;
      if (const auto own = renamed(module, alias.stored, alias.module)) {
        if (const auto name = find_exact(*own + std::string(ending))) return Target{*name};
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> find_exact(const std::string& name) const {
    if (base_.find(root_ + name) != nullptr) return root_ + name;
    std::optional<std::string> found;
    for (const TensorEntry& entry : base_.entries()) {
      const bool longer = entry.name.ends_with("." + name), shorter = name.ends_with("." + entry.name);
      if (!longer && !shorter) continue;
      if (found) return std::nullopt;  // ambiguous
      found = entry.name;
    }
    return found;
  }

  const TensorFile& base_;
  const std::string& root_;
};

// ----------------------------------------------------------------------------------------------- tensors

void erase_all(std::string& text, std::string_view part) {
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part)) text.erase(at, part.size());
}

/// The name without PEFT's own additions.
std::string module_name(std::string name) {
  while (name.starts_with(kFront)) name.erase(0, kFront.size());
  for (const std::string_view part : {".default", ".modules_to_save", ".base_layer", ".original_module"})
    erase_all(name, part);
  return name;
}

/// The two factors of a module's update.
struct Pair {
  const TensorEntry* a = nullptr;
  const TensorEntry* b = nullptr;
};

struct Parts {
  std::map<std::string, Pair> pairs;                       // by module
  std::map<std::string, const TensorEntry*> replacements;  // by name
};

Parts sort_tensors(const TensorFile& file) {
  constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight";
  Parts parts;
  for (const TensorEntry& entry : file.entries()) {
    const std::string name = module_name(entry.name);
    if (name.ends_with(kA)) {
      parts.pairs[name.substr(0, name.size() - kA.size())].a = &entry;
    } else if (name.ends_with(kB)) {
      parts.pairs[name.substr(0, name.size() - kB.size())].b = &entry;
    } else {
      VIT_CHECK(name.find("lora_") == name.npos, kWhere.with(ErrorKind::unsupported), entry.describe(),
                ": a part of an adapter that is not implemented (DoRA, embeddings, or a bias of B)");
      parts.replacements[name] = &entry;
    }
  }
  return parts;
}

/// (rows, all other dimensions)
std::pair<std::size_t, std::size_t> matrix_of(const TensorEntry& entry) {
  const std::size_t rows = entry.shape.empty() ? 1 : entry.shape.front();
  return {rows, rows == 0 ? 0 : entry.num_elements() / rows};
}

std::shared_ptr<const LowRankUpdate> make_update(const Pair& pair, const std::string& module,
                                                 const AdapterConfig& config, const TensorEntry& weight,
                                                 const Target& target) {
  VIT_CHECK(pair.a != nullptr && pair.b != nullptr, kWhere, module, ": the adapter has ",
            pair.a != nullptr ? "lora_A without lora_B" : "lora_B without lora_A");
  const auto [rank, columns] = matrix_of(*pair.a);
  const auto [rows, b_rank] = matrix_of(*pair.b);
  auto [weight_rows, weight_columns] = matrix_of(weight);
  weight_rows /= target.of;
  if (config.transposed) std::swap(weight_rows, weight_columns);
  VIT_CHECK(rank == b_rank && rank != 0 && rows == weight_rows && columns == weight_columns, kWhere,
            weight.describe(), ": the adapter's ", pair.b->describe(), " and ", pair.a->describe(),
            " do not match it");
  auto update = std::make_shared<LowRankUpdate>();
  update->a = *pair.a;
  update->b = *pair.b;
  update->scale = config.scale(module, rank);
  update->transposed = config.transposed;
  update->first_row = target.index * weight_rows;
  return update;
}

[[noreturn]] void refuse_names(const fs::path& folder, const TensorFile& base,
                               const std::vector<std::string>& names) {
  fail(kWhere, folder.string(), ": the adapter is for another model: ", base.path().string(),
       " has no modules for ", listed(names));
}

}  // namespace

TensorFile join_adapter(const TensorFile& base, const std::string& root, const fs::path& adapter,
                        std::vector<std::string>& notes) {
  const fs::path folder = adapter_folder(adapter);
  VIT_CHECK(is_there(folder / kAdapterConfigName), kWhere.with(ErrorKind::io), adapter.string(),
            ": not a PEFT adapter; expected ", kAdapterConfigName, " in the folder");
  const AdapterConfig config = read_adapter_config(folder);
  const TensorFile file = open_weights(find_adapter_weights(folder));
  const Parts parts = sort_tensors(file);
  const Names names(base, root);
  TensorFile::Contents contents = base.contents();
  std::map<std::string, TensorEntry*> entries;
  for (TensorEntry& entry : contents.entries) entries[entry.name] = &entry;
  std::vector<std::string> lost;
  for (const auto& [module, pair] : parts.pairs) {
    const auto target = names.find(module, ".weight");
    if (!target) {
      lost.push_back(in_quotes(module));
      continue;
    }
    TensorEntry& weight = *entries.at(target->name);
    weight.updates.push_back(make_update(pair, module, config, weight, *target));
  }
  std::vector<TensorEntry> added;
  for (const auto& [name, entry] : parts.replacements) {
    const std::size_t dot = name.rfind('.');
    const auto target = dot == name.npos ? std::nullopt : names.find(name.substr(0, dot), name.substr(dot));
    TensorEntry& place = target ? *entries.at(target->name) : added.emplace_back();
    std::string kept = target ? target->name : root + name;
    VIT_CHECK(place.updates.empty(), kWhere, folder.string(), ": ", in_quotes(name),
              " is replaced and has LoRA factors; damaged adapter?");
    place = *entry;
    place.name = std::move(kept);
  }
  if (!lost.empty()) refuse_names(folder, base, lost);
  notes.push_back(text("merged with the LoRA adapter ", folder.string(), ": ", parts.pairs.size(),
                       " matrices, ", parts.replacements.size(), " tensors of its own"));
  contents.entries.insert(contents.entries.end(), added.begin(), added.end());
  return TensorFile(std::move(contents));
}

}  // namespace vit::internal
