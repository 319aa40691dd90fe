// vit segment: what every pixel of an image shows, to a file or to files for each image.
#include <algorithm>
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
#include "apps/vit/rings/dense/dense_results.h"
#include "apps/vit/rings/dense/map_outputs.h"
#include "apps/vit/rings/dense/prompt_options.h"
#include "apps/vit/rings/dense/segment_pixels.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/config.h"
#include "vit/dense.h"

namespace vit::app {
namespace {

constexpr const char* kFooter =
    "The output is one file of arrays, .safetensors or .npz: segmentation.I (H, W) int32 of input I at the "
    "size of its image, the class of each pixel, or the id of its segment, -1 = none; with --raw what the "
    "head gives: logits.I (C, h, w), or of queries mask_logits.I (Q, h, w) and class_logits.I (Q, C + 1), "
    "with a dimension in front where images are computed as windows. Or FOLDER/, with files for each image:\n"
    "  png    NAME.png, the index of the class or the id, with the colors of --palette, 255 = none (16 bits "
    "above 255)\n"
    "  color  NAME_color.png, the colors\n"
    "  coco   NAME.json, a list of COCO results with run lengths; of --task panoptic the segments of "
    "NAME_panoptic.png\n"
    "Tasks and thresholds are those of transformers' post-processing: an instance is a mask above 0 whose "
    "score, of class and mask, reaches --threshold; a panoptic segment is a query whose class passes it, and "
    "its pixels are those where it is the strongest and reaches --mask-threshold.\n"
    "Prompts (SAM 3) find every instance of --classes and --boxes, or one object at --points and in --box: "
    "masks that may overlap, in falling score. Arrays are masks.I (n, H, W) uint8, boxes.I (n, 4), scores.I "
    "(n) and segmentation.I, the best segment of each pixel; with --raw class_logits.I, presence_logits.I, "
    "boxes.I (0 to 1), mask_logits.I and semantic_logits.I of each class, or of objects mask_logits.I, "
    "scores.I and object_logits.I.\n"
    "Examples:\n"
    "  vit segment --model coco_panoptic_eomt_large_640 photos/ --output segments/ --format coco,color\n"
    "  vit segment --model coco_instance_eomt_large_640 --task instance --threshold 0.5 photo.jpg --format "
    "json\n"
    "  vit segment --model tipsv2-b14-dpt photos/ --output segments/\n"
    "  vit segment --classifier leaf.safetensors photos/ --output leaves/ --regions --format csv,color\n"
    "  vit segment --model dinov2 --like photo.jpg:120,80 photos/ --output alike/\n"
    "  vit segment --model sam3 --classes \"yellow bus, person\" photos/ --output segments/ --format "
    "coco,color\n"
    "  vit segment --model sam3 --points 520,380 --points 610,400,- photo.jpg --output cup.png\n"
    "  vit segment --model dinov2_vits14_pretrain.pth --architecture dinov2_vits14 \\\n"
    "    --head dinov2_vits14_ade20k_linear_head.pth photo.jpg --output photo.npz --format json";

constexpr const char* kSegmentFormatHelp =
    "Files of FOLDER/: png, color (default: both), coco, csv of --regions; and json or text for the lines, "
    "which are json with arrays";
constexpr const char* kPanopticEnding = "_panoptic.png";
constexpr MapFormat kSegmentFormats[]{
    {"png", ".png"}, {"color", "_color.png"}, {"coco", ".json", kPanopticEnding}, {"csv", ".csv"}};

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
  SegmentChoices choices;
  PaletteChoice palette = PaletteChoice::automatic;
  bool says_palette = false;  // on the command line
  PixelClassOptions pixels;
  PromptChoices prompts;
};

std::optional<SegmentTask> task_of(TaskChoice choice) {
  switch (choice) {
    case TaskChoice::automatic: break;
    case TaskChoice::semantic: return SegmentTask::semantic;
    case TaskChoice::instance: return SegmentTask::instance;
    case TaskChoice::panoptic: return SegmentTask::panoptic;
  }
  return std::nullopt;
}

std::vector<std::string> parse_stuff(const std::string& list) {
  return words_of(list, "classes, such as wall,floor or 0,3");
}

std::vector<Color> palette_of(PaletteChoice choice, std::size_t num_classes) {
  std::vector<Color> colors = class_colors(num_classes);
  if (choice == PaletteChoice::automatic) return colors;
  for (std::size_t i = 0; i < colors.size(); ++i)
    colors[i] = choice == PaletteChoice::ade20k ? ade20k_color(i) : voc_color(i);
  return colors;
}

void write_coco(const std::filesystem::path& path, const Input& input, const SegmentMap& map,
                SegmentTask task) {
  const std::string name = path.stem().string();
  if (task != SegmentTask::panoptic) return write_text(path, coco_results(map, name, input.name));
  const std::string picture = name + kPanopticEnding;
  write_png(path.parent_path() / picture, coco_panoptic_picture(map));
  write_text(path, coco_panoptic(map, name, picture));
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
  json.begin_object().member("file", file);
  write_segments(json, map, task);
  json.end_object();
  return out + "\n";
}

class SegmentWork : public ImageWork {
 public:
  explicit SegmentWork(const SegmentCommand& options)
      : options_(options),
        outputs_("segment", options.run, kSegmentFormats, {"png", "color"}),
        json_(options.run.has_word("json") || options.run.writes_arrays()) {
    if (options.says_palette && !outputs_.writes("png") && !outputs_.writes("color") && !outputs_.has_page())
      fail_usage("--palette has no effect: no colors are written; --format png or color writes them");
  }

