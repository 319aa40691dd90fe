// vit segment: what every pixel of an image shows, to a file or to files for each image.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/classes/labels.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/dense/coco_files.h"
#include "apps/vit/rings/dense/map_outputs.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/dense.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "The output is one file of arrays, .safetensors or .npz: segmentation.I (H, W) int32 of input I at the "
    "size of its\n"
    "image, the class of each pixel, or the id of its segment, -1 = none; with --raw what the head gives: "
    "logits.I\n"
    "(C, h, w), or of queries mask_logits.I (Q, h, w) and class_logits.I (Q, C + 1), with a dimension in "
    "front where\n"
    "images are computed as windows. Or FOLDER/, with files for each image:\n"
    "  png    NAME.png, the index of the class or the id, with the colors of --palette, 255 = none (16 bits "
    "above 255)\n"
    "  color  NAME_color.png, the colors\n"
    "  coco   NAME.json, a list of COCO results with run lengths; of --task panoptic the segments of "
    "NAME_panoptic.png\n"
    "Tasks and thresholds are those of transformers' post-processing: an instance is a mask above 0 whose "
    "score, of\n"
    "class and mask, reaches --threshold; a panoptic segment is a query whose class passes it, and its "
    "pixels are\n"
    "those where it is the strongest and reaches --mask-threshold.\n"
    "Examples:\n"
    "  vit segment --model coco_panoptic_eomt_large_640 photos/ --output segments/ --format coco,color\n"
    "  vit segment --model coco_instance_eomt_large_640 --task instance --threshold 0.5 photo.jpg --format "
    "json\n"
    "  vit segment --model tipsv2-b14-dpt photos/ --output segments/\n"
    "  vit segment --model dinov2_vits14_pretrain.pth --architecture dinov2_vits14 \\\n"
    "    --head dinov2_vits14_ade20k_linear_head.pth photo.jpg --output photo.npz --format json";

constexpr const char* kSegmentFormatHelp =
    "Files of FOLDER/: png, color (default: both), coco; and json or text for the lines, which are json with "
    "arrays";
constexpr const char* kPanopticEnding = "_panoptic.png";
constexpr MapFormat kSegmentFormats[]{
    {"png", ".png"}, {"color", "_color.png"}, {"coco", ".json", kPanopticEnding}};

enum class PaletteChoice { automatic, ade20k, voc };
constexpr Named<PaletteChoice> kPalettes[]{
    {"auto", PaletteChoice::automatic}, {"ade20k", PaletteChoice::ade20k}, {"voc", PaletteChoice::voc}};

enum class TaskChoice { automatic, semantic, instance, panoptic };
constexpr Named<TaskChoice> kTasks[]{{"auto", TaskChoice::automatic},
                                     {"semantic", TaskChoice::semantic},
                                     {"instance", TaskChoice::instance},
                                     {"panoptic", TaskChoice::panoptic}};

struct SegmentCommand {
  DenseRunOptions run;
  std::filesystem::path labels;
  TaskChoice task = TaskChoice::automatic;
  std::optional<double> threshold, mask_threshold, overlap;
  std::vector<std::string> stuff;  // names or numbers of classes
  PaletteChoice palette = PaletteChoice::automatic;
};

const char* task_name(SegmentTask task) {
  switch (task) {
    case SegmentTask::semantic: return "semantic";
    case SegmentTask::instance: return "instance";
    case SegmentTask::panoptic: return "panoptic";
  }
  return "";
}

SegmentTask task_of(TaskChoice choice, const Model& model) {
  switch (choice) {
    case TaskChoice::automatic: break;
    case TaskChoice::semantic: return SegmentTask::semantic;
    case TaskChoice::instance: return SegmentTask::instance;
    case TaskChoice::panoptic: return SegmentTask::panoptic;
  }
  return Segmenter::default_task(model);
}

std::vector<std::string> split_words(const std::string& list) {
  std::vector<std::string> words{""};
  for (const char c : list) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (std::ranges::any_of(words, &std::string::empty)) fail_value("classes, such as wall,floor or 0,3", list);
  return words;
}

/// The class of that name, or number. Throws UsageError.
std::size_t class_of(const std::string& word, std::span<const std::string> labels, std::size_t num_classes) {
  const auto found = std::ranges::find(labels, word);
  if (found != labels.end()) return static_cast<std::size_t>(found - labels.begin());
  std::size_t index = num_classes;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error != std::errc() || end != word.data() + word.size() || index >= num_classes)
    fail_usage("--stuff: the model has no class '", word, "'; it takes names, or numbers from 0 to ",
               num_classes - 1);
  return index;
}

