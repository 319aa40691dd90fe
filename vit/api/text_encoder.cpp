#include "vit/text_encoder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "vit/api/layers_of.h"
#include "vit/base/check.h"
#include "vit/base/moved.h"
#include "vit/base/parallel.h"
#include "vit/kernels/kernels.h"
#include "vit/towers/text_transformer.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"TextEncoder", ErrorKind::argument};

Tokenizer tokenizer_of(const std::filesystem::path& path, const TextOptions& options,
                       const TextConfig& config) {
  return Tokenizer::load_for_model(path, options.tokenizer,
                                   {.library = options.library, .vocabulary_size = config.vocabulary_size});
}

}  // namespace

struct TextTower::Parts {
  TextTransformer transformer;
  Tokenizer tokenizer;
  LoadReport report;

  static std::shared_ptr<const TextTower> load(const CheckpointFolder& folder, const TextOptions& options) {
    check_choice(kWhere, "precision", options.precision, Precision::int8);
    internal::LoadedTower checkpoint = folder.load<TextConfig>();
    VIT_CHECK(
        checkpoint.config.pooling != TextPooling::none, kWhere.with(ErrorKind::unsupported),
        folder.path().string(),
        ": its text tower gives a vector for each token and none for a text; its texts are prompts, which "
        "PromptSegmenter takes");
    Tokenizer tokenizer = tokenizer_of(folder.path(), options, checkpoint.config);
    TextTransformer transformer(checkpoint.config, checkpoint.weights, kernels::find_kernels(options.kernels),
                                options.precision);
    return std::shared_ptr<const TextTower>(
        new TextTower(std::make_unique<const Parts>(Parts{.transformer = std::move(transformer),
                                                          .tokenizer = std::move(tokenizer),
                                                          .report = std::move(checkpoint.report)})));
  }
};

