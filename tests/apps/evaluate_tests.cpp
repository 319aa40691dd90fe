// vit evaluate as scripts see it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

TEST_CASE("apps: evaluate distinguishes classes that differ in case, and refuses a name of two") {
  const TestFolder folder;
  write_text(folder / "names.txt",
             "\xEF\xBB\xBF"
             "A\na\nb, ox\ncrane\ncrane\nc, ox\n");
  for (const char* name : {"A", "a", "d", "crane", "ox"}) {
    write_picture(folder / ("in/" + std::string(name) + "/x.ppm"), 30, 30, 1);
  }
  const RunResult result =
      run_vit(with_model("evaluate", {"--format", "json", "--labels", folder / "names.txt", folder / "in"}));
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  const Json confusion = parse_json(result.out, "evaluate").at("confusion");
  REQUIRE(confusion.size() == 2);
  CHECK(confusion[0].at("label").as_string() == "A");
  CHECK(confusion[1].at("label").as_string() == "a");
  CHECK(result.num_errors() == 3);  // no class is called d, two are crane, and two ox
  CHECK(
      contains(result.err, "d: the model has no class with this name, index or synset; without its 1 image"));
  CHECK(contains(result.err, "crane: the name of 2 classes, 3 and 4 among them"));
  CHECK(contains(result.err, "ox: the name of 2 classes, 2 and 5 among them"));
}

TEST_CASE("apps: evaluate compares the patches of an image with those of its enlarged self") {
  const TestFolder folder;
  write_picture(folder / "in/a/one.ppm", 90, 80, 1);
  write_picture(folder / "in/two.ppm", 60, 100, 2);
  const auto evaluate = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--scale-consistency", "--format", "json", folder / "in"});
    return run_vit(with_model("evaluate", more));
  };
  // the golden model is trained on 24 x 24 pixels (another size would break the first check)
  const RunResult own = evaluate({"--sizes", "24,96"});
  CAPTURE(own.err);
  REQUIRE(own.exit_code == 0);
  const Json result = parse_json(own.out, "evaluate");
  CHECK(result.at("images").as_size() == 2);
  CHECK(result.at("rope_scaling").as_string() == "none");
  const Json sizes = result.at("sizes");
  REQUIRE(sizes.size() == 2);
  CHECK(sizes[0].at("cosine").as_double() == doctest::Approx(1.0).epsilon(1e-12));
  CHECK(sizes[1].at("cosine").as_double() < 1.0);
  CHECK(sizes[0].at("elsewhere").as_double() < sizes[0].at("cosine").as_double());
  const RunResult linear = evaluate({"--sizes", "96", "--rope-scaling", "linear"});
  REQUIRE(linear.exit_code == 0);
  CHECK(parse_json(linear.out, "evaluate").at("sizes")[0].at("cosine").as_double() !=
        sizes[1].at("cosine").as_double());

  CHECK(run_vit(with_model("evaluate", {"--sizes", "96", folder / "in"})).exit_code == 2);
  CHECK(run_vit(with_model("evaluate", {"--scale-consistency", folder / "in"})).exit_code == 2);
  CHECK(evaluate({"--sizes", "96,"}).exit_code == 2);
  CHECK(evaluate({"--sizes", "96", "--labels", "x"}).exit_code == 2);
  write_text(folder / "in/broken.png", "not an image");
  const RunResult partly = evaluate({"--sizes", "96"});
  CHECK(partly.exit_code == 1);
  CHECK(partly.num_errors() == 1);
  CHECK(parse_json(partly.out, "evaluate").at("failed").as_size() == 1);
}

