#include "vit/weights/checkpoint/layout_file.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"read_layout", ErrorKind::mismatch};

std::size_t edge_of(std::size_t square) {
  const auto edge = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(square))));
  return edge * edge == square ? edge : 0;
}

class Inference {
 public:
  Inference(const SourceFiles& files, const std::set<std::string>& given, ParsedModel& reading)
      : files_(files), given_(given), layout_(reading.layout), c_(reading.config) {}

  void run() {
    for (const Part part : {Part::patch_weight, Part::norm1_gamma, Part::qkv_weight, Part::fc2_weight})
      check_found(part);
    infer_parts();
    infer_biases();
    infer_widths();
    infer_heads();
    infer_position();
    infer_ends();
  }
  const std::vector<std::string>& lacking() const { return lacking_; }

 private:
  bool is_given(const std::string& field) const { return given_.contains(field); }
  template <typename Field>
  void set(const char* name, Field& field, const Field& value) {
    if (!is_given(name)) field = value;
  }
  /// One value of a choice, under a name of its own, if the layout chose nothing else.
  template <typename Enum>
  void set_flag(const char* name, Enum& choice, Enum value, bool is_there) {
    if (choice == Enum{} && !is_given(name) && is_there) choice = value;
  }
  void ask(const std::string& field) {
    if (!is_given(field)) lacking_.push_back(field);
  }
  bool is_listed(Part part) const { return !layout_.sources(part).empty(); }
  /// Whether the layout has the part, and the file some of it, or the layout all of it.
  bool has(Part part) const {
    const auto sources = layout_.sources(part);
    return std::ranges::any_of(sources, [&](const Source& source) {
      if (!source.is_stored()) return sources.size() == 1;
      const TensorEntry* const entry = files_.find(source.name(0), source.row.place);
      return entry != nullptr && entry->num_elements() != 0;
    });
  }
  /// Rows of a matrix as the model has it, by the first of its pieces; 0 where no file says.
  std::size_t rows(Part part) const { return dimension(part, 0); }
  std::size_t columns(Part part) const { return dimension(part, 1); }
  std::size_t dimension(Part part, std::size_t index) const {
    for (const Source& source : layout_.sources(part)) {
      const TensorEntry* const entry =
          source.is_stored() ? files_.find(source.name(0), source.row.place) : nullptr;
      if (entry == nullptr || entry->shape.empty()) continue;
      const bool matrix = entry->shape.size() >= 2;
      const std::size_t at = matrix && source.row.form == Form::transposed ? 1 - index : index;
      if (at >= entry->shape.size()) return 0;
      const std::size_t size = entry->shape[at];
      return index == 0 ? size / source.row.from.of * source.row.into.of : size;
    }
    return 0;
  }
  /// The parts that say most: a name misspelt in the layout is reported as such.
  void check_found(Part part) const {
    for (const Source& source : layout_.sources(part)) {
      if (!files_.has_weights || !source.is_stored()) continue;
      const std::string name = source.name(0);
      VIT_CHECK(files_.find(name, source.row.place) != nullptr, kWhere, "tensors: ", part_name(part),
                " is said to be ", in_quotes(files_.match.prefix + name), ", which ", files_.weights_name,
                " does not hold");
    }
  }
  std::size_t length(Part part) const {
    const TensorEntry* const entry = files_.find(layout_, part);
    return entry == nullptr || entry->shape.empty() ? 0 : entry->shape.back();
  }

