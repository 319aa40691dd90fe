#include "apps/vit/rings/dense/segment_pixels.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <utility>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/sha256.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/inputs/input_reader.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/record.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/coco_files.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/dense/pixel_example.h"
#include "apps/vit/rings/dense/prompt_options.h"
#include "vit/base/check.h"
#include "vit/io/source_file.h"
#include "vit/pixels.h"

namespace vit::app {
namespace {

constexpr Where kSegmentPixels{"segment", ErrorKind::mismatch};
constexpr MapFormat kPixelFormats[]{
    {"png", ".png"}, {"color", "_color.png"}, {"coco", ".json"}, {"csv", ".csv"}};

/// The areas of classes in a map (H, W), -1 = none.
SegmentMap with_areas(Tensor<std::int32_t> classes, std::span<const std::string> labels) {
  SegmentMap out{.map = std::move(classes), .segments = {}};
  std::vector<std::size_t> areas(labels.size());
  for (const std::int32_t index : out.map.flat()) {
    if (index >= 0) ++areas[static_cast<std::size_t>(index)];
  }
  for (std::size_t k = 0; k < areas.size(); ++k) {
    if (areas[k] > 0)
      out.segments.push_back(
          {.id = static_cast<std::int32_t>(k), .index = k, .label = labels[k], .area = areas[k]});
  }
  return out;
}

/// The place of the mean of the centers, and the box of a region that grows pixel by pixel.
struct Extent {
  std::size_t x0 = ~std::size_t{0}, y0 = 0, x1 = 0, y1 = 0, area = 0;
  double x_sum = 0, y_sum = 0;

  void add(std::size_t x, std::size_t y) {
    if (area == 0) y0 = y;
    x0 = std::min(x0, x);
    y0 = std::min(y0, y);
    x1 = std::max(x1, x + 1);
    y1 = std::max(y1, y + 1);
    x_sum += static_cast<double>(x) + 0.5;
    y_sum += static_cast<double>(y) + 0.5;
    ++area;
  }
};

void write_segments_of(JsonWriter& json, const SegmentMap& map, std::span<const Region> regions) {
  json.key("segments").begin_array();
  for (std::size_t i = 0; i < map.segments.size(); ++i) {
    const Segment& segment = map.segments[i];
    json.begin_object().member("id", segment.id).member("index", segment.index);
    json.member("label", segment.label).member("score", segment.score).member("area", segment.area);
    if (!regions.empty()) {
      const PixelFrame& box = regions[i].frame;
      json.array("box", std::array{box.x, box.y, box.x + box.width, box.y + box.height});
      json.array("centroid", std::array{regions[i].x, regions[i].y});
    }
    json.end_object();
  }
  json.end_array();
}

std::string regions_as_csv(const std::string& file, std::span<const Region> regions, bool with_header) {
  std::string out = with_header ? "file,id,index,label,area,x0,y0,x1,y1,centroid_x,centroid_y\n" : "";
  char numbers[160];
  for (const Region& region : regions) {
    const PixelFrame& box = region.frame;
    std::snprintf(numbers, sizeof numbers, ",%zu,%zu,%zu,%zu,%zu,%.10g,%.10g\n", region.segment.area, box.x,
                  box.y, box.x + box.width, box.y + box.height, region.x, region.y);
    out += text(csv_field(file), ",", region.segment.id, ",", region.segment.index, ",",
                csv_field(region.segment.label)) +
           numbers;
  }
  return out;
}

/// The file of --upsample.
Target moved_upsampler_target(std::filesystem::path& upsampler) {
  return {[&upsampler](const std::vector<std::string>& values) {
    const std::string& value = not_empty(values.front());
    if (value == "bilinear" || value == "shift" || value == "guided")
      fail_value("the file of the head's learned upsampler; a head knows its way from patches to pixels",
                 value);
    upsampler = value;
  }};
}

/// Loads the head and runs each image for the features that it needs.
class PixelWork : public ImageWork {
 public:
  PixelWork(DenseRunOptions& run, const PixelClassOptions& options)
      : options_(options), run_(run), outputs_("segment", run, kPixelFormats, {"png", "color"}) {
    if (run.raw) fail_usage("--raw gives the maps of a dense head; --probabilities those of --classifier");
    if (options.probabilities && !run.writes_arrays())
      fail_usage("--probabilities are arrays: --output FILE.npz or .safetensors");
    if (run.has_word("csv") && !options.regions) fail_usage("--format csv lists regions: --regions");
  }

  int run() {
    if (!options_.classifier.empty())
      take_record(read_record(options_.classifier), options_.classifier.string(), run_.common);
    if (is_prompt_model(run_.common))
      fail_usage("--classifier and --like: ", model_path(run_.common).string(),
                 " is a model of prompts; --classes, --boxes or --points ask it");
    std::vector<std::filesystem::path> reads = example_files(options_.like);
    reads.push_back(options_.classifier);
    reads.push_back(options_.upsampler);
    if (!options_.classifier.empty()) reads.push_back(PixelHead::upsampler_file(options_.classifier));
    return outputs_.run(*this, std::move(reads));
  }

