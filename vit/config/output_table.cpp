#include "vit/config/output_table.h"

#include <algorithm>
#include <charconv>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/config.h"
#include "vit/io/in_quotes.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"outputs", ErrorKind::argument};

Shape vectors(const OutputSizes& s) {
  return {s.num_images, s.config.pooled_dim()};
}

Shape tokens(const OutputSizes& s) {
  return {s.num_images, s.num_tokens, s.config.embed_dim};
}

GridSize cells_of(const OutputSizes& s) {
  const std::size_t size = s.config.merger ? s.config.merger->cells.size : 1;
  return {ceil_div(s.grid.rows, size), ceil_div(s.grid.columns, size)};
}

/// The library's last_hidden_state: tokens, or cells of them.
Shape last_hidden_state(const OutputSizes& s) {
  if (!s.config.has_cells_as_tokens()) return tokens(s);
  const GridSize cells = cells_of(s);
  const MergerConfig& merger = *s.config.merger;
  return {s.num_images, cells.rows * cells.columns,
          merger.width_after(*merger.tokens_after, s.config.embed_dim)};
}

std::string_view lack_of_patches(const ModelConfig& c) {
  return !c.has_cells_as_tokens() ? "" : "patches among its tokens, which are cells; request tokens";
}

std::string_view lack_of_attention(const ModelConfig& c) {
  if (c.attention.differential) return "attention probabilities: each head subtracts two";
  return !c.attention.windows ? "" : "attention over all tokens: it uses window attention";
}

std::string_view lack_of_class_token(const ModelConfig& c) {
  const bool has_token = c.tokens.class_token && !c.has_cells_as_tokens();
  return has_token ? "" : "class token; request pooled or patches";
}

std::size_t num_deepstack(const ModelConfig& config) {
  return config.merger ? config.merger->deepstack.size() : 0;
}

TensorView<const float> first_token(TensorView<const float> tokens, const Outputs& outputs) {
  VIT_CHECK(outputs.has_class_token(), kWhere.with(ErrorKind::mismatch), "this model has no class token");
  VIT_CHECK(tokens.rank() == 2, kWhere.with(ErrorKind::mismatch),
            "class tokens of several tiles, one each: ask for tokens");
  return {tokens.row(outputs.num_late_tokens()), Shape{tokens.dim(1)}};
}

TensorView<const float> feature_map(TensorView<const float> tokens, const Outputs& outputs) {
  const GridSize grid = outputs.grid();
  const std::size_t num_steps = outputs.num_steps(), width = tokens.num_columns();
  const float* const first = tokens.row(outputs.num_prefix_tokens());
  if (num_steps == 1) return {first, Shape{grid.rows, grid.columns, width}};
  VIT_CHECK(outputs.num_prefix_tokens() == 0, kWhere.with(ErrorKind::mismatch),
            "patches of several steps, each with tokens of its own in front: ask for tokens");
  return {first, Shape{num_steps, grid.rows, grid.columns, width}};
}

// ------------------------------------------------------------------------------------- of a dense head

template <Output output>
Shape map_shape(const OutputSizes& s) {
  const auto found = std::ranges::find(s.maps, output, &MapShape::output);
  VIT_CHECK(found != s.maps.end(), kWhere, "no shape of an output of a dense head");
  return {s.num_images, found->shape[0], found->shape[1], found->shape[2]};
}

/// Maps of one plane, or lists of vectors, (1, H, W): without that dimension.
TensorView<const float> one_plane(TensorView<const float> maps, const Outputs& outputs) {
  const std::size_t first = outputs.num_windows() == 1 ? 0 : 1;
  const std::size_t rows = maps.dim(first + 1), columns = maps.dim(first + 2);
  if (first == 0) return {maps.data(), Shape{rows, columns}};
  return {maps.data(), Shape{maps.dim(0), rows, columns}};
}

/// A row of a dense head; its planes are dropped if it has only one.
template <Output output>
constexpr OutputRow head_row(std::string_view name, std::string_view shape, std::string_view what,
                             bool has_planes) {
  return {.output = output,
          .name = name,
          .shape = shape,
          .what = what,
          .of_head = true,
          .shape_of = map_shape<output>,
          .part_of = has_planes ? nullptr : one_plane};
}

