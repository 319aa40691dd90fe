// vit fit --truth, and the heads that it makes in segment and evaluate.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/apps/pixel_files.h"
#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"

TEST_SUITE_BEGIN("fit");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

constexpr std::size_t kRows = 48, kColumns = 64;

/// A bright square on a dark ground; and rows of letters for labels of the same size.
void write_square(const std::string& path, std::size_t left, std::size_t top, std::size_t edge) {
  std::string out = "P6\n64 48\n255\n";
  for (std::size_t y = 0; y < kRows; ++y) {
    for (std::size_t x = 0; x < kColumns; ++x) {
      const bool inside = x >= left && x < left + edge && y >= top && y < top + edge;
      const auto noise = static_cast<int>((x * 7 + y * 13) % 17);
      for (int c = 0; c < 3; ++c) out += static_cast<char>((inside ? 200 - 40 * c : 60 + 20 * c) + noise);
    }
  }
  write_text(path, out);
}

using Rows = std::vector<std::string>;

Rows blank() {
  return Rows(kRows, std::string(kColumns, '.'));
}
void paint(Rows& rows, char letter, std::size_t left, std::size_t top, std::size_t width,
           std::size_t height) {
  for (std::size_t y = top; y < top + height; ++y) rows[y].replace(left, width, width, letter);
}

/// photos/a.ppm and b.ppm, strokes/a.png on the first.
void write_sample(const TestFolder& folder) {
  write_square(folder / "photos/a.ppm", 20, 12, 24);
  write_square(folder / "photos/b.ppm", 8, 16, 24);
  Rows rows = blank();
  paint(rows, 'b', 1, 2, 60, 2);
  paint(rows, 'b', 1, 44, 60, 2);
  paint(rows, 'r', 22, 15, 20, 3);
  paint(rows, 'r', 22, 29, 20, 3);
  write_strokes(folder / "strokes/a.png", rows);
}

RunResult fit(const TestFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"fit", "--output", folder / "head.safetensors"});
  return run_vit(arguments);
}

void fit_strokes(const TestFolder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{folder / "photos", "--truth", folder / "strokes", "--size",
                                     "native",          "--names", "ground,square"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RunResult result = fit(folder, arguments);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
}

Rows square_rows(std::size_t left, std::size_t top, std::size_t edge) {
  Rows rows(kRows, std::string(kColumns, '0'));
  paint(rows, '1', left, top, edge, edge);
  return rows;
}

}  // namespace

TEST_CASE("apps: fit --truth learns classes of pixels from strokes") {
  const TestFolder folder;
  write_sample(folder);
  const RunResult result =
      fit(folder, {folder / "photos", "--truth", folder / "strokes", "--size", "native", "--layers", "1,-1",
                   "--upsample", "guided", "--channels-of-color", "--format", "json"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.err, "1 of 2 images have no labels"));
  const Json json = parse_json(result.out, "fit");
  CHECK(json.at("images").as_size() == 1);
  CHECK(json.at("classes").as_size() == 2);
  CHECK(json.at("labeled_pixels").as_size() == 360);
  CHECK(json.at("method").as_string() == "logistic");
  CHECK(json.at("layers").size() == 2);
  CHECK(json.at("layers")[0].as_size() == 1);
  CHECK(json.at("labels")[0].as_string() == "#0000ff");  // by first appearance
  CHECK(json.at("held_out").as_string() == "strokes");
  CHECK(json.at("cross_validated_iou").as_double() > 0.8);
  CHECK(json.at("strength").as_double() > 0);
}

