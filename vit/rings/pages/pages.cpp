#include "vit/pages.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "vit/api/layers_of.h"
#include "vit/base/check.h"
#include "vit/base/moved.h"
#include "vit/base/parallel.h"
#include "vit/image/token_sizes.h"
#include "vit/rings/pages/page_text.h"
#include "vit/rings/pages/page_transformer.h"
#include "vit/text/tokenizer.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kPages{"PageEncoder", ErrorKind::argument};
constexpr Where kLoadPages{"PageModel", ErrorKind::mismatch};

std::filesystem::path folder_of(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown) ? path : path.parent_path();
}

/// Rows and columns of tiles into which the rules cut an image, without the whole image.
GridSize tiles_of(ImageSize image, const PreprocessConfig& rules) {
  if (rules.resize != ResizeRule::tiles) return {1, 1};
  const ImageSize canvas = canvas_of_tiles(image, rules);
  return {canvas.height / rules.resize_height, canvas.width / rules.resize_width};
}

/// Throws Error unless the vocabulary has the tokens of the processor, and that of images where the model
/// expects it.
void check_vocabulary(const Tokenizer& tokenizer, const PageConfig& config, const std::string& path) {
  for (const char* const token : {"<fake_token_around_image>", "<image>", "<end_of_utterance>"})
    VIT_CHECK(tokenizer.find(token) >= 0, kLoadPages, path, ": the vocabulary has no token ", token,
              ", which the texts of pages contain");
  VIT_CHECK(tokenizer.find("<image>") == config.image_token, kLoadPages, path, ": <image> is the token ",
            tokenizer.find("<image>"), " of the vocabulary, image_token_id of config.json is ",
            config.image_token);
}

}  // namespace

struct internal::PageParts {
  std::shared_ptr<const Model> image;
  PageTransformer encoder;
  Tokenizer tokenizer;
  PageText text;
  LoadReport report;

  static const PageParts& of(const PageModel& model) noexcept { return *model.parts_; }
  static std::shared_ptr<const PageModel> share(std::unique_ptr<const PageParts> parts) {
    return std::shared_ptr<const PageModel>(new PageModel(std::move(parts)));
  }
};

PageModel::PageModel(std::unique_ptr<const PageParts> parts) : parts_(std::move(parts)) {}
PageModel::~PageModel() = default;

std::shared_ptr<const PageModel> PageModel::load(const std::filesystem::path& path,
                                                 const ModelOptions& options,
                                                 const TextOptions& text_options) {
  const CheckpointFolder folder(path, options);
  const kernels::KernelTable& table = kernels::find_kernels(options.kernels);
  internal::LoadedTower found = folder.load<PageConfig>();
  std::shared_ptr<const Model> image = LayersOf::load_image(folder);
  const ModelConfig& tower = image->config();
  VIT_CHECK(tower.merger && tower.merger->width(tower.embed_dim) == found.config.width, kLoadPages,
            folder.path().string(), ": visual tokens of ",
            tower.merger ? tower.merger->width(tower.embed_dim) : 0, " numbers for an encoder of ",
            found.config.width);
  Tokenizer tokenizer =
      Tokenizer::load(text_options.tokenizer.empty() ? folder_of(folder.path()) : text_options.tokenizer,
                      {.library = text_options.library, .vocabulary_size = found.config.vocabulary_size});
  check_vocabulary(tokenizer, found.config, folder.path().string());
  return PageParts::share(std::make_unique<const PageParts>(
      PageParts{.image = std::move(image),
                .encoder = PageTransformer(found.config, found.weights, table, options.precision),
                .tokenizer = std::move(tokenizer),
                .text = read_page_text(folder_of(folder.path())),
                .report = std::move(found.report)}));
}

bool PageModel::is_at(const std::filesystem::path& path, const ModelOptions& options) {
  return CheckpointFolder(path, options).parsed<PageConfig>().has_value();
}

const std::shared_ptr<const Model>& PageModel::image() const noexcept {
  return parts_->image;
}
const LoadReport& PageModel::report() const noexcept {
  return parts_->report;
}
std::size_t PageModel::dim() const noexcept {
  return parts_->encoder.config().dim;
}
std::size_t PageModel::num_parameters() const noexcept {
  return parts_->image->report().num_parameters + parts_->report.num_parameters;
}

struct PageEncoder::State {
  std::shared_ptr<const PageModel> model;
  PageEncoderOptions options;
  Session session;
  Outputs outputs;
  RunLimits limits{};
  PageMemory memory;

