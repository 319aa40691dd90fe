// Attention is computed for groups of sequences: keys and values of a group are packed and rotated by tasks
// of one head and some tokens, then tasks of one head and some queries read them.
#include "vit/layers/attention_pass.h"

#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/position/rope_encoding.h"

namespace vit::internal {
namespace {

constexpr Where kAttend{"attention", ErrorKind::argument};

// Keys and values that mostly stay in the last-level cache on a shared machine.
constexpr std::size_t kCachedBytes = std::size_t{8} << 20;

/// attend() with its sizes computed.
class AttentionPass {
 public:
  AttentionPass(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
                TensorView<float> out, const kernels::AttentionKernels& kernels, const Pass& pass)
      : rows_(rows), input_(input), num_heads_(num_heads), out_(out), kernels_(kernels), pass_(pass) {
    const std::size_t channels = out.num_columns(), num_rows = input.sequences.rows();
    VIT_CHECK(num_heads > 0 && channels % num_heads == 0, kAttend, channels,
              " channels cannot be divided into ", num_heads, " heads");
    head_dim_ = channels / num_heads;
    const std::size_t key_channels = rows.keys.num_columns();
    num_key_heads_ = key_channels / head_dim_;
    VIT_CHECK(num_key_heads_ > 0 && key_channels % head_dim_ == 0 && num_heads % num_key_heads_ == 0, kAttend,
              key_channels, " channels of keys cannot be shared by ", num_heads, " heads of ", head_dim_);
    VIT_CHECK(num_rows > 0, kAttend, "no sequences or no tokens");
    VIT_CHECK(rows.keys.num_rows() == num_rows && rows.values.num_rows() == num_rows &&
                  rows.values.num_columns() == key_channels,
              kAttend, "keys ", rows.keys.shape().to_string(), " and values ",
              rows.values.shape().to_string(), " for ", num_rows, " tokens and ", channels, " channels");
    VIT_CHECK(rows.queries.num_columns() == channels && rows.queries.num_rows() == rows.query_tokens.rows() &&
                  out.num_rows() == input.queries.rows(),
              kAttend, "queries ", rows.queries.shape().to_string(), " and output ", out.shape().to_string(),
              " for ", rows.query_tokens.rows(), " tokens, of which ", input.queries.rows(), " are queries");
    check_queries();
    check_rope();
    VIT_CHECK(
        input.mask.hidden == nullptr || (input.sequences.have_one_length() &&
                                         input.mask.queries + input.mask.keys <= input.sequences.longest()),
        kAttend, "a mask of ", input.mask.queries, " queries and ", input.mask.keys, " keys for ",
        input.sequences.longest(), " tokens");
    check_padding();
    check_activations();
    for (const AttentionTap& tap : input.taps) check_tap(tap);
  }

  void run() const {
    for (Group group = group_from(0); group.count != 0; group = group_from(group.first + group.count)) {
      pack(group);
      run_queries(group);
      for (const AttentionTap& tap : input_.taps) {
        if (tap.sequence - group.first < group.count) write_probabilities(tap, group);
      }
    }
  }

  /// sums (H, B * T) = probabilities of each head, the rows weighted by weights (B * T) and summed.
  void sum_probabilities(std::span<const double> weights, TensorView<double> sums) const {
    // a tile of rows for each thread
    Tensor<float> tiles(Shape{static_cast<std::size_t>(resolve_threads(pass_.threads)),
                              kAttentionTaskTokens * longest_keys()});
    for (Group group = group_from(0); group.count != 0; group = group_from(group.first + group.count)) {
      pack(group);
      parallel_for(group.count * num_heads_, pass_.threads, [&](std::size_t task, int thread) {
        const std::size_t sequence = group.first + task / num_heads_, head = task % num_heads_;
        const std::size_t row = input_.sequences.first_row(sequence);
        sum_head(group, sequence, head, weights.data() + row,
                 tiles.view().row(static_cast<std::size_t>(thread)), sums.row(head) + row,
                 static_cast<std::size_t>(thread));
      });
    }
  }

 private:
  /// Consecutive sequences whose keys and values are packed together.
  struct Group {
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t longest = 0;        // tokens
    std::size_t packed_floats = 0;  // of a head of the longest
  };

  std::size_t packed_floats(std::size_t num_tokens) const {
    return round_up(kernels_.packed_floats(num_tokens, head_dim_), 16);
  }
  /// Bytes of the keys and values of all heads of a sequence.
  std::size_t packed_bytes(const Group& group) const {
    return num_key_heads_ * group.packed_floats * sizeof(float);
  }

