// vit depth: how far away every pixel of an image is, to a file or to files for each image.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/dense/map_outputs.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/dense.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "The output is one file of arrays, .safetensors or .npz: depth.I (H, W) of input I at the size of its "
    "image, and normals.I (3, H, W) where the model gives them; with --raw what the head gives. Or FOLDER/, "
    "with files for each image:\n"
    "  png16  NAME.png, 16 bits: millimetres (--png-scale) of a metric model, else the smallest to the "
    "largest value\n"
    "  color  NAME_color.png, by --colormap\n"
    "  npy    NAME.npy, float32      pfm  NAME.pfm, float32\n"
    "  ply    NAME.ply, a point cloud, of metric models\n"
    "The line of an image says what its numbers are: metre (larger is farther), inverse (inverse depth: "
    "larger is nearer, neither zero nor unit are known), or relative (larger is farther, no unit).\n"
    "Examples:\n"
    "  vit depth --model Depth-Anything-V2-Small-hf photos/ --output depth/\n"
    "  vit depth --model depth_anything_v2_vits.pth photo.jpg --output photo.npz\n"
    "  vit depth --model Depth-Anything-V2-Small-hf walk.mp4 --output walk/ --html walk.html\n"
    "  vit depth --model Depth-Anything-V2-Metric-Indoor-Small-hf room.jpg --format ply,color --output "
    "room/\n"
    "  vit depth --model dinov2_vits14_pretrain.pth --architecture dinov2_vits14 \\\n"
    "    --head dinov2_vits14_nyu_dpt_head.pth photo.jpg --output photo.safetensors";

constexpr const char* kDepthFormatHelp =
    "Files of FOLDER/: png16 (default), color, npy, pfm, ply; and json or text (default) for the lines";
constexpr MapFormat kDepthFormats[]{
    {"png16", ".png"}, {"color", "_color.png"}, {"npy", ".npy"}, {"pfm", ".pfm"}, {"ply", ".ply"}};
constexpr double kMillimetres = 1000.0, kMostUnits = 65535.0;  // of png16
constexpr double kFocal = 470.4;                               // pixels, of Depth Anything's point clouds

struct DepthOptions {
  DenseRunOptions run;
  std::string colormap;
  std::optional<double> focal{};      // none: kFocal
  std::optional<double> png_scale{};  // none: kMillimetres

  double units_of_meter() const { return png_scale.value_or(kMillimetres); }
};

std::string line_of(const std::string& file, const DepthMap& map, bool is_json) {
  if (!is_json)
    return text(printable(file), "  ", to_string(map.unit), "  ", map.lowest, " to ", map.highest, "\n");
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("file", file);
  write_depth(json, map);
  json.end_object();
  return out + "\n";
}

class DepthWork : public ImageWork {
 public:
  explicit DepthWork(const DepthOptions& options)
      : options_(options), outputs_("depth", options.run, kDepthFormats, {"png16"}) {
    if (!options.colormap.empty()) colors_ = color_map(options.colormap);
    if (colors_ && !outputs_.writes("color") && !outputs_.has_page())
      fail_usage("--colormap has no effect: no colors are written; --format color writes them");
    if (options.focal && !outputs_.writes("ply"))
      fail_usage("--focal has no effect: no point cloud is written; --format ply writes it");
    if (options.png_scale && !outputs_.writes("png16"))
      fail_usage("--png-scale has no effect: no PNG of depths is written; --format png16 writes it");
  }

  int run() { return outputs_.run(*this); }

 private:
  std::optional<Request> load(ImageRun& run) override {
    const DepthEstimator estimator(outputs_.load(run, Output::depth));
    const DenseConfig& config = *run.model().dense_config();
    if (outputs_.writes("ply") && estimator.unit() != DepthUnit::meter)
      fail_usage("--format ply needs depths in metres, and this model gives ", to_string(estimator.unit()),
                 " depth");
    if (!colors_) colors_ = default_depth_colors(estimator.unit());
    outputs_.note("colormap", options_.colormap);
    outputs_.note("focal", text(options_.focal.value_or(kFocal)));
    if (options_.png_scale && estimator.unit() != DepthUnit::meter)
      fail_usage("--png-scale is of depths in metres, and this model gives ", to_string(estimator.unit()),
                 " depth");
    if (options_.units_of_meter() != kMillimetres)
      outputs_.note("png_scale", text(options_.units_of_meter()));
    outputs_.open(run);
    Request request = estimator.request();
    if (outputs_.writes_arrays()) {
      arrays_ = DepthArrays::of(config, options_.run.raw);
      arrays_.add_to(request);
    }
    return request;
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    std::string defect;
    const std::string failure = failure_of([&] {
      const Input& input = run.inputs()[image.index];
      const DepthMap map = depth_of(*image.outputs, outputs_.threads());
      defect = defect_of(map.depth.flat(), "the depth is");
      if (!defect.empty()) return;
      if (outputs_.writes_arrays())
        outputs_.add_arrays(run, image.index, depth_arrays(*image.outputs, map, arrays_, outputs_.threads()));
      write_files(run, image, map);
      if (outputs_.has_page()) add_to_page(run, image, map);
      MapOutputs::print(run, line_of(input.name, map, options_.run.has_word("json")));
    });
    return failure + defect;
  }

