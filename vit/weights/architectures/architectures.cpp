// The list of all published architectures by name, and the search in it. Its rows are in architectures_*.cpp.
#include <algorithm>
#include <numeric>

#include "vit/base/error.h"
#include "vit/weights/architectures/architecture_list.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/files/in_quotes.h"

namespace vit::internal {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

namespace architecture_list {

Architecture make(std::string name, std::string family, const Size& size, std::size_t patch_size,
                  std::size_t image) {
  Architecture a;
  a.name = std::move(name);
  a.family = std::move(family);
  a.args.embed_dim = size.embed_dim;
  a.args.depth = size.depth;
  a.args.num_heads = size.num_heads;
  a.args.patch_size = patch_size;
  a.args.image_height = a.args.image_width = image;
  return a;
}

Architecture make_eva(std::string name, std::string family, const Size& size, std::size_t patch_size,
                      std::size_t image) {
  Architecture a = make(std::move(name), std::move(family), size, patch_size, image);
  a.args.timm_class = TimmClass::eva;
  a.args.global_pool = "avg";
  return a;
}

}  // namespace architecture_list

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> list = [] {
    std::vector<Architecture> all;
    architecture_list::add_rope(all);
    architecture_list::add_plain(all);
    architecture_list::add_backbones(all);
    architecture_list::add_publishers(all);
    return all;
  }();
  return list;
}

std::vector<std::string> nearest_architectures(std::string_view name, std::size_t count) {
  const std::string_view bounded = name.substr(0, 100);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const Architecture& a : architectures()) ranked.emplace_back(edit_distance(bounded, a.name), a.name);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) names.push_back(ranked[i].second);
  return names;
}

const Architecture* find_known_architecture(std::string_view name) {
  static const std::vector<architecture_list::FormerName> former =
      architecture_list::former_names(architectures());
  const std::string_view tagged = name.substr(name.rfind('/') + 1);  // npos + 1 = 0
  const std::string_view plain = tagged.substr(0, tagged.find('.'));
  for (const auto& [former_name, current] : former) {
    if (former_name == plain || current.name == tagged) return &current;
  }
  for (const Architecture& a : architectures()) {
    if (a.name == plain) return &a;
  }
  return nullptr;
}

const Architecture& find_architecture(std::string_view name) {
  if (const Architecture* const known = find_known_architecture(name)) return *known;
  std::string near;
  for (const std::string& candidate : nearest_architectures(name.substr(0, name.find('.')), 3))
    near += (near.empty() ? "" : ", ") + candidate;
  fail("find_architecture", "unknown architecture ", in_quotes(name), "; the nearest known names are ", near);
}

PreprocessConfig architecture_preprocess(const ModelConfig& config, const PreprocessLoadOptions& options) {
  const Architecture* row = &find_architecture(config.architecture);
  for (const Architecture& a :
       architectures()) {  // a publisher's file may have been loaded by timm's name for it
    if (a.library == config.library && a.timm_name == row->name) row = &a;
  }
  PreprocessLoadOptions chosen = options;
  if (row->resampler == Resampler::torchvision_uint8 && chosen.resampler == ResamplerChoice::automatic) {
    chosen.resampler = ResamplerChoice::torchvision;
  }
  return build_timm_preprocess({.height = row->evaluated_at != 0 ? row->evaluated_at : config.image_height,
                                .width = row->evaluated_at != 0 ? row->evaluated_at : config.image_width,
                                .crop_pct = row->crop_pct,
                                .crop_mode = row->squash ? TimmCropMode::squash : TimmCropMode::center,
                                .filter = row->filter,
                                .mean = row->mean,
                                .std = row->std},
                               chosen, row->library + " " + row->name);
}

}  // namespace vit::internal
