// vit segment: what every pixel of an image shows, to a file or to files for each image.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/classes/labels.h"
#include "apps/vit/commands/command.h"
#include "apps/vit/commands/dense/dense_run.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/outputs/text_format.h"
#include "vit/base/check.h"
#include "vit/dense.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "The output is one file of arrays, .safetensors or .npz: segmentation.I (H, W) int32 of input I at the "
    "size of its\n"
    "image, the class of each pixel; with --raw logits.I (C, h, w), what the head gives. Or FOLDER/, with "
    "files for\n"
    "each image:\n"
    "  png    NAME.png, the index of the class, with the colors of --palette (16 bits above 256 classes)\n"
    "  color  NAME_color.png, the colors\n"
    "Examples:\n"
    "  vit segment --model tipsv2-b14-dpt photos/ --output segments/\n"
    "  vit segment --model dinov2_vits14_pretrain.pth --architecture dinov2_vits14 \\\n"
    "    --head dinov2_vits14_ade20k_linear_head.pth photo.jpg --output photo.npz --format json";

constexpr const char* kSegmentFormatHelp =
    "Files of FOLDER/: png and color (default: both); and json or text for the lines, which are json with "
    "arrays";
constexpr MapFormat kSegmentFormats[]{{"png", ".png"}, {"color", "_color.png"}};

enum class PaletteChoice { automatic, ade20k, voc };
constexpr Named<PaletteChoice> kPalettes[]{
    {"auto", PaletteChoice::automatic}, {"ade20k", PaletteChoice::ade20k}, {"voc", PaletteChoice::voc}};

enum class SegmentTask { semantic };
constexpr Named<SegmentTask> kTasks[]{{"semantic", SegmentTask::semantic}};

struct SegmentOptions {
  DenseRunOptions run;
  std::filesystem::path labels;
  SegmentTask task = SegmentTask::semantic;
  PaletteChoice palette = PaletteChoice::automatic;
};

std::vector<Color> palette_of(PaletteChoice choice, std::size_t num_classes) {
  const bool ade20k =
      choice == PaletteChoice::ade20k || (choice == PaletteChoice::automatic && num_classes == 150);
  std::vector<Color> colors;
  for (std::size_t i = 0; i < std::max<std::size_t>(num_classes, 1); ++i)
    colors.push_back(ade20k ? ade20k_color(i) : voc_color(i));
  return colors;
}

void write_index_png(const std::filesystem::path& path, TensorView<const std::int32_t> map,
                     std::span<const Color> palette) {
  constexpr std::size_t kMost = 256;
  if (palette.size() > kMost) {
    Tensor<std::uint16_t> values(map.shape());
    std::ranges::transform(map.flat(), values.data(),
                           [](std::int32_t id) { return static_cast<std::uint16_t>(id); });
    return write_gray_png(path, values, 16);
  }
  Tensor<std::uint8_t> indices(map.shape());
  std::ranges::transform(map.flat(), indices.data(),
                         [](std::int32_t id) { return static_cast<std::uint8_t>(id); });
  write_palette_png(path, indices, palette);
}

void write_colors(const std::filesystem::path& path, TensorView<const std::int32_t> map,
                  std::span<const Color> palette) {
  Image picture(map.dim(0), map.dim(1));
  for (std::size_t y = 0; y < picture.height(); ++y) {
    for (std::size_t x = 0; x < picture.width(); ++x) {
      const std::int32_t id = map.row(y)[x];
      const Color color = id < 0 ? Color{} : palette[static_cast<std::size_t>(id) % palette.size()];
      std::copy_n(color.data(), 3, picture.row(y) + 3 * x);
    }
  }
  write_png(path, picture);
}

std::string line_of(const std::string& file, const SegmentMap& map, bool json) {
  if (!json) {
    std::string out = printable(file) + "\n";
    const double pixels = static_cast<double>(map.map.num_elements());
    for (const Segment& segment : map.segments) {
      char share[32];
      std::snprintf(share, sizeof share, "  %6.2f %%  ", 100.0 * static_cast<double>(segment.area) / pixels);
      out += share + printable(segment.label) + "\n";
    }
    return out;
  }
  std::string out = "{\"file\": ";
  append_json_string(out, file);
  out += ", \"task\": \"semantic\", \"segments\": [";
  for (std::size_t i = 0; i < map.segments.size(); ++i) {
    const Segment& segment = map.segments[i];
    out += text(i > 0 ? ", " : "", "{\"id\": ", segment.id, ", \"index\": ", segment.index, ", \"label\": ");
    append_json_string(out, segment.label);
    out += ", \"score\": ";
    if (segment.score) {
      append_json_float(out, *segment.score);
    } else {
      out += "null";
    }
    out += text(", \"area\": ", segment.area, "}");
  }
  return out + "]}\n";
}

int segment(const SegmentOptions& options) {
  DenseRun run("segment", options.run, kSegmentFormats, {"png", "color"}, MapMeaning::classes,
               {options.labels});
  const DenseConfig& config = run.config();
  ModelConfig classes;  // as labels know them
  classes.num_classes = config.find(MapMeaning::classes)->channels;
  classes.labels = config.labels;
  const std::vector<std::string> labels = Labels(classes, options.labels).names();
  const std::vector<Color> palette = palette_of(options.palette, classes.num_classes);
  const bool json = options.run.has_word("json") || run.writes_arrays();
  return run.run([&](const StreamedImage& image, const Input& input) -> DenseRun::Line {
    const TensorView<const float> scores = image.outputs->map(MapMeaning::classes);
    if (!are_finite(scores.flat())) return {"", "the scores are not finite; damaged pixels or weights?"};
    const SegmentMap map = semantic_segments(*image.outputs, config, image.size, run.threads(), labels);
    if (run.writes_arrays()) {
      std::vector<NamedArray> arrays;
      arrays.push_back(options.run.raw
                           ? NamedArray::of("logits", scores)
                           : NamedArray::of("segmentation", TensorView<const std::int32_t>(map.map)));
      run.add_arrays(image.index, arrays);
    }
    if (run.writes("png")) write_index_png(run.path_of(image.index, "png"), map.map, palette);
    if (run.writes("color")) write_colors(run.path_of(image.index, "color"), map.map, palette);
    return {line_of(input.name, map, json), ""};
  });
}

}  // namespace

Command segment_command() {
  const auto options = std::make_shared<SegmentOptions>();
  Command command{
      .name = "segment",
      .summary = "What every pixel of images shows",
      .footer = kFooter,
      .options = {{.name = "--task",
                   .type_name = "TASK",
                   .help = "semantic: a class for each pixel",
                   .target = choice_target(options->task, kTasks)},
                  {.name = "--palette",
                   .type_name = "NAME",
                   .help = "Colors of classes: ade20k or voc; auto: ade20k for 150 classes, else voc",
                   .target = choice_target(options->palette, kPalettes)},
                  labels_option(options->labels)},
      .run = [options] { return segment(*options); }};
  add_dense_run_options(command.options, options->run, kSegmentFormats, kSegmentFormatHelp);
  return command;
}

}  // namespace vit::app