  Tensor<float> run(const std::string& words, TensorView<const float> visual) {
    const PageParts& parts = PageParts::of(*model);
    const std::vector<std::int32_t> ids = parts.tokenizer.encode(words);
    Tensor<float> out(Shape{ids.size(), parts.encoder.config().dim});
    parts.encoder.forward(ids, visual, out, options.threads, limits, memory);
    return out;
  }
};

PageEncoder::PageEncoder(std::shared_ptr<const PageModel> model, PageEncoderOptions options) {
  VIT_CHECK(model != nullptr, kPages, "no model");
  Session session(model->image(), {.threads = options.threads, .batch = 1});
  state_ = std::make_unique<State>(State{.model = std::move(model),
                                         .options = options,
                                         .session = std::move(session),
                                         .outputs = {},
                                         .memory = {}});
}
PageEncoder::~PageEncoder() = default;
PageEncoder::PageEncoder(PageEncoder&&) noexcept = default;
PageEncoder& PageEncoder::operator=(PageEncoder&&) noexcept = default;

PageEncoder::State& PageEncoder::state() const {
  return parts_of(state_, kPages);
}
const PageModel& PageEncoder::model() const {
  return *state().model;
}
void PageEncoder::set_limits(RunLimits limits) {
  state().limits = limits;
  state().session.set_limits(std::move(limits));
}

Tensor<float> PageEncoder::encode(const ImageSource& page) {
  State& own = state();
  own.session.run(page, own.model->request(), own.outputs);
  return encode(own.outputs[0]);
}

Tensor<float> PageEncoder::encode(const ImageOutputs& outputs) {
  State& own = state();
  const TensorView<const float> merged = outputs[Output::merged];  // (tiles, h, w, C) or (h, w, C)
  const GridSize tiles = tiles_of(outputs.frame().image, own.session.preprocessor().config());
  const std::size_t cut = tiles.rows * tiles.columns;
  VIT_CHECK(outputs.num_steps() == (cut > 1 ? cut + 1 : 1), kPages.with(ErrorKind::mismatch), "an image of ",
            outputs.frame().image.width, " x ", outputs.frame().image.height, " pixels is cut into ",
            tiles.rows, " rows and ", tiles.columns, " columns of tiles, found the outputs of ",
            outputs.num_steps(), " images; are these pixels without the image that they were made from?");
  const std::size_t width = merged.shape().last();
  const TensorView<const float> visual(merged.data(), Shape{merged.num_elements() / width, width});
  return own.run(PageParts::of(*own.model).text.of_page(tiles), visual);
}

Tensor<float> PageEncoder::encode_query(std::string_view text) {
  State& own = state();
  VIT_CHECK(text.find("<image>") == text.npos, kPages, "a question with the place of an image, <image>");
  return own.run(PageParts::of(*own.model).text.of_query(text), {});
}

// ---------------------------------------------------------------------------------------------------- scores

struct PageQuery::State {
  Linear vectors;
};

PageQuery::PageQuery(TensorView<const float> vectors) {
  VIT_CHECK(vectors.rank() == 2 && vectors.num_rows() > 0 && vectors.num_columns() > 0, kPages,
            "the vectors of a question are ", vectors.shape().to_string(), ", expected (m, E)");
  state_ =
      std::make_unique<const State>(State{Linear(vectors, {}, *kernels::default_kernels().float32->linear)});
}
PageQuery::~PageQuery() = default;
PageQuery::PageQuery(PageQuery&&) noexcept = default;
PageQuery& PageQuery::operator=(PageQuery&&) noexcept = default;

float PageQuery::score(TensorView<const float> page) const {
  const Linear& vectors = parts_of(state_, kPages).vectors;
  VIT_CHECK(page.rank() == 2 && page.num_rows() > 0 && page.num_columns() == vectors.in_features(), kPages,
            "the vectors of a page are ", page.shape().to_string(), ", expected (t, ", vectors.in_features(),
            ")");
  constexpr std::size_t kRowsAtOnce = 64;
  const std::size_t count = vectors.out_features();
  Tensor<float> products(Shape{kRowsAtOnce, count});
  std::vector<float> best(count, -std::numeric_limits<float>::infinity());
  Activations none;
  const Pass pass{.activations = none, .threads = 1};
  for (std::size_t first = 0; first < page.num_rows(); first += kRowsAtOnce) {
    const std::size_t rows = std::min(kRowsAtOnce, page.num_rows() - first);
    const TensorView<float> out = products.view().part(0, rows);
    vectors.forward(page.part(first, rows), out, pass);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < count; ++i) best[i] = std::max(best[i], out.row(row)[i]);
    }
  }
  double sum = 0;
  for (const float one : best) sum += double{one};
  return static_cast<float>(sum);
}

}  // namespace vit