  int finish(ImageRun& run) override {
    const int code = outputs_.finish(run);
    if (num_cut_ > 0)
      print_failure(
          "", text(num_cut_, num_cut_ == 1 ? " pixel of " : " pixels of ", count_of(num_cut_images_, "image"),
                   num_cut_ == 1 ? " is" : " are", " farther than ", kMostUnits / options_.units_of_meter(),
                   " m, the most that 16 bits hold with ", options_.units_of_meter(),
                   " units a metre, and cut to it; --png-scale 256 reaches 255 m"));
    return code;
  }

  void write_files(const ImageRun& run, const StreamedImage& image, const DepthMap& map) {
    const auto path = [&](std::string_view word) { return outputs_.path_of(image.index, word); };
    if (outputs_.writes("png16")) {
      if (map.unit == DepthUnit::meter) count_cut(map.depth);
      write_bytes(path("png16"), depth_png(map, options_.units_of_meter()));
    }
    if (outputs_.writes("color"))
      write_png(path("color"), colored(map.depth, map.lowest, map.highest, *colors_));
    if (outputs_.writes("npy")) write_npy(path("npy"), map.depth);
    if (outputs_.writes("pfm")) write_pfm(path("pfm"), map.depth);
    if (outputs_.writes("ply")) {  // preprocessed pixels have no colors
      const Input& input = run.inputs()[image.index];
      const Image picture = input.pixels != nullptr ? Image(1, 1) : picture_of(run, input, image.size);
      write_ply(path("ply"), map.depth, picture, options_.focal.value_or(kFocal));
    }
  }

  /// Counts the depths that 16 bits cannot hold.
  void count_cut(TensorView<const float> depth) {
    const double most = kMostUnits / options_.units_of_meter();
    const auto count = static_cast<std::size_t>(
        std::ranges::count_if(depth.flat(), [&](float value) { return static_cast<double>(value) > most; }));
    num_cut_ += count;
    num_cut_images_ += count > 0 ? 1 : 0;
  }

  /// The image with its depths next to it.
  void add_to_page(const ImageRun& run, const StreamedImage& image, const DepthMap& map) {
    const Input& input = run.inputs()[image.index];
    PageItem item = named_item(input.name);
    item.note =
        text(image.size.width, " x ", image.size.height, "; ", to_string(map.unit), " ", map.lowest, " to ",
             map.highest, map.unit == DepthUnit::inverse ? ", large is near" : ", large is far");
    const Image depths = colored(map.depth, map.lowest, map.highest, *colors_);
    outputs_.add_to_page(run, input, std::move(item),
                         side_by_side(picture_of(run, input, image.size), depths));
  }

  const DepthOptions& options_;
  MapOutputs outputs_;
  std::optional<ColorMap> colors_;
  DepthArrays arrays_;                            // that are written
  std::size_t num_cut_ = 0, num_cut_images_ = 0;  // pixels beyond the range of png16
};

}  // namespace

Command depth_command() {
  const auto options = std::make_shared<DepthOptions>();
  Command command{
      .name = "depth",
      .summary = "Depth of every pixel of images, in metres or inverse",
      .footer = kFooter,
      .options = {{.name = "--colormap",
                   .type_name = "NAME",
                   .help =
                       "matplotlib's name, also with _r; default: Spectral_r of inverse depth, else Spectral",
                   .target = offering(text_target(options->colormap), color_map_names())},
                  {.name = "--png-scale",
                   .type_name = "N",
                   .help = "Units of png16 per metre, of metric models; KITTI has 256",
                   .target = parsed_target(
                       options->png_scale,
                       [](const std::string& value) { return parse_real(value, 1e-3, 1e6); }, "1000")},
                  {.name = "--focal",
                   .type_name = "PIXELS",
                   .help = "Focal length of point clouds",
                   .target = parsed_target(
                       options->focal, [](const std::string& value) { return parse_real(value, 1e-3, 1e9); },
                       "470.4")}},
      .run = [options] { return DepthWork(*options).run(); }};
  add_dense_run_options(command.options, options->run, kDepthFormats, kDepthFormatHelp);
  return command;
}

}  // namespace vit::app
