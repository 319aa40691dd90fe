#include "vit/weights/checkpoint/layout_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/config/fields.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json_writer.h"
#include "vit/position/rope.h"

namespace vit::internal {
namespace {

/// A name of a choice; files of 0.2 have two of them in British spelling.
std::string_view current_spelling(std::string_view name) {
  if (name == "centred") return "centered";
  return name == "neighbours" ? "neighbors" : name;
}

constexpr Where kWhere{"read_layout", ErrorKind::format};
constexpr SizeRange kCount{0, 1u << 22};

/// Every key must be one of `known`.
void check_keys(const Json& object, const std::set<std::string>& known) {
  object.expect(Json::Kind::object);
  for (std::size_t i = 0; i < object.size(); ++i) {
    const std::string key(object[i].key());
    VIT_CHECK(known.contains(key), kWhere, object[i].where(), ": unknown key; known are ",
              listed({known.begin(), known.end()}, known.size()));
  }
}

/// Reads fields by their names from the members of an object, and collects what is given.
struct Reader {
  const Json& object;
  std::string prefix;  // "position."
  std::set<std::string>& given;
  std::set<std::string>& known;

  template <typename Field>
  void operator()(const char* name, Field& field, Shown = Shown::always) const {
    known.insert(name);
    const auto value = object.find(name);
    if (!value) return;
    given.insert(prefix + name);
    read(*value, prefix + name, field);
  }

  /// A norm of a kind of its own. With only a kind, the tensors decide whether it is there.
  void norm(const char* name, const char* kind_name, std::optional<NormKind>& norm) const {
    NormKind kind = norm.value_or(NormKind::rms);
    (*this)(kind_name, kind);
    bool is_present = norm.has_value() || given.contains(prefix + kind_name);
    (*this)(name, is_present);
    norm = is_present ? std::optional(kind) : std::nullopt;
  }

  /// One value of a choice; of those that exclude each other only one may be true.
  template <typename Enum>
  void flag(const char* name, Enum& choice, Enum value, Shown = Shown::always) const {
    const bool was_set = choice == value;
    bool is_set = was_set;
    (*this)(name, is_set);
    if (is_set == was_set) return;
    VIT_CHECK(!is_set || choice == Enum{}, kWhere, object.at(name).where(),
              " is true, and so is what it excludes");
    choice = is_set ? value : Enum{};
  }