  void infer_parts() {
    set("patch_norm", c_.patch.norm, has(Part::patch_norm_gamma));
    set("embed_norm", c_.patch.embed_norm, has(Part::embed_norm_gamma));
    set_flag("input_norm", c_.patch.pixels, PixelRule::stored, has(Part::pixel_mean));
    bool qk_norm = c_.attention.qk_norm.has_value();
    NormKind qk_norm_kind = c_.attention.qk_norm.value_or(NormKind::rms);
    set("qk_norm", qk_norm, has(Part::q_norm_gamma));
    set("qk_norm_kind", qk_norm_kind, has(Part::q_norm_beta) ? NormKind::layer : NormKind::rms);
    c_.attention.qk_norm = qk_norm ? std::optional(qk_norm_kind) : std::nullopt;
    // a LayerNorm without bias and an RMSNorm look alike
    if (has(Part::norm1_gamma) && !files_.any_block_has(layout_, Part::norm1_beta)) ask("norm_kind");
    set("class_token", c_.tokens.class_token, has(Part::class_token));
    set("distillation_token", c_.tokens.distillation_token, has(Part::distillation_token));
    set("norm_pre", c_.encoder.norm_pre, has(Part::norm_pre_gamma));
    set("attention_norm", c_.attention.norm, has(Part::attention_norm_gamma));
    set("mlp_norm", c_.mlp.norm, has(Part::mlp_norm_gamma));
    set("layer_scale", c_.encoder.layer_scale, has(Part::scale1));
    set("token_norm", c_.encoder.token_norm, has(Part::norm_gamma));
    set("pooled_norm", c_.head.pooled_norm, has(Part::pooled_norm_gamma));
    set("pooler", c_.head.pooler, has(Part::pooler_weight));
    set("mlp", c_.mlp.kind, is_listed(Part::gate_weight) ? MlpKind::gated : MlpKind::plain);
    const TensorEntry* const registers = files_.find(layout_, Part::register_tokens);
    const bool counted = registers != nullptr && registers->shape.size() >= 2;
    set("num_register_tokens", c_.tokens.num_registers,
        counted ? registers->shape[registers->shape.size() - 2] : std::size_t{0});
  }

  void infer_biases() {
    set("patch_bias", c_.patch.bias, has(Part::patch_bias));
    set("qkv_bias", c_.attention.qkv_bias, has(Part::qkv_bias));
    set("proj_bias", c_.attention.proj_bias, has(Part::proj_bias));
    set("mlp_bias", c_.mlp.bias, has(Part::fc1_bias) || has(Part::fc2_bias));
    for (std::size_t i = 0; i < kNumParts; ++i) {
      const Part part = static_cast<Part>(i);
      if (!is_bias(part)) continue;
      const auto sources = layout_.sources(part);
      for (std::size_t k = 0; k < sources.size(); ++k) {
        if (sources[k].is_stored() && files_.find(sources[k].name(0), sources[k].row.place) == nullptr)
          layout_.set_zeros(part, k);
      }
    }
  }

  void infer_widths() {
    set("embed_dim", c_.embed_dim, length(Part::norm1_gamma));
    const auto norm1 = layout_.sources(Part::norm1_gamma);
    std::size_t depth = 0;
    while (!norm1.empty() && depth < 4096 && files_.find(norm1.front().name(depth), norm1.front().row.place))
      ++depth;
    set("depth", c_.encoder.depth, depth);
    set("mlp_dim", c_.mlp.dim, columns(Part::fc2_weight));
    const TensorEntry* const patch = files_.find(layout_, Part::patch_weight);
    std::size_t patch_size = 0;
    if (patch != nullptr && patch->shape.size() == 4) {
      patch_size = patch->shape[3];
      layout_.set_form(Part::patch_weight, Form::convolution);
    }
    if (patch != nullptr && patch->shape.size() == 2) patch_size = edge_of(columns(Part::patch_weight) / 3);
    set("patch_size", c_.patch.size, patch_size);
    for (const auto& [name, value] :
         {std::pair("embed_dim", c_.embed_dim), std::pair("depth", c_.encoder.depth),
          std::pair("mlp_dim", c_.mlp.dim), std::pair("patch_size", c_.patch.size)}) {
      if (value == 0) ask(name);
    }
  }

  void infer_heads() {
    const std::size_t width = rows(Part::qkv_weight) / 3;
    if (!is_given("num_heads") && !is_given("head_dim")) return ask("num_heads");
    if (width == 0) return;
    if (!is_given("num_heads"))
      c_.attention.num_heads = c_.attention.head_dim == 0 ? 0 : width / c_.attention.head_dim;
    if (is_given("head_dim") || c_.attention.num_heads == 0 || width == c_.embed_dim) return;
    c_.attention.head_dim = width / c_.attention.num_heads;
  }

