// vit tokenize as scripts see it.
#include <doctest/doctest.h>

#include <string>

#include "tests/apps/program.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "tests/text/strings.h"
#include "vit/io/json.h"

using namespace vit::test;

namespace {

std::string golden_tokenizer(const std::string& name) {
  return data_path("golden/tokenizers/" + name).string();
}

}  // namespace

TEST_CASE("apps: tokenize writes one JSON object a text") {
  const std::string folder = golden_tokenizer("t5");
  const auto strings = read_strings(data_path("golden/tokenizers/t5/strings.jsonl"));
  const RunResult result = run_vit({"tokenize", "--tokenizer", folder, "--library", "open_clip",
                                    "--text-file", folder + "/strings.jsonl"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  std::size_t at = 0;
  for (const TokenizedString& string : strings) {
    const std::size_t end = result.out.find('\n', at);
    REQUIRE(end != std::string::npos);
    const auto line = vit::internal::parse_json(result.out.substr(at, end - at), "line");
    at = end + 1;
    CHECK(line.at("text").as_string() == string.text);
    const auto& expected = string.ids.at("open_clip");
    REQUIRE(line.at("ids").size() == expected.size());
    CHECK(line.at("tokens").size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(line.at("ids")[i].as_integer() == expected[i]);
  }
  CHECK(at == result.out.size());
}

TEST_CASE("apps: tokenize says what is wrong in one line") {
  const std::string folder = golden_tokenizer("clip");
  CHECK(run_vit({"tokenize", "--text", "a"}).exit_code == 2);
  CHECK(run_vit({"tokenize", "--tokenizer", folder}).exit_code == 2);
  CHECK(run_vit({"tokenize", "--tokenizer", folder, "--text-file", "texts.csv"}).exit_code == 2);
  CHECK(run_vit({"tokenize", "--tokenizer", folder, "--text", "a", "--library", "timm"}).exit_code == 2);
  const RunResult damaged = run_vit({"tokenize", "--tokenizer", folder, "--text", "a\xFF", "--text", "b"});
  CHECK(damaged.exit_code == 1);
  CHECK(damaged.num_errors() == 1);
  CHECK(contains(damaged.out, "\"text\": \"b\""));
  const RunResult no_text_tower = run_vit({"tokenize", "--model", golden_model("rope-axial"), "--text", "a"});
  CHECK(no_text_tower.exit_code == 1);
  CHECK(no_text_tower.num_errors() == 1);
  CHECK(contains(no_text_tower.err, "text tower"));
  TestFolder lines;
  write_text(lines / "damaged.jsonl", "{\"text\": \"a\"}\n{\"name\": \"b\"}\n");
  const RunResult no_member =
      run_vit({"tokenize", "--tokenizer", folder, "--text-file", lines / "damaged.jsonl"});
  CHECK(no_member.exit_code == 1);
  CHECK(contains(no_member.err, "line 2"));
}