constexpr OutputRow kTable[] = {
    {.output = Output::pooled,
     .name = "pooled",
     .shape = "(n, C)",
     .what = "the embedding as defined by the model's own library",
     .is_vector = true,
     .lack = [](const ModelConfig& c) -> std::string_view {
       return c.head.pooling != Pooling::none ? "" : "pooled vector; request cls, patches or tokens";
     },
     .shape_of = vectors},
    {.output = Output::projected,
     .name = "projected",
     .shape = "(n, E)",
     .what = "the embedding in the joint space of images and texts (CLIP)",
     .is_vector = true,
     .lack = [](const ModelConfig& c) -> std::string_view {
       return c.head.projection ? "" : "projection to a joint space; request pooled";
     },
     .shape_of =
         [](const OutputSizes& s) {
           return Shape{s.num_images, s.config.projection_dim()};
         }},
    {.output = Output::class_token,
     .name = "cls",
     .shape = "(n, C)",
     .what = "class token after the final norm",
     .is_vector = true,
     .needs_all_tokens = true,
     .lack = lack_of_class_token,
     .stored_in = Output::tokens,
     .part_of = first_token},
    {.output = Output::patches,
     .name = "patches",
     .shape = "(n, h, w, C)",
     .what = "patch tokens after the final norm",
     .needs_all_tokens = true,
     .lack = lack_of_patches,
     .stored_in = Output::tokens,
     .part_of = feature_map},
    {.output = Output::tokens,
     .name = "tokens",
     .shape = "(n, T, C)",
     .what = "all tokens after the final norm, prefix first",
     .needs_all_tokens = true,
     .shape_of = last_hidden_state},
    {.output = Output::embedded,
     .name = "embedded",
     .shape = "(n, T, C)",
     .what = "all tokens entering block 0",
     .shape_of = tokens},
    {.output = Output::block,
     .name = "block",
     .shape = "(n, T, C)",
     .what = "all tokens after block K; block.-1 is the last one",
     .index = OutputIndex::block,
     .needs_all_tokens = true,
     .shape_of = tokens},
    {.output = Output::attention,
     .name = "attention",
     .shape = "(n, heads, T, T)",
     .what = "softmax probabilities of block K, rows are queries",
     .index = OutputIndex::block,
     .needs_all_tokens = true,
     .lack = lack_of_attention,
     .shape_of =
         [](const OutputSizes& s) {
           return Shape{s.num_images, s.config.attention.num_heads, s.num_tokens, s.num_tokens};
         }},
    {.output = Output::attention_query,
     .name = "attention_query",
     .shape = "(n, heads, T)",
     .what = "attention probabilities of the query token Q",
     .index = OutputIndex::block_and_token,
     .needs_all_tokens = true,
     .lack = lack_of_attention,
     .shape_of =
         [](const OutputSizes& s) {
           return Shape{s.num_images, s.config.attention.num_heads, s.num_tokens};
         }},
    {.output = Output::rollout,
     .name = "rollout",
     .shape = "(n, T)",
     .what = "attention rollout from token Q after block K to the tokens entering block 0",
     .index = OutputIndex::block_and_token,
     .needs_all_tokens = true,
     .lack = [](const ModelConfig& c) -> std::string_view {
       return !c.tokens.late ? lack_of_attention(c) : "rollout: some of its tokens enter late";
     },
     .shape_of =
         [](const OutputSizes& s) {
           return Shape{s.num_images, s.num_tokens};
         }},
    {.output = Output::logits,
     .name = "logits",
     .shape = "(n, classes)",
     .what = "a value for each class of the model",
     .is_vector = true,
     .lack = [](const ModelConfig& c) -> std::string_view {
       return c.head.num_classes != 0 ? "" : "classifier";
     },
     .shape_of =
         [](const OutputSizes& s) {
           return Shape{s.num_images, s.config.head.num_classes};
         }},
    {.output = Output::merged,
     .name = "merged",
     .shape = "(n, h, w, E)",
     .what = "visual tokens for a language model, after its merger or projector",
     .needs_all_tokens = true,
     .lack = [](const ModelConfig& c) -> std::string_view {
       return c.merger ? "" : "merger; request patches or tokens";
     },
     .shape_of =
         [](const OutputSizes& s) {
           const GridSize cells = cells_of(s);
           const MergerConfig& merger = *s.config.merger;
           return Shape{s.num_images, merger.out_length(cells.rows), merger.out_length(cells.columns),
                        merger.width(s.config.embed_dim)};
         }},
    {.output = Output::deepstack,
     .name = "deepstack",
     .shape = "(n, h, w, E)",
     .what = "visual tokens of the K-th merger between blocks (Qwen3-VL)",
     .index = OutputIndex::merger,
     .needs_all_tokens = true,
     .lack = [](const ModelConfig& c) -> std::string_view {
       return c.merger && !c.merger->deepstack.empty() ? "" : "mergers between its blocks";
     },
     .shape_of =
         [](const OutputSizes& s) {
           const GridSize cells = cells_of(s);
           return Shape{s.num_images, cells.rows, cells.columns,
                        deepstack_merger(*s.config.merger).width(s.config.embed_dim)};
         }},
    head_row<Output::depth>("depth", "(n, H, W)", "of a dense head: depth, before it has the image's size",
                            false),
    head_row<Output::sky>("sky", "(n, H, W)", "of a dense head: larger where there is sky", false),
    head_row<Output::normals>("normals", "(n, 3, H, W)", "of a dense head: normals of any length", true),
    head_row<Output::classes>("classes", "(n, classes, H, W)", "of a dense head: scores of classes", true),
    head_row<Output::masks>("masks", "(n, Q, H, W)", "of a dense head: masks of queries", true),
    head_row<Output::mask_classes>("mask_classes", "(n, Q, classes + 1)",
                                   "of a dense head: scores of what queries are, the last of no object",
                                   false),
    head_row<Output::heatmaps>("heatmaps", "(n, K, H, W)", "of a dense head: heat maps of keypoints", true),
    head_row<Output::boxes>("boxes", "(n, N, 4)",
                            "of a dense head: center, width and height as parts of the image", false),
    head_row<Output::box_classes>("box_classes", "(n, N, classes + 1)",
                                  "of a dense head: scores of boxes, the last of no object (YOLOS)", false),
    head_row<Output::box_vectors>("box_vectors", "(n, N, E)",
                                  "of a dense head: vectors of boxes, to be compared with texts", false),
    head_row<Output::box_terms>("box_terms", "(n, N, 2)",
                                "of a dense head: what is added to a cosine, and its factor", false),
    head_row<Output::objectness>("objectness", "(n, N, 1)", "of a dense head: score of being any object",
                                 false),
};