TEST_CASE("apps: a learned upsampler is remembered by the head, and another one is refused") {
  const TestFolder folder;
  write_sample(folder);
  const auto golden = [](const std::string& name) {
    return data_path("golden/upsamplers/" + name + ".pth").string();
  };
  const std::string network = folder / "naf.pth", head = folder / "head.safetensors";
  write_text(network, read_text(golden("naf")));
  const RunResult made = fit(folder, {folder / "photos", "--truth", folder / "strokes", "--size", "native",
                                      "--upsample", network, "--format", "json"});
  CAPTURE(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK(parse_json(made.out, "fit").at("upsample").as_string() == "learned");
  CHECK(parse_json(made.out, "fit").at("upsampler").as_string() == "NAF");

  const auto fails = [](const RunResult& result, int code, const std::string& why) {
    CAPTURE(result.err);
    CHECK(result.exit_code == code);
    CHECK(contains(result.err, why));
    CHECK(lines_of(result.err).size() == 1);
  };
  const std::string truncated = read_text(network).substr(0, 20'000);
  write_text(folder / "truncated.pth", truncated);
  fails(fit(folder, {folder / "photos", "--truth", folder / "strokes", "--upsample", "sharp"}), 2,
        "bilinear, shift, guided, or the file");
  fails(
      fit(folder, {folder / "photos", "--truth", folder / "strokes", "--upsample", folder / "truncated.pth"}),
      1, "truncated.pth");
  fails(fit(folder, {folder / "photos", "--truth", folder / "strokes", "--upsample",
                     data_path("golden/fit/fit.safetensors").string()}),
        1, "no upsampler that is known");
  fails(fit(folder, {"--paint", folder / "page.html", folder / "photos", "--upsample", network}), 2,
        "--paint");
  if (!is_built("dense")) return;

  const auto segment = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"segment",         "--classifier", head,
                                       folder / "photos", "--output",     folder / "out.npz"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_vit(arguments);
  };
  REQUIRE(segment({}).exit_code == 0);
  const auto arrays = read_npz(folder / "out.npz");
  CHECK(arrays.at("segmentation.1").shape == std::vector<std::size_t>{kRows, kColumns});
  fails(segment({"--upsample", "guided"}), 2, "a head knows its way");
  fails(segment({"--upsample", golden("anyup")}), 1, "is AnyUp");
  std::filesystem::rename(network, folder / "moved.pth");
  fails(segment({}), 1, "naf.pth\", which does not exist or is no file; --upsample FILE names its new place");
  const RunResult moved = segment({"--upsample", folder / "moved.pth"});
  CAPTURE(moved.err);
  CHECK(moved.exit_code == 0);
  CHECK(read_npz(folder / "out.npz").at("segmentation.1").bytes == arrays.at("segmentation.1").bytes);
  write_gray(folder / "masks/a.png", square_rows(20, 12, 24), 255);
  write_gray(folder / "masks/b.png", square_rows(8, 16, 24), 255);
  CHECK(run_vit({"evaluate", "--task", "segment", "--classifier", head, "--upsample", folder / "moved.pth",
                 "--truth", folder / "masks", folder / "photos"})
            .exit_code == 0);
  fit_strokes(folder);
  fails(segment({"--upsample", folder / "moved.pth"}), 1, "--upsample bilinear, not by");
}

TEST_CASE("apps: segment --classifier needs only the head, and evaluate compares with masks" *
          doctest::skip(!is_built("dense"))) {
  const TestFolder folder;
  write_sample(folder);
  fit_strokes(folder);
  const RunResult result = run_vit({"segment", "--classifier", folder / "head.safetensors", folder / "photos",
                                    "--output", folder / "out.npz", "--probabilities"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const auto arrays = read_npz(folder / "out.npz");
  CHECK(arrays.at("segmentation.1").shape == std::vector<std::size_t>{kRows, kColumns});
  CHECK(arrays.at("probabilities.0").shape == std::vector<std::size_t>{2, kRows, kColumns});
  const std::vector<float> probabilities = arrays.at("probabilities.0").floats();
  for (std::size_t i = 0; i < kRows * kColumns; i += 97)
    CHECK(probabilities[i] + probabilities[kRows * kColumns + i] == doctest::Approx(1));
  const Json line = parse_json(lines_of(result.out).front(), "segment");
  CHECK(line.at("task").as_string() == "semantic");
  CHECK(line.at("segments")[1].at("label").as_string() == "square");

  write_gray(folder / "masks/a.png", square_rows(20, 12, 24), 255);
  write_gray(folder / "masks/b.png", square_rows(8, 16, 24), 255);
  const RunResult evaluated =
      run_vit({"evaluate", "--task", "segment", "--classifier", folder / "head.safetensors", "--truth",
               folder / "masks", folder / "photos", "--format", "json"});
  CAPTURE(evaluated.err);
  REQUIRE(evaluated.exit_code == 0);
  CHECK(parse_json(evaluated.out, "evaluate").at("miou").as_double() > 0.75);
  CHECK(parse_json(evaluated.out, "evaluate").at("images").as_size() == 2);
}

TEST_CASE("apps: segment --regions lists connected pixels" * doctest::skip(!is_built("dense"))) {
  const TestFolder folder;
  write_sample(folder);
  fit_strokes(folder);
  const std::string head = folder / "head.safetensors";
  const RunResult result =
      run_vit({"segment", "--classifier", head, folder / "photos/a.ppm", "--regions", "--format", "json"});
  REQUIRE(result.exit_code == 0);
  const Json segments = parse_json(result.out, "segment").at("segments");
  std::size_t sum = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Json region = segments[i];
    CHECK(region.at("id").as_size() == i);
    const auto edge = [&](std::size_t k) { return region.at("box")[k].as_size(); };
    CHECK(edge(0) < edge(2));
    CHECK(edge(1) < edge(3));
    CHECK(region.at("area").as_size() <= (edge(2) - edge(0)) * (edge(3) - edge(1)));
    CHECK(region.at("centroid")[0].as_double() > static_cast<double>(edge(0)));
    CHECK(region.at("centroid")[1].as_double() < static_cast<double>(edge(3)));
    sum += region.at("area").as_size();
  }
  CHECK(sum == kRows * kColumns);
  const RunResult files = run_vit({"segment", "--classifier", head, folder / "photos", "--regions",
                                   "--output", folder / "out/", "--format", "csv,png"});
  CAPTURE(files.err);
  REQUIRE(files.exit_code == 0);
  const auto lines = lines_of(read_text(folder / "out/a.csv"));
  CHECK(lines.front() == "file,id,index,label,area,x0,y0,x1,y1,centroid_x,centroid_y");
  CHECK(lines.size() == segments.size() + 1);
}

TEST_CASE("apps: segment --like finds what is like a patch or a mask" * doctest::skip(!is_built("dense"))) {
  const TestFolder folder;
  write_sample(folder);
  Rows rows = blank();
  paint(rows, 'r', 20, 12, 24, 24);
  write_strokes(folder / "mask.png", rows);
  for (const std::string& mark : {std::string("32,20,28,28"), folder / "mask.png"}) {
    CAPTURE(mark);
    const RunResult result = run_vit({"segment", "--like", folder / "photos/a.ppm:" + mark, folder / "photos",
                                      "--size", "native", "--output", folder / "out.npz", "--probabilities"});
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    const auto arrays = read_npz(folder / "out.npz");
    CHECK(arrays.at("probabilities.1").shape == std::vector<std::size_t>{1, kRows, kColumns});
    const Json line = parse_json(lines_of(result.out).back(), "segment");
    REQUIRE(line.at("segments").size() == 1);
    CHECK(line.at("segments")[0].at("label").as_string() == "like");
  }
}

TEST_CASE("apps: an example's mask is a file of the run: not replaced, and readable in the sandbox") {
  const TestFolder folder;
  write_sample(folder);
  Rows rows = blank();
  paint(rows, 'r', 20, 12, 24, 24);
  std::filesystem::create_directories(folder / "masks");
  write_strokes(folder / "masks/mask.png", rows);
  const std::string bytes = read_text(folder / "masks/mask.png");
  const auto segment = [&](const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"segment",
                                       "--like",
                                       folder / "photos/a.ppm:" + (folder / "masks/mask.png"),
                                       folder / "photos/a.ppm",
                                       "--size",
                                       "native",
                                       "--format",
                                       "png",
                                       "--output",
                                       output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_vit(arguments);
  };
  const RunResult replaced = segment(folder / "masks/mask.png");
  CHECK(replaced.exit_code == 2);
  CHECK(read_text(folder / "masks/mask.png") == bytes);
  const RunResult confined = segment(folder / "out.png", {"--sandbox"});
  CAPTURE(confined.err);
  CHECK(confined.exit_code == 0);
}

TEST_CASE("apps: names of classes have no spaces around them, are read in the sandbox, and are not empty") {
  const TestFolder folder;
  write_sample(folder);
  const auto names = [&](const std::string& given, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {folder / "photos/a.ppm", "--truth", folder / "strokes", "--size", "native",
                               "--names", given, "--format", "json"});
    return fit(folder, more);
  };
  const Json labels = parse_json(names("rest, leaf").out, "fit").at("labels");
  CHECK(labels[0].as_string() == "rest");
  CHECK(labels[1].as_string() == "leaf");
  CHECK(names("rest,").exit_code == 2);
  write_text(folder / "names.txt", "rest\nleaf\n");
  const RunResult confined = names(folder / "names.txt", {"--sandbox"});
  CAPTURE(confined.err);
  CHECK((confined.exit_code == 0 || contains(confined.err, "[sandbox]")));
  write_text(folder / "names.json", R"(["rest", ""])");
  const RunResult nameless = names(folder / "names.json");
  CHECK(nameless.exit_code == 1);
  CHECK(contains(nameless.err, "class 1 has no name"));
}

TEST_CASE("apps: fit --paint writes a page with the features of images") {
  const TestFolder folder;
  write_sample(folder);
  const RunResult result =
      run_vit({"fit", folder / "photos", "--paint", folder / "paint.html", "--size", "native"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const std::string page = read_text(folder / "paint.html");
  CHECK(contains(page, "\"name\":\"a\""));
  CHECK(contains(page, "\"name\":\"b\""));
  CHECK(contains(page, "default-src 'none'"));
  CHECK(!contains(page, "@DATA@"));
  CHECK(folder.names() == std::vector<std::string>{"paint.html", "photos", "strokes"});
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--truth", folder / "strokes"},
                                               {"--upsample", "shift"},
                                               {"--method", "knn"}}) {
    std::vector<std::string> arguments{"fit", folder / "photos", "--paint", folder / "paint.html"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CHECK(run_vit(arguments).exit_code == 2);
  }
}

TEST_CASE("apps: what contradicts a head of pixels, or is no label, is one line") {
  const TestFolder folder;
  write_sample(folder);
  fit_strokes(folder);
  const std::string head = folder / "head.safetensors", photo = folder / "photos/a.ppm";
  const auto fails = [](const RunResult& result, int code, const std::string& what) {
    CAPTURE(result.err);
    CAPTURE(what);
    CHECK(result.exit_code == code);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, what));
  };
  if (is_built("dense")) {
    fails(run_vit({"segment", "--classifier", head, "--size", "48", photo}), 1, "--size native");
    fails(run_vit({"segment", "--classifier", head, "--model", golden_model("hf-dinov3"), photo}), 1,
          "was fitted on features of");
    fails(run_vit({"segment", "--classifier", head, "--task", "instance", photo}), 2, "--task semantic");
    fails(run_vit({"segment", "--classifier", head, "--like", photo + ":1,1", photo}), 2, "only one");
    fails(run_vit({"segment", "--regions", photo}), 2, "--classifier HEAD");
    fails(run_vit({"segment", "--like", photo + ":1,1,7", photo}), 2, "--like IMAGE:X,Y");
    fails(run_vit({"segment", "--like", photo + ":64,1", photo, "--size", "native"}), 1, "64,1 lies outside");
  }
  if (is_built("dense") && is_built("prompts")) {
    const std::string prompts = data_path("golden/prompts/sam3").string();
    fails(run_vit({"segment", "--model", prompts, "--like", photo + ":1,1", photo}), 2, "a model of prompts");
    fails(run_vit({"segment", "--model", prompts, "--classifier", head, photo}), 2, "a model of prompts");
  }
  fails(run_vit({"classify", "--classifier", head, photo}), 1, "vit segment --classifier");
  fails(fit(folder, {photo, "--truth", folder / "strokes", "--unlabeled", "0"}), 2,
        "--unlabeled is for indices");
  fails(fit(folder, {photo, "--upsample", "shift"}), 2, "--truth");
  fails(fit(folder, {folder / "photos/b.ppm", "--truth", folder / "strokes"}), 1,
        "no labels of any of 1 image");
  fails(fit(folder, {photo, "--truth", folder / "strokes", "--names", "one"}), 1, "--names has 1 names");
  fails(fit(folder, {photo, "--truth", folder / "strokes", "--names", "one,one"}), 1,
        "--names has one twice");
  fails(fit(folder, {photo, "--truth", folder / "nowhere"}), 1, "nowhere");
  fails(fit(folder, {photo, "--truth", folder / "strokes", "--layers", "99"}), 2, "--layers");
  write_gray(folder / "wrong/a.png", Rows(kRows, std::string(63, '1')), 255);
  const RunResult wrong = fit(folder, {photo, "--truth", folder / "wrong", "--background", "rest"});
  CHECK(wrong.exit_code == 1);  // the image failed, and nothing is left
  CHECK(contains(wrong.err, "labels of 63 x 48 pixels for an image of 64 x 48"));
  CHECK(wrong.num_errors() == 1);
  write_gray(folder / "empty/a.png", blank(), 255);
  fails(fit(folder, {photo, "--truth", folder / "empty"}), 1, "no pixel in them has a label");
  write_gray(folder / "single/a.png", Rows(kRows, std::string(kColumns, '1')), 255);
  fails(fit(folder, {photo, "--truth", folder / "single"}), 1, "of one class");
}

TEST_SUITE_END();
