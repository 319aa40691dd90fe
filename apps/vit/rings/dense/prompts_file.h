// Prompts of images in files: boxes that show what is meant, and objects by points, boxes and masks. JSON
// lines, an object each.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vit/image/preprocess.h"
#include "vit/io/json.h"

namespace vit::app {

/// A box that shows what is meant, or what is not, of the class of that name; "" of a prompt without words.
struct ExampleLine {
  Box box;
  bool positive = true;
  std::string label;
};

/// A point of an object.
struct PointLine {
  double x = 0, y = 0;
  bool positive = true;
};

/// An object of an image.
struct ObjectLine {
  std::vector<PointLine> points;
  std::vector<Box> box;  // none or one
  std::string mask;      // .npy of logits: its path, in a request its bytes in base64; "" = none
  bool multimask = true;
};

/// {"file", "boxes": [{"box": [x0, y0, x1, y1], "positive": true, "label": "a"}]} by the names of the inputs;
/// several lines of one file are joined. Throws Error that names the line for what is no such object, and for
/// boxes that are empty or beyond any image. `name` is for messages.
std::map<std::string, std::vector<ExampleLine>> parse_example_boxes(std::string_view text,
                                                                    const std::string& name);
/// {"file", "objects": [{"points": [[x, y, 1 or 0]], "box": [...], "mask": "FILE.npy", "multimask": true}]},
/// alike.
std::map<std::string, std::vector<ObjectLine>> parse_objects(std::string_view text, const std::string& name);

/// The same lists by themselves. Throw Error that names the place.
std::vector<ExampleLine> read_example_boxes(const internal::Json& list);
std::vector<ObjectLine> read_objects(const internal::Json& list);
PointLine read_point(const internal::Json& value);
Box read_box(const internal::Json& value);

/// The text of a file. Throws Error if it cannot be read.
std::string read_prompts_file(const std::filesystem::path& path);

/// X,Y or X,Y,- of the command line. Throws UsageError.
PointLine parse_point(const std::string& value);
/// X0,Y0,X1,Y1. Throws UsageError.
Box parse_box(const std::string& value);

}  // namespace vit::app
