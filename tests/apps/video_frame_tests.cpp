// Frames of videos as inputs of depth, segment, detect and pose, and the pages of these commands. Left out of
// builds without OpenCV.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/inputs/video.h"
#include "apps/vit/inputs/video_frames.h"
#include "tests/apps/program.h"
#include "tests/support/movie_writer.h"
#include "tests/support/shared_data.h"
#include "vit/image/image.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string number(std::uint32_t value) {
  std::string out;
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> 8 * i & 255u);
  return out;
}

std::string chunk(const std::string& name, std::string content) {
  const std::string head = name + number(static_cast<std::uint32_t>(content.size()));
  if (content.size() % 2 != 0) content += '\0';
  return head + content;
}

/// A film of JPEG images of one size: Motion JPEG in AVI.
void write_film(const std::string& path, std::span<const std::string> pictures, std::uint32_t width,
                std::uint32_t height) {
  const auto count = static_cast<std::uint32_t>(pictures.size());
  std::string movie, index, none;
  for (const std::string& picture : pictures) {
    const auto offset = static_cast<std::uint32_t>(4 + movie.size()),
               size = static_cast<std::uint32_t>(picture.size());
    movie += chunk("00dc", picture);
    index += "00dc" + number(0x10) + number(offset) + number(size);
  }
  const std::string main = number(200000) + number(0) + number(0) + number(0x10) + number(count) + number(0) +
                           number(1) + number(0) + number(width) + number(height) + std::string(16, '\0');
  const std::string stream = "vidsMJPG" + number(0) + number(0) + number(0) + number(1) + number(5) +
                             number(0) + number(count) + number(0) + number(0) + number(0) + number(0) +
                             number(0);
  const std::string format = number(40) + number(width) + number(height) + number(1u | 24u << 16) + "MJPG" +
                             number(3 * width * height) + std::string(16, '\0');
  const std::string lists =
      chunk("LIST", "hdrl" + chunk("avih", main) +
                        chunk("LIST", "strl" + chunk("strh", stream) + chunk("strf", format)));
  write_text(path, chunk("RIFF", "AVI " + lists + chunk("LIST", "movi" + movie) + chunk("idx1", index)));
}

std::string picture(const char* name) {
  return read_text(data_path("images") / name);
}

/// Three frames of 400 x 400, of which the first and the last are the same.
std::string film(const TestFolder& folder) {
  const std::string path = folder / "in/clip.avi", bird = picture("bird_robin.jpg");
  std::filesystem::create_directories(folder / "in");
  // another image of the size: its last bytes are missing, and with them its lower part
  const std::vector<std::string> pictures{bird, bird.substr(0, bird.size() / 2) + "\xff\xd9", bird};
  write_film(path, pictures, 400, 400);
  return path;
}

std::string model(const char* name) {
  return (data_path("golden") / name).string();
}

}  // namespace

TEST_CASE("video: frames are inputs, in a run, in its parts, and after what is broken" *
          doctest::test_suite("dense")) {
  const TestFolder folder;
  const std::string clip = film(folder), bird = (data_path("images") / "bird_robin.jpg").string();
  write_text(folder / "in/broken.avi", "no film");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"depth", "--model", model("dense/hf-depth-anything"), "--format",
                                 "json,npy,ply"};
    all.insert(all.end(), more.begin(), more.end());
    return run_vit(all);
  };
  const RunResult whole = run({clip, folder / "in/broken.avi", bird, "--output", folder / "out/", "--threads",
                               "3", "--html", folder / "p.html"});
  CAPTURE(whole.err);
  CHECK(whole.exit_code == 1);
  CHECK(whole.num_errors() == 1);
  CHECK(whole.err.find("broken.avi") != std::string::npos);
  const std::vector<std::string> lines = lines_of(whole.out);
  REQUIRE(lines.size() == 4);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(parse_json(lines[i], "line").at("file").as_string() == clip + "[" + std::to_string(i) + "]");
  CHECK(lines[0].substr(lines[0].find(',')) == lines[2].substr(lines[2].find(',')));
  CHECK(lines[0].substr(lines[0].find(',')) != lines[1].substr(lines[1].find(',')));
  const double found = parse_json(lines[0], "line").at("max").as_double(),
               expected = parse_json(lines[3], "line").at("max").as_double();
  CHECK(std::abs(found - expected) < 0.01 * expected);  // decoders round otherwise
  // names below the folder that all inputs share, with numbers that sort
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "out")) {
    const std::string name = entry.path().filename().string();
    files += name == "clip-000000.npy" || name == "clip-000001.npy" || name == "clip-000002.ply" ? 1 : 0;
  }
  CHECK(files == 3);
  CHECK(read_text(folder / "p.html").find("clip.avi[2]") != std::string::npos);

  const RunResult first = run({clip, bird, "--shard", "0/2", "--output", folder / "first/"}),
                  second = run({clip, bird, "--shard", "1/2", "--output", folder / "second/"});
  CHECK(first.out + second.out == whole.out);
}

