#include "vit/weights/checkpoint/find_model.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/head_names.h"
#include "vit/weights/families/family.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::argument};

/// Names that wrappers give to the module inside them.
constexpr std::string_view kWrappers[] = {
    "module",                      // DataParallel, DistributedDataParallel, AveragedModel, DeepSpeed
    "_orig_mod",                   // torch.compile
    "_fsdp_wrapped_module",        // FullyShardedDataParallel
    "_fpw_module",                 // its name before PyTorch 1.13
    "_checkpoint_wrapped_module",  // checkpoint_wrapper
    "_forward_module",             // Lightning's strategies
};
/// Words of a component that mark weights averaged over the training.
constexpr std::string_view kAveraged[] = {"ema", "swa", "averaged", "average", "avg", "polyak"};
constexpr std::string_view kTeacher[] = {"teacher", "target"};
/// Copies that are used only during training.
constexpr std::string_view kCopies[] = {"momentum"};
/// MoCo's query and key.
constexpr std::string_view kCopyNames[] = {"encoder_k"};
/// Where a state dictionary is searched in a file without a known model.
constexpr std::string_view kContainers[] = {"state_dict", "model", "model_state_dict", "net", "weights"};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The name without components of wrappers and, after "blocks", without the number of the chunk.
std::string clean_name(std::string_view name) {
  std::vector<std::string_view> kept;
  for (const std::string_view part : split(name, ".")) {
    const bool wrapper = std::ranges::find(kWrappers, part) != std::end(kWrappers);
    if (!wrapper) kept.push_back(part);
  }
  for (std::size_t i = 0; i + 2 < kept.size(); ++i) {
    if (kept[i] != "blocks" || !is_number(kept[i + 1]) || !is_number(kept[i + 2])) continue;
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  std::string out;
  for (const std::string_view part : kept) out += (out.empty() ? "" : ".") + std::string(part);
  return out;
}

bool is_wrapped(std::string_view name) {
  return clean_name(name) != name;
}

/// The prefix of a name that ends with `anchor` after a dot, or equals it.
std::optional<std::string> prefix_of(std::string_view name, std::string_view anchor) {
  if (!name.ends_with(anchor)) return std::nullopt;
  const std::string_view prefix = name.substr(0, name.size() - anchor.size());
  if (!prefix.empty() && prefix.back() != '.' && prefix.back() != '/') return std::nullopt;
  return std::string(prefix);
}

/// A possible location of a model.
struct Candidate {
  std::string prefix;
  std::string_view anchor;
  std::size_t data = 0;  // position of its patch tensor: equal for two names of one model
};

/// A ResNet's first convolution has the same name as that of OpenAI's towers.
/// The prefixes of the blocks of CLIP's towers in a file.
std::set<std::string_view> prefixes_of_blocks(const TensorFile& file) {
  constexpr std::string_view kBlocks = "transformer.resblocks.";
  std::set<std::string_view> prefixes;
  for (const TensorEntry& entry : file.entries()) {
    const std::string_view name = entry.name;
    for (std::size_t at = name.find(kBlocks); at != name.npos; at = name.find(kBlocks, at + 1))
      prefixes.insert(name.substr(0, at));
  }
  return prefixes;
}

std::vector<Candidate> find_candidates(const TensorFile& file, std::string_view own_anchor) {
  std::set<std::string_view> anchors;
  if (own_anchor.empty()) {
    for (const Family* family : families()) {
      if (family->is_dense) continue;  // by the patch tensor of its backbone
      anchors.insert(family->anchor);
      if (!family->other_anchor.empty()) anchors.insert(family->other_anchor);
    }
  } else {
    anchors.insert(own_anchor);
  }
  std::vector<Candidate> found;
  const std::set<std::string_view> blocks = prefixes_of_blocks(file);
  std::set<std::string> prefixes;
  std::set<std::size_t> data;  // one tensor under several names is of one model
  for (const TensorEntry& entry : file.entries()) {
    for (const std::string_view anchor : anchors) {
      const auto prefix = prefix_of(entry.name, anchor);
      if (!prefix || prefixes.contains(*prefix)) continue;
      if (entry.bytes.size() != 0 && data.contains(entry.bytes.begin())) continue;
      if (anchor == "conv1.weight" && !blocks.contains(*prefix)) continue;
      found.push_back({.prefix = *prefix, .anchor = anchor, .data = entry.bytes.begin()});
      prefixes.insert(*prefix);
      data.insert(entry.bytes.begin());
    }
  }
  return found;
}

/// Whether a component of the prefix has one of these words, or is one of `names`.
bool is_marked(std::string_view prefix, std::span<const std::string_view> words,
               std::span<const std::string_view> names = {}) {
  const std::string lower = lower_ascii(prefix);
  const auto any_of = [](const auto& parts, const auto& list) {
    return std::ranges::any_of(
        parts, [&](std::string_view part) { return std::ranges::find(list, part) != list.end(); });
  };
  return any_of(split(lower, "._-/"), words) || any_of(split(lower, "./"), names);
}

std::string listed_prefixes(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) names.push_back(in_quotes(candidate.prefix));
  return listed(names, 12);
}

