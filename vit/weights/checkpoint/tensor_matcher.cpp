#include "vit/weights/checkpoint/tensor_matcher.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/head_names.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::mismatch};

/// Equal but for dimensions of 1 in front, or around a vector, and where a product of rows is stored as a
/// convolution of 1x1 or the other way round.
bool is_shape(std::span<const std::size_t> stored, std::span<const std::size_t> wanted) {
  while (stored.size() > wanted.size() && stored.front() == 1) stored = stored.subspan(1);
  while (wanted.size() == 1 && stored.size() > 1 && stored.back() == 1)
    stored = stored.first(stored.size() - 1);
  if (stored.empty() && wanted.size() == 1 && wanted.front() == 1) return true;  // a scalar
  if (std::ranges::equal(stored, wanted)) return true;
  const auto is_product = [](std::span<const std::size_t> shape) {
    return shape.size() == 2 || (shape.size() == 4 && shape[2] == 1 && shape[3] == 1);
  };
  return is_product(stored) && is_product(wanted) && std::ranges::equal(stored.first(2), wanted.first(2));
}

/// Whether dimensions that lie side by side may be joined to those that are wanted.
bool joins_to(std::span<const std::size_t> stored, std::span<const std::size_t> wanted) {
  std::size_t at = 0;
  for (const std::size_t size : wanted) {
    std::size_t joined = 1;
    while (at < stored.size() && (joined == 1 || joined < size)) joined *= std::min(stored[at++], size + 1);
    if (joined != size) return false;
  }
  return at == stored.size();
}

/// What tools count in buffers of a model.
constexpr Ignored kCounters[] = {
    {"n_averaged", "counter of an averaged model (torch.optim.swa_utils)"},
    {"*total_ops", "counter of a profiler (thop)"},
    {"*total_params", "counter of a profiler (thop)"},
};

void append(std::string& message, const char* what, const std::vector<std::string>& items) {
  if (items.empty()) return;
  message += (message.empty() ? "" : "; ") + std::string(what) + " " + listed(items, 4);
}

}  // namespace

FormSizes form_sizes(const ModelConfig& config) {
  return {.prefix_tokens = config.num_prefix_tokens(),
          .hidden = config.mlp.dim,
          .qkv_rows = config.attention_dim() + 2 * config.key_dim(/*block=*/0),
          .query_rows = config.attention_dim(),
          .head_width = config.head_width(),
          .patch_size = config.patch.size,
          .frames = config.patch.frames,
          .cell = config.merger ? config.merger->cells.size : 0,
          .grid = config.position.added_grid,
          .prefix_rows = config.position.added_prefix_rows};
}

FormSizes form_sizes(const TextConfig& config) {
  return {.head_width = config.width / config.num_heads};
}

const TensorEntry* TensorMatcher::take(const std::string& name, Place place,
                                       const std::vector<std::size_t>& shape, Form form,
                                       const std::string& use) {
  const std::string full = (place == Place::tower ? match_.prefix : match_.outside) + name;
  const TensorEntry* const entry = files_.tensors.find(full);
  if (entry == nullptr) {
    const std::string item = in_quotes(full) + " " + shape_text(shape);
    if (std::ranges::find(missing_, item) == missing_.end()) missing_.push_back(item);
    return nullptr;
  }
  std::string& uses = uses_[entry];
  if (uses != use && !uses.ends_with(", " + use)) uses += (uses.empty() ? "" : ", ") + use;
  if (form == Form::flax ? !joins_to(entry->shape, shape) : !is_shape(entry->shape, shape)) {
    wrong_.push_back(in_quotes(full) + " has shape " + shape_text(entry->shape) + ", expected " +
                     shape_text(shape));
    return nullptr;
  }
  if (!is_floating(entry->dtype)) {
    wrong_.push_back(in_quotes(full) + " holds " + entry->dtype_name + ", expected floating point");
    return nullptr;
  }
  return entry;
}