TEST_CASE("video: frames in any order are those of the film") {
  const TestFolder folder;
  const app::VideoFrames frames(film(folder), 400 * 400);
  REQUIRE(frames.size() == 3);
  CHECK(frames.frame_size() == ImageSize{400, 400});
  const auto same = [](const Image& a, const Image& b) {
    return std::equal(a.data(), a.data() + 3 * 400 * 400, b.data());
  };
  const Image last = frames.frame(2), first = frames.frame(0), middle = frames.frame(1);
  CHECK(same(first, last));
  CHECK(!same(first, middle));
  CHECK(same(frames.frame_for_picture(1), middle));
  CHECK(same(frames.frame(0), first));
  CHECK_THROWS_AS(app::VideoFrames(folder / "in/clip.avi", 400 * 399), Error);
  CHECK_THROWS_AS(app::VideoFrames(folder / "none.avi", 400 * 400), Error);
}

TEST_CASE("video: a frame far ahead, as the first of a part of a run, and frames before it") {
  const TestFolder folder;
  const std::string bird = picture("bird_robin.jpg");
  const std::string other = bird.substr(0, bird.size() / 2) + "\xff\xd9";
  std::vector<std::string> pictures;
  for (int i = 0; i < 50; ++i) pictures.insert(pictures.end(), {bird, other});
  write_film(folder / "clip.avi", pictures, 400, 400);
  const app::VideoFrames frames(folder / "clip.avi", 400 * 400);
  REQUIRE(frames.size() == 100);
  const Image even = frames.frame(0), odd = frames.frame(1);
  for (const std::size_t index : {98u, 97u, 91u, 20u, 99u, 3u}) {
    CAPTURE(index);
    const Image frame = frames.frame(index);
    const std::uint8_t* const expected = index % 2 == 0 ? even.data() : odd.data();
    CHECK(std::equal(expected, expected + 3 * 400 * 400, frame.data()));
  }
}

TEST_CASE("video: a playlist under the name of a video is none") {
  const TestFolder folder;
  film(folder);
  write_text(folder / "in/list.mp4", "ffconcat version 1.0\nfile clip.avi\n");
  CHECK(app::VideoFrames(folder / "in/clip.avi", 400 * 400).size() == 3);
  CHECK_THROWS_AS(app::VideoFrames(folder / "in/list.mp4", 400 * 400), Error);
}

TEST_CASE("video: segments, boxes and poses of frames, and their pages" * doctest::test_suite("dense")) {
  const TestFolder folder;
  const std::string clip = film(folder);
  const std::string boxes = folder / "boxes.jsonl";
  const RunResult found = run_vit({"detect", "--model", model("boxes/yolos"), "--threshold", "0.3",
                                   "--format", "json", clip, "--html", folder / "detect.html"});
  REQUIRE(found.exit_code == 0);
  write_text(boxes, found.out);
  REQUIRE(run_vit({"pose", "--model", model("boxes/vitpose"), "--boxes", boxes, clip, "--output",
                   folder / "pose/", "--html", folder / "pose.html"})
              .exit_code == 0);
  REQUIRE(run_vit({"segment", "--model", model("dense/hf-eomt"), "--threshold", "0.1", clip, "--output",
                   folder / "segment/", "--html", folder / "segment.html"})
              .exit_code == 0);
  CHECK(decode_file(folder / "pose/clip-000002_color.png", {}).size() == ImageSize{400, 400});
  CHECK(decode_file(folder / "segment/clip-000001.png", {}).size() == ImageSize{400, 400});
  for (const char* const name : {"detect", "pose", "segment"}) {
    const std::string page = read_text(folder / (std::string(name) + ".html"));
    CHECK(page.find("clip.avi[0]") != std::string::npos);
    CHECK(page.find("3 images") != std::string::npos);
  }
}