std::string all_patterns() {
  std::string list;
  for (const OutputRow& row : kTable) {
    if (&row != kTable) list += &row == std::end(kTable) - 1 ? " and " : ", ";
    list += pattern_of(row);
  }
  return list;
}

/// Takes the next part of "rollout.11.0" from `rest`.
std::string_view take_part(std::string_view& rest) {
  const std::size_t dot = std::min(rest.find('.'), rest.size());
  const std::string_view part = rest.substr(0, dot);
  rest.remove_prefix(std::min(dot + 1, rest.size()));
  return part;
}

long long parse_number(std::string_view digits, std::string_view name, const OutputRow& row) {
  long long number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  VIT_CHECK(error == std::errc() && end == digits.data() + digits.size(), kWhere, in_quotes(name),
            " is not a feature: ", pattern_of(row), " takes an integer");
  return number;
}

void check_lack(const OutputRow& row, const ModelConfig& config) {
  const std::string_view lack = row.lack == nullptr ? "" : row.lack(config);
  VIT_CHECK(lack.empty(), kWhere, row.name, ": this model has no ", lack);
}

void check_output(const OutputKey& key, const ModelConfig& config, const DenseConfig* head) {
  const OutputRow& row = row_of(key.output);
  check_lack(row, config);
  VIT_CHECK(!row.of_head || (head != nullptr && head->find(row.output) != nullptr), kWhere, row.name,
            head != nullptr ? ": the dense head of this model does not give it"
                            : ": this model has no dense head; a publisher's head file is given as "
                              "ModelOptions::dense.head");
  if (row.index == OutputIndex::none) return;
  const auto number = static_cast<long long>(key.index);
  VIT_CHECK(resolve_block(key.output, number, config) == key.index, kWhere, row.name, ".", number,
            ": an OutputKey counts from 0; parse_output() reads numbers from the end");
}

}  // namespace

