// Turns the INPUT arguments into a list of images, in a stable order with stable names. Decoding is for the
// stream.
#pragma once

#include <cstddef>
#include <filesystem>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "apps/vit/common/npy.h"

namespace vit::app {

/// One image to be done.
struct Input {
  std::string name;  // in results and messages: the path, or "x.npy[3]"
  std::filesystem::path path;
  std::shared_ptr<const PixelFile> pixels;  // set for preprocessed pixels
  std::size_t pixels_index = 0;
};

/// An argument that gives no images.
struct InputFailure {
  std::string name;
  std::string cause;
};

struct InputList {
  std::vector<Input> inputs;
  std::vector<InputFailure> failures;
  std::vector<InputFailure> notes;  // what people should know and is no failure: files that are passed over
};

/// Files stand for themselves (.npy for each image in it), folders for all images below them sorted by path,
/// "-" for the paths on `standard_input`, one a line.
InputList list_inputs(std::span<const std::string> arguments, std::istream& standard_input);

/// Throws UsageError where `output` leads to the file of an input, which the results would replace.
void check_no_input(const std::filesystem::path& output, std::span<const Input> inputs);

/// Whether there are images among the inputs and no preprocessed pixels.
bool are_images(std::span<const Input> inputs);

/// Whether the extension is one of an image, in any case.
bool has_image_extension(const std::filesystem::path& path);

/// What `folder` holds, sorted by path; what was found before an error is returned with it.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder, std::error_code& error);

/// All images below `folder`, sorted by path. Links to folders are followed; a folder that several paths
/// lead to is read once. Folders that cannot be read are added to the failures of `list`, a count of the
/// files that are no images to its notes.
std::vector<std::filesystem::path> images_below(const std::filesystem::path& folder, InputList& list);

}  // namespace vit::app
