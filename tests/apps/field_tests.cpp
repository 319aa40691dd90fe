// Situations of people who run Vision Transformers, from public reports: each folder of the reference data
// says what is run, and what is right. Of the first set a row of the table is one situation; the second set
// says itself what is right.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <regex>
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
constexpr const char* kSecondField = "fixtures/field4";

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

/// Numbers of float32, float64 or uint8.
std::vector<double> numbers(const NpyArray& array) {
  std::vector<double> out;
  if (array.descr == "|u1") {
    for (const char byte : array.bytes) out.push_back(static_cast<unsigned char>(byte));
  } else if (array.descr == "<f8") {
    out.resize(array.bytes.size() / sizeof(double));
    std::memcpy(out.data(), array.bytes.data(), array.bytes.size());
  } else {
    const std::vector<float> floats = array.floats();
    out.assign(floats.begin(), floats.end());
  }
  return out;
}

/// A shape without the dimension of a single image.
std::vector<std::size_t> without_ones(std::vector<std::size_t> shape) {
  std::erase(shape, std::size_t{1});
  return shape;
}

/// Largest difference, relative to the largest value, or to 1 where that is smaller; infinite where shapes
/// differ. `key`: the array of a .npz file.
double difference(const std::string& result, const std::string& expected, const std::string& key = "") {
  const NpyArray a = key.empty() ? parse_npy(read_text(result)) : read_npz(result)[key];
  const NpyArray b = parse_npy(read_text(expected));
  if (without_ones(a.shape) != without_ones(b.shape)) return std::numeric_limits<double>::infinity();
  const std::vector<double> found = numbers(a), right = numbers(b);
  double largest = 1, difference = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    largest = std::max(largest, std::abs(right[i]));
    difference = std::max(difference, std::abs(found[i] - right[i]));
  }
  return difference / largest;
}

/// A copy of a case's folder, in which its setup and its command ran.
class Run {
 public:
  explicit Run(const std::string& origin) : place_(folder_ / "case") {
    fs::copy(shared_path(origin), place_, fs::copy_options::recursive);
    environment_["XDG_STATE_HOME"] = folder_ / "state";
    if (fs::exists(place_ + "/setup.sh")) {
      const RunResult made = run_vit({}, in_shell("VIT=\"$0\" . ./setup.sh"));
      CHECK_MESSAGE(made.exit_code == 0, made.err);
    }
    facts_.emplace(load_json(place_ + "/case.json"));
    if (const auto script = facts_->find_string("script")) {
      result_ = run_vit({}, in_shell("VIT=\"$0\" exec python3 " + std::string(*script)));
      return;
    }
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < facts_->at("command").size(); ++i)
      arguments.emplace_back(facts_->at("command")[i].as_string());
    result_ = run_vit(arguments, {.environment = environment_, .wrapper = {"env", "-C", place_}});
  }

  const RunResult& result() const { return result_; }
  const Json& facts() const { return *facts_; }
  /// Whether the numbers of the case, if it has some, are those expected.
  bool has_right_numbers() const {
    const auto compare = facts_->find("compare");
    if (!compare || compare->is_null()) return true;
    return difference(place_ + "/" + std::string(compare->at("result").as_string()),
                      place_ + "/" + std::string(compare->at("expected").as_string()),
                      std::string(compare->find_string("key").value_or(""))) <=
           compare->at("relative_to_largest").as_double();
  }

 private:
  RunOptions in_shell(const std::string& command) const {
    return {.environment = environment_, .wrapper = {"env", "-C", place_, "bash", "-c", command}};
  }

  TestFolder folder_;
  std::string place_;
  std::map<std::string, std::string> environment_;
  std::optional<Json> facts_;
  RunResult result_;
};

/// Whether `text` holds a pattern, whose leading (?i) means any case.
bool holds(const std::string& text, std::string pattern) {
  auto flags = std::regex::ECMAScript;
  if (pattern.starts_with("(?i)")) {
    pattern.erase(0, 4);
    flags |= std::regex::icase;
  }
  return std::regex_search(text, std::regex(pattern, flags));
}

bool holds_all(const std::string& text, const Json& accepted, const char* key, bool wanted) {
  const auto patterns = accepted.find(key);
  for (std::size_t i = 0; patterns && i < patterns->size(); ++i) {
    if (holds(text, std::string((*patterns)[i].as_string())) != wanted) return false;
  }
  return true;
}

/// Whether one of the alternatives of "accept" holds.
bool is_accepted(const Run& run) {
  const auto accept = run.facts().find("accept");
  if (!accept || accept->is_null()) return false;
  const RunResult& result = run.result();
  for (std::size_t i = 0; i < accept->size(); ++i) {
    const Json one = (*accept)[i];
    const Json code = one.at("rc");
    const bool has_code =
        code.is_string() ? result.exit_code != 0 : result.exit_code == static_cast<int>(code.as_size());
    if (has_code && holds_all(result.out, one, "stdout", true) &&
        holds_all(result.err, one, "stderr", true) && holds_all(result.out, one, "not_stdout", false))
      return true;
  }
  return false;
}

/// A case names numbers, or alternatives, or both, of which one holds.
bool is_right(const Run& run) {
  const auto compare = run.facts().find("compare"), accept = run.facts().find("accept");
  const bool has_numbers = compare && !compare->is_null(), has_others = accept && !accept->is_null();
  if (has_others && is_accepted(run)) return true;
  if (has_others && !has_numbers) return false;
  return run.result().exit_code == 0 && run.has_right_numbers();
}

/// Most situations need a ring or several.
bool has_all_rings() {
  constexpr const char* kRings[] = {"dense", "anomaly", "fit", "index", "show", "serve"};
  return std::ranges::all_of(kRings, [](const char* ring) { return is_built(ring); });
}

bool has_python() {
  const RunResult found = run_vit({}, {.wrapper = {"sh", "-c", "command -v python3"}});
  return found.exit_code == 0;
}

}  // namespace

TEST_CASE("apps: situations from the field, second set") {
  SKIP_WITHOUT_SHARED(kSecondField);
  if (!has_all_rings()) return;
  const bool runs_scripts = has_python();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(shared_path(kSecondField))) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  CHECK(names.size() >= 87);
  for (const std::string& name : names) {
    CAPTURE(name);
    const std::string origin = std::string(kSecondField) + "/" + name;
    if (!runs_scripts && load_json(shared_path(origin) / "case.json").find("script")) continue;
    const Run run(origin);
    CAPTURE(run.result().exit_code);
    CAPTURE(run.result().out);
    CAPTURE(run.result().err);
    CHECK(is_right(run));
    CHECK_FALSE(holds(run.result().err, "(^|: )\\[[a-z_ ]+\\] "));  // no name of a function
  }
}

TEST_CASE("apps: situations from the field") {
  SKIP_WITHOUT_SHARED(kField);
  if (!has_all_rings()) return;
  for (const Situation& situation : kSituations) {
    CAPTURE(situation.name);
    const Run run(std::string(kField) + "/" + situation.name);
    const RunResult& result = run.result();
    CAPTURE(result.out);
    CAPTURE(result.err);
    CHECK(result.exit_code == situation.exit_code);
    for (const std::string& part : situation.out) CHECK(contains(result.out, part));
    for (const std::string& part : situation.err) CHECK(contains(result.err, part));
    for (const std::string& part : situation.not_out) CHECK_FALSE(contains(result.out, part));
    if (situation.exit_code == 0) CHECK(run.has_right_numbers());
  }
}