const Candidate& choose_by_name(const TensorFile& file, const std::vector<Candidate>& candidates,
                                std::string_view wanted) {
  std::string name = clean_name(wanted);
  if (!name.empty() && name.back() != '.' && name.back() != '/') name += '.';
  std::vector<const Candidate*> inside;
  for (const Candidate& candidate : candidates) {
    if (candidate.prefix == name) return candidate;
    if (candidate.prefix.starts_with(name)) inside.push_back(&candidate);
  }
  if (inside.size() == 1) return *inside.front();
  VIT_CHECK(!candidates.empty(), kWhere, file.path().string(), ": ModelOptions::prefix is ",
            in_quotes(wanted), ", but the file has no model of a known kind");
  fail(kWhere, file.path().string(), ": ModelOptions::prefix is ", in_quotes(wanted), ", under which ",
       inside.empty() ? "there is no model" : "there are several models", "; the file has ",
       listed_prefixes(candidates));
}

/// How many characters, up to a dot, the prefixes of all have in common.
std::size_t common_length(std::span<const Candidate* const> candidates) {
  std::string_view common = candidates.front()->prefix;
  for (const Candidate* candidate : candidates) {
    const std::string_view prefix = candidate->prefix;
    const auto end = std::ranges::mismatch(common, prefix).in1;
    common = common.substr(0, static_cast<std::size_t>(end - common.begin()));
  }
  return common.rfind('.') + 1;  // npos + 1 = 0
}

/// The preferred one, by the words in which the prefixes differ; null if there is none.
const Candidate* preferred(const std::vector<const Candidate*>& candidates) {
  if (candidates.size() == 1) return candidates.front();
  const std::size_t common = common_length(candidates);
  std::vector<const Candidate*> averaged, teachers, others;
  for (const Candidate* candidate : candidates) {
    const std::string_view own = std::string_view(candidate->prefix).substr(common);
    if (is_marked(own, kAveraged)) averaged.push_back(candidate);
    if (is_marked(own, kTeacher)) teachers.push_back(candidate);
    if (!is_marked(own, kCopies, kCopyNames)) others.push_back(candidate);
  }
  for (const auto* group : {&averaged, &teachers, &others}) {
    if (group->size() == candidates.size()) break;  // no word of these distinguishes them
    if (!group->empty()) return preferred(*group);
  }
  return nullptr;
}

const Candidate& choose(const TensorFile& file, const std::vector<Candidate>& candidates,
                        std::string_view unknown_type) {
  std::vector<const Candidate*> all;
  for (const Candidate& candidate : candidates) all.push_back(&candidate);
  if (const Candidate* const found = preferred(all)) return *found;
  VIT_CHECK(unknown_type.empty(), kWhere.with(ErrorKind::unsupported), file.path().string(),
            ": its config.json is from transformers, with the model_type ", in_quotes(unknown_type),
            ", which no supported family of Vision Transformers has");
  fail(kWhere, file.path().string(), ": holds ", candidates.size(), " models: ", listed_prefixes(candidates),
       "; select one with ModelOptions::prefix");
}

/// The longest of the prefixes that families of this anchor have inside a model.
std::string_view inner_prefix(const Candidate& candidate) {
  std::string_view longest;
  for (const Family* family : families()) {
    if (family->anchor != candidate.anchor && family->other_anchor != candidate.anchor) continue;
    for (const std::string_view inner : family->prefixes) {
      const auto outer = prefix_of(candidate.prefix, inner);
      if (outer && inner.size() > longest.size()) longest = inner;
    }
  }
  return longest;
}

/// Gives the classifier the name that the layout file, or families of this anchor, have for it.
void name_head(std::string_view anchor, const OwnNames& own, FoundModel& found) {
  if (!own.patch.empty()) {
    found.tensors = with_own_head(std::move(found.tensors), found.place->prefix, own.head, found.head);
    return;
  }
  for (const Family* family : families()) {
    if (family->anchor != anchor || family->head.empty()) continue;
    const std::string& front = family->head_place == Place::tower ? found.place->prefix : found.place->root;
    found.tensors = with_own_head(std::move(found.tensors), front, family->head, found.head);
    return;
  }
}