/// Throws UsageError for options that the task does not have.
SegmentOptions options_of(const SegmentCommand& command, const Model& model,
                          std::span<const std::string> labels, std::size_t num_classes) {
  SegmentOptions out{.task = task_of(command.task, model)};
  const bool panoptic = out.task == SegmentTask::panoptic;
  if (command.threshold && out.task == SegmentTask::semantic)
    fail_usage("--threshold is for --task instance and panoptic");
  if (!panoptic && (command.mask_threshold || command.overlap || !command.stuff.empty()))
    fail_usage("--mask-threshold, --overlap and --stuff are for --task panoptic");
  out.threshold = command.threshold.value_or(out.threshold);
  out.mask_threshold = command.mask_threshold.value_or(out.mask_threshold);
  out.overlap = command.overlap.value_or(out.overlap);
  for (const std::string& word : command.stuff) out.stuff.push_back(class_of(word, labels, num_classes));
  return out;
}

std::vector<Color> palette_of(PaletteChoice choice, std::size_t num_classes) {
  std::vector<Color> colors = class_colors(num_classes);
  if (choice == PaletteChoice::automatic) return colors;
  for (std::size_t i = 0; i < colors.size(); ++i)
    colors[i] = choice == PaletteChoice::ade20k ? ade20k_color(i) : voc_color(i);
  return colors;
}

void write_index_png(const std::filesystem::path& path, TensorView<const std::int32_t> map,
                     std::span<const Color> palette, bool has_none) {
  const std::size_t kMost = has_none ? 255 : 256;
  if (palette.size() > kMost) {
    Tensor<std::uint16_t> values(map.shape());
    std::ranges::transform(map.flat(), values.data(),
                           [](std::int32_t id) { return static_cast<std::uint16_t>(id); });
    return write_gray_png(path, values, 16);
  }
  Tensor<std::uint8_t> indices(map.shape());
  std::ranges::transform(map.flat(), indices.data(),
                         [](std::int32_t id) { return static_cast<std::uint8_t>(id); });
  std::vector<Color> colors(palette.begin(), palette.end());
  if (has_none) {  // which is the last index, white as in VOC
    colors.resize(kMost);
    colors.push_back({255, 255, 255});
  }
  write_palette_png(path, indices, colors);
}

void write_coco(const std::filesystem::path& path, const Input& input, const SegmentMap& map,
                SegmentTask task) {
  const std::string name = path.stem().string();
  if (task != SegmentTask::panoptic) return write_text(path, coco_results(map, name, input.name));
  const std::string picture = name + kPanopticEnding;
  write_png(path.parent_path() / picture, coco_panoptic_picture(map));
  write_text(path, coco_panoptic(map, name, picture));
}

std::vector<NamedArray> arrays_of(const ImageOutputs& outputs, const SegmentMap& map, bool raw) {
  std::vector<NamedArray> arrays;
  if (!raw) {
    arrays.push_back(NamedArray::of("segmentation", TensorView<const std::int32_t>(map.map)));
  } else if (outputs.head()->find(Output::masks) == nullptr) {
    arrays.push_back(NamedArray::of("logits", outputs[Output::classes]));
  } else {
    const TensorView<const float> masks = outputs[Output::masks], scores = outputs[Output::mask_classes];
    arrays.push_back(NamedArray::of("mask_logits", masks));
    arrays.push_back(NamedArray::of("class_logits", scores));
  }
  return arrays;
}

