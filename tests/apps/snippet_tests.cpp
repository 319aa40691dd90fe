// The first snippet of README.md and the program give one answer for one photograph.
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/base/check.h"
#include "vit/vit.h"

namespace vit {
namespace {

/// The JPEG with an EXIF block after its first marker that says: rotate by 90 degrees.
std::string rotated_by_exif(const std::string& jpeg) {
  const std::string tiff("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 26);
  const std::string exif = std::string("Exif\0\0", 6) + tiff;
  const std::size_t length = exif.size() + 2;
  const std::string marker{'\xFF', '\xE1', static_cast<char>(length >> 8), static_cast<char>(length & 0xFF)};
  return jpeg.substr(0, 2) + marker + exif + jpeg.substr(2);
}

}  // namespace

TEST_CASE("apps: README's first snippet and vit classify agree on a photograph that EXIF rotates") {
  // what the snippet does
  REQUIRE(test::read_text(test::data_path("../README.md")).find("classifier.classify(\"photo.jpg\", 3)") !=
          std::string::npos);

  const test::TestFolder folder;
  const std::string photo = folder / "photo.jpg";
  const std::string stored = test::read_text(test::data_path("images/cat_tabby.jpg"));
  REQUIRE(stored.starts_with("\xFF\xD8"));
  test::write_text(photo, rotated_by_exif(stored));

  const std::string model = test::golden_model("hf-vit");
  Classifier classifier(model);
  const std::vector<Prediction> top = classifier.classify(photo, 3);
  std::string expected = "file,rank,index,label,probability\n";
  for (std::size_t i = 0; i < top.size(); ++i)
    expected += photo + text(",", i + 1, ",", top[i].index, ",", top[i].label, ",");
  const test::RunResult run =
      test::run_vit({"classify", "--model", model, "--top", "3", "--format", "csv", photo});
  REQUIRE(run.exit_code == 0);
  std::string found;  // without the probabilities, the last field of each line
  for (std::size_t begin = 0, end; (end = run.out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = run.out.substr(begin, end - begin);
    found += begin == 0 ? line + "\n" : line.substr(0, line.rfind(',') + 1);
  }
  CHECK(found == expected);

  // ... and the orientation matters: read as it is stored, the photograph gives other numbers
  const Image unrotated = decode_file(photo, {.orientation = Orientation::ignore});
  CHECK(classifier.classify(unrotated.view(), 1).front().logit != top.front().logit);

  // a file in memory is read as one on disk
  const std::string bytes = test::read_text(photo);
  const std::vector<Prediction> in_memory = classifier.classify(std::as_bytes(std::span(bytes)), 3);
  REQUIRE(in_memory.size() == top.size());
  for (std::size_t i = 0; i < top.size(); ++i) CHECK(in_memory[i].logit == top[i].logit);
}

}  // namespace vit