TEST_CASE("apps: every rule of rope scaling runs, changes only other sizes, and is reported") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 90, 80, 1);
  for (const char* model : {"rope-axial", "rope-mixed", "timm-eva02", "hf-dinov3", "timm-pe-core"}) {
    CAPTURE(model);
    const auto values = [&](std::vector<std::string> more) {
      more.insert(more.begin(), {"embed", "--model", golden_model(model), "--threads", "1", "--output",
                                 folder / "out.npy", folder / "a.ppm"});
      const RunResult result = run_vit(more);
      CAPTURE(result.err);
      REQUIRE(result.exit_code == 0);
      return read_text(folder / "out.npy");
    };
    const std::string trained = values({}), larger = values({"--size", "96x128"});
    std::size_t same = 0;
    for (const char* rule : {"none", "linear", "ntk", "yarn"}) {
      CHECK(values({"--rope-scaling", rule}) == trained);
      same += values({"--size", "96x128", "--rope-scaling", rule}) == larger;
    }
    CHECK(same == 1);  // the model's own
    const RunResult described =
        run_vit({"info", "--model", golden_model(model), "--rope-scaling", "yarn,beta_fast=2"});
    CHECK(contains(described.out, "rope scaling  yarn,beta_fast=2 (given; default of the checkpoint: "));
  }
  const RunResult plain =
      run_vit({"classify", "--model", golden_model("timm-vit"), "--rope-scaling", "ntk", folder / "a.ppm"});
  CHECK(plain.exit_code == 1);
  CHECK(contains(plain.err, "no rotary positions"));
  CHECK(run_vit(with_model("classify", {"--rope-scaling", "dynamic", folder / "a.ppm"})).exit_code == 2);
  const RunResult learned =
      run_vit({"info", "--model", golden_model("rope-mixed"), "--rope-scaling", "yarn,truncate=true"});
  CHECK(learned.exit_code == 1);
  CHECK(contains(learned.err, "truncate needs ordered frequencies"));
}

TEST_CASE("apps: evaluate knows classes by label and index") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 30, 1);
  write_picture(folder / "b.ppm", 30, 40, 9);
  write_text(folder / "names.txt",
             "n01\tred fox, Vulpes\nn02\tbee\nn03\tcat\nn04\tdog\nn05\teel\nn06\tant\n");
  const RunResult classified =
      run_vit(with_model("classify", {"--format", "json", folder / "a.ppm", folder / "b.ppm"}));
  const std::vector<std::string> lines = lines_of(classified.out);
  REQUIRE(lines.size() == 2);
  const std::size_t first = parse_json(lines[0], "line").at("top")[0].at("index").as_size();
  const std::size_t second = parse_json(lines[1], "line").at("top")[0].at("index").as_size();
  // a.ppm in the folder of its predicted class, b.ppm in one of another class
  const std::size_t other = (second + 1) % 6;
  const std::vector<std::string> labels{"Red_Fox", "bee", "cat", "dog", "eel", "ant"};
  const auto evaluate = [&](const std::string& root, const std::string& right, const std::string& wrong) {
    write_picture(folder / (root + "/" + right + "/a.ppm"), 40, 30, 1);
    write_picture(folder / (root + "/" + wrong + "/b.ppm"), 30, 40, 9);
    const RunResult result = run_vit(
        with_model("evaluate", {"--format", "json", "--labels", folder / "names.txt", folder / root}));
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    const Json json = parse_json(result.out, "evaluate");
    CHECK(json.at("images").as_size() == 2);
    CHECK(json.at("top1").as_double() == 0.5);
    CHECK(json.at("top5").as_double() >= 0.5);
    CHECK(json.at("failed").as_size() == 0);
    CHECK(json.at("confusion").size() == (first == other ? 1u : 2u));
  };
  evaluate("by_index", std::to_string(first), std::to_string(other));
  evaluate("by_label", labels[first], labels[other]);
  evaluate("by_id", "n0" + std::to_string(first + 1), "N0" + std::to_string(other + 1));

  write_picture(folder / "by_index/no such class/c.ppm", 30, 30, 1);
  const RunResult partly = run_vit(with_model("evaluate", {"--format", "json", folder / "by_index"}));
  CHECK(partly.exit_code == 1);
  CHECK(contains(partly.err, "no such class"));
  CHECK(parse_json(partly.out, "evaluate").at("images").as_size() == 2);
}
