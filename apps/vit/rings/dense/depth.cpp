// vit depth: how far away every pixel of an image is, to a file or to files for each image.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/dense_run.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"
#include "vit/dense.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "The output is one file of arrays, .safetensors or .npz: depth.I (H, W) of input I at the size of its "
    "image, and\n"
    "normals.I (3, H, W) where the model gives them; with --raw what the head gives. Or FOLDER/, with files "
    "for each\n"
    "image:\n"
    "  png16  NAME.png, 16 bits: millimetres of a metric model, else the smallest to the largest value\n"
    "  color  NAME_color.png, by --colormap\n"
    "  npy    NAME.npy, float32      pfm  NAME.pfm, float32\n"
    "  ply    NAME.ply, a point cloud, of metric models\n"
    "The line of an image says what its numbers are: metre (larger is farther), inverse (inverse depth: "
    "larger is\n"
    "nearer, neither zero nor unit are known), or relative (larger is farther, no unit).\n"
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
constexpr double kFocal = 470.4;  // pixels, of Depth Anything's point clouds

struct DepthOptions {
  DenseRunOptions run;
  std::string colormap;
  double focal = kFocal;
};

std::vector<NamedArray> arrays_of(const DepthOptions& options, const DenseRun& run,
                                  const StreamedImage& image, const DepthMap& map) {
  const bool raw = options.run.raw;
  const ImageOutputs& outputs = *image.outputs;
  std::vector<NamedArray> arrays;
  arrays.push_back(NamedArray::of("depth", raw ? outputs.depth() : TensorView<const float>(map.depth)));
  if (run.config().find(MapMeaning::normals) != nullptr) {
    const TensorView<const float> normals = outputs.map(MapMeaning::normals);
    const Tensor<float> at_image =
        raw ? Tensor<float>() : normals_of(outputs, run.config(), image.size, run.threads());
    arrays.push_back(NamedArray::of("normals", raw ? normals : TensorView<const float>(at_image)));
  }
  if (raw && run.config().find(MapMeaning::classes) != nullptr)
    arrays.push_back(NamedArray::of("logits", outputs.map(MapMeaning::classes)));
  return arrays;
}

void write_files(const DepthOptions& options, const DenseRun& run, const StreamedImage& image,
                 const Input& input, const DepthMap& map, const ColorMap& colors) {
  const auto path = [&](std::string_view word) { return run.path_of(image.index, word); };
  if (run.writes("png16")) {
    const bool metric = map.unit == DepthUnit::metre;
    write_gray_png(
        path("png16"),
        metric ? to_millimetres(map.depth) : to_full_range(map.depth, map.lowest, map.highest, 65535.0), 16);
  }
  if (run.writes("color")) write_png(path("color"), colored(map.depth, map.lowest, map.highest, colors));
  if (run.writes("npy")) write_npy(path("npy"), map.depth);
  if (run.writes("pfm")) write_pfm(path("pfm"), map.depth);
  if (run.writes("ply")) {  // preprocessed pixels have no colors
    const Image picture = input.pixels != nullptr ? Image(1, 1) : run.picture_of(input, image.size);
    write_ply(path("ply"), map.depth, picture, options.focal);
  }
}

/// The image with its depths next to it.
void add_to_page(DenseRun& run, const StreamedImage& image, const Input& input, const DepthMap& map,
                 const ColorMap& colors) {
  PageItem item = named_item(input.name);
  item.note =
      text(image.size.width, " x ", image.size.height, "; ", to_string(map.unit), " ", map.lowest, " to ",
           map.highest, map.unit == DepthUnit::inverse ? ", large is near" : ", large is far");
  const Image depths = colored(map.depth, map.lowest, map.highest, colors);
  run.add_to_page(input, std::move(item), side_by_side(run.picture_of(input, image.size), depths));
}

std::string line_of(const std::string& file, const DepthMap& map, bool json) {
  if (!json)
    return text(printable(file), "  ", to_string(map.unit), "  ", map.lowest, " to ", map.highest, "\n");
  std::string out = "{\"file\": ";
  append_json_string(out, file);
  out += text(", \"unit\": \"", to_string(map.unit), "\", \"min\": ");
  append_json_float(out, map.lowest);
  out += ", \"max\": ";
  append_json_float(out, map.highest);
  return out + "}\n";
}

int depth(const DepthOptions& options) {
  std::optional<ColorMap> chosen;
  if (!options.colormap.empty()) chosen = color_map(options.colormap);
  DenseRun run({.name = "depth",
                .options = options.run,
                .formats = kDepthFormats,
                .fallback = {"png16"},
                .needed = MapMeaning::depth});
  ColorMap colors{};
  const auto prepare = [&] {
    const DepthUnit unit = run.config().depth_unit;
    if (run.writes("ply") && unit != DepthUnit::metre)
      fail_usage("--format ply needs depths in metres, and this model gives ", to_string(unit), " depth");
    colors = chosen ? *chosen : color_map(unit == DepthUnit::inverse ? "Spectral_r" : "Spectral");
    run.note("colormap", options.colormap);
    run.note("focal", text(options.focal));
    return true;
  };
  const bool json = options.run.has_word("json");
  return run.run(prepare, [&](const StreamedImage& image, const Input& input) -> DenseRun::Line {
    const DepthMap map = depth_of(*image.outputs, run.config(), image.size, run.threads());
    if (!are_finite(map.depth.flat())) return {"", "the depth is not finite; damaged pixels or weights?"};
    if (run.writes_arrays()) run.add_arrays(image.index, arrays_of(options, run, image, map));
    write_files(options, run, image, input, map, colors);
    if (run.has_page()) add_to_page(run, image, input, map, colors);
    return {line_of(input.name, map, json), ""};
  });
}

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
                  {.name = "--focal",
                   .type_name = "PIXELS",
                   .help = "Focal length of point clouds",
                   .target = parsed_target(
                       options->focal, [](const std::string& value) { return parse_real(value, 1e-3, 1e9); },
                       "470.4")}},
      .run = [options] { return depth(*options); }};
  add_dense_run_options(command.options, options->run, kDepthFormats, kDepthFormatHelp);
  return command;
}

}  // namespace vit::app
