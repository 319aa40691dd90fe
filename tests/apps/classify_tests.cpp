// vit classify as scripts see it.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

TEST_CASE("apps: classify prints text, JSON that reads back exactly, and CSV") {
  const TestFolder folder;
  write_picture(folder / "a,b.ppm", 40, 30, 1);
  const std::string picture = folder / "a,b.ppm";
  const auto classify = [&](std::vector<std::string> arguments) {
    arguments.push_back(picture);
    return run_vit(with_model("classify", arguments));
  };
  const RunResult json = classify({"--format", "json", "--top", "2"});
  REQUIRE(json.exit_code == 0);
  CHECK(json.err.empty());
  const Json line = parse_json(json.out, "classify");
  REQUIRE(line.at("top").size() == 2);
  const Json best = line.at("top")[0], second = line.at("top")[1];

  SUBCASE("best first, called by numbers where the model has no names") {
    CHECK(best.at("probability").as_double() >= second.at("probability").as_double());
    CHECK(best.at("label").as_string() == std::to_string(best.at("index").as_size()));
  }
  SUBCASE("the logits of embed") {
    REQUIRE(run_vit(with_model("embed", {picture, "--features", "logits", "--output", folder / "x.npy"}))
                .exit_code == 0);
    const std::vector<float> logits = parse_npy(read_text(folder / "x.npy")).floats();
    CHECK(static_cast<float>(best.at("logit").as_double()) == logits[best.at("index").as_size()]);
    CHECK(static_cast<float>(second.at("logit").as_double()) == logits[second.at("index").as_size()]);
  }
  SUBCASE("CSV has all classes where more are requested") {
    const std::vector<std::string> rows = lines_of(classify({"--format", "csv", "--top", "99"}).out);
    REQUIRE(rows.size() == 1 + 6);
    CHECK(rows[0] == "file,rank,index,label,probability");
    CHECK(rows[1].starts_with("\"" + picture + "\",1," + std::to_string(best.at("index").as_size()) + ","));
  }
  SUBCASE("text has no colors where it is read by a program") {
    const RunResult text = classify({"--top", "1"});
    CHECK(text.exit_code == 0);
    CHECK(lines_of(text.out).size() == 2);
    CHECK(!contains(text.out, "\x1b"));
  }
}

TEST_CASE("apps: classify takes names of its classes from a file") {
  const TestFolder folder;
  const std::string picture = folder / "a.ppm";
  write_picture(picture, 40, 30, 1);
  const auto with_labels = [&](const std::string& name) {
    return run_vit(with_model("classify", {"--labels", folder / name, "--top", "1", picture}));
  };
  write_text(folder / "names.txt", "ant\nbee\ncat\ndog\neel\nfox\n");
  SUBCASE("lines and JSON by index are the same names") {
    write_text(folder / "names.json",
               R"({"id2label": {"0": "ant", "1": "bee", "2": "cat", "3": "dog", "4": "eel", "5": "fox"}})");
    const RunResult lines = with_labels("names.txt");
    CHECK(lines.exit_code == 0);
    CHECK(with_labels("names.json").out == lines.out);
  }
  SUBCASE("too few") {
    write_text(folder / "few.txt", "ant\nbee\n");
    CHECK(with_labels("few.txt").exit_code == 1);
  }
  SUBCASE("too many") {
    std::string many;
    for (int i = 0; i < 100; ++i) many += "ant\n";
    write_text(folder / "many.txt", many + "\n\n");
    CHECK(contains(with_labels("many.txt").err, "100 names for 6 classes"));
  }
  SUBCASE("a file that is too large for names") {
    write_text(folder / "large.txt", "");
    std::filesystem::resize_file(folder / "large.txt", std::uintmax_t{1} << 30);  // sparse
    const RunResult result = with_labels("large.txt");
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, "large.txt"));
    CHECK(contains(result.err, "1073741824"));
  }
}

TEST_CASE("apps: classify with a model that has no classes names the options that give it some") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 30, 1);
  for (const char* model : {"hf-dinov3", "hf-clip"}) {
    CAPTURE(model);
    const RunResult result = run_vit({"classify", "--model", golden_model(model), folder / "a.ppm"});
    CHECK(result.exit_code == 2);
    CHECK(result.num_errors() == 1);
    CHECK(contains(result.err, "--classes"));
    CHECK(contains(result.err, "--classifier"));
  }
}

TEST_CASE("apps: every arithmetic of --dtype gives the same class, and is named by bench") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 30, 30, 1);
  const auto best = [&](const char* dtype) {
    const RunResult result =
        run_vit(with_model("classify", {"--dtype", dtype, "--format", "json", folder / "a.ppm"}));
    CHECK(result.exit_code == 0);
    return parse_json(result.out, "classify").at("top")[0];
  };
  const Json exact = best("float32");
  for (const char* dtype : {"bfloat16", "int8"}) {
    CAPTURE(dtype);
    const Json found = best(dtype);
    CHECK(found.at("index").as_size() == exact.at("index").as_size());
    CHECK(found.at("logit").as_double() != exact.at("logit").as_double());
    CHECK(found.at("logit").as_double() == doctest::Approx(exact.at("logit").as_double()).epsilon(0.05));
    const RunResult bench = run_vit({"bench", "--model", golden_model("rope-axial"), "--dtype", dtype,
                                     "--seconds", "0.01", "--threads", "1", "--json"});
    CHECK(bench.exit_code == 0);
    CHECK(parse_json(bench.out, "bench").at("results")[0].at("dtype").as_string() == dtype);
  }
}

TEST_CASE("apps: the program knows the model that ships with it") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 60, 40, 1);
  const RunResult result = run_vit({"classify", "--top", "1", folder / "a.ppm"});
  CHECK(result.exit_code == 0);
  CHECK(lines_of(result.out).size() == 2);
  const RunResult missing =
      run_vit({"classify", folder / "a.ppm"}, {.environment = {{"VIT_DATA_DIR", folder.path()}}});
  CHECK(missing.exit_code == 1);
  CHECK(missing.num_errors() == 1);
  CHECK(contains(missing.err, folder.path()));
}