  /// Rows of the position table beyond those of the patches.
  void infer_table(std::size_t table_rows) {
    PositionConfig& p = c_.position;
    const bool sized = is_given("image_height") || is_given("image_width");
    if (!sized) {
      for (const std::size_t prefix :
           {std::size_t{0}, std::size_t{c_.tokens.class_token}, c_.num_prefix_tokens()}) {
        const std::size_t edge = table_rows > prefix ? edge_of(table_rows - prefix) : 0;
        if (edge == 0) continue;
        c_.image.height = c_.image.width = edge * c_.patch.size;
        break;
      }
    }
    const GridSize grid = c_.patch.size == 0 ? GridSize{} : c_.native_grid();
    const std::size_t patches = grid.rows * grid.columns;
    VIT_CHECK(
        sized || (patches != 0 && table_rows >= patches && table_rows - patches <= c_.num_prefix_tokens()),
        kWhere, "the position table has ", table_rows,
        " rows, which are no square of patches: config needs image_height and image_width, or ",
        override_name("img_size"), " = \"HxW\"");
    const std::size_t prefix = table_rows > patches ? table_rows - patches : 0;
    set("position.added_grid", p.added_grid, grid);
    set("position.added_prefix_rows", p.added_prefix_rows, prefix);
    set("position.added", p.added, prefix == 0 ? AddedTable::patches : AddedTable::prefix_and_patches);
  }

  void infer_position() {
    PositionConfig& p = c_.position;
    if (is_given("image_height") != is_given("image_width")) {
      if (is_given("image_height")) {
        c_.image.width = c_.image.height;
      } else {
        c_.image.height = c_.image.width;
      }
    }
    const bool sized = is_given("image_height") || is_given("image_width");
    const auto table = layout_.sources(Part::position_table);
    const TensorEntry* const stored = files_.find(layout_, Part::position_table);
    if (stored != nullptr && stored->shape.size() >= 2) {
      infer_table(stored->shape[stored->shape.size() - 2]);
    } else {
      if (!sized) ask("image_height");
      if (!table.empty() && !table.front().is_stored() && c_.patch.size != 0) {
        set("position.added", p.added, AddedTable::patches);
        set("position.added_grid", p.added_grid, c_.native_grid());
        set("fixed_size", c_.image.fixed_size,
            true);  // a table that is computed for the size of the training
      }
    }
    ask("position.rope");
    if (p.rope == RopeKind::none) return;
    ask("position.pairing");
    if (p.rope == RopeKind::mixed) return;
    ask("position.coordinates");
    ask("position.axis_order");
    set_flag("position.stored_periods", p.frequencies, AxisFrequencies::stored, has(Part::rope_periods));
    if (p.frequencies != AxisFrequencies::stored) ask("position.theta");
  }

  void infer_ends() {
    ask("norm_eps");
    ask("activation");
    ask("pooling");
    ProjectionConfig projection = c_.head.projection.value_or(ProjectionConfig{});
    set("projection_dim", projection.dim, rows(Part::projection_weight));
    set("projection_bias", projection.bias, has(Part::projection_bias));
    c_.head.projection = projection.dim != 0 ? std::optional(projection) : std::nullopt;
    set("num_classes", c_.head.num_classes, rows(Part::head_weight));
    std::optional<AttentionPoolConfig>& pool = c_.head.attention_pool;
    if (c_.head.pooling != Pooling::attention) return pool.reset();
    if (!pool) pool.emplace();
    ask("attention_pool.num_heads");
    ask("attention_pool.activation");
    set("attention_pool.mlp_dim", pool->mlp_dim, rows(Part::pool_fc1_weight));
  }

  const SourceFiles& files_;
  const std::set<std::string>& given_;
  Layout& layout_;
  ModelConfig& c_;
  std::vector<std::string> lacking_;
};

}  // namespace

void infer_sizes(const SourceFiles& files, const std::string& layout_name, const std::set<std::string>& given,
                 ParsedModel& reading) {
  Inference inference(files, given, reading);
  try {
    inference.run();
  } catch (const Error& error) {
    fail(kWhere, layout_name, ": ", error.message());
  }
  const std::vector<std::string>& lacking = inference.lacking();
  const bool size = std::ranges::find(lacking, "image_height") != lacking.end();
  VIT_CHECK(lacking.empty(), kWhere, layout_name, ": config lacks ", listed(lacking, lacking.size()),
            ", which the tensors of ", files.weights_name, " do not determine; write it there or give ",
            override_name(size ? "img_size" : lacking.front()), size ? " = \"HxW\"" : "");
}

}  // namespace vit::internal
