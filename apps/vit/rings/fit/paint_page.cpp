#include "apps/vit/rings/fit/paint_page.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/board/board.h"
#include "apps/vit/html/html_page.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/options/record.h"
#include "apps/vit/outputs/result_names.h"
#include "apps/vit/rings/fit/fit_options.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestEdge = 1024;           // of an image on the page
constexpr std::size_t kMostFeatureBytes = 64 << 20;  // of all images

std::string bytes_of(std::span<const float> numbers) {
  return page_base64({reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()});
}

class Painting : public ImageWork {
 public:
  explicit Painting(const FitCommandOptions& options) : options_(options) {}

  std::optional<Request> load(ImageRun& run) override {
    const std::shared_ptr<const Model>& model = run.load();
    PixelOptions of_pixels = pixel_options(options_, *model);
    if (of_pixels.upsampling == PixelUpsampling::shift || of_pixels.upsampling == PixelUpsampling::learned ||
        of_pixels.scales.size() != 1 || of_pixels.color || of_pixels.scales.front() != 1.0 ||
        options_.method != FitMethod::logistic)
      fail_usage(
          "--paint learns by logistic regression on patches of one pass: without --method, --scales, "
          "--channels-of-color and --upsample shift or FILE; the strokes of the page can be learned with "
          "them");
    extractor_.emplace(model, std::move(of_pixels), options_.common.session.threads);
    names_ = result_names(run.inputs());
    return Request(Output::patches);  // each image is run by the extractor
  }

  void run_inputs(ImageRun& run, const Request&) override {
    run.for_each_input([&](std::size_t index) { return failure_of([&] { add_image(run, index); }); });
  }

  int finish(ImageRun& run) override {
    run.progress().finish("");
    if (interrupted()) return 0;
    VIT_CHECK(num_features_ > 0, "fit", "no image that could be shown on the page");
    const JsonValue data{{"images", images_}, {"head", page_base64(head_file(run.model()))}};
    const std::string frame = with_board(kPaintFrame), style = board_style(kPaintStyle),
                      script = board_script(kPaintScript);
    write_page(options_.pixels.paint, {frame, style, script}, "vit fit: paint classes of pixels", data);
    run.progress().finish(printable(options_.pixels.paint.string()));
    return 0;
  }

 private:
  void add_image(ImageRun& run, std::size_t index) {
    const Input& input = run.inputs()[index];
    VIT_CHECK(input.pixels == nullptr, "fit", "preprocessed pixels have no image to paint on");
    const Image image = decode_input(input, run.preprocessor().decode_options());
    const PixelFeatures features = extractor_->extract(image);
    const PixelPatches patches = features.patches();
    num_bytes_ += patches.features.num_elements() * sizeof(float);
    VIT_CHECK(num_bytes_ <= kMostFeatureBytes, (Where{"fit", ErrorKind::unsupported}),
              "the features of the images before it fill the page (", kMostFeatureBytes >> 20,
              " MiB); give fewer images or a smaller --size");
    num_features_ = features.num_features();
    JsonValue ys = JsonValue::array(), xs = JsonValue::array();
    for (const double y : patches.ys) ys.push_back(y);
    for (const double x : patches.xs) xs.push_back(x);
    images_.push_back({{"name", printable(names_[index].string())},
                       {"width", image.width()},
                       {"height", image.height()},
                       {"picture", page_base64(encode_thumbnail(image, kLargestEdge))},
                       {"ys", ys},
                       {"xs", xs},
                       {"count", features.num_features()},
                       {"features", bytes_of(patches.features.flat())}});
  }

  /// A head of two classes whose functions are 0: the page puts its own numbers in their place.
  std::string head_file(const Model& model) const {
    PixelHead head;
    head.options = extractor_->options();
    ClassifierHead& of = head.classifier;
    of.labels = {"rest", "marked"};
    of.strength = 1.0;
    of.mean = Tensor<float>(Shape{num_features_});
    of.scale = Tensor<float>(Shape{num_features_});
    std::ranges::fill(of.scale.flat(), 1.0f);
    of.coefficients = Tensor<float>(Shape{2, num_features_});
    of.intercepts = Tensor<float>(Shape{2});
    head.attach(model);
    of.record =
        RunFacts{.model = run_model(options_.common, model, std::span(&of.features, 1)), .others = {}}.json();
    return head.bytes();
  }

  const FitCommandOptions& options_;
  std::optional<PixelExtractor> extractor_;
  std::vector<fs::path> names_;
  JsonValue images_ = JsonValue::array();
  std::size_t num_bytes_ = 0, num_features_ = 0;
};

}  // namespace

int paint_pixels(const FitCommandOptions& options) {
  if (!options.pixels.truth.empty() || !options.output.empty())
    fail_usage("--paint writes a page; --truth and --output learn from what was painted on it");
  Painting work(options);
  return run_images({.name = "fit",
                     .common = options.common,
                     .inputs = options.inputs,
                     .reads = {options.pixels.upsampler},
                     .files = {options.pixels.paint}},
                    work);
}

}  // namespace vit::app