/// The longest member of the file inside which names start with `prefix`; "" for the whole file.
std::string container_of(const TensorFile& file, std::string_view prefix) {
  std::string longest;
  for (const std::string& member : file.members()) {
    const bool inside = prefix.starts_with(member) && prefix.substr(member.size()).starts_with('.');
    if (inside && member.size() > longest.size()) longest = member;
  }
  return longest;
}

/// Whether a member is a module of torch, saved whole or as TorchScript, and no dictionary.
bool is_module(const TensorFile& file, const std::string& member) {
  return std::ranges::find(file.members(), member + ".training") != file.members().end();
}

/// Members next to the container, on all levels that lead to it.
std::vector<std::string> members_beside(const TensorFile& file, std::string_view container) {
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (const std::string& member : file.members()) {
    const std::size_t dot = member.rfind('.');
    const std::string_view parent = std::string_view(member).substr(0, dot == member.npos ? 0 : dot);
    const bool on_the_way =
        parent.empty() || parent == container ||
        (container.starts_with(parent) && container.substr(parent.size()).starts_with('.'));
    const bool leads = container.starts_with(member) &&
                       (container.size() == member.size() || container[member.size()] == '.');
    if (on_the_way && !leads && seen.insert(member).second) names.push_back(member);
  }
  return names;
}

/// The dictionary of a file without a patch embedding.
std::string likely_container(const TensorFile& file) {
  for (const std::string_view name : kContainers) {
    const std::string prefix = std::string(name) + ".";
    const bool filled = std::ranges::any_of(
        file.entries(), [&](const TensorEntry& entry) { return entry.name.starts_with(prefix); });
    if (filled && std::ranges::find(file.members(), name) != file.members().end()) return std::string(name);
  }
  return "";
}

/// The tensors of a dictionary, by their names in it.
TensorFile inside_of(const TensorFile& file, const std::string& container) {
  if (container.empty()) return file;
  TensorFile::Contents contents = file.contents();
  std::erase_if(contents.entries,
                [&](const TensorEntry& entry) { return !entry.name.starts_with(container + "."); });
  for (TensorEntry& entry : contents.entries) entry.name.erase(0, container.size() + 1);
  return TensorFile(std::move(contents));
}

}  // namespace

TensorFile without_wrappers(TensorFile file) {
  const auto entries = file.entries();
  if (std::ranges::none_of(entries, [](const TensorEntry& entry) { return is_wrapped(entry.name); }))
    return file;
  std::map<std::string, std::size_t> counts;
  for (const TensorEntry& entry : entries) ++counts[clean_name(entry.name)];
  TensorFile::Contents contents = file.contents();
  for (TensorEntry& entry : contents.entries) {
    std::string name = clean_name(entry.name);
    if (counts[name] == 1) entry.name = std::move(name);
  }
  for (std::string& member : contents.members) member = clean_name(member);
  std::erase(contents.members, "");
  return TensorFile(std::move(contents));
}

FoundModel find_model(const TensorFile& file, std::string_view wanted, const OwnNames& own,
                      std::string_view unknown_type) {
  const std::vector<Candidate> candidates = find_candidates(file, own.patch);
  if (candidates.empty()) {
    if (!wanted.empty()) choose_by_name(file, candidates, wanted);  // throws
    const std::string container = likely_container(file);
    return {.tensors = inside_of(file, container),
            .place = std::nullopt,
            .container = container,
            .has_neighbors = !container.empty(),
            .passed_by = members_beside(file, container)};
  }
  const Candidate& chosen =
      wanted.empty() ? choose(file, candidates, unknown_type) : choose_by_name(file, candidates, wanted);
  std::string container = container_of(file, chosen.prefix);
  const bool has_neighbors = !container.empty();
  // a module is a part of the model around it, as CLIP's "visual" next to its text tower
  if (is_module(file, container)) {
    const std::size_t of_tower = std::min(inner_prefix(chosen).size(), chosen.prefix.size());
    container = container_of(file, chosen.prefix.substr(0, chosen.prefix.size() - of_tower));
  }
  const std::string prefix = chosen.prefix.substr(container.empty() ? 0 : container.size() + 1);
  const std::size_t inner = std::min(inner_prefix(chosen).size(), prefix.size());
  FoundModel out{.tensors = inside_of(file, container),
                 .place = ModelPlace{.prefix = prefix, .root = prefix.substr(0, prefix.size() - inner)},
                 .chosen = chosen.prefix,
                 .container = container,
                 .has_neighbors = has_neighbors,
                 .passed_by = members_beside(file, container)};
  for (const Candidate& candidate : candidates) {
    if (&candidate != &chosen) out.others.push_back(candidate.prefix);
  }
  name_head(chosen.anchor, own, out);
  return out;
}

}  // namespace vit::internal
