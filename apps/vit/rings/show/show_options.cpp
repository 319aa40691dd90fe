#include "apps/vit/rings/show/show_options.h"

#include <charconv>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "vit/config.h"

namespace vit::app {
namespace {

constexpr Named<DrawStyle> kStyles[]{{"overlay", DrawStyle::overlay}, {"plain", DrawStyle::plain}};
constexpr Named<What> kKinds[]{
    {"pca", What::pca},     {"attention", What::attention}, {"similarity", What::similarity},
    {"match", What::match}, {"depth", What::depth},         {"segments", What::segments}};
constexpr std::size_t kMaxPixel = 1'000'000;
constexpr std::size_t kMaxHead = 10'000;

What parse_what(const std::string& value) {
  for (const auto& [name, what] : kKinds) {
    if (name == value) return what;
  }
  fail_value("one of pca, attention, similarity, match, depth, segments", value);
}

long long parse_layer(const std::string& value) {
  long long number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size())
    fail_value("an integer, negative from the end", value);
  return number;
}

void parse_head(const std::string& value, ShowOptions& options) {
  options.heads = value == "all" ? HeadChoice::all : value == "mean" ? HeadChoice::mean : HeadChoice::one;
  if (options.heads == HeadChoice::one) options.head = parse_integer(value, 0, kMaxHead);
}

void parse_query(const std::string& value, ShowOptions& options) {
  options.has_query = true;
  if (value == "cls") return options.pixel.reset();
  const std::size_t comma = value.find(',');
  if (comma == std::string::npos) fail_value("cls or a pixel X,Y", value);
  options.pixel = {parse_integer(value.substr(0, comma), 0, kMaxPixel),
                   parse_integer(value.substr(comma + 1), 0, kMaxPixel)};
}

}  // namespace

std::vector<Option> show_option_list(ShowOptions& options) {
  return {
      inputs_option(options.inputs),
      {.name = "--what",
       .type_name = "WHAT",
       .help = "pca, attention, similarity, match, depth or segments, see below",
       .target = offering(parsed_target(options.what, parse_what),
                          {"pca", "attention", "similarity", "match", "depth", "segments"}),
       .is_required = true},
      {.name = "-o,--output",
       .type_name = "PATH",
       .help = "FILE.png for all inputs together, or a folder for one picture per input",
       .target = text_target(options.output)},
      {.name = "--data",
       .type_name = "FILE",
       .help = "Write the values to a .npz file",
       .target = text_target(options.data)},
      html_option(options.html),
      {.name = "--layer",
       .type_name = "K",
       .help = "Block, from 0 or negative from the end",
       .target = parsed_target(options.layer, parse_layer, "-1")},
      {.name = "--head",
       .type_name = "H",
       .help = "Head of the attention: a number from 0, mean or all",
       .target = {[&options](const std::vector<std::string>& values) { parse_head(values.front(), options); },
                  "mean",
                  {"mean", "all"}}},
      {.name = "--query",
       .type_name = "cls|X,Y",
       .help =
           "The class token, or the patch at a pixel of the source image (of the first one for similarity)",
       .target = {[&options](const std::vector<std::string>& values) {
                    parse_query(values.front(), options);
                  },
                  "cls for attention",
                  {"cls"}}},
      {.name = "--rollout",
       .type_name = "",
       .help = "Attention rolled out through all blocks up to --layer",
       .flag = &options.rollout},
      {.name = "--foreground",
       .type_name = "",
       .help = "Hide patches on the background side of component 1 (pca)",
       .flag = &options.foreground},
      {.name = "--style",
       .type_name = "STYLE",
       .help = "overlay: colors over the image, interpolated (bilinear); plain: each patch as a rectangle",
       .target = choice_target(options.style, kStyles)}};
}

void check_show_options(const ShowOptions& options) {
  const What what = *options.what;
  if (options.output.empty() && options.data.empty() && options.html.empty())
    fail_usage("--output, --data or --html is required");
  if (options.has_query && what != What::attention && what != What::similarity)
    fail_usage("--query requires --what attention and similarity");
  if (what == What::similarity && !options.pixel)
    fail_usage("--what similarity needs the patch to compare with: --query X,Y, a pixel of the first input");
  if (what != What::attention && options.heads != HeadChoice::mean)
    fail_usage("--head requires --what attention");
  if (what != What::attention && options.rollout) fail_usage("--rollout requires --what attention");
  if (options.rollout && options.heads != HeadChoice::mean)
    fail_usage("--rollout uses the mean of the heads; omit --head");
  if (what != What::pca && options.foreground) fail_usage("--foreground requires --what pca");
}

std::size_t resolve_layer(const ShowOptions& options, const ModelConfig& config) {
  const auto depth = static_cast<long long>(config.encoder.depth);
  const long long layer = options.layer < 0 ? options.layer + depth : options.layer;
  if (layer < 0 || layer >= depth)
    fail_usage("--layer: the model has ", depth, " blocks, 0 to ", depth - 1, " (or -1 to -", depth,
               "), found ", options.layer);
  return static_cast<std::size_t>(layer);
}

}  // namespace vit::app
