#include "vit/io/shards.h"

#include <algorithm>
#include <map>
#include <set>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"open_shards", ErrorKind::format};
constexpr Where kMismatch = kWhere.with(ErrorKind::mismatch);
constexpr std::size_t kMaxFileName = 255;  // of the systems

}  // namespace

TensorFile open_shards(const std::filesystem::path& path,
                       TensorFile (*open_shard)(const std::filesystem::path&), WantsTensor wants) {
  const Json index = load_json(path);
  const std::string name = path.string();
  const Json weight_map = index.at("weight_map");
  weight_map.expect(Json::Kind::object);
  VIT_CHECK(weight_map.size() > 0, kWhere, name, ": weight_map names no tensor");

  std::map<std::string, std::size_t> num_expected;  // tensors per shard
  std::set<std::string> wanted;                     // shards
  for (std::size_t i = 0; i < weight_map.size(); ++i) {
    const std::string_view shard = weight_map[i].as_string();
    const bool plain = !shard.empty() && shard.size() <= kMaxFileName && shard != "." && shard != ".." &&
                       std::none_of(shard.begin(), shard.end(), [](unsigned char c) {
                         return c < 0x20 || c == 0x7F || c == '/' || c == '\\';
                       });
    VIT_CHECK(plain, kWhere, name, ": tensor ", in_quotes(weight_map[i].key()), " points to ",
              in_quotes(shard), ", expected the name of a file next to the index");
    ++num_expected[std::string(shard)];
    if (wants == nullptr || wants(weight_map[i].key())) wanted.emplace(shard);
  }
  if (wanted.empty())
    wanted.insert(num_expected.begin()->first);  // missing parts are reported by their tensors

  TensorFile::Contents contents{.path = path};
  for (std::size_t i = 0; i < weight_map.size(); ++i) {
    if (!wanted.contains(std::string(weight_map[i].as_string())))
      contents.unread.emplace_back(weight_map[i].key());
  }
  for (const auto& [shard, expected] : num_expected) {
    if (!wanted.contains(shard)) continue;
    const TensorFile file = open_shard(path.parent_path() / shard);
    for (const TensorEntry& entry : file.entries()) {
      const auto listed = weight_map.find(entry.name);
      VIT_CHECK(listed.has_value(), kMismatch, name, ": ", entry.describe(), " is not in the weight_map");
      VIT_CHECK(listed->as_string() == shard, kMismatch, name, ": ", entry.describe(), " belongs in ",
                in_quotes(listed->as_string()));
      contents.entries.push_back(entry);
    }
    if (file.entries().size() != expected) {
      for (std::size_t i = 0; i < weight_map.size(); ++i) {
        VIT_CHECK(weight_map[i].as_string() != shard || file.find(weight_map[i].key()) != nullptr, kMismatch,
                  name, ": tensor ", in_quotes(weight_map[i].key()), " is missing from ", in_quotes(shard));
      }
    }
    contents.metadata.insert(file.metadata().begin(), file.metadata().end());
    contents.members.insert(contents.members.end(), file.members().begin(), file.members().end());
  }
  return TensorFile(std::move(contents));
}

}  // namespace vit::internal