bool TensorMatcher::find(TensorId id, const Shape& shape, std::vector<StoredRows>& pieces) {
  const std::span<const Source> sources = layout_.sources(id.part, id.joint_head);
  const std::string use = canonical_name(id);
  if (sources.empty()) {
    missing_.push_back(use + " " + shape.to_string() + ", for which this layout has no name");
    return false;
  }
  bool complete = true;
  for (const Source& source : sources) {
    StoredRows piece{.row = source.row};
    if (source.is_stored()) {
      const std::vector<std::size_t> stored = source.stored_shape(shape, sizes_);
      piece.entry = take(source.name(id.block), source.row.place, stored, source.row.form, use);
      complete = complete && piece.entry != nullptr;
      if (!source.row.mask.empty()) {
        Source mask = source;
        mask.row.source = source.row.mask;
        piece.mask = take(mask.name(id.block), source.row.place, stored, source.row.form, use + " (mask)");
        complete = complete && piece.mask != nullptr;
      }
    }
    pieces.push_back(piece);
  }
  return complete;
}

VisitTensor TensorMatcher::matching() {
  return [this](TensorId id, const Shape& shape, WeightTensor& tensor) {
    std::vector<StoredRows> pieces;
    if (!find(id, shape, pieces)) return;
    const TensorEntry* const stored = stored_alone(pieces);
    tensor = WeightTensor(
        shape,
        [pieces = std::move(pieces), shape, sizes = sizes_, keep = tensors_] {
          return load_numbers(pieces, shape, sizes);
        },
        stored);
  };
}

VisitDenseTensor TensorMatcher::matching(std::span<const HeadTable> tables, const char* use) {
  return [this, tables, use](const std::string& name, const Shape& shape, WeightTensor& tensor) {
    const auto source = find_source(tables, name);
    if (!source) {
      missing_.push_back(name + " " + shape.to_string() + ", for which this layout has no name");
      return;
    }
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
    if (!sizes.empty()) sizes[0] *= source->from.of;
    const TensorEntry* const entry = take(source->name, source->place, sizes, Form::as_stored, use + name);
    if (entry == nullptr) return;
    const std::vector<StoredRows> pieces{{.row = {.from = source->from}, .entry = entry}};
    tensor = WeightTensor(
        shape, [pieces, shape, keep = tensors_] { return load_numbers(pieces, shape, {}); },
        stored_alone(pieces));
  };
}

DenseWeights TensorMatcher::match(const DenseReading& dense, std::size_t embed_dim) {
  DenseWeights weights;
  for_each_tensor(dense.config, embed_dim, weights, matching(dense.tables, "dense."));
  return weights;
}

/// In a training file anything may lie next to a tower; elsewhere what its library adds is known.
bool TensorMatcher::is_outside(const std::string& name) const {
  return !name.starts_with(files_.in_training_file ? match_.prefix : match_.outside);
}

std::string TensorMatcher::ignore_reason(const std::string& name) const {
  const bool inside = name.starts_with(match_.prefix);
  const std::string& front = inside ? match_.prefix : match_.outside;
  const bool has_front = name.starts_with(front);
  const std::string_view own =
      has_front ? std::string_view(name).substr(front.size()) : std::string_view(name);
  for (const Ignored& counter : kCounters) {
    if (inside && internal::fits(counter.name, own)) return std::string(counter.reason);
  }
  for (const std::span<const Ignored> list : ignored_) {
    for (const Ignored& ignored : list) {
      if ((ignored.place == Place::tower) == inside && internal::fits(ignored.name, own))
        return std::string(ignored.reason);
    }
  }
  if (is_of_head(name, match_.prefix, dropped_heads_) || is_of_head(name, match_.outside, dropped_heads_))
    return "num_classes = 0 leaves the classifier out";
  return "";
}

