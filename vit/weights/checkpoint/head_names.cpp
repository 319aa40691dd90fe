#include "vit/weights/checkpoint/head_names.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace vit::internal {
namespace {

/// Names of classifiers in models and scripts of users.
constexpr std::string_view kHeadNames[] = {
    "head",    "heads",    "fc",          "classifier", "classification_head", "cls_head",
    "clf",     "mlp_head", "linear_head", "fc_head",    "last_linear",         "linear",
    "head_fc", "lin_head", "out_layer",   "final_fc",   "classification",      "output_layer",
};

std::string_view layer_of(std::string_view rest) {
  return rest.substr(0, rest.rfind('.') + 1);  // npos + 1 = 0
}

/// Sets `layer` if the head is one matrix, with a bias or without.
void judge(std::span<const TensorEntry* const> tensors, StoredHead& head) {
  std::optional<std::string_view> layer;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string_view rest = head.rest[i], own = layer_of(rest), last = rest.substr(own.size());
    const bool is_matrix = last == "weight" && tensors[i]->shape.size() == 2;
    const bool is_bias = last == "bias" && tensors[i]->shape.size() == 1;
    if ((!is_matrix && !is_bias) || (layer && *layer != own)) return;
    layer = own;
  }
  const bool has_matrix = std::ranges::any_of(tensors, [](const auto* t) { return t->shape.size() == 2; });
  if (!layer || !has_matrix) return;
  head.layer = *layer;
  head.is_plain = layer->empty();
}

}  // namespace

std::vector<StoredHead> find_heads(std::span<const TensorEntry> entries, std::string_view front) {
  std::vector<StoredHead> heads;
  for (const std::string_view name : kHeadNames) {
    const std::string start = std::string(front).append(name) + '.';
    StoredHead head{.name = std::string(name), .rest = {}};
    std::vector<const TensorEntry*> tensors;
    for (const TensorEntry& entry : entries) {
      if (!entry.name.starts_with(start)) continue;
      tensors.push_back(&entry);
      head.rest.push_back(entry.name.substr(start.size()));
    }
    if (tensors.empty()) continue;
    judge(tensors, head);
    heads.push_back(std::move(head));
  }
  return heads;
}

bool is_of_head(std::string_view name, std::string_view front, std::span<const StoredHead> heads) {
  if (!name.starts_with(front)) return false;
  const std::string_view own = name.substr(front.size());
  return std::ranges::any_of(heads, [&](const StoredHead& head) {
    return own.starts_with(head.name) && own.substr(head.name.size()).starts_with('.');
  });
}

TensorFile with_own_head(TensorFile file, std::string_view front, std::string_view own,
                         std::string& renamed) {
  renamed.clear();
  const std::vector<StoredHead> heads = find_heads(file.entries(), front);
  if (own.empty() || heads.size() != 1 || !heads.front().is_linear()) return file;
  const StoredHead& head = heads.front();
  const std::string stored = head.name + '.' + head.layer;
  if (stored == std::string(own) + '.') return file;
  TensorFile::Contents contents = file.contents();
  for (TensorEntry& entry : contents.entries) {
    const std::string start = std::string(front) + stored;
    if (entry.name.starts_with(start))
      entry.name = std::string(front).append(own) + '.' + entry.name.substr(start.size());
  }
  renamed = stored.substr(0, stored.size() - 1);
  return TensorFile(std::move(contents));
}

}  // namespace vit::internal