TEST_CASE("apps: frames of videos are rotated by the matrix, in every orientation") {
  const std::vector<std::pair<TrackMatrix, std::vector<int>>> kUpright{
      // reds of the first frame, row by row: stored are 0 1 2 3 / 16 17 18 19
      {{1, 0, 0, 1}, {0, 1, 2, 3, 16, 17, 18, 19}},   {{-1, 0, 0, 1}, {3, 2, 1, 0, 19, 18, 17, 16}},
      {{-1, 0, 0, -1}, {19, 18, 17, 16, 3, 2, 1, 0}}, {{1, 0, 0, -1}, {16, 17, 18, 19, 0, 1, 2, 3}},
      {{0, 1, 1, 0}, {0, 16, 1, 17, 2, 18, 3, 19}},   {{0, 1, -1, 0}, {16, 0, 17, 1, 18, 2, 19, 3}},
      {{0, -1, -1, 0}, {19, 3, 18, 2, 17, 1, 16, 0}}, {{0, -1, 1, 0}, {3, 19, 2, 18, 1, 17, 0, 16}}};
  const TestFolder folder;
  for (const auto& upright : kUpright) {
    const auto& matrix = upright.first;
    const auto& reds = upright.second;
    CAPTURE(matrix[0]);
    CAPTURE(matrix[1]);
    write_text(folder / "a.mov", small_movie(matrix));
    app::Video video(folder / "a.mov");
    Image image;
    for (int frame = 0; frame < 2; ++frame) {
      REQUIRE(video.read(image, 100));
      const bool is_exchanged = matrix[0] == 0;
      CHECK(image.size() ==
            (is_exchanged ? ImageSize{kMovieWidth, kMovieHeight} : ImageSize{kMovieHeight, kMovieWidth}));
      for (std::size_t i = 0; i < reds.size(); ++i) {
        CHECK(image.data()[3 * i] == reds[i]);
        CHECK(image.data()[3 * i + 1] == frame);
        CHECK(image.data()[3 * i + 2] == 200);
      }
    }
    CHECK_FALSE(video.read(image, 100));
  }
}

TEST_CASE("apps: each frame of a video is an input of embed and classify") {
  const TestFolder folder;
  write_text(folder / "a.mov", small_movie({0, 1, -1, 0}));
  const RunResult embedded = run_vit(with_model("embed", {folder / "a.mov", "--output", folder / "a.npz"}));
  CAPTURE(embedded.err);
  REQUIRE(embedded.exit_code == 0);
  std::map<std::string, NpyArray> arrays = read_npz(folder / "a.npz");
  CHECK(arrays["pooled"].shape.front() == 2);
  CHECK(arrays["files"].strings() == std::vector<std::string>{folder / "a.mov[0]", folder / "a.mov[1]"});
  const RunResult parts = run_vit(with_model("embed", {folder / "a.mov", "--output", folder / "parts/"}));
  CHECK(parts.exit_code == 0);
  CHECK(contains(read_text(folder / "parts/part-00000.jsonl"), "a.mov[1]"));
  const RunResult second =
      run_vit(with_model("embed", {folder / "a.mov", "--shard", "1/2", "--output", folder / "b.npz"}));
  CHECK(second.exit_code == 0);
  CHECK(read_npz(folder / "b.npz")["files"].strings() == std::vector<std::string>{folder / "a.mov[1]"});
  const RunResult classified =
      run_vit(with_model("classify", {folder / "a.mov", "--format", "json", "--html", folder / "a.html"}));
  CAPTURE(classified.err);
  CHECK(classified.exit_code == 0);
  CHECK(lines_of(classified.out).size() == 2);
  // other commands say what it is
  const RunResult other = run_vit(with_model("preprocess", {folder / "a.mov", "--output", folder / "x.npy"}));
  CHECK(other.exit_code == 1);
  CHECK(contains(other.err, "video"));
}