/// The classifiers in front of which names have the prefix of the tower or of the model.
std::vector<StoredHead> TensorMatcher::heads() const {
  std::vector<StoredHead> found = find_heads(files_.tensors.entries(), match_.prefix);
  if (match_.outside != match_.prefix) {
    std::vector<StoredHead> others = find_heads(files_.tensors.entries(), match_.outside);
    std::ranges::move(others, std::back_inserter(found));
  }
  return found;
}

/// What users may do about tensors that do not match.
std::string TensorMatcher::advice() const {
  const auto any_name_has = [&](std::string_view part) {
    return std::ranges::any_of(files_.tensors.entries(), [&](const TensorEntry& entry) {
      return entry.name.find(part) != std::string::npos;
    });
  };
  if (any_name_has(".lora_A") || any_name_has(".lora_B")) {
    return "; the file holds LoRA factors that are not joined to the weights: merge_and_unload() before it "
           "is saved, or save_pretrained() of the adapter, which ModelOptions::adapter adds";
  }
  if (!files_.options.layout.empty() && missing_.empty() && wrong_.empty())
    return "; a buffer that the model does not need is named under \"ignore\" of the layout file, with the "
           "reason";
  const std::span<const Source> token = layout_.sources(Part::class_token);
  if (!files_.config && !token.empty() && token.front().is_stored() &&
      files_.find(layout_, Part::class_token) == nullptr) {
    return "; a model without class token needs " + override_name("class_token") + " = \"false\" and " +
           override_name("global_pool") + " = \"avg\" (the mean of the patches) or \"first_token\" (x[:, 0])";
  }
  for (const StoredHead& head : heads()) {
    if (head.is_linear()) continue;
    return "; the classifier " + in_quotes(head.name + ".*") +
           " is no single matrix, and others are not computed: " + override_name("num_classes") +
           " = \"0\" leaves it out, features stay the same";
  }
  return "";
}

void TensorMatcher::finish(LoadReport& report) {
  for (const TensorEntry& entry : files_.tensors.entries()) {
    TensorUse use{.name = entry.name,
                  .shape = entry.shape,
                  .dtype = entry.dtype_name,
                  .feeds = {},
                  .ignored_because = {}};
    if (const auto found = uses_.find(&entry); found != uses_.end()) {
      use.feeds = found->second;
      report.num_parameters += entry.num_elements();
    } else {
      use.ignored_because = ignore_reason(entry.name);
      if (use.ignored_because.empty() && is_outside(entry.name))
        use.ignored_because = "outside of " + in_quotes(match_.prefix) + ", where the model lies";
      if (use.ignored_because.empty() && entry.num_elements() == 0)
        use.ignored_because =
            "holds no numbers";  // transformers writes (1, 0, C) where there are no registers
      if (use.ignored_because.empty())
        unexpected_.push_back(in_quotes(entry.name) + " " + shape_text(entry.shape));
    }
    report.tensors.push_back(std::move(use));
  }
  std::string message;
  append(message, "missing", missing_);
  append(message, "wrong", wrong_);
  append(message, "unexpected", unexpected_);
  if (message.empty()) return;
  const std::string belongs =
      files_.config
          ? text(" (do weights and ", std::filesystem::path(files_.config->file()).filename().string(),
                 " belong together?)")
          : " (does the file fit the architecture that was named?)";
  fail(kWhere, files_.weights_name, ": ", message, belongs, advice());
}

bool TensorMatcher::fits(const ModelConfig& config) {
  ModelWeights weights;
  bool complete = true;
  for_each_tensor(config, weights, [&](TensorId id, const Shape& shape, WeightTensor&) {
    std::vector<StoredRows> pieces;
    complete = complete && find(id, shape, pieces);
  });
  return complete && std::ranges::all_of(files_.tensors.entries(), [&](const TensorEntry& entry) {
           return uses_.contains(&entry) || is_outside(entry.name) || !ignore_reason(entry.name).empty();
         });
}

}  // namespace vit::internal