  int run() { return outputs_.run(*this, {options_.labels}); }

 private:
  std::optional<Request> load(ImageRun& run) override {
    const std::shared_ptr<const Model>& model = outputs_.load(run, Output::classes);
    const DenseConfig& config = *model->dense_config();
    scores_ = config.find(Output::classes) != nullptr ? Output::classes : Output::masks;
    ModelConfig classes;  // as labels know them
    classes.head.num_classes = num_segment_classes(config);
    classes.head.labels = config.labels;
    SegmentChoices choices = options_.choices;
    choices.task = task_of(options_.task);
    segments_ = segment_options(choices, *model, Labels(classes, options_.labels).names());
    if (options_.says_palette && segments_.task != SegmentTask::semantic)
      fail_usage("--palette is for the classes of --task semantic; segments have colors of their own");
    palette_ = palette_of(options_.palette, classes.head.num_classes);
    outputs_.note("task", to_string(segments_.task));
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
    if (std::string defect = defect_of((*image.outputs)[scores_].flat(), "the scores are"); !defect.empty())
      return defect;
    return failure_of([&] { write(run, image, segments_of(*image.outputs, segments_, outputs_.threads())); });
  }

  int finish(ImageRun& run) override { return outputs_.finish(run); }

  void write(ImageRun& run, const StreamedImage& image, const SegmentMap& map) {
    const Input& input = run.inputs()[image.index];
    if (outputs_.writes_arrays())
      outputs_.add_arrays(run, image.index, segment_arrays(*image.outputs, map, options_.run.raw));
    const std::vector<Color> colors = colors_of_ids(map, segments_.task, palette_);
    const auto path = [&](std::string_view word) { return outputs_.path_of(image.index, word); };
    if (outputs_.writes("png")) write_bytes(path("png"), segment_png(map, segments_.task, palette_));
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

int run_prompts(SegmentCommand& command) {
  if (command.pixels.are_given()) fail_usage("--classifier and --like are not for prompts");
  if (command.task == TaskChoice::panoptic)
    fail_usage("--task panoptic is for models with classes of their own");
  if (command.choices.overlap || !command.choices.stuff.empty() || !command.labels.empty())
    fail_usage("--overlap, --stuff and --labels are for models with classes of their own");
  take_points(command.run.inputs, command.prompts);
  return segment_prompts({.run = command.run,
                          .choices = command.prompts,
                          .threshold = command.choices.threshold,
                          .mask_threshold = command.choices.mask_threshold,
                          .semantic = command.task == TaskChoice::semantic});
}

/// By prompts, by the head of the model, or by classes of pixels, which have no masks.
int run_segment(SegmentCommand& command) {
  if (command.says_palette && (command.prompts.are_given() || command.pixels.are_given()))
    fail_usage("--palette is for models with classes of their own");
  if (command.prompts.are_given()) return run_prompts(command);
  if (command.prompts.all_masks) fail_usage("--all-masks is for --points, --box and --objects");
  if (command.prompts.says_rule)
    fail_usage("--prompt-rule is for prompts: --classes, --boxes, --points, --box or --objects");
  check_pixel_class_options(command.pixels);
  if (!command.pixels.are_given()) {
    if (is_prompt_model(command.run.common)) fail_without_prompts();
    if (command.run.has_word("csv")) fail_usage("--format csv lists regions of classes of pixels: --regions");
    return SegmentWork(command).run();
  }
  const bool is_semantic = command.task == TaskChoice::automatic || command.task == TaskChoice::semantic;
  if (!is_semantic || command.choices.threshold || command.choices.mask_threshold ||
      command.choices.overlap || !command.choices.stuff.empty())
    fail_usage("--classifier and --like give classes of pixels, --task semantic, without options of masks");
  if (!command.labels.empty()) fail_usage("--labels: classes of pixels have the names of vit fit --names");
  return segment_pixels(command.run, command.pixels);
}

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
                  share_option("--threshold", "P",
                               "Smallest score of a segment; of prompts 0.3, above which scores must be",
                               options->choices.threshold, "0.8"),
                  share_option("--mask-threshold", "P", "Smallest probability of a pixel of a segment",
                               options->choices.mask_threshold, "0.5"),
                  share_option("--overlap", "SHARE",
                               "Smallest part of a mask that must be left to its segment",
                               options->choices.overlap, "0.8"),
                  {.name = "--stuff",
                   .type_name = "LIST",
                   .help = "Classes, names or numbers, whose panoptic segments are one",
                   .target = parsed_target(options->choices.stuff, parse_stuff)},
                  {.name = "--palette",
                   .type_name = "NAME",
                   .help = "Colors of classes: ade20k or voc; auto: ade20k for 150 classes, else voc",
                   .target = noting(choice_target(options->palette, kPalettes), options->says_palette)},
                  labels_option(options->labels)},
      .run = [options] { return run_segment(*options); }};
  add_pixel_class_options(command.options, options->pixels);
  add_prompt_options(command.options, options->prompts);
  add_dense_run_options(command.options, options->run, kSegmentFormats, kSegmentFormatHelp);
  return command;
}

}  // namespace vit::app
