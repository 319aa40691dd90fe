// Video files: what a clip gives is what its frames give as files; the module that reads them is loaded for
// them, also in the sandbox, and missed with a message.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/shared_data.h"

using namespace vit;
using namespace vit::test;

namespace {

constexpr std::uint32_t kEdge = 64, kFrames = 4, kFrameBytes = 3 * kEdge * kEdge;

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(value >> shift & 0xff));
  return bytes;
}
std::string numbers(const std::vector<std::uint32_t>& values) {
  std::string bytes;
  for (const std::uint32_t value : values) bytes += number(value);
  return bytes;
}
std::string chunk(const std::string& name, const std::string& content) {
  return name + number(static_cast<std::uint32_t>(content.size())) + content;
}

/// Writes frames of noise as a folder of PPM files and as an AVI file of bare pixels, so that no codec
/// rounds.
void write_clip(const std::string& folder, const std::string& video) {
  std::filesystem::create_directory(folder);
  std::string frames;
  for (std::uint32_t f = 0; f < kFrames; ++f) {
    const std::string path = folder + "/" + std::to_string(f) + ".ppm";
    write_picture(path, kEdge, kEdge, f);
    const std::string file = read_text(path);
    const std::string rgb = file.substr(file.size() - kFrameBytes);
    std::string bgr;
    for (std::size_t y = kEdge; y-- > 0;) {  // from the bottom
      for (std::size_t x = 0; x < kEdge; ++x) {
        for (const std::size_t c : {2, 1, 0}) bgr.push_back(rgb[3 * (y * kEdge + x) + c]);
      }
    }
    frames += chunk("00db", bgr);
  }
  const std::string header = numbers({200000, 0, 0, 0, kFrames, 0, 1, kFrameBytes, kEdge, kEdge, 0, 0, 0, 0});
  const std::string stream = "vidsDIB " + numbers({0, 0, 0, 1, 5, 0, kFrames, kFrameBytes, 0, 0, 0, 0});
  const std::string format = numbers({40, kEdge, kEdge, 1 | 24 << 16, 0, kFrameBytes, 0, 0, 0, 0});
  const std::string list = chunk("LIST", "strl" + chunk("strh", stream) + chunk("strf", format));
  write_text(video, chunk("RIFF", "AVI " + chunk("LIST", "hdrl" + chunk("avih", header) + list) +
                                      chunk("LIST", "movi" + frames)));
}

/// A small Qwen3-VL with the processor of clips that its golden folder has not.
void write_model(const TestFolder& folder) {
  std::filesystem::copy(data_path("golden/towers/qwen3-vl"), folder / "model");
  write_text(folder / "model/video_preprocessor_config.json",
             R"({"video_processor_type": "Qwen3VLVideoProcessor", "patch_size": 4, "merge_size": 2,
                 "temporal_patch_size": 2, "size": {"shortest_edge": 512, "longest_edge": 8192}})");
}

std::vector<std::string> embed(const TestFolder& folder, const std::string& clip, const std::string& output) {
  return {"embed", "--frames", "2", folder / clip, "--model", folder / "model", "--output", folder / output};
}

}  // namespace

TEST_CASE("apps: a video gives what its frames give") {
  const TestFolder folder;
  write_model(folder);
  write_clip(folder / "frames", folder / "clip.avi");
  const RunResult of_frames = run_vit(embed(folder, "frames", "frames.npy"));
  CAPTURE(of_frames.err);
  REQUIRE(of_frames.exit_code == 0);
  const RunResult of_video = run_vit(embed(folder, "clip.avi", "video.npy"));
  CHECK(of_video.err.empty());
  REQUIRE(of_video.exit_code == 0);
  CHECK(read_text(folder / "video.npy") == read_text(folder / "frames.npy"));

  SUBCASE("in the sandbox") {
    std::filesystem::create_directory(folder / "out");
    std::vector<std::string> arguments = embed(folder, "clip.avi", "out/confined.npy");
    arguments.emplace_back("--sandbox");
    const RunResult confined = run_vit(arguments);
    if (confined.err.starts_with("vit: --sandbox: ")) return;  // there is none here
    CHECK(confined.err.empty());
    CHECK(read_text(folder / "out/confined.npy") == read_text(folder / "frames.npy"));
  }
  SUBCASE("damaged files are one line") {
    for (const auto& [file, size] : {std::pair("short.avi", 300u), {"none.mp4", 0u}, {"text.mov", 5u}}) {
      const std::string name = file;
      CAPTURE(name);
      write_text(folder / name, read_text(folder / "clip.avi").substr(0, size));
      const RunResult result = run_vit(embed(folder, name, "damaged.npy"));
      CHECK(result.exit_code == 1);
      CHECK(result.num_errors() == 1);
    }
  }
}

TEST_CASE("apps: without its module the program reads no video and says which file is missing") {
  const TestFolder folder;
  write_model(folder);
  write_clip(folder / "frames", folder / "clip.avi");
  const std::string copy = "cp \"$1\" \"$0\" && shift && exec \"$0\" \"$@\"";
  const RunOptions copied{.wrapper = {"/bin/sh", "-c", copy, folder / "vit"}};
  const RunResult missing = run_vit(embed(folder, "clip.avi", "x.npy"), copied);
  CHECK(missing.exit_code == 1);
  CHECK(missing.err.find("vit_video.so") != std::string::npos);
  CHECK(missing.err.find("libopencv-videoio-dev") != std::string::npos);
  CHECK(missing.num_errors() == 1);
  CHECK(run_vit(embed(folder, "frames", "x.npy"), copied).exit_code == 0);
}