 private:
  std::optional<Request> load(ImageRun& run) override {
    const std::shared_ptr<const Model>& model = run.load();
    const int threads = outputs_.threads();
    if (options_.classifier.empty()) {
      head_ = learn_example(options_.like, model, run_.common);
    } else {
      head_ = PixelHead::load(options_.classifier, options_.upsampler);
      head_->check(*model);
    }
    extractor_.emplace(model, head_->options, threads);
    if (options_.classifier.empty()) {
      labels_ = {head_->classifier.labels.back()};
    } else {
      labels_ = head_->classifier.labels;
    }
    palette_ = class_colors(labels_.size());
    outputs_.note("classifier", options_.classifier.empty()
                                    ? example_digest(options_.like)
                                    : sha256(internal::SourceFile(options_.classifier, kSegmentPixels)));
    outputs_.note("regions", options_.regions ? "yes" : "no");
    outputs_.open(run);
    return Request(Output::patches);  // each image is run by the extractor
  }

  void run_inputs(ImageRun& run, const Request&) override {
    run.for_each_input([&](std::size_t index) { return failure_of([&] { classify(run, index); }); });
  }

  int finish(ImageRun& run) override { return outputs_.finish(run); }

  bool is_example() const { return options_.classifier.empty(); }

  void classify(ImageRun& run, std::size_t index) {
    const Input& input = run.inputs()[index];
    VIT_CHECK(input.pixels == nullptr, "segment",
              "preprocessed pixels have no image whose pixels could be classified");
    const Image image = decode_input(input, run.preprocessor().decode_options());
    const PixelFeatures features = extractor_->extract(image);
    Tensor<std::int32_t> classes = head_->classes(features, outputs_.threads());
    if (is_example()) {  // the background is none
      for (std::int32_t& index_of : classes.flat()) --index_of;
    }
    SegmentMap map = with_areas(std::move(classes), labels_);
    std::vector<Region> regions;
    if (options_.regions) regions = take_regions(map, labels_);
    std::vector<NamedArray> arrays{NamedArray::of("segmentation", TensorView<const std::int32_t>(map.map))};
    if (options_.probabilities) {
      const Tensor<float> all = head_->probabilities(features, outputs_.threads());
      const TensorView<const float> shown = is_example() ? all.view().part(1, 1) : all.view();
      arrays.push_back(NamedArray::of("probabilities", shown));
      outputs_.add_arrays(run, index, arrays);
    } else if (outputs_.writes_arrays()) {
      outputs_.add_arrays(run, index, arrays);
    }
    write_files(run, index, image, map, regions);
  }

  void write_files(ImageRun& run, std::size_t index, const Image& image, const SegmentMap& map,
                   std::span<const Region> regions) {
    const Input& input = run.inputs()[index];
    // ids of regions are like those of instances: there may be none, and each has a color of its own
    const SegmentTask task = options_.regions || is_example() ? SegmentTask::instance : SegmentTask::semantic;
    const std::vector<Color> colors = colors_of_ids(map, task, palette_);
    const auto path = [&](std::string_view word) { return outputs_.path_of(index, word); };
    if (outputs_.writes("png")) write_bytes(path("png"), segment_png(map, task, palette_));
    if (outputs_.writes("color")) write_png(path("color"), colored_ids(map.map, colors));
    if (outputs_.writes("coco")) {
      const std::filesystem::path file = path("coco");
      write_text(file, coco_results(map, file.stem().string(), input.name));
    }
    if (outputs_.writes("csv")) write_text(path("csv"), regions_as_csv(input.name, regions, true));
    if (outputs_.has_page()) {
      PageItem item = named_item(input.name);
      item.note = text(image.width(), " x ", image.height(), "; ", count_of(map.segments.size(), "segment"));
      const auto pixels = static_cast<float>(map.map.num_elements());
      constexpr std::size_t kMostLabels = 50;
      for (const Segment& segment : map.segments) {
        if (item.labels.size() < kMostLabels)
          item.labels.push_back({.name = segment.label, .score = static_cast<float>(segment.area) / pixels});
      }
      outputs_.add_to_page(run, input, std::move(item),
                           side_by_side(image, colored_ids(map.map, colors, &image)));
    }
    MapOutputs::print(run, line_of(input.name, map, regions));
  }

