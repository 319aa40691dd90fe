// vit rope: the conventions of rotary positions: a list, their tables, and which one a file follows.
#include "apps/vit/commands/rope.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "apps/vit/commands/commands.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/usage_error.h"
#include "vit/base/check.h"
#include "vit/position/convention_tables.h"
#include "vit/position/rope_json.h"

namespace vit::app {
using namespace position;
namespace {

constexpr const char* kFooter =
    "The page vit/position/README.md explains the choices. Tables are float64: coords (N, 2) as x, y; "
    "angles, cos and sin (N, d/2), of each head where they differ (H, N, d/2); --vectors adds q, k, "
    "q_rotated, k_rotated (1, P + N, 2, d) and scores (2, P + N, P + N). identify reads cos and sin, or "
    "angles, or complex freqs_cis, or q and q_rotated, from .npz or .safetensors, or the one array of a .npy "
    "file: complex factors, cosines and sines in a first or last dimension of 2, or else angles; in any "
    "precision. It exits with 0 if they follow a published convention, with 1 if not.\n"
    "Examples:\n"
    "  vit rope --list\n"
    "  vit rope --family dinov3 --grid 14x20 --head-dim 64 --output tables.safetensors\n"
    "  vit rope --coordinates index --order yx --pairing halves --theta 10000 --grid 16x16 --head-dim 64 "
    "--png rope.png\n"
    "  vit rope identify tables.safetensors --against qwen2-vl";

constexpr std::size_t kMaxEdge = 4096;

constexpr Named<std::optional<PatchCoordinates>> kCoordinates[]{
    {"index", PatchCoordinates::index},       {"scaled", PatchCoordinates::scaled_to_reference},
    {"centered", PatchCoordinates::centered}, {"corners", PatchCoordinates::corners},
    {"linspace", PatchCoordinates::linspace}, {"fraction", PatchCoordinates::fraction}};
constexpr Named<std::optional<AxisOrder>> kOrders[]{{"xy", AxisOrder::x_then_y}, {"yx", AxisOrder::y_then_x}};
constexpr Named<std::optional<PairLayout>> kChannels[]{{"neighbors", PairLayout::neighbors},
                                                       {"halves", PairLayout::halves},
                                                       {"alternating", PairLayout::alternating},
                                                       {"halves_by_axis", PairLayout::halves_by_axis}};
constexpr Named<std::optional<FrequencyRule>> kRules[]{
    {"theta", FrequencyRule::theta}, {"periods", FrequencyRule::periods}, {"pixel", FrequencyRule::pixel}};

GridSize parse_grid(const std::string& value) {
  const std::size_t cross = value.find('x');
  if (cross == std::string::npos) fail_value("HxW, rows and columns of patches", value);
  return {parse_integer(value.substr(0, cross), 1, kMaxEdge),
          parse_integer(value.substr(cross + 1), 1, kMaxEdge)};
}

PeriodRange parse_periods(const std::string& value) {
  const std::size_t comma = value.find(',');
  if (comma == std::string::npos) fail_value("SHORTEST,LONGEST", value);
  const PeriodRange range{.shortest = parse_real(value.substr(0, comma), 1e-9, 1e12),
                          .longest = parse_real(value.substr(comma + 1), 1e-9, 1e12)};
  if (range.shortest > range.longest) fail_value("SHORTEST,LONGEST in this order", value);
  return range;
}

template <typename T>
Target real_target(std::optional<T>& destination, double min, double max) {
  return parsed_target(destination,
                       [min, max](const std::string& value) { return parse_real(value, min, max); });
}

int list_conventions(PrintFormat format) {
  std::string out;
  for (const RopeConvention& c : rope_conventions()) {
    if (format == PrintFormat::json) {
      out += internal::to_json(c) + "\n";
      continue;
    }
    std::string families;
    for (const std::string& family : c.families) families += (families.empty() ? "" : ", ") + family;
    std::string line = c.name;
    const auto column = [&](std::string_view word, std::size_t at) {
      line.resize(std::max(line.size() + 2, at), ' ');
      line += word;
    };
    column(c.window != 0 ? "windows" : to_string(c.coordinates), 25);
    column(c.offset == 0.0 ? "" : text("+ ", c.offset), 34);
    column(order_of(c), 39);
    column(to_string(c.channels), 44);
    column(formula(c), 60);
    out += line + "\n    " + families + "\n";
  }
  print_result(out);
  return 0;
}

int run(const RopeOptions& options) {
  const bool identifies = !options.words.empty();
  if (identifies && options.words.front() != "identify")
    fail_usage("expected identify FILE, found '", options.words.front(), "'");
  if (identifies && options.words.size() != 2) fail_usage("vit rope identify FILE takes one file");
  if (options.list + identifies + (!options.output.empty() || !options.png.empty()) > 1)
    fail_usage("--list, identify and --output exclude each other");
  if (identifies) return identify_rope_tables(options);
  if (!options.against.empty()) fail_usage("--against is for vit rope identify FILE");
  if (options.list && (!options.family.empty() || options.grid))
    fail_usage("--list lists all conventions; --family and --grid are for the tables of one");
  if (options.list) return list_conventions(options.format);
  return write_rope_tables(options);
}

void add_choices(std::vector<Option>& list, RopeOptions& o) {
  const auto add = [&](const char* name, const char* type, const char* help, Target target) {
    list.push_back({.name = name,
                    .type_name = type,
                    .help = help,
                    .target = std::move(target),
                    .group = "Choices in place of --family"});
  };
  add("--coordinates", "RULE",
      "index (default), scaled to --reference, centered in [-1, 1], corners at 0 and --reference - 1, "
      "linspace with the corners at -1 and 1, or fraction with the centers in [0, 1]",
      choice_target(o.coordinates, kCoordinates));
  add("--offset", "A", "Added to the index of a patch", real_target(o.offset, -1e6, 1e6));
  add("--reference", "HxW", "Grid that coordinates are scaled to, or whose corners they share",
      parsed_target(o.reference, parse_grid));
  add("--order", "ORDER", "Axis of the first half of the pairs: xy (default) or yx",
      choice_target(o.order, kOrders));
  add("--pairing", "PAIRING",
      "neighbors (2i, 2i + 1; default) or halves (i, i + d/2); alternating and halves_by_axis as MoonViT and "
      "CroCo store them",
      choice_target(o.channels, kChannels));
  add("--frequencies", "RULE", "theta (default), periods, or pixel", choice_target(o.rule, kRules));
  add("--theta", "T", "Base of the frequencies, 10000 by default", real_target(o.theta, 1e-9, 1e15));
  add("--periods", "SHORTEST,LONGEST", "Of periods", parsed_target(o.periods, parse_periods));
  add("--max-frequency", "M", "Of pixel", real_target(o.max_frequency, 1e-9, 1e12));
  add("--factor", "F", "Of all frequencies, 1 by default; 6.283185307179586 if they count turns",
      real_target(o.factor, -1e12, 1e12));
}

}  // namespace

const RopeConvention& known_convention(const char* option, const std::string& name) {
  if (const RopeConvention* const found = find_rope_convention(name)) return *found;
  std::string names;
  for (const RopeConvention& convention : rope_conventions())
    names += (names.empty() ? "" : ", ") + convention.name;
  fail_usage(option, ": expected one of ", names, " or a family of these (vit rope --list), found '", name,
             "'");
}

Command rope_command() {
  const auto options = std::make_shared<RopeOptions>();
  RopeOptions& o = *options;
  std::vector<std::string> names;
  for (const RopeConvention& convention : rope_conventions()) names.push_back(convention.name);
  const auto name_target = [&](std::string& destination) {
    return offering(text_target(destination), names);
  };
  Command command{
      .name = "rope",
      .summary = "Rotary positions: conventions, tables, and which one a file follows",
      .footer = kFooter,
      .options =
          {{.name = "ACTION",
            .type_name = "",
            .help =
                "identify FILE: says which convention cosines and sines, angles, or rotated vectors follow",
            .target = {[&o](const std::vector<std::string>& values) { o.words = values; }, "", {"identify"}},
            .occurs = Occurs::all_positionals},
           {.name = "--list", .type_name = "", .help = "Lists the conventions", .flag = &o.list},
           {.name = "--format",
            .type_name = "FORMAT",
            .help = "Of --list and identify: text or json",
            .target = choice_target(o.format, kPrintFormatsWithoutCsv)},
           {.name = "--family",
            .type_name = "NAME",
            .help = "A convention or family of --list",
            .target = name_target(o.family)},
           {.name = "--grid",
            .type_name = "HxW",
            .help = "Rows and columns of patches; identify finds them if they are not given",
            .target = parsed_target(o.grid, parse_grid)},
           {.name = "--head-dim",
            .type_name = "D",
            .help = "Channels of a head",
            .target = integer_target(o.head_dim, std::size_t{2}, kMaxEdge)},
           {.name = "--frames",
            .type_name = "N",
            .help = "Frames of a clip, where time is an axis",
            .target = integer_target(o.num_frames, std::size_t{1}, kMaxEdge)},
           {.name = "--heads",
            .type_name = "H",
            .help = "Heads, 2 by default: of tables if heads differ, and of --vectors",
            .target = parsed_target(
                o.num_heads, [](const std::string& value) { return parse_integer(value, 1, kMaxEdge); })},
           {.name = "--prefix",
            .type_name = "P",
            .help = "Tokens before the patches, which are not rotated",
            .target = parsed_target(
                o.num_prefix, [](const std::string& value) { return parse_integer(value, 0, kMaxEdge); })},
           {.name = "-o,--output",
            .type_name = "FILE",
            .help = "Tables, to .safetensors or .npz",
            .target = text_target(o.output)},
           {.name = "--png",
            .type_name = "FILE",
            .help = "Picture: the cosine of every pair over the grid",
            .target = text_target(o.png)},
           {.name = "--vectors",
            .type_name = "",
            .help = "Also writes random queries and keys, before and after the rotation, and scores",
            .flag = &o.vectors},
           {.name = "--against",
            .type_name = "NAME",
            .help = "identify: lists what differs from this convention",
            .target = name_target(o.against)}},
      .run = [options] { return run(*options); }};
  add_choices(command.options, o);
  return command;
}

}  // namespace vit::app
