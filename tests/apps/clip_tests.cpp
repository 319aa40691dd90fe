// Clips of the program: a video file gives what its frames give as images in a folder.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "apps/vit/inputs/video.h"
#include "tests/apps/program.h"
#include "tests/support/clip_model.h"
#include "vit/base/error.h"

using namespace vit;
using vit::test::TestFolder;

namespace {

namespace fs = std::filesystem;

/// The frames of a video as images in a folder; how many.
std::size_t write_frames(const std::string& video, const std::string& folder) {
  fs::create_directories(folder);
  app::Video frames{fs::path(video)};
  Image frame;
  std::size_t count = 0;
  for (; frames.read(frame, kMaxImagePixels); ++count) {
    std::ofstream out(folder + "/" + std::to_string(100 + count) + ".ppm", std::ios::binary);
    out << "P6\n" << frame.width() << " " << frame.height() << "\n255\n";
    out.write(reinterpret_cast<const char*>(frame.data()),
              static_cast<std::streamsize>(3 * frame.height() * frame.width()));
  }
  return count;
}

}  // namespace

TEST_CASE("apps: a video file gives what its frames give as images") {
  const TestFolder folder;
  const std::string model = test::write_clip_model(folder / "model");
  const std::string video = test::data_path("golden/clips/squares.mp4").string();
  std::size_t count = 0;
  try {
    count = write_frames(video, folder / "frames");
  } catch (const Error& error) {  // this build reads no videos
    const auto result =
        test::run_vit({"embed", "--model", model, "--frames", "4", video, "--output", folder / "x.npy"});
    CHECK(result.exit_code == 1);
    CHECK(test::contains(result.err, error.message()));
    return;
  }
  CHECK(count == 9);
  for (const char* const frames : {"2", "4", "9"}) {
    CAPTURE(frames);
    std::vector<std::vector<float>> found;
    for (const std::string& input : {video, folder / "frames"}) {
      const std::string out = folder / "out.npy";
      fs::remove(out);
      const auto result = test::run_vit(
          {"embed", "--model", model, "--frames", frames, input, "--output", out, "--progress", "never"});
      REQUIRE_MESSAGE(result.exit_code == 0, result.err);
      found.push_back(test::parse_npy(test::read_text(out)).floats());
    }
    CHECK(!found[0].empty());
    CHECK(found[0] == found[1]);
  }
  const auto result =
      test::run_vit({"embed", "--model", model, "--frames", "10", video, "--output", folder / "y.npy"});
  CHECK(result.exit_code == 1);
  CHECK(test::contains(result.err, "take fewer"));
}

TEST_CASE("apps: clips are listed on standard input, too") {
  const TestFolder folder;
  const std::string model = test::write_clip_model(folder / "model");
  for (int i = 0; i < 4; ++i)
    test::write_picture(folder / ("frames/" + std::to_string(i) + ".ppm"), 32, 32, static_cast<unsigned>(i));
  const auto run = [&](const std::string& input, const std::string& list) {
    return test::run_vit({"embed", "--model", model, "--frames", "4", input, "--output", folder / "x.npz"},
                         {.standard_input = list});
  };
  REQUIRE(run(folder / "frames", "").exit_code == 0);
  const std::map<std::string, test::NpyArray> named = test::read_npz(folder / "x.npz");
  const auto listed = run("-", (folder / "frames") + "\n" + (folder / "none") + "\n");
  CHECK(listed.exit_code == 1);
  CHECK(test::contains(listed.err, "none: no such file or folder"));
  const std::map<std::string, test::NpyArray> found = test::read_npz(folder / "x.npz");
  for (const auto& [name, array] : named) CHECK(found.at(name).bytes == array.bytes);
}

TEST_CASE("apps: a part of a preprocessed list without clips has rows of as many planes as the others") {
  const TestFolder folder;
  const std::string model = test::write_clip_model(folder / "model");
  fs::create_directories(folder / "clip");
  for (unsigned frame = 0; frame < 4; ++frame)
    test::write_picture(folder / ("clip/" + std::to_string(frame) + ".ppm"), 40, 30, frame);
  const auto shape_of = [&](const std::string& shard) {
    const auto result = test::run_vit({"preprocess", "--model", model, "--frames", "4", "--shard", shard,
                                       folder / "clip", "--output", folder / "pixels.npy"});
    REQUIRE_MESSAGE(result.exit_code == 0, result.err);
    return test::parse_npy(test::read_text(folder / "pixels.npy")).shape;
  };
  const std::vector<std::size_t> one = shape_of("0/2"), none = shape_of("1/2");
  REQUIRE(one.size() == 4);
  REQUIRE(none.size() == 4);
  CHECK(one[0] == 1);
  CHECK(none[0] == 0);
  CHECK(none[1] == one[1]);  // heights and widths are those of images
}
