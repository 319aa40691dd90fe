#include "vit/weights/checkpoint/open_weights.h"

#include <string>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/foreign_files.h"
#include "vit/io/npz.h"
#include "vit/io/pickle.h"
#include "vit/io/safetensors.h"
#include "vit/io/shards.h"
#include "vit/weights/checkpoint/find_model.h"
#include "vit/weights/families/google_vit.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::io};
namespace fs = std::filesystem;

TensorFile open_by_name(const fs::path& file, WantsTensor wants) {
  const std::string name = file.filename().string();
  if (name.ends_with(".bin.index.json")) return open_shards(file, open_pickle, wants);
  if (name.ends_with(".index.json")) return open_shards(file, open_safetensors, wants);
  if (name.ends_with(".safetensors")) return open_safetensors(file);
  if (name.ends_with(".npz")) return with_blocks_apart(open_npz(file));
  const std::string foreign = describe_file(file);
  VIT_CHECK(foreign.empty(), kWhere.with(ErrorKind::unsupported), file.string(), ": ", foreign);
  if (has_pickle_ending(file)) return open_pickle(file);
  fail(kWhere.with(ErrorKind::unsupported), file.string(),
       ": unknown kind of weight file; .safetensors, .pth, .pt, .pth.tar, .ckpt, .bin or the .index.json of "
       "shards expected");
}

/// What a model with a head puts in front of the names of the model without it.
constexpr std::string_view kBackbone = "backbone.";

/// Adds the tensors of the model in a file, of its own dictionary, without those whose names start with
/// `left_out`, unless that is empty.
void add(const fs::path& path, TensorFile::Contents& all, std::string_view left_out = {}) {
  const TensorFile file = find_model(open_weights(path), "").tensors;
  for (const TensorEntry& entry : file.entries()) {
    if (left_out.empty() || !entry.name.starts_with(left_out)) all.entries.push_back(entry);
  }
}

}  // namespace

TensorFile open_weights(const fs::path& path, WantsTensor wants) {
  return without_wrappers(open_by_name(path, wants));
}

TensorFile open_weights(std::span<const std::byte> file, const fs::path& name) {
  return without_wrappers(open_safetensors(file, name));
}

TensorFile open_together(const std::vector<fs::path>& files, const fs::path& path) {
  TensorFile::Contents all{.path = path};
  for (const fs::path& file : files) add(file, all);
  return TensorFile(std::move(all));
}

TensorFile open_with_head(const fs::path& model, const fs::path& head) {
  TensorFile::Contents all{.path = model};
  add(model, all, "decode_head.");
  for (TensorEntry& entry : all.entries) {
    if (entry.name.starts_with(kBackbone)) entry.name.erase(0, kBackbone.size());
  }
  add(head, all, kBackbone);
  return TensorFile(std::move(all));
}

}  // namespace vit::internal