  /// As many as fit in memory and in a cache, or as keep the threads busy. Empty after the last.
  Group group_from(std::size_t first) const {
    const Sequences& sequences = input_.sequences;
    const Activations& memory = pass_.activations;
    Group group{.first = first};
    for (std::size_t i = first; i < sequences.size(); ++i) {
      Group more{.first = first, .count = group.count + 1, .longest = group.longest};
      more.longest = std::max(group.longest, num_keys(i));
      more.packed_floats = more.longest == group.longest ? group.packed_floats : packed_floats(more.longest);
      const bool has_room =
          more.count * num_key_heads_ * more.packed_floats <= memory.packed_heads.num_elements();
      const bool is_near =
          more.count <= memory.packed_images() || more.count * packed_bytes(more) <= kCachedBytes;
      if (group.count != 0 && !(has_room && is_near)) break;
      group = more;
    }
    return group;
  }

  void sum_head(const Group& group, std::size_t sequence, std::size_t head, const double* weights,
                float* tile, double* sums, std::size_t thread) const {
    const std::size_t tokens = input_.sequences.length(sequence), keys = num_keys(sequence);
    std::fill_n(sums, tokens, 0.0);
    for (std::size_t first = 0; first < tokens; first += kAttentionTaskTokens) {
      const std::size_t count = std::min(kAttentionTaskTokens, tokens - first);
      if (std::all_of(weights + first, weights + first + count, [](double w) { return w == 0; })) continue;
      kernels::AttentionArgs args = query_args(group, sequence, head, first, count, thread);
      args.out = tile;
      args.out_stride = keys;
      kernels_.probabilities(args);
      for (std::size_t query = 0; query < count; ++query) {
        const double weight = weights[first + query];
        for (std::size_t key = 0; key < tokens; ++key)
          sums[key] += weight * static_cast<double>(tile[query * keys + key]);
      }
    }
  }

  void check_queries() const {
    const Sequences &sequences = input_.sequences, &queries = input_.queries, &given = rows_.query_tokens;
    VIT_CHECK(queries.size() == sequences.size() && given.size() == sequences.size(), kAttend, queries.size(),
              " sequences of queries, of ", given.size(), " with rows, for ", sequences.size(), " sequences");
    // whose place among the keys says nothing
    const bool are_others = input_.rope.cos == nullptr && !input_.causal && input_.mask.hidden == nullptr;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      VIT_CHECK((are_others || queries.length(i) <= sequences.length(i)) &&
                    input_.first_query(i) + queries.length(i) <= given.length(i),
                kAttend, "sequence ", i, " has ", queries.length(i), " queries and ", sequences.length(i),
                " tokens, of which ", given.length(i), " have a row of queries");
    }
  }

  void check_rope() const {
    const position::RopeFactors& rope = input_.rope;
    if (!rotates(rope, kAttend)) return;
    VIT_CHECK(2 * rope.pairs == head_dim_, kAttend, "factors for ", rope.pairs,
              " pairs of channels, heads are ", head_dim_, " wide");
    VIT_CHECK(rope.head_stride == 0 || (rope.num_heads == num_heads_ && num_key_heads_ == num_heads_),
              kAttend, "factors of ", rope.num_heads, " heads for ", num_heads_, " heads of queries and ",
              num_key_heads_, " of keys");
    const Sequences& sequences = input_.sequences;
    const std::size_t image = input_.num_prefix + rope.num_patches;
    VIT_CHECK(sequences.rows() % image == 0, kAttend, "factors for ", rope.num_patches, " patches and ",
              input_.num_prefix, " prefix tokens, there are ", sequences.rows(), " tokens");
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      VIT_CHECK(sequences.first_row(i) % image + sequences.length(i) <= image, kAttend, "sequence ", i,
                " of ", sequences.length(i), " tokens starts at token ", sequences.first_row(i) % image,
                " of an image with ", image, " tokens");
    }
  }

  void check_activations() const {
    const Activations& memory = pass_.activations;
    const std::size_t packed = checked_mul(num_key_heads_, packed_floats(longest_keys()), kAttend);
    VIT_CHECK(
        packed <= memory.packed_heads.num_elements() &&
            static_cast<std::size_t>(resolve_threads(pass_.threads)) <= memory.thread_scratch.num_rows() &&
            terms_at() + num_terms() <= memory.thread_scratch.num_columns(),
        kAttend, "the activations were reserved for fewer tokens, heads or threads");
  }

