// Boxes of images that another program or `vit detect` has found: JSON lines, an object each.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/image/preprocess.h"
#include "vit/io/json.h"

namespace vit::app {

/// Calls add(object) for each line of JSON that is not blank. Throws Error that names the line if it is no
/// object.
void for_each_json_line(std::string_view text, const std::string& name, const internal::JsonLimits& limits,
                        const std::function<void(const internal::Json&)>& add);

/// The boxes of one image: a list of them, or an object with such a list as "boxes" or "poses", or with one
/// as "box", in the forms of BoxesFile. Throws Error that names the place.
std::vector<Box> read_boxes(const internal::Json& value, std::span<const std::string> labels = {});

/// The boxes of images, by the names of the inputs. A line has the member "file" and "boxes", "poses" or
/// "box": what is a box there is [x0, y0, x1, y1], an object with that as "box", or one with "bbox": [x, y,
/// width, height], as COCO has it. Other members are ignored; several lines of one file are joined.
class BoxesFile {
 public:
  /// Reads `text`, which messages call `name`. With `labels` only objects with one of these as
  /// "label" count. Throws Error that names the line for what is no such object, and for boxes that are empty
  /// or beyond any image.
  BoxesFile(std::string_view text, const std::string& name, std::span<const std::string> labels = {});
  /// Throws Error if the file cannot be read, and as above.
  static BoxesFile read(const std::filesystem::path& path, std::span<const std::string> labels = {});

  /// The boxes of an input, null where no line is of it.
  const std::vector<Box>* find(const std::string& name) const;
  /// SHA-256 of the text.
  const std::string& digest() const noexcept { return digest_; }

 private:
  std::string digest_;
  std::map<std::string, std::vector<Box>> boxes_;
};

}  // namespace vit::app
