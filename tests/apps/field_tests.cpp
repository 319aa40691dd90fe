// Situations of people who run Vision Transformers, from public reports: each folder of the reference data
// says what is run, and what is right. One row of the table is one situation.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/errors.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;

constexpr const char* kField = "fixtures/field";

/// What is seen of a situation; the numbers, where it has some, are compared besides.
struct Situation {
  const char* name;
  int exit_code = 0;
  std::vector<std::string> out{};  // parts of stdout
  std::vector<std::string> err{};  // parts of stderr
  std::vector<std::string> not_out{};
};

const std::vector<Situation> kSituations{
    {.name = "apple_double",
     .out = {"photos/photo.png"},
     .err = {"hidden", "__MACOSX"},
     .not_out = {"._photo"}},
    {.name = "classes_file_json", .out = {"\"a cat\"", "\"a dog\""}},
    {.name = "clip_projection_as_classes",
     .exit_code = 2,
     .err = {"no classes", "projection", "--classes", "--classifier"}},
    {.name = "duplicates_overlap", .err = {"used once"}, .not_out = {"group"}},
    {.name = "fit_hidden_folder", .out = {"2 classes from 6 images"}, .not_out = {"ipynb"}},
    {.name = "index_architecture", .out = {"photos/a.png"}},
    {.name = "index_other_folder", .out = {"photos-b"}},  // what was dropped is said by the second vit index
    {.name = "labels_class_to_idx",
     .out = {R"("index": 0, "label": "cat")", R"("index": 1, "label": "dog")",
             R"("index": 2, "label": "panda")"}},
    {.name = "labels_csv_index",
     .out = {R"("index": 0, "label": "cat")", R"("index": 1, "label": "dog")",
             R"("index": 2, "label": "panda")"}},
    {.name = "labels_gap", .out = {R"("index": 0, "label": "cat")", R"("index": 2, "label": "panda")"}},
    {.name = "labels_int", .out = {R"("index": 0, "label": "0")", R"("index": 2, "label": "2")"}},
    {.name = "npy_uint8", .exit_code = 1, .err = {"pixels.npy", "preprocessed", "normalized", "float32"}},
    {.name = "one_channel"},
    {.name = "pixels_not_multiple", .exit_code = 1, .err = {"input.npy", "11 x 13", "4 x 4", "timm"}},
};

/// Largest difference, relative to the largest value, or to 1 where that is smaller.
double difference(const std::string& result, const std::string& expected) {
  const NpyArray a = parse_npy(read_text(result)), b = parse_npy(read_text(expected));
  REQUIRE(a.shape == b.shape);
  const std::vector<float> found = a.floats(), right = b.floats();
  double largest = 1, difference = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(right[i])));
    difference =
        std::max(difference, std::abs(static_cast<double>(found[i]) - static_cast<double>(right[i])));
  }
  return difference / largest;
}

}  // namespace

TEST_CASE("apps: situations from the field") {
  SKIP_WITHOUT_SHARED(kField);
  for (const Situation& situation : kSituations) {
    CAPTURE(situation.name);
    const TestFolder folder;
    const std::string place = folder / "case";
    fs::copy(shared_path(std::string(kField) + "/" + situation.name), place, fs::copy_options::recursive);
    const std::map<std::string, std::string> environment{{"XDG_STATE_HOME", folder / "state"}};
    if (fs::exists(place + "/setup.sh")) {
      const RunResult made =
          run_vit({}, {.environment = environment,
                       .wrapper = {"env", "-C", place, "sh", "-c", "VIT=\"$0\" . ./setup.sh"}});
      CHECK_MESSAGE(made.exit_code == 0, made.err);
    }
    const Json facts = load_json(place + "/case.json");
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < facts.at("command").size(); ++i)
      arguments.emplace_back(facts.at("command")[i].as_string());
    const RunResult result =
        run_vit(arguments, {.environment = environment, .wrapper = {"env", "-C", place}});
    CAPTURE(result.out);
    CAPTURE(result.err);
    CHECK(result.exit_code == situation.exit_code);
    for (const std::string& part : situation.out) CHECK(contains(result.out, part));
    for (const std::string& part : situation.err) CHECK(contains(result.err, part));
    for (const std::string& part : situation.not_out) CHECK_FALSE(contains(result.out, part));
    if (const auto compare = facts.find("compare"); compare && situation.exit_code == 0) {
      CHECK(difference(place + "/" + std::string(compare->at("result").as_string()),
                       place + "/" + std::string(compare->at("expected").as_string())) <=
            compare->at("relative_to_largest").as_double());
    }
  }
}