std::span<const OutputRow> internal::output_table() {
  return kTable;
}

const OutputRow& internal::row_of(Output output) {
  const auto found = std::ranges::find(kTable, output, &OutputRow::output);
  VIT_CHECK(found != std::end(kTable), kWhere, "no output has the number ", static_cast<unsigned>(output));
  return *found;
}

std::string internal::pattern_of(const OutputRow& row) {
  std::string pattern(row.name);
  if (row.index != OutputIndex::none) pattern += ".K";
  if (row.index == OutputIndex::block_and_token) pattern += ".Q";
  return pattern;
}

std::size_t internal::vector_width(Output output, const ModelConfig& config) {
  const OutputRow& stored = row_of(row_of(output).stored_in);
  return stored.shape_of({.config = config, .num_images = 1, .grid = {1, 1}, .num_tokens = 1}).last();
}

std::size_t internal::resolve_block(Output output, long long number, const ModelConfig& config) {
  const std::string_view name = row_of(output).name;
  const bool is_merger = row_of(output).index == OutputIndex::merger;
  const auto blocks = static_cast<long long>(is_merger ? num_deepstack(config) : config.encoder.depth);
  const long long resolved = number < 0 ? number + blocks : number;
  VIT_CHECK(resolved >= 0 && resolved < blocks, kWhere, name, ".", number, ": the model has ", blocks,
            is_merger ? " such mergers, " : " blocks, ", name, ".0 to ", name, ".", blocks - 1, " (or ", name,
            ".-1 to ", name, ".-", blocks, ")");
  return static_cast<std::size_t>(resolved);
}

std::string to_string(const OutputKey& key) {
  const OutputRow& row = row_of(key.output);
  std::string name(row.name);
  if (row.index != OutputIndex::none) name += "." + std::to_string(key.index);
  if (row.index == OutputIndex::block_and_token) name += "." + std::to_string(key.token);
  return name;
}

OutputKey parse_output(std::string_view name, const ModelConfig& config, const DenseConfig* head) {
  std::string_view rest = name;
  const std::string_view first = take_part(rest);
  const auto row = std::ranges::find(kTable, first, &OutputRow::name);
  const bool is_known = row != std::end(kTable) && (row->index != OutputIndex::none || first == name);
  VIT_CHECK(is_known, kWhere, in_quotes(name), " is not a feature; known features: ", all_patterns());
  OutputKey key(row->output);
  if (row->index == OutputIndex::block || row->index == OutputIndex::merger) {
    check_lack(*row, config);
    key.index = resolve_block(key.output, parse_number(rest, name, *row), config);
  } else if (row->index == OutputIndex::block_and_token) {
    key.index = resolve_block(key.output, parse_number(take_part(rest), name, *row), config);
    const long long token = parse_number(rest, name, *row);
    VIT_CHECK(token >= 0, kWhere, name, ": tokens are counted from 0");
    key.token = static_cast<std::size_t>(token);
  }
  check_output(key, config, head);
  return key;
}

Output default_output(const ModelConfig& config) {
  return config.head.projection ? Output::projected : Output::pooled;
}

Output internal::standard_output(const ModelConfig& config) {
  if (config.merger) return Output::merged;
  const bool has_vector = config.projection_dim() != 0 || config.head.pooling != Pooling::none;
  return has_vector ? default_output(config) : Output::patches;
}

// -------------------------------------------------------------------------------------- what a request needs

void internal::check_request(const Request& request, const ModelConfig& config, const DenseConfig* head) {
  for (const OutputRow& row : kTable) {
    if (row.index == OutputIndex::none && request.has_any(row.output)) check_output(row.output, config, head);
  }
  for (const OutputKey& key : request.indexed()) check_output(key, config, head);
}

bool internal::needs_head(const Request& request) {
  return std::ranges::any_of(
      kTable, [&](const OutputRow& row) { return row.of_head && request.has_any(row.output); });
}

bool internal::is_of_head(const Request& request) {
  return std::ranges::none_of(
      kTable, [&](const OutputRow& row) { return !row.of_head && request.has_any(row.output); });
}

bool internal::needs_all_tokens(const Request& request) {
  return std::ranges::any_of(
      kTable, [&](const OutputRow& row) { return row.needs_all_tokens && request.has_any(row.output); });
}

}  // namespace vit
