// Other files in folders of images: they are skipped and counted, and are no labels.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "apps/vit/inputs/inputs.h"
#include "tests/apps/program.h"
#include "tests/support/errors.h"
#include "tests/support/tar_writer.h"

using namespace vit;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;

/// A path below a folder, and what it is counted as; "" where it is an image.
struct Entry {
  const char* path;
  const char* counted_as;
};

constexpr Entry kEntries[] = {
    {"photo.png", ""},
    {"sub/photo.JPG", ""},
    {"._photo.png", "hidden"},               // AppleDouble, of macOS
    {".hidden.png", "hidden"},               // by any name
    {".ipynb_checkpoints/a.png", "hidden"},  // Jupyter
    {".thumbnails/b.jpg", "hidden"},
    {"__MACOSX/._photo.png", "__MACOSX"},  // archives of macOS
    {"__MACOSX/sub/photo.png", "__MACOSX"},
    {"Thumbs.db", ".db"},
};

/// Names of the images found, and the notes.
std::pair<std::vector<std::string>, std::string> listed(const std::string& argument) {
  std::istringstream none;
  const std::vector<std::string> arguments{argument};
  const app::InputList list = app::list_inputs(arguments, none);
  std::vector<std::string> names;
  for (const app::Input& input : list.inputs) names.push_back(input.name.substr(argument.size() + 1));
  std::string notes;
  for (const app::InputFailure& note : list.notes) notes += note.cause;
  CHECK(list.failures.empty());
  return {names, notes};
}

}  // namespace

TEST_CASE("apps: what programs leave in folders and archives is passed over and counted") {
  const TestFolder folder;
  std::vector<std::string> images;
  std::vector<TarMemberToWrite> members;
  for (const Entry& entry : kEntries) {
    write_text(folder / (std::string("in/") + entry.path), "not read");
    members.push_back({entry.path, "not read"});
    if (entry.counted_as[0] == '\0') images.emplace_back(entry.path);
  }
  write_text(folder / "in.tar", tar(members));
  for (const std::string& argument : {folder / "in", folder / "in.tar"}) {
    CAPTURE(argument);
    const auto found = listed(argument);  // clang 14 captures no structured bindings
    CHECK(found.first == images);
    CAPTURE(found.second);
    for (const Entry& entry : kEntries) CHECK(contains(found.second, entry.counted_as));
  }
  // a folder that is named is listed, hidden or not
  const auto [names, notes] = listed(folder / "in/.thumbnails");
  CHECK(names == std::vector<std::string>{"b.jpg"});
}

TEST_CASE("apps: hidden folders are no labels" * doctest::test_suite("fit")) {
  const TestFolder folder;
  for (unsigned i = 0; i < 6; ++i) {
    write_picture(folder / ("in/cat/" + std::to_string(i) + ".ppm"), 24, 24, i);
    write_picture(folder / ("in/dog/" + std::to_string(i) + ".ppm"), 24, 24, 10 + i);
    write_picture(folder / ("in/.ipynb_checkpoints/" + std::to_string(i) + ".ppm"), 24, 24, 20 + i);
    write_picture(folder / ("in/__MACOSX/" + std::to_string(i) + ".ppm"), 24, 24, 30 + i);
  }
  const RunResult fitted = run_vit({"fit", folder / "in", "--model", golden_model("rope-axial"), "--method",
                                    "centroid", "--output", folder / "head.safetensors", "--format", "json"});
  REQUIRE_MESSAGE(fitted.exit_code == 0, fitted.err);
  CHECK(contains(fitted.out, "\"classes\":2"));
  const RunResult evaluated = run_vit({"evaluate", folder / "in", "--model", golden_model("rope-axial"),
                                       "--classifier", folder / "head.safetensors", "--format", "json"});
  REQUIRE_MESSAGE(evaluated.exit_code == 0, evaluated.err);
  CHECK(contains(evaluated.out, "\"images\":12"));
}