  std::string line_of(const std::string& file, const SegmentMap& map, std::span<const Region> regions) {
    if (run_.has_word("csv") && !run_.writes_folder()) {
      const bool is_first = !std::exchange(has_header_, true);
      return regions_as_csv(file, regions, is_first);
    }
    std::string out;
    if (run_.has_word("json") || run_.writes_arrays()) {
      JsonWriter json(out);
      json.begin_object().member("file", file).member("task", "semantic");
      write_segments_of(json, map, regions);
      json.end_object();
      return out + "\n";
    }
    out = printable(file) + "\n";
    const double pixels = static_cast<double>(map.map.num_elements());
    for (std::size_t i = 0; i < map.segments.size(); ++i) {
      const Segment& segment = map.segments[i];
      char line[96];
      std::snprintf(line, sizeof line, "  %6.2f %%  ", 100.0 * static_cast<double>(segment.area) / pixels);
      out += line + printable(segment.label);
      if (!regions.empty()) {
        std::snprintf(line, sizeof line, "  %zu pixels around %.1f,%.1f", segment.area, regions[i].x,
                      regions[i].y);
        out += line;
      }
      out += "\n";
    }
    if (map.segments.empty()) out += "  nothing\n";
    return out;
  }

  const PixelClassOptions& options_;
  DenseRunOptions& run_;
  MapOutputs outputs_;
  std::optional<PixelHead> head_;
  std::optional<PixelExtractor> extractor_;
  std::vector<std::string> labels_;
  std::vector<Color> palette_;
  bool has_header_ = false;  // of the lines of csv
};

}  // namespace

std::vector<Region> take_regions(SegmentMap& map, std::span<const std::string> labels) {
  const std::size_t height = map.map.dim(0), width = map.map.dim(1);
  std::vector<Region> out;
  std::vector<std::size_t> open;
  Tensor<std::int32_t> ids(map.map.shape());
  std::ranges::fill(ids.flat(), -1);
  for (std::size_t start = 0; start < height * width; ++start) {
    const std::int32_t own = map.map.data()[start];
    if (own < 0 || ids.data()[start] >= 0) continue;
    const auto id = static_cast<std::int32_t>(out.size());
    Extent extent;
    const auto visit = [&](std::size_t at) {
      if (map.map.data()[at] != own || ids.data()[at] >= 0) return;
      ids.data()[at] = id;
      extent.add(at % width, at / width);
      open.push_back(at);
    };
    visit(start);
    while (!open.empty()) {
      const std::size_t at = open.back(), x = at % width, y = at / width;
      open.pop_back();
      if (x > 0) visit(at - 1);
      if (x + 1 < width) visit(at + 1);
      if (y > 0) visit(at - width);
      if (y + 1 < height) visit(at + width);
    }
    const auto index = static_cast<std::size_t>(own);
    const auto area = static_cast<double>(extent.area);
    out.push_back({.segment = {.id = id, .index = index, .label = labels[index], .area = extent.area},
                   .frame = {extent.x0, extent.y0, extent.x1 - extent.x0, extent.y1 - extent.y0},
                   .x = extent.x_sum / area,
                   .y = extent.y_sum / area});
  }
  map.map = std::move(ids);
  map.segments.clear();
  for (const Region& region : out) map.segments.push_back(region.segment);
  return out;
}

void add_pixel_class_options(std::vector<Option>& list, PixelClassOptions& options) {
  constexpr const char* kGroup = "Classes of pixels";
  list.push_back({.name = "--classifier",
                  .type_name = "HEAD",
                  .help = "Classes of pixels that vit fit --truth learned, on the features of its model",
                  .target = text_target(options.classifier),
                  .group = kGroup});
  list.push_back({.name = "--like",
                  .type_name = "IMAGE:X,Y|IMAGE:MASK.png",
                  .help =
                      "What is like the patches of IMAGE at these pixels (X,Y,X,Y,...), or in a mask, and "
                      "unlike its others",
                  .target = text_target(options.like),
                  .group = kGroup});
  list.push_back({.name = "--upsample",
                  .type_name = "FILE",
                  .help = "The learned upsampler of HEAD, if it is no longer where it was",
                  .target = moved_upsampler_target(options.upsampler),
                  .group = kGroup});
  list.push_back({.name = "--probabilities",
                  .type_name = "",
                  .help = "Write probabilities.I (K, H, W), too, to arrays",
                  .flag = &options.probabilities,
                  .group = kGroup});
  list.push_back({.name = "--regions",
                  .type_name = "",
                  .help =
                      "Segments are connected pixels of a class, with area, box and centroid; --format csv "
                      "lists them",
                  .flag = &options.regions,
                  .group = kGroup});
}

void check_pixel_class_options(const PixelClassOptions& options) {
  if (!options.classifier.empty() && !options.like.empty())
    fail_usage("--classifier and --like: give only one of them");
  if (options.classifier.empty() && !options.upsampler.empty())
    fail_usage("--upsample is for the learned upsampler of --classifier HEAD");
  if (!options.are_given() && (options.probabilities || options.regions))
    fail_usage(options.regions ? "--regions" : "--probabilities",
               " is for classes of pixels: --classifier HEAD, or --like IMAGE:X,Y");
}

int segment_pixels(DenseRunOptions& run, const PixelClassOptions& options) {
  return PixelWork(run, options).run();
}

}  // namespace vit::app