TextTower::TextTower(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
TextTower::~TextTower() = default;

std::shared_ptr<const TextTower> TextTower::load(const std::filesystem::path& path,
                                                 const TextOptions& options) {
  return Parts::load(CheckpointFolder(path, {.architecture = options.architecture}), options);
}

const TextConfig& TextTower::config() const noexcept {
  return parts_->transformer.config();
}

const Tokenizer& TextTower::tokenizer() const noexcept {
  return parts_->tokenizer;
}

Precision TextTower::precision() const noexcept {
  return parts_->transformer.precision();
}

const char* TextTower::kernels() const noexcept {
  return parts_->transformer.kernels().name;
}

const LoadReport& TextTower::report() const noexcept {
  return parts_->report;
}

TokenRow TextTower::tokenize(std::string_view text) const {
  return tokenizer().encode(text, config().context_length);
}

const TextTransformer& LayersOf::text(const TextTower& tower) noexcept {
  return tower.parts_->transformer;
}

ImageAndText ImageAndText::load(const std::filesystem::path& path, const ModelOptions& image_options,
                                const TextOptions& text_options) {
  ModelOptions options = image_options;
  if (!text_options.architecture.empty()) options.architecture = text_options.architecture;
  const CheckpointFolder folder(path, std::move(options));
  return {.image = Model::load(folder), .text = TextTower::Parts::load(folder, text_options)};
}

// -------------------------------------------------------------------------------------------- TextEncoder

struct TextEncoder::State {
  TextEncoderOptions options;
  RunLimits limits;
  TextMemory memory;
  std::vector<TokenRow> rows;
  std::vector<TextIds> ids;

  /// rows -> (n, E), only the first ones if cancelled
  void run(const TextTower& tower, std::span<const TokenRow> texts, const StreamOptions& stream,
           Tensor<float>& vectors) {
    const std::size_t width = tower.config().embedding_dim();
    const Shape shape{texts.size(), width};
    if (!(vectors.shape() == shape)) vectors = Tensor<float>(shape);
    const bool left = tower.tokenizer().pads_left();
    ids.clear();
    for (const TokenRow& row : texts) {
      VIT_CHECK(row.count <= row.ids.size(), kWhere, "a row of ", row.ids.size(), " ids with ", row.count,
                " that are not padding");
      ids.push_back({.ids = row.ids, .first = left ? row.ids.size() - row.count : 0, .count = row.count});
    }
    const std::size_t done = run_groups(LayersOf::text(tower), stream, vectors);
    if (done == texts.size()) return;
    Tensor<float> of_done(Shape{done, width});
    std::copy_n(vectors.data(), done * width, of_done.data());
    vectors = std::move(of_done);
  }

  /// Returns how many texts are completed.
  std::size_t run_groups(const TextTransformer& transformer, const StreamOptions& stream,
                         TensorView<float> vectors) {
    std::size_t done = 0;
    const auto report = [&](double texts) {
      if (stream.on_progress) stream.on_progress(static_cast<double>(done) + texts, ids.size());
    };
    while (done < ids.size() && !(stream.is_cancelled && stream.is_cancelled())) {
      std::span<const TextIds> group = std::span(ids).subspan(done);
      if (stream.on_progress || stream.is_cancelled)
        group = group.first(transformer.count_group(group, options.threads));
      PassWatch watch(report, stream.is_cancelled);
      const Watched watched(memory.passes, watch);
      try {
        transformer.forward(group, vectors.part(done, group.size()), options.threads, memory);
      } catch (const PassCancelled&) {
        break;  // no text of the group is complete
      }
      done += group.size();
    }
    return done;
  }
};

TextEncoder::TextEncoder(std::shared_ptr<const TextTower> tower, TextEncoderOptions options)
    : tower_(std::move(tower)), state_(std::make_unique<State>()) {
  VIT_CHECK(tower_ != nullptr, kWhere, "no text tower");
  VIT_CHECK(options.threads >= 0, kWhere, "threads is ", options.threads, "; 0 = all cores");
  options.threads = resolve_threads(options.threads);
  state_->options = options;
  state_->memory.passes.limit_passes(&state_->limits);
}
TextEncoder::TextEncoder(const std::filesystem::path& path, TextEncoderOptions options,
                         const TextOptions& text_options)
    : TextEncoder(TextTower::load(path, text_options), options) {}
TextEncoder::~TextEncoder() = default;
TextEncoder::TextEncoder(TextEncoder&&) noexcept = default;
TextEncoder& TextEncoder::operator=(TextEncoder&&) noexcept = default;

const TextTower& TextEncoder::tower() const {
  return parts_of(tower_, kWhere);
}

void TextEncoder::set_limits(RunLimits limits) {
  parts_of(state_, kWhere).limits = std::move(limits);
}

const TextEncoderOptions& TextEncoder::options() const {
  return parts_of(state_, kWhere).options;
}

void TextEncoder::encode(std::span<const std::string_view> texts, TextEmbeddings& embeddings,
                         const StreamOptions& options) {
  std::vector<TokenRow>& rows = parts_of(state_, kWhere).rows;
  rows.resize(texts.size());
  embeddings.num_cut = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    try {
      rows[i] = tower_->tokenize(texts[i]);
    } catch (const Error& error) {
      fail(Where(error.where(), error.kind()), "text ", i, " of ", texts.size(), ": ", error.message());
    }
    embeddings.num_cut += rows[i].cut ? 1 : 0;
  }
  state_->run(*tower_, rows, options, embeddings.vectors);
}

TextEmbeddings TextEncoder::encode(std::span<const std::string_view> texts, const StreamOptions& options) {
  TextEmbeddings embeddings;
  encode(texts, embeddings, options);
  return embeddings;
}

Tensor<float> TextEncoder::encode(std::string_view text) {
  TextEmbeddings one = encode(std::span(&text, 1));
  Tensor<float> vector(Shape{one.vectors.dim(1)});
  std::ranges::copy(one.vectors.flat(), vector.data());
  return vector;
}

Tensor<float> TextEncoder::encode_ids(std::span<const TokenRow> rows, const StreamOptions& options) {
  Tensor<float> vectors;
  parts_of(state_, kWhere).run(*tower_, rows, options, vectors);
  return vectors;
}

}  // namespace vit