  void check_padding() const {
    const KeyPadding& padding = input_.padding;
    VIT_CHECK(padding.keys == 0 || (padding.keys >= input_.sequences.longest() &&
                                    (input_.rope.cos == nullptr) == (padding.rope.cos == nullptr) &&
                                    input_.mask.hidden == nullptr && !input_.causal),
              kAttend, padding.keys, " keys of completed sequences for ", input_.sequences.longest(),
              " tokens, which are not masked, and rotated like these");
    VIT_CHECK(padding.keys == 0 || input_.taps.empty(), kAttend,
              "probabilities of tokens next to keys that are not tokens");
    const bool has_bias = input_.relative.table != nullptr || input_.relative.axes != nullptr;
    VIT_CHECK(!has_bias || (input_.image_tokens != 0 && input_.sequences.rows() % input_.image_tokens == 0 &&
                            (padding.keys != 0 || input_.sequences.longest() == input_.image_tokens)),
              kAttend, "relative positions of ", input_.image_tokens, " tokens for sequences of ",
              input_.sequences.longest());
  }

  /// Keys of a sequence, those that complete it included.
  std::size_t num_keys(std::size_t sequence) const {
    return input_.padding.keys != 0 ? input_.padding.keys : input_.sequences.length(sequence);
  }
  std::size_t longest_keys() const {
    return input_.padding.keys != 0 ? input_.padding.keys : input_.sequences.longest();
  }

  /// Terms of relative positions in the scratch of a thread: where they begin, and how many they are.
  std::size_t terms_at() const { return round_up(kernels_.scratch_floats(head_dim_), 16); }
  std::size_t num_terms() const {
    if (input_.relative.axes == nullptr) return 0;
    return kernels::axis_terms(input_.relative.grid.rows, input_.relative.grid.columns);
  }

  kernels::ScoreBias bias_of(std::size_t sequence, std::size_t head, std::size_t thread) const {
    static_assert(position::kAxesPadding == kernels::kAxesPadding);
    const position::RelativeTerms& terms = input_.relative;
    if (terms.table != nullptr) {
      return {.table = terms.table + head * terms.head_stride,
              .query_places = terms.query_places,
              .key_places = terms.key_places};
    }
    if (terms.axes == nullptr) return {};
    const std::size_t images = input_.sequences.rows() / input_.image_tokens;
    const std::size_t windows = input_.sequences.size() / images;  // of an image
    const std::size_t first = sequence % windows * input_.padding.keys;
    return {.axes = terms.axes,
            .axes_stride = terms.axes_stride,
            .num_rows = terms.grid.rows,
            .num_columns = terms.grid.columns,
            .rows = terms.rows + first,
            .columns = terms.columns + first,
            .terms = pass_.activations.thread_scratch.row(thread) + terms_at()};
  }

  void check_tap(const AttentionTap& tap) const {
    VIT_CHECK(tap.sequence < input_.sequences.size() && tap.head < num_heads_, kAttend, "no head ", tap.head,
              " of sequence ", tap.sequence, " among ", num_heads_, " heads of ", input_.sequences.size(),
              " sequences");
    const std::size_t num_tokens = input_.sequences.length(tap.sequence);
    const std::size_t num_queries = input_.queries.length(tap.sequence);
    VIT_CHECK(tap.probabilities.rank() == 2 && tap.probabilities.num_columns() == num_tokens &&
                  tap.first_query + tap.probabilities.num_rows() <= num_queries,
              kAttend, "probabilities have (", num_queries, ", ", num_tokens, ") numbers, got room for ",
              tap.probabilities.shape().to_string(), " from query ", tap.first_query, " on");
  }

  /// Factors from the first token of a sequence on.
  kernels::Rotation rotation_of(std::size_t sequence, std::size_t head) const {
    const position::RopeFactors& rope = input_.rope;
    if (rope.cos == nullptr) return {};
    const std::size_t token = input_.sequences.first_row(sequence) % (input_.num_prefix + rope.num_patches);
    const std::size_t prefix_before = std::min(token, input_.num_prefix);
    const std::size_t first = head * rope.head_stride + (token - prefix_before) * rope.num_angles();
    return {.cos = rope.cos + first,
            .sin = rope.sin + first,
            .num_prefix = input_.num_prefix - prefix_before,
            .pairing = rope.pairing,
            .angles = rope.angles};
  }

