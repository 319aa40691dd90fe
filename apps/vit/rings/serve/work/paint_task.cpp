#include "apps/vit/rings/serve/work/paint_task.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/vit/html/thumbnails.h"
#include "apps/vit/options/record.h"
#include "apps/vit/rings/serve/work/decode_link.h"
#include "apps/vit/rings/serve/work/work.h"
#include "vit/base/check.h"
#include "vit/config.h"

namespace vit::app {
namespace {

/// An image of the planes that a decoding process made.
Image image_of(const Tensor<float>& planes) {
  const std::size_t height = planes.dim(1), width = planes.dim(2);
  Image out(height, width);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < height; ++y) {
      const float* const row = planes.view()[c].row(y);
      for (std::size_t x = 0; x < width; ++x)
        out.row(y)[3 * x + c] = static_cast<std::uint8_t>(std::clamp(row[x], 0.0f, 255.0f));
    }
  }
  return out;
}

class PaintTask : public OutputTask {
 public:
  PaintTask(std::size_t model, const CommonOptions& common, const PreprocessConfig& rules,
            const ModelConfig& config, KeptValues& kept)
      : model_(model), common_(common), rules_(rules), config_(config), kept_(kept) {
    options_.size = common.session.input_size;
  }

  Tensor<float> pixels_of(Tensor<float> thumbnail) override {
    VIT_CHECK(thumbnail.shape().rank() == 3 && thumbnail.dim(0) == 3, "paint", "no picture to paint on");
    image_ = image_of(thumbnail);
    const Preprocessor preprocessor(pixel_preprocessing(options_, rules_, config_, image_.size()));
    map_ = preprocessor.source_map(image_.size());
    return preprocessor.run(image_, /*threads=*/1);
  }

  Request prepare(const std::shared_ptr<const Model>& model, const ClassVectors* /*texts*/) override {
    const std::string features = "patches";
    made_by_ = {
        .name = model->name(),
        .fingerprint = model->report().fingerprint,
        .record =
            RunFacts{.model = run_model(common_, *model, std::span(&features, 1)), .others = {}}.json()};
    return pixel_request(options_);
  }

  void write(internal::JsonWriter& json, const ImageOutputs& outputs, const WorkItem& item,
             std::size_t /*index*/) const override {
    const GridSize grid = outputs.grid();
    const double patch = static_cast<double>(config_.patch.size);
    std::vector<double> ys, xs;
    for (std::size_t i = 0; i < grid.rows; ++i)
      ys.push_back(map_.top + (static_cast<double>(i) + 0.5) * patch * map_.y_step);
    for (std::size_t i = 0; i < grid.columns; ++i)
      xs.push_back(map_.left + (static_cast<double>(i) + 0.5) * patch * map_.x_step);
    const TensorView<const float> of_image = outputs.patches();
    const PixelPatches patches{
        .ys = ys,
        .xs = xs,
        .features = {of_image.data(), Shape{ys.size() * xs.size(), of_image.num_columns()},
                     of_image.row_stride()}};
    const auto features = [&](PixelUpsampling upsampling) {
      PixelOptions options = options_;
      options.upsampling = upsampling;
      return PixelFeatures::of(image_, std::move(options), patches);
    };
    auto painted = std::make_shared<const PaintedImage>(features(PixelUpsampling::bilinear),
                                                        features(PixelUpsampling::guided), made_by_, model_);
    const std::string picture = encode_thumbnail(image_, kThumbnailEdge);
    json.begin_object().member("key", kept_.add(std::move(painted)));
    json.member("width", item.image_size.width).member("height", item.image_size.height);
    write_base64(json, "picture", std::as_bytes(std::span(picture)));
    json.end_object();
  }

 private:
  const std::size_t model_;
  const CommonOptions& common_;
  const PreprocessConfig& rules_;
  const ModelConfig& config_;
  KeptValues& kept_;
  PixelOptions options_;
  Image image_;
  SourceMap map_;
  PaintedImage::MadeBy made_by_;
};

}  // namespace

std::size_t PaintedImage::bytes() const {
  const std::size_t of_patches = 2 * between_patches.patches().features.num_elements() * sizeof(float);
  return of_patches + 3 * along_edges.size().height * along_edges.size().width;
}

std::shared_ptr<OutputTask> paint_task(std::size_t model, const CommonOptions& common,
                                       const PreprocessConfig& rules, const ModelConfig& config,
                                       KeptValues& kept) {
  return std::make_shared<PaintTask>(model, common, rules, config, kept);
}

}  // namespace vit::app