  void read(const Json& value, const std::string&, bool& field) const { field = value.as_bool(); }
  void read(const Json& value, const std::string&, double& field) const { field = value.as_double(); }
  void read(const Json& value, const std::string&, float& field) const {
    field = static_cast<float>(value.as_double());
  }
  void read(const Json& value, const std::string&, std::size_t& field) const {
    field = value.as_size(kCount);
  }
  void read(const Json& value, const std::string&, std::vector<double>& field) const {
    VIT_CHECK(value.is_array() && value.size() >= 1 && value.size() <= kMaxChannels, kWhere, value.where(),
              " must be an array of a number for each channel, three for R, G, B");
    field.clear();
    for (std::size_t i = 0; i < value.size(); ++i) field.push_back(value[i].as_double());
  }
  void read(const Json& value, const std::string&, std::array<unsigned char, 3>& field) const {
    value.expect_array(3, "three numbers (R, G, B)");
    for (std::size_t i = 0; i < 3; ++i) field[i] = static_cast<unsigned char>(value[i].as_size({0, 255}));
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void read(const Json& value, const std::string&, Enum& field) const {
    const auto& names = EnumNames<Enum>::values;
    std::string_view word = current_spelling(value.as_string());
    if (std::is_same_v<Enum, Pooling> && word == "class_and_patch_mean") word = "cls+mean";
    const auto found = std::ranges::find(names, word);
    VIT_CHECK(found != std::end(names), kWhere, value.where(), " must be one of ",
              listed({std::begin(names), std::end(names)}, std::size(names)), ", found ",
              in_quotes(value.as_string()));
    field = static_cast<Enum>(found - std::begin(names));
  }
  void read(const Json& value, const std::string& name, GridSize& field) const {
    nested(value, name, [&](const Reader& reader) { visit_grid(field, reader); });
  }
  void read(const Json& value, const std::string& name, PositionConfig& field) const {
    nested(value, name, [&](const Reader& reader) { visit_position(field, reader); });
  }
  void read(const Json& value, const std::string& name, std::optional<RelativeConfig>& field) const {
    if (!field) field.emplace();
    nested(value, name, [&](const Reader& reader) { visit_relative(*field, reader); });
  }
  void read(const Json& value, const std::string&, std::optional<RopeScaling>& field) const {
    field = position::parse_rope_scaling(value.as_string());
  }
  void read(const Json& value, const std::string&, std::vector<std::size_t>& field) const {
    value.expect(Json::Kind::array);
    field.clear();
    for (std::size_t i = 0; i < value.size(); ++i) field.push_back(value[i].as_size(kCount));
  }
  void read(const Json& value, const std::string& name, MergerFields& field) const {
    nested(value, name, [&](const Reader& reader) { visit_merger(field, reader); });
  }
  void read(const Json& value, const std::string& name, std::optional<AttentionPoolConfig>& field) const {
    if (!field) field.emplace();
    nested(value, name, [&](const Reader& reader) { visit_attention_pool(*field, reader); });
  }
  template <typename Visit>
  void nested(const Json& value, const std::string& name, const Visit& visit) const {
    value.expect(Json::Kind::object);
    std::set<std::string> own;
    visit(Reader{value, name + ".", given, own});
    check_keys(value, own);
  }
};

/// The members of `config` that ModelOptions::overrides give: by their names, those of `position` after a
/// dot, and both edges of the image as timm's img_size.
std::string overrides_as_json(const std::map<std::string, std::string>& overrides) {
  std::string out, nested;
  JsonWriter top(out, JsonLayout::compact), position(nested, JsonLayout::compact);
  top.begin_object();
  for (const auto& [key, value] : overrides) {
    const bool literal =
        !value.empty() && (value == "true" || value == "false" ||
                           std::string_view("-0123456789").find(value[0]) != std::string_view::npos);
    if (key == "img_size") {
      const std::size_t cross = value.find('x');
      top.key("image_height").json(value.substr(0, cross));
      top.key("image_width").json(value.substr(cross == value.npos ? 0 : cross + 1));
      continue;
    }
    constexpr std::string_view kPosition = "position.";
    const bool inner = key.starts_with(kPosition);
    JsonWriter& json = (inner ? position : top).key(inner ? key.substr(kPosition.size()) : key);
    if (literal) {
      json.json(value);
    } else {
      json.value(value);
    }
  }
  if (!nested.empty()) top.key("position").json("{" + nested + "}");
  top.end_object();
  return out;
}

std::vector<std::string> read_labels(const Json& layout) {
  std::vector<std::string> labels;
  const auto list = layout.find("labels");
  if (!list) return labels;
  list->expect(Json::Kind::array);
  for (std::size_t i = 0; i < list->size(); ++i) labels.emplace_back((*list)[i].as_string());
  return labels;
}

/// The prefix under which the patch tensor was found, or for messages the first of the layout.
Match find_prefix(const SourceFiles& files, const Json& layout, const Layout& tables) {
  const std::span<const Source> patch = tables.sources(Part::patch_weight);
  const bool found = !patch.empty() && files.tensors.find(files.root + patch.front().name(0)) != nullptr;
  std::string first = files.root;
  if (const auto prefixes = layout.find("prefixes")) {
    VIT_CHECK(prefixes->is_array() && prefixes->size() != 0, kWhere, prefixes->where(),
              " must be an array of names");
    for (std::size_t i = prefixes->size(); i-- > 0;) first = (*prefixes)[i].as_string();
  }
  return {.prefix = found ? files.root : first, .outside = files.root};
}

}  // namespace

Json load_layout(const std::filesystem::path& path) {
  Json layout = load_json(path, {.max_bytes = 64u << 20, .max_depth = 16, .max_values = 4'000'000});
  check_keys(layout,
             {"about", "architecture", "config", "tensors", "ignore", "prefixes", "preprocess", "labels"});
  return layout;
}

OwnNames layout_names(const Json& layout) {
  const std::shared_ptr<LayoutTables> tables = read_layout_tables(layout);
  const Layout rows = {tables->rows};
  const auto name_of = [&](Part part) {
    const std::span<const Source> sources = rows.sources(part);
    return sources.empty() ? std::string() : sources.front().name(0);
  };
  constexpr std::string_view kWeight = ".weight";
  std::string head = name_of(Part::head_weight);
  head.resize(head.ends_with(kWeight) ? head.size() - kWeight.size() : 0);
  return {.patch = name_of(Part::patch_weight), .head = std::move(head)};
}

ParsedModel read_by_layout(SourceFiles& files, const Json& layout) {
  VIT_CHECK(files.options.architecture.empty(), kWhere.with(ErrorKind::argument), layout.file(),
            ": ModelOptions::layout says everything; ModelOptions::architecture is not allowed with it");
  const std::shared_ptr<LayoutTables> tables = read_layout_tables(layout);
  ParsedModel out{.config = {}, .layout = {tables->rows}, .texts = tables};
  out.match = files.match = find_prefix(files, layout, out.layout);
  out.config.architecture = layout.find_string("architecture").value_or("");
  out.config.family = "layout";
  out.config.library = std::filesystem::path(layout.file()).filename().string();
  std::set<std::string> given;
  if (const auto config = layout.find("config")) {
    std::set<std::string> known;
    visit_model(out.config, Reader{*config, "", given, known});
    check_keys(*config, known);
  }
  if (!files.options.overrides.empty()) {
    const Json changes = parse_json(overrides_as_json(files.options.overrides), "overrides");
    std::set<std::string> known;
    visit_model(out.config, Reader{changes, "", given, known});
    check_keys(changes, known);
  }
  infer_sizes(files, layout.file(), given, out);
  out.config.head.labels = read_labels(layout);
  out.ignored.push_back(tables->ignored);
  return out;
}

PreprocessConfig read_layout_preprocess(const Json& layout, const ModelConfig& model,
                                        const ModelOptions& options) {
  const Json json = layout.at("preprocess");
  PreprocessConfig config;
  config.source = layout.file();
  config.pillow = options.pillow;
  std::set<std::string> given, known;
  visit_preprocess(config, Reader{json, "", given, known});
  check_keys(json, known);
  if (!given.contains("crop_height")) config.crop_height = model.image.height;
  if (!given.contains("crop_width")) config.crop_width = model.image.width;
  const double ratio = config.crop_pct > 0.0 ? config.crop_pct : 1.0;
  const auto enlarged = [&](std::size_t edge) {
    return static_cast<std::size_t>(std::floor(static_cast<double>(edge) / std::clamp(ratio, 0.01, 10.0)));
  };
  if (!given.contains("resize_height")) config.resize_height = enlarged(config.crop_height);
  if (!given.contains("resize_width")) config.resize_width = enlarged(config.crop_width);
  if (options.resampler == ResamplerChoice::pillow) config.resampler = Resampler::pillow;
  if (options.resampler == ResamplerChoice::torchvision) config.resampler = Resampler::torchvision_uint8;
  if (options.exif != ExifChoice::automatic) config.apply_orientation = options.exif == ExifChoice::apply;
  validate(config);
  return config;
}

}  // namespace vit::internal