  /// The key-value head of a query head.
  std::size_t key_head_of(std::size_t head) const { return head / (num_heads_ / num_key_heads_); }

  float* packed_of(const Group& group, std::size_t sequence, std::size_t key_head) const {
    return pass_.activations.packed_heads.data() +
           ((sequence - group.first) * num_key_heads_ + key_head) * group.packed_floats;
  }

  /// Calls run(sequence, head, first token, last token, thread) as tasks of part_size tokens, where sequences
  /// of the group have count_of(sequence) of them, at most `most`. Those of the same tokens are consecutive:
  /// threads find rows in cache that they computed. For long sequences those of the same head are: its keys
  /// and values may still be in a cache, those of all heads are not.
  template <typename Count, typename Run>
  void for_each_part(const Group& group, std::size_t num_heads, std::size_t most, std::size_t part_size,
                     Count&& count_of, Run&& run) const {
    const bool by_head = packed_bytes(group) > kCachedBytes;
    const std::size_t parts = ceil_div(most, part_size);
    parallel_for(group.count * parts * num_heads, pass_.threads, [&](std::size_t task, int thread) {
      const std::size_t sequence = group.first + task / (num_heads * parts), count = count_of(sequence);
      const std::size_t rest = task % (num_heads * parts);
      const std::size_t first = (by_head ? rest % parts : rest / num_heads) * part_size;
      if (first >= count) return;
      run(sequence, by_head ? rest / parts : rest % num_heads, first, std::min(first + part_size, count),
          static_cast<std::size_t>(thread));
    });
  }

  /// Queries of a task, which share keys and values: more of them if those come from memory, but enough tasks
  /// for the threads to end together.
  std::size_t queries_per_task(const Group& group, std::size_t most_queries) const {
    constexpr std::size_t kTasksPerThread = 16, kQueriesFromCache = 128;
    const bool in_cache = group.packed_floats * sizeof(float) <= kCachedBytes;
    const std::size_t most = in_cache ? kQueriesFromCache : kernels::kQueriesAtOnce;
    const std::size_t tasks = kTasksPerThread * static_cast<std::size_t>(resolve_threads(pass_.threads));
    const std::size_t share = group.count * num_heads_ * most_queries / tasks;
    return std::clamp(share / kAttentionTaskTokens * kAttentionTaskTokens, kAttentionTaskTokens, most);
  }

  void pack(const Group& group) const {
    for_each_part(
        group, num_key_heads_, group.longest, kAttentionTaskTokens,
        [&](std::size_t sequence) { return num_keys(sequence); },
        [&](std::size_t sequence, std::size_t head, std::size_t first, std::size_t last, std::size_t thread) {
          const std::size_t row = input_.sequences.first_row(sequence);
          if (last > input_.sequences.length(sequence))
            return pack_padded(group, sequence, head, first, last, thread);
          kernels_.pack({.keys = rows_.keys.row(row) + head * head_dim_,
                         .key_stride = rows_.keys.row_stride(),
                         .values = rows_.values.row(row) + head * head_dim_,
                         .value_stride = rows_.values.row_stride(),
                         .num_tokens = num_keys(sequence),
                         .first_token = first,
                         .last_token = last,
                         .head_dim = head_dim_,
                         .rotation = rotation_of(sequence, head),
                         .packed = packed_of(group, sequence, head),
                         .scratch = pass_.activations.thread_scratch.row(thread)});
        });
  }

  /// Factors of all keys of a sequence that is completed.
  kernels::Rotation rotation_of_completed(std::size_t sequence) const {
    const position::RopeFactors& rope = input_.padding.rope;
    if (rope.cos == nullptr) return {};
    const std::size_t first = sequence * input_.padding.keys % rope.num_patches * rope.num_angles();
    return {.cos = rope.cos + first, .sin = rope.sin + first, .pairing = rope.pairing, .angles = rope.angles};
  }

