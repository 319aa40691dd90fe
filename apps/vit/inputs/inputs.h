// Turns the INPUT arguments into a list of images, in a stable order with stable names. Decoding is done by
// the stream.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "apps/vit/inputs/npy.h"
#include "apps/vit/inputs/tar_archive.h"

namespace vit::app {

class Clip;
class VideoFrames;

/// One image to be processed, or one clip.
struct Input {
  std::string name;  // in results and messages: the path, "x.npy[3]", "x.mp4[3]" or "x.tar/MEMBER"
  std::string path;  // of its file; a string takes a fifth of the memory of a std::filesystem::path
  std::shared_ptr<const PixelFile> pixels;      // set for preprocessed pixels
  std::size_t pixels_index = 0;                 // in the file, or of the frame in the video
  std::shared_ptr<const TarArchive> archive{};  // set for a member of a .tar file, stored at `member`
  TarRange member{};
  std::shared_ptr<const Clip> clip{};          // set for the frames of a video or of a folder (clips.h)
  std::shared_ptr<const VideoFrames> video{};  // set for one frame of a video (video_frames.h)
};

/// An argument without images.
struct InputFailure {
  std::string name;
  std::string cause;
};

struct InputList {
  std::vector<Input> inputs;
  std::vector<InputFailure> failures;
  std::vector<InputFailure> notes;  // messages that are not failures: skipped files
};

/// A file is one input (.npy: each image in it, .tar: each member that is an image by its name,
/// in the order of the archive), a folder is all images below it sorted by path, "-" is the paths on
/// `standard_input`, one per line.
InputList list_inputs(std::span<const std::string> arguments, std::istream& standard_input);

/// Calls add(path) for the paths on `standard_input`, one per line. What is no path, and that there is none,
/// are failures of `list`, to which add() adds inputs.
void for_each_path(std::istream& standard_input, InputList& list,
                   const std::function<void(const std::string&)>& add);

/// list_inputs() without duplicates, of which the first is kept: the same file reached by several paths, or
/// the same image in it. Those left out are counted in the notes.
InputList list_once(std::span<const std::string> arguments, std::istream& standard_input);

/// The part of a run that one of several processes computes.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;

  /// The range of this part among `size` items: all parts in order cover the whole, and their sizes differ by
  /// at most one.
  std::size_t begin(std::size_t size) const;
  std::size_t end(std::size_t size) const;
};

/// Keeps the items of a part.
template <typename T>
void take_shard(std::vector<T>& items, const Shard& shard) {
  const auto at = [&](std::size_t i) { return items.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::size_t size = items.size();
  items.erase(at(shard.end(size)), items.end());
  items.erase(items.begin(), at(shard.begin(size)));
}
/// Keeps the inputs of a part. Arguments without images are reported by every part.
inline void take_shard(InputList& list, const Shard& shard) {
  take_shard(list.inputs, shard);
}

/// The files of inputs, which results must not replace.
class InputFiles {
 public:
  /// `inputs` must outlive this.
  explicit InputFiles(std::span<const Input> inputs);

  /// The input whose file `output` leads to, by whatever path; null if there is none.
  const Input* find(const std::filesystem::path& output) const;
  /// Throws Error naming the input if there is one.
  void check_kept(const std::filesystem::path& output) const;

 private:
  struct File {
    std::uintmax_t device = 0, number = 0;  // of the file's node
    std::size_t input = 0;

    auto operator<=>(const File&) const = default;
  };
  std::span<const Input> inputs_;
  std::vector<File> files_;  // sorted
};

/// Throws UsageError if `output` leads to the file of an input, which the results would replace.
void check_no_input(const std::filesystem::path& output, std::span<const Input> inputs);

/// Whether there are images among the inputs and no preprocessed pixels.
bool are_images(std::span<const Input> inputs);

/// Whether the extension is one of an image, in any case.
bool has_image_extension(const std::filesystem::path& path);

/// The kind of a folder entry that systems and programs create for their own use, and that is not an
/// image: "hidden" (also macOS's ._NAME, .ipynb_checkpoints, ...) or a name such as "__MACOSX", whatever the
/// extension; null for others.
const char* left_by_others(std::string_view name);

/// The entries of `folder`, sorted by path; entries found before an error are returned with it.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder, std::error_code& error);

/// All images below `folder`, sorted by path. Links to folders are followed; a folder that several paths
/// lead to is read once. Folders that cannot be read are added to the failures of `list`, a count of the
/// files that are not images to its notes.
std::vector<std::string> images_below(const std::filesystem::path& folder, InputList& list);

/// The folders in `root`, sorted, without those of left_by_others(); images next to them are counted in the
/// notes of `list`. Throws Error with `operation` if there is no such folder or it contains none.
std::vector<std::filesystem::path> class_folders(const std::filesystem::path& root,
                                                 const std::string& operation, InputList& list);

}  // namespace vit::app