std::string line_of(const std::string& file, const SegmentMap& map, SegmentTask task, bool is_json) {
  if (!is_json) {
    std::string out = printable(file) + "\n";
    const double pixels = static_cast<double>(map.map.num_elements());
    for (const Segment& segment : map.segments) {
      char share[32];
      std::snprintf(share, sizeof share, "  %6.2f %%  ", 100.0 * static_cast<double>(segment.area) / pixels);
      out += share + printable(segment.label);
      if (segment.score) out += text("  ", *segment.score);
      out += "\n";
    }
    if (map.segments.empty()) out += "  no segments (--threshold sets the score that they need)\n";
    return out;
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("file", file).member("task", task_name(task)).key("segments").begin_array();
  for (const Segment& segment : map.segments) {
    json.begin_object().member("id", segment.id).member("index", segment.index);
    json.member("label", segment.label).member("score", segment.score).member("area", segment.area);
    json.end_object();
  }
  json.end_array().end_object();
  return out + "\n";
}

class SegmentWork : public ImageWork {
 public:
  explicit SegmentWork(const SegmentCommand& options)
      : options_(options),
        outputs_("segment", options.run, kSegmentFormats, {"png", "color"}),
        json_(options.run.has_word("json") || options.run.writes_arrays()) {}

  int run() { return outputs_.run(*this, {options_.labels}); }

 private:
  std::optional<Request> load(ImageRun& run) override {
    const std::shared_ptr<const Model>& model = outputs_.load(run, Output::classes);
    const DenseConfig& config = *model->dense_config();
    const MapOutput* const of_pixels = config.find(Output::classes);
    scores_ = of_pixels != nullptr ? Output::classes : Output::masks;
    ModelConfig classes;  // as labels know them
    classes.head.num_classes =
        of_pixels != nullptr ? of_pixels->channels : config.find(Output::mask_classes)->channels - 1;
    classes.head.labels = config.labels;
    const std::vector<std::string> labels = Labels(classes, options_.labels).names();
    segments_ = options_of(options_, *model, labels, classes.head.num_classes);
    segments_.labels = labels;
    palette_ = palette_of(options_.palette, classes.head.num_classes);
    outputs_.note("task", task_name(segments_.task));
    outputs_.note("thresholds",
                  text(segments_.threshold, ",", segments_.mask_threshold, ",", segments_.overlap));
    std::string stuff;
    for (const std::size_t index : segments_.stuff) stuff += text(stuff.empty() ? "" : ",", index);
    outputs_.note("stuff", stuff);
    outputs_.note("palette", text(static_cast<int>(options_.palette)));
    outputs_.open(run);
    return Segmenter(model, segments_).request();
  }

  std::string add(ImageRun& run, const StreamedImage& image) override {
    if (!are_finite((*image.outputs)[scores_].flat()))
      return "the scores are not finite; damaged pixels or weights?";
    return failure_of([&] { write(run, image, segments_of(*image.outputs, segments_, outputs_.threads())); });
  }

  int finish(ImageRun& run) override { return outputs_.finish(run); }

  void write(ImageRun& run, const StreamedImage& image, const SegmentMap& map) {
    const Input& input = run.inputs()[image.index];
    if (outputs_.writes_arrays())
      outputs_.add_arrays(run, image.index, arrays_of(*image.outputs, map, options_.run.raw));
    const bool semantic = segments_.task == SegmentTask::semantic;
    const std::vector<Color> of_ids = segment_colors(semantic ? 0 : map.segments.size());
    const std::span<const Color> colors = semantic ? palette_ : of_ids;
    const auto path = [&](std::string_view word) { return outputs_.path_of(image.index, word); };
    if (outputs_.writes("png")) write_index_png(path("png"), map.map, colors, !semantic);
    if (outputs_.writes("color")) write_png(path("color"), colored_ids(map.map, colors));
    if (outputs_.writes("coco")) write_coco(path("coco"), input, map, segments_.task);
    if (outputs_.has_page()) add_to_page(run, image, map, colors);
    MapOutputs::print(run, line_of(input.name, map, segments_.task, json_));
  }

  /// The image with its segments over it next to it; their scores, or the parts of the image that classes
  /// have, the largest first.
  void add_to_page(const ImageRun& run, const StreamedImage& image, const SegmentMap& map,
                   std::span<const Color> colors) {
    const Input& input = run.inputs()[image.index];
    PageItem item = named_item(input.name);
    item.note =
        text(image.size.width, " x ", image.size.height, "; ", count_of(map.segments.size(), "segment"));
    const auto pixels = static_cast<float>(map.map.num_elements());
    for (const Segment& segment : map.segments)
      item.labels.push_back({.name = segment.label,
                             .score = segment.score.value_or(static_cast<float>(segment.area) / pixels)});
    const Image picture = picture_of(run, input, image.size);
    outputs_.add_to_page(run, input, std::move(item),
                         side_by_side(picture, colored_ids(map.map, colors, &picture)));
  }

  const SegmentCommand& options_;
  MapOutputs outputs_;
  bool json_;
  Output scores_ = Output::classes;
  SegmentOptions segments_;
  std::vector<Color> palette_;  // of classes
};

/// An option that takes a number from 0 to 1.
Option share_option(const char* name, const char* type, const char* help, std::optional<double>& target,
                    const char* shown) {
  return {.name = name,
          .type_name = type,
          .help = help,
          .target = parsed_target(
              target, [](const std::string& value) { return parse_real(value, 0.0, 1.0); }, shown)};
}

}  // namespace

Command segment_command() {
  const auto options = std::make_shared<SegmentCommand>();
  Command command{
      .name = "segment",
      .summary = "What every pixel of images shows",
      .footer = kFooter,
      .options = {{.name = "--task",
                   .type_name = "TASK",
                   .help =
                       "semantic: a class for each pixel; instance: things, each with its class; panoptic: "
                       "things and stuff; auto: what the model's files are made for",
                   .target = choice_target(options->task, kTasks)},
                  share_option("--threshold", "P", "Smallest score of a segment", options->threshold, "0.8"),
                  share_option("--mask-threshold", "P", "Smallest probability of a pixel of a segment",
                               options->mask_threshold, "0.5"),
                  share_option("--overlap", "SHARE",
                               "Smallest part of a mask that must be left to its segment", options->overlap,
                               "0.8"),
                  {.name = "--stuff",
                   .type_name = "LIST",
                   .help = "Classes, names or numbers, whose panoptic segments are one",
                   .target = parsed_target(options->stuff, split_words)},
                  {.name = "--palette",
                   .type_name = "NAME",
                   .help = "Colors of classes: ade20k or voc; auto: ade20k for 150 classes, else voc",
                   .target = choice_target(options->palette, kPalettes)},
                  labels_option(options->labels)},
      .run = [options] { return SegmentWork(*options).run(); }};
  add_dense_run_options(command.options, options->run, kSegmentFormats, kSegmentFormatHelp);
  return command;
}

}  // namespace vit::app