  /// Of tokens that are not all there: keys and values of a head, copied together with those that complete
  /// the sequence.
  void pack_padded(const Group& group, std::size_t sequence, std::size_t head, std::size_t first,
                   std::size_t last, std::size_t thread) const {
    const std::size_t row = input_.sequences.first_row(sequence), tokens = input_.sequences.length(sequence);
    const TensorView<float>& memory = pass_.activations.padded_heads;
    float* const keys = memory.row(thread);
    float* const values = keys + kAttentionTaskTokens * head_dim_;
    for (std::size_t t = first; t < last; ++t) {
      const float* const key = t < tokens ? rows_.keys.row(row + t) : input_.padding.key;
      const float* const value = t < tokens ? rows_.values.row(row + t) : input_.padding.value;
      std::copy_n(key + head * head_dim_, head_dim_, keys + (t - first) * head_dim_);
      std::copy_n(value + head * head_dim_, head_dim_, values + (t - first) * head_dim_);
    }
    kernels_.pack({.keys = keys,
                   .key_stride = head_dim_,
                   .values = values,
                   .value_stride = head_dim_,
                   .num_tokens = num_keys(sequence),
                   .first_token = first,
                   .last_token = last,
                   .first_row = first,
                   .head_dim = head_dim_,
                   .rotation = rotation_of_completed(sequence),
                   .packed = packed_of(group, sequence, head),
                   .scratch = pass_.activations.thread_scratch.row(thread)});
  }

  kernels::HiddenKeys hidden_of(std::size_t sequence) const {
    const KeyMask& mask = input_.mask;
    if (mask.hidden == nullptr) return {};
    return {.flags = mask.hidden + sequence * mask.queries * mask.keys,
            .queries = mask.queries,
            .keys = mask.keys};
  }

  /// Arguments for `count` queries of a head from the `first` on, without out.
  kernels::AttentionArgs query_args(const Group& group, std::size_t sequence, std::size_t head,
                                    std::size_t first, std::size_t count, std::size_t thread) const {
    const std::size_t token = input_.first_query(sequence) + first;
    const std::size_t row = rows_.query_tokens.first_row(sequence) + token;
    return {.queries = rows_.queries.row(row) + head * head_dim_,
            .query_stride = rows_.queries.row_stride(),
            .first_query = token,
            .num_queries = count,
            .scale = static_cast<float>(input_.logit_factor / std::sqrt(static_cast<double>(head_dim_))),
            .rotation = rotation_of(sequence, head),
            .packed = packed_of(group, sequence, key_head_of(head)),
            .num_tokens = num_keys(sequence),
            .head_dim = head_dim_,
            .causal = input_.causal,
            .bias = bias_of(sequence, head, thread),
            .hidden = hidden_of(sequence),
            .scratch = pass_.activations.thread_scratch.row(thread)};
  }

  void run_queries(const Group& group) const {
    const std::size_t most = input_.all_are_queries() ? group.longest : input_.queries.longest();
    for_each_part(
        group, num_heads_, most, queries_per_task(group, most),
        [&](std::size_t sequence) { return input_.queries.length(sequence); },
        [&](std::size_t sequence, std::size_t head, std::size_t first, std::size_t last, std::size_t thread) {
          kernels::AttentionArgs args = query_args(group, sequence, head, first, last - first, thread);
          args.out = out_.row(input_.queries.first_row(sequence) + first) + head * head_dim_;
          args.out_stride = out_.row_stride();
          kernels_.attend(args);
        });
  }

  void write_probabilities(const AttentionTap& tap, const Group& group) const {
    kernels::AttentionArgs args =
        query_args(group, tap.sequence, tap.head, tap.first_query, tap.probabilities.num_rows(), 0);
    args.out = tap.probabilities.data();
    args.out_stride = tap.probabilities.row_stride();
    kernels_.probabilities(args);
  }

  const AttentionRows& rows_;
  const AttentionInput& input_;
  std::size_t num_heads_;
  TensorView<float> out_;
  const kernels::AttentionKernels& kernels_;
  const Pass& pass_;
  std::size_t head_dim_ = 0;
  std::size_t num_key_heads_ = 0;
};

}  // namespace

void attend(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
            TensorView<float> out, const kernels::AttentionKernels& kernels, const Pass& pass) {
  AttentionPass(rows, input, num_heads, out, kernels, pass).run();
}

void sum_probabilities(const AttentionRows& rows, const AttentionInput& input,
                       std::span<const double> weights, TensorView<double> sums,
                       const kernels::AttentionKernels& kernels, const Pass& pass) {
  const std::size_t width = rows.queries.num_columns();
  const TensorView<float> heads =
      Activations::view_rows(pass.activations.heads, input.sequences.rows(), width);
  AttentionPass(rows, input, sums.dim(0), heads, kernels, pass).sum_probabilities(weights, sums);
}

}  // namespace vit::internal
